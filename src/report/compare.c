/* Two logs side by side, operation by operation: did a change make it better? */
#include <stdio.h>
#include <string.h>

#include "report/print.h"

static const struct op_counts *find_op(const struct analysis *a, const char *name)
{
	char there[1024];

	for (size_t i = 0; i < a->op_count; i++)
		if (strcmp(report_op_name(a->log, &a->op[i], there, sizeof(there)), name) == 0)
			return &a->op[i];
	return NULL;
}

static bool differ(const struct op_counts *x, const struct op_counts *y)
{
	for (int i = 0; i < FIND_COUNT; i++)
		if (x->found[i] != y->found[i])
			return true;
	return x->writes != y->writes || x->wire_sends != y->wire_sends;
}

static void print_change(FILE *out, const char *what, unsigned long x, unsigned long y)
{
	if (x != y)
		fprintf(out, "  %s %lu -> %lu", what, x, y);
}

static void print_op(FILE *out, const char *name, const struct op_counts *x,
                     const struct op_counts *y)
{
	fprintf(out, "%-36s", name);
	if (!differ(x, y))
		fprintf(out, "  as before: %lu writes", y->writes);
	print_change(out, "writes", x->writes, y->writes);
	print_change(out, "sent", x->wire_sends, y->wire_sends);
	for (int i = 0; i < FIND_COUNT; i++)
		print_change(out, finding_name((enum finding)i), x->found[i], y->found[i]);
	fputc('\n', out);
}

static unsigned long more(const struct op_counts *x, const struct op_counts *y, unsigned mask)
{
	unsigned long sum = 0;

	for (int i = 0; i < FIND_COUNT; i++)
		if ((mask >> i & 1) && y->found[i] > x->found[i])
			sum += y->found[i] - x->found[i];
	return sum;
}

unsigned long report_compare(FILE *out, const struct analysis *before, const struct analysis *after,
                             unsigned mask)
{
	static const struct op_counts none;
	const struct op_counts *op;
	unsigned long sum = 0;
	char name[1024];

	print_op(out, "all", &before->all, &after->all);
	for (size_t i = 0; i < after->op_count; i++) {
		report_op_name(after->log, &after->op[i], name, sizeof(name));
		op = find_op(before, name);
		print_op(out, name, op ? op : &none, &after->op[i]);
		sum += more(op ? op : &none, &after->op[i], mask);
	}
	for (size_t i = 0; i < before->op_count; i++) {
		report_op_name(before->log, &before->op[i], name, sizeof(name));
		if (!find_op(after, name))
			print_op(out, name, &before->op[i], &none);
	}
	return sum;
}
