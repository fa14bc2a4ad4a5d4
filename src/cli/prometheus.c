/* See prometheus.h. Names follow the conventions of the format: a prefix, base units, _total for
 * counters. Counts by operation come from the event log, which may be rotated: to the scraper that
 * is a counter that began anew. Everything else comes from the ledger, which never goes back. */
#include "cli/prometheus.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* How many records of one operation are in doubt. */
struct doubts {
	struct {
		char operation[64];
		unsigned long count;
	} * of;
	size_t n;
	unsigned long state[REC_TOMBSTONE + 1];
	bool failed;
};

static void print_label(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		if (*text == '\n')
			fputs("\\n", stdout);
		else
			putchar(*text);
	}
	putchar('"');
}

static void print_head(const char *name, const char *type, const char *help)
{
	printf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static const char *operation_of(const struct log *log, const struct flow *flow)
{
	return flow->operation ? log_text(log, flow->operation) : "unlisted";
}

static void print_writes(const struct log *log, const struct flows *flows)
{
	print_head("sendonce_writes_total", "counter",
	           "Writes in the event log, by operation and what was done with them.");
	for (size_t i = 0; i < flows->count; i++) {
		for (int kind = 0; kind < FLOW_COUNT; kind++) {
			if (!flows->of[i].writes[kind])
				continue;
			fputs("sendonce_writes_total{operation=", stdout);
			print_label(operation_of(log, &flows->of[i]));
			printf(",verdict=\"%s\"} %lu\n", flow_name((enum flow_kind)kind),
			       flows->of[i].writes[kind]);
		}
	}
	print_head("sendonce_writes_unknown_total", "counter",
	           "Writes in the event log that ended in doubt, by operation.");
	for (size_t i = 0; i < flows->count; i++) {
		fputs("sendonce_writes_unknown_total{operation=", stdout);
		print_label(operation_of(log, &flows->of[i]));
		printf("} %lu\n", flows->of[i].unknown);
	}
}

/* --- the ledger --- */

static void add_doubt(struct doubts *d, const char *operation)
{
	void *more;

	for (size_t i = 0; i < d->n; i++) {
		if (strcmp(d->of[i].operation, operation) == 0) {
			d->of[i].count++;
			return;
		}
	}
	more = realloc(d->of, (d->n + 1) * sizeof(*d->of));
	if (!more) {
		d->failed = true;
		return;
	}
	d->of = more;
	snprintf(d->of[d->n].operation, sizeof(d->of->operation), "%s", operation);
	d->of[d->n++].count = 1;
}

static int count_record(void *ctx, const struct record_view *record)
{
	struct doubts *d = ctx;

	if (record->state > REC_NONE && record->state <= REC_TOMBSTONE)
		d->state[record->state]++;
	if (cli_in_doubt(record))
		add_doubt(d, record->operation);
	return d->failed;
}

static void print_records(const struct doubts *d)
{
	print_head("sendonce_writes_in_doubt", "gauge",
	           "Writes in doubt: sent, and nobody knows what became of them. A person has to "
	           "look.");
	if (!d->n)
		puts("sendonce_writes_in_doubt 0");
	for (size_t i = 0; i < d->n; i++) {
		fputs("sendonce_writes_in_doubt{operation=", stdout);
		print_label(d->of[i].operation);
		printf("} %lu\n", d->of[i].count);
	}
	print_head("sendonce_records", "gauge", "Records in the ledger, by state.");
	for (int i = REC_RESERVED; i <= REC_TOMBSTONE; i++)
		printf("sendonce_records{state=\"%s\"} %lu\n",
		       record_state_name((enum record_state)i), d->state[i]);
}

static void print_counters(const struct ledger *ledger)
{
	char name[128];

	for (int i = 0; i < COUNT_COUNT; i++) {
		snprintf(name, sizeof(name), "sendonce_ledger_%s_total",
		         ledger_counter_name((enum ledger_counter)i));
		print_head(name, "counter", "The ledger's counter of this name, see stats.");
		printf("%s %" PRIu64 "\n", name, ledger_counter(ledger, (enum ledger_counter)i));
	}
}

int cli_prometheus(struct ledger *ledger, const struct log *log, const struct flows *flows)
{
	struct doubts doubts = {0};

	ledger_each(ledger, clock_now(), count_record, &doubts);
	if (!doubts.failed) {
		if (flows->count)
			print_writes(log, flows);
		print_records(&doubts);
		print_counters(ledger);
	}
	free(doubts.of);
	return doubts.failed ? -1 : 0;
}
