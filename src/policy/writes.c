/* Rules, and the files that bring more of them.
 *
 * A file's own rules come first, so that one rule of an operator goes before a provider's
 * ready-made ones; then those of the files it includes, in their order. An included file holds
 * rules and nothing that is decided once for all. Errors name the place in the file they are in; a
 * file that is missing is an error of the one that includes it. */
#include "policy/writes.h"

#include <stdlib.h>
#include <string.h>

#include "policy/file.h"
#include "policy/rule.h"

enum { INCLUDE_DEPTH = 8, INCLUDE_FILES = 256 };

int writes_version(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	struct span text;
	int rc = reader_scalar(r, f, value, &text);

	(void)at;
	if (rc || span_is(text, "1"))
		return rc;
	return reader_fail_value(r, f, value, "cannot be read: this sendonce knows version 1");
}

static int check_include(struct reader *r, const struct field *f, const struct node *item, void *at)
{
	struct span text;
	int rc = reader_scalar(r, f, item, &text);

	(void)at;
	if (rc || span_starts(text, "/"))
		return rc;
	return reader_fail_value(r, f, item,
	                         "is a relative path: give an absolute one, as in "
	                         "/usr/share/sendonce/policy/stripe.yaml");
}

int writes_include(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	return reader_list(r, f, value, check_include, at);
}

int writes_read(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	struct policy *policy = at;
	struct rule *grown;
	int rc = 0;

	policy->has_writes = true;
	if (value->kind != NODE_LIST)
		return reader_fail(r, value, "`%s` must be a list of rules, each begun with a -",
		                   f->name);
	if (value->count == 0)
		return 0;
	grown = realloc(policy->rules, (policy->rule_count + value->count) * sizeof(*grown));
	if (!grown)
		return reader_nomem(r);
	policy->rules = grown;
	memset(grown + policy->rule_count, 0, value->count * sizeof(*grown));
	for (const struct node *n = value->first; n && !rc; n = n->next)
		rc = rule_read(r, n, &policy->rules[policy->rule_count++]);
	return rc;
}

static const struct field included_fields[] = {{"version", writes_version, 0, NULL},
                                               {"include", writes_include, 0, NULL},
                                               {"writes", writes_read, 0, NULL},
                                               {NULL, NULL, 0, NULL}};
static const struct section included_section = {"an included file", included_fields};

static int read_includes(struct reader *r, const struct node *root, struct policy *policy,
                         int depth);

/* `r` reads the file that includes it. */
static int read_tree(const struct reader *r, struct span text, struct policy *policy, int depth)
{
	struct reader inner = *r;
	struct node *root = NULL;
	int rc;

	inner.path = policy->files.item[policy->files.count - 1]; /* rules keep it */
	rc = tree_parse(inner.path, text, &root, r->error);
	if (!rc)
		rc = expand_tree(&inner, root);
	if (!rc)
		rc = reader_fields(&inner, root, &included_section, policy);
	if (!rc && !tree_get(root, "version"))
		rc = reader_fail(&inner, root,
		                 "`version` is missing: begin the file with `version: 1`");
	if (!rc)
		rc = read_includes(&inner, root, policy, depth);
	tree_free(root);
	return rc;
}

/* A file that cannot be read is a fault of the line that names it. */
static int read_included(struct reader *r, const struct node *item, struct buf *b)
{
	char why[sizeof(r->error->text)];
	int rc = file_read(item->text.p, b, r->error);

	if (rc == POLICY_MISSING)
		return reader_fail(r, item, "`include: %.300s`: there is no such file",
		                   item->text.p);
	if (rc != POLICY_INVALID)
		return rc;
	memcpy(why, r->error->text, sizeof(why));
	return reader_fail(r, item, "`include`: %.600s", why);
}

static int read_one(struct reader *r, const struct node *item, struct policy *policy, int depth)
{
	struct buf b = {0};
	int rc;

	if (depth == INCLUDE_DEPTH || policy->files.count == INCLUDE_FILES)
		return reader_fail(r, item,
		                   "`include` goes too deep: files include each other, or more "
		                   "than 256 of them");
	rc = reader_append(r, item->text, &policy->files);
	if (!rc)
		rc = read_included(r, item, &b);
	if (!rc)
		rc = read_tree(r, span_buf(&b), policy, depth + 1);
	buf_free(&b);
	return rc;
}

static int read_includes(struct reader *r, const struct node *root, struct policy *policy,
                         int depth)
{
	const struct node *list = tree_get(root, "include");
	int rc = 0;

	if (!list)
		return 0;
	if (list->kind == NODE_SCALAR)
		return read_one(r, list, policy, depth);
	for (const struct node *n = list->first; n && !rc; n = n->next)
		rc = read_one(r, n, policy, depth);
	return rc;
}

int writes_included(struct reader *r, const struct node *root, struct policy *policy)
{
	return read_includes(r, root, policy, 0);
}
