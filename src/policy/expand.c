/* ${NAME} in the values of a policy.
 *
 * Done once on the tree, before anything is read, so that each reader sees what it would see
 * without variables. A message shows a value as it was written: what a variable holds may be a
 * secret. What was filled in is not looked at again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/values.h"
#include "policy/writes.h"

static bool is_key(const struct node *n, const char *key)
{
	return n->key && span_is(n->key->text, key);
}

/* Values whose readers do it themselves. `parent` null: of the root. */
static bool is_left(const struct node *parent, const struct node *n)
{
	if (n->kind != NODE_SCALAR)
		return false;
	if (!parent)
		return is_key(n, "scope") || is_key(n, "run") || is_key(n, "step") ||
		       is_key(n, "events");
	return is_key(parent, "ledger") && is_key(n, "path");
}

static bool has_variable(struct span text)
{
	return text.n > 1 && memmem(text.p, text.n, "${", 2);
}

static int fill_in(struct reader *r, struct node *n)
{
	const struct field f = {n->key ? n->key->text.p : "an item of a list", NULL, 0, NULL};
	char *text = NULL, name[64] = "";

	switch (value_expand(n->text, r->env, r->ctx, &text, name)) {
	case EXPAND_OK:
		n->written = n->text;
		n->text = span_of(text);
		return 0;
	case EXPAND_UNSET:
		return reader_fail(r, n, "`%.60s` needs the variable %s, which is not set", f.name,
		                   name);
	case EXPAND_BAD:
		return reader_fail_value(r, &f, n,
		                         "has a ${ without a variable's name and a }: write "
		                         "${NAME}; other forms are not supported");
	case EXPAND_NOMEM:
		break;
	}
	return reader_nomem(r);
}

/* As deep as the tree, which is bounded. */
static int expand_below(struct reader *r, struct node *parent, bool top)
{
	int rc = 0;

	for (struct node *n = parent->first; n && !rc; n = n->next) {
		if (n->kind != NODE_SCALAR)
			rc = expand_below(r, n, false);
		else if (has_variable(n->text) && !is_left(top ? NULL : parent, n))
			rc = fill_in(r, n);
	}
	return rc;
}

int expand_tree(struct reader *r, struct node *root)
{
	return expand_below(r, root, true);
}
