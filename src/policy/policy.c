/* The policy as a whole: its file, its top-level keys, its life.
 *
 * A file is read in one go, bounded, from a descriptor that is closed again before the text is
 * looked at; the first thing wrong with it ends the reading. Nothing here decides what happens when
 * a policy is missing or invalid: that is the caller's, who knows whether it was named.
 *
 * SENDONCE_MODE, SENDONCE_LEDGER and SENDONCE_LOG are not read here, only variables that the file
 * (or a default of it) names. */
#include "policy/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/rule.h"

/* --- top-level keys --- */

static const struct choice modes[] = {
        {"off", MODE_OFF, CHOICE_ON},        {"enforce", MODE_ENFORCE, CHOICE_ON},
        {"audit", MODE_AUDIT, CHOICE_ON},    {"inject", MODE_INJECT, CHOICE_ON},
        {"replay", MODE_REPLAY, CHOICE_OFF}, {NULL, 0, CHOICE_ON}};
static const struct choice unlisteds[] = {{"pass", UNLISTED_PASS, CHOICE_ON},
                                          {"audit", UNLISTED_AUDIT, CHOICE_ON},
                                          {"refuse", UNLISTED_REFUSE, CHOICE_OFF},
                                          {NULL, 0, CHOICE_ON}};
static const struct choice replay_reads[] = {
        {"pass", 0, CHOICE_ON}, {"refuse", 1, CHOICE_OFF}, {NULL, 0, CHOICE_ON}};
static const struct choice durabilities[] = {{"power", DURABILITY_POWER, CHOICE_ON},
                                             {"process", DURABILITY_PROCESS, CHOICE_ON},
                                             {NULL, 0, CHOICE_ON}};

static int read_version(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	struct span text;
	int rc = reader_scalar(r, f, value, &text);

	(void)at;
	if (rc || span_is(text, "1"))
		return rc;
	return reader_fail_value(r, f, value, "cannot be read: this sendonce knows version 1");
}

static int read_reads(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	int word; /* one word is supported, so there is nothing to keep */

	(void)at;
	return reader_choice(r, f, value, &word);
}

/* A step is the program's own name for what it does, so it is plain text or comes from a header. */
static int read_step(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	struct span text;
	int rc;

	if (value->kind == NODE_MAP)
		return reader_expanded(r, f, value, at);
	rc = reader_scalar(r, f, value, &text);
	if (rc || text.n == 0)
		return rc;
	rc = reader_copy(r, text, at);
	return rc ? rc : reader_check_name(r, f, value, *(char **)at);
}

static int read_ledger_path(struct reader *r, const struct field *f, const struct node *value,
                            void *at)
{
	if (value->kind == NODE_SCALAR && span_is(value->text, "memory"))
		return reader_text(r, f, value, at);
	return reader_path(r, f, value, at);
}

/* The default's own words are accepted, as every default is. */
static int read_events_path(struct reader *r, const struct field *f, const struct node *value,
                            void *at)
{
	if (value->kind == NODE_SCALAR && span_is(value->text, "beside the ledger"))
		return 0;
	return reader_path(r, f, value, at);
}

static int check_include(struct reader *r, const struct field *f, const struct node *item, void *at)
{
	struct span text;

	(void)at;
	return reader_scalar(r, f, item, &text);
}

static int read_include(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	int rc = reader_list(r, f, value, check_include, at);

	if (rc || (value->kind == NODE_LIST && value->count == 0))
		return rc;
	return reader_fail_unsupported(r, f, value, value->kind == NODE_LIST ? "[...]" : NULL);
}

static int read_writes(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	struct policy *policy = at;
	int rc = 0;

	policy->has_writes = true;
	if (value->kind != NODE_LIST)
		return reader_fail(r, value, "`%s` must be a list of rules, each begun with a -",
		                   f->name);
	if (value->count == 0)
		return 0;
	policy->rules = calloc(value->count, sizeof(*policy->rules));
	if (!policy->rules)
		return reader_nomem(r);
	for (const struct node *n = value->first; n && !rc; n = n->next)
		rc = rule_read(r, n, &policy->rules[policy->rule_count++]);
	return rc;
}

#define AT(member) offsetof(struct policy, member)

/* What a ledger takes at least: less would be good here and refused when it is made. */
static const struct number_limits least_ledger = {256 << 10, NULL, 0};

static const struct field ledger_fields[] = {
        {"ledger.path", read_ledger_path, AT(ledger_path), NULL},
        {"ledger.durability", reader_choice, AT(durability), durabilities},
        {"ledger.size", reader_size, AT(ledger_size), &least_ledger},
        {"ledger.max_response", reader_size, AT(max_response), NULL},
        {"ledger.group", reader_bool, AT(ledger_group), NULL},
        {NULL, NULL, 0, NULL}};
static const struct section ledger_section = {"`ledger`", ledger_fields};

static const struct field policy_fields[] = {{"version", read_version, 0, NULL},
                                             {"mode", reader_choice, AT(mode), modes},
                                             {"scope", reader_expanded, AT(scope), NULL},
                                             {"run", reader_expanded, AT(run), NULL},
                                             {"step", read_step, AT(step), NULL},
                                             {"unlisted", reader_choice, AT(unlisted), unlisteds},
                                             {"replay_reads", read_reads, 0, replay_reads},
                                             {"ledger", reader_section, 0, &ledger_section},
                                             {"events", read_events_path, AT(events_path), NULL},
                                             {"include", read_include, 0, NULL},
                                             {"writes", read_writes, 0, NULL},
                                             {NULL, NULL, 0, NULL}};
static const struct section policy_section = {"the policy", policy_fields};

static const struct section *const all_sections[] = {
        &policy_section,   &ledger_section,        &rule_section,         &rule_provider_section,
        &rule_key_section, &rule_identity_section, &rule_answers_section, NULL};

/* --- the whole policy --- */

/* Defaults that come from the environment, for keys the file leaves out. */
static int read_environment(struct reader *r, const struct node *root, struct policy *policy)
{
	const struct field scope = {"SENDONCE_SCOPE", reader_expanded, 0, NULL};
	const struct field run = {"SENDONCE_RUN", reader_expanded, 0, NULL};
	struct node value = {.line = root->line, .column = root->column};
	int rc = 0;

	value.text = span_of("${SENDONCE_SCOPE}");
	if (!tree_get(root, "scope"))
		rc = reader_expanded(r, &scope, &value, &policy->scope);
	value.text = span_of("${SENDONCE_RUN}");
	if (!rc && !tree_get(root, "run"))
		rc = reader_expanded(r, &run, &value, &policy->run);
	return rc;
}

static int check_policy(struct reader *r, const struct node *root, const struct policy *policy)
{
	const struct node *ledger = tree_get(root, "ledger");

	if (!tree_get(root, "version"))
		return reader_fail(r, root,
		                   "`version` is missing: begin the policy with "
		                   "`version: 1`");
	if (policy->max_response >= policy->ledger_size)
		return reader_fail(r, ledger ? ledger : root,
		                   "`ledger.max_response` must be smaller than `ledger.size`: make "
		                   "one of them fit the other");
	return 0;
}

static int read_policy(struct reader *r, const struct node *root, struct policy *policy)
{
	int rc;

	policy->mode = MODE_ENFORCE;
	policy->ledger_size = INT64_C(32) << 20;
	policy->max_response = INT64_C(1) << 20;
	rc = reader_fields(r, root, &policy_section, policy);
	if (!rc)
		rc = check_policy(r, root, policy);
	return rc ? rc : read_environment(r, root, policy);
}

int policy_parse(const char *path, const char *text, size_t n, policy_env *env, void *ctx,
                 struct policy **out, struct policy_error *error)
{
	struct policy *policy = calloc(1, sizeof(*policy));
	struct reader r = {path, env, ctx, error, all_sections};
	struct node *root = NULL;
	int saved = errno, rc;

	*out = NULL;
	*error = (struct policy_error){0};
	rc = policy ? reader_copy(&r, span_of(path), &policy->path) : reader_nomem(&r);
	if (!rc)
		rc = tree_parse(path, (struct span){text, n}, &root, error);
	if (!rc) {
		r.path = policy->path; /* rules keep it */
		rc = read_policy(&r, root, policy);
	}
	tree_free(root);
	if (rc)
		policy_free(policy);
	else
		*out = policy;
	errno = saved;
	return rc;
}

void policy_free(struct policy *policy)
{
	if (!policy)
		return;
	for (size_t i = 0; i < policy->rule_count; i++)
		rule_free(&policy->rules[i]);
	free(policy->rules);
	free(policy->path);
	free(policy->scope);
	free(policy->run);
	free(policy->step);
	free(policy->ledger_path);
	free(policy->events_path);
	free(policy);
}

/* --- the file --- */

static int fail_file(struct policy_error *error, const char *path, int code, const char *text)
{
	tree_error(error, path, 0, 0, "%s", text);
	return code;
}

/* ENOTDIR: a folder of the path is missing in another way. */
static int fail_open(struct policy_error *error, const char *path, int number)
{
	if (number == ENOENT || number == ENOTDIR)
		return fail_file(error, path, POLICY_MISSING, "there is no such policy file");
	if (number == EACCES)
		return fail_file(error, path, POLICY_INVALID,
		                 "the policy cannot be read: permission denied");
	return fail_file(error, path, POLICY_INVALID, "the policy cannot be read");
}

/* A pipe could keep the host waiting for ever. */
static int check_file(int fd, const char *path, struct policy_error *error)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return fail_open(error, path, errno);
	if (!S_ISREG(st.st_mode))
		return fail_file(error, path, POLICY_INVALID,
		                 "the policy cannot be read: not a regular file");
	return 0;
}

/* One byte more than allowed is enough for tree_parse to refuse it. */
static int read_all(int fd, struct buf *b, const char *path, struct policy_error *error)
{
	char chunk[8192];

	while (b->n <= TREE_BYTES) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n == 0)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_open(error, path, errno);
		buf_add(b, chunk, (size_t)n);
		if (b->failed)
			return fail_file(error, path, POLICY_NOMEM, "out of memory");
	}
	return 0;
}

static int read_file(const char *path, struct buf *b, struct policy_error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int rc;

	if (fd < 0)
		return fail_open(error, path, errno);
	rc = check_file(fd, path, error);
	if (!rc)
		rc = read_all(fd, b, path, error);
	close(fd);
	return rc;
}

int policy_load(const char *path, policy_env *env, void *ctx, struct policy **out,
                struct policy_error *error)
{
	struct buf b = {0};
	int saved = errno, rc;

	*out = NULL;
	*error = (struct policy_error){0};
	rc = read_file(path, &b, error);
	if (!rc)
		rc = policy_parse(path, b.data, b.n, env, ctx, out, error);
	buf_free(&b);
	errno = saved;
	return rc;
}

/* --- names --- */

const char *policy_mode_name(enum policy_mode mode)
{
	for (const struct choice *c = modes; c->text; c++) {
		if (c->value == (int)mode)
			return c->text;
	}
	return "?";
}

int policy_mode_parse(const char *text)
{
	for (const struct choice *c = modes; c->text; c++) {
		if (text && strcmp(c->text, text) == 0)
			return c->value;
	}
	return -1;
}
