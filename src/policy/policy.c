/* The policy as a whole: its file, its top-level keys, its life.
 *
 * The first thing wrong with a file ends the reading. Nothing here decides what happens when
 * a policy is missing or invalid: that is the caller's, who knows whether it was named.
 *
 * SENDONCE_MODE, SENDONCE_LEDGER and SENDONCE_LOG are not read here, only variables that the file
 * (or a default of it) names. */
#include "policy/policy.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "policy/file.h"
#include "policy/index.h"
#include "policy/rule.h"
#include "policy/writes.h"

/* --- top-level keys --- */

static const struct choice modes[] = {
        {"off", MODE_OFF, CHOICE_ON},       {"enforce", MODE_ENFORCE, CHOICE_ON},
        {"audit", MODE_AUDIT, CHOICE_ON},   {"inject", MODE_INJECT, CHOICE_ON},
        {"replay", MODE_REPLAY, CHOICE_ON}, {NULL, 0, CHOICE_ON}};
static const struct choice unlisteds[] = {{"pass", UNLISTED_PASS, CHOICE_ON},
                                          {"audit", UNLISTED_AUDIT, CHOICE_ON},
                                          {"refuse", UNLISTED_REFUSE, CHOICE_ON},
                                          {NULL, 0, CHOICE_ON}};
static const struct choice replay_reads[] = {
        {"pass", READS_PASS, CHOICE_ON}, {"refuse", READS_REFUSE, CHOICE_ON}, {NULL, 0, CHOICE_ON}};
static const struct choice durabilities[] = {{"power", DURABILITY_POWER, CHOICE_ON},
                                             {"process", DURABILITY_PROCESS, CHOICE_ON},
                                             {NULL, 0, CHOICE_ON}};

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

static const size_t scope_at = AT(scope_from), run_at = AT(run_from), step_at = AT(step_from);

static const struct field policy_fields[] = {
        {"version", writes_version, 0, NULL},
        {"mode", reader_choice, AT(mode), modes},
        {"scope", reader_expanded, AT(scope), &scope_at},
        {"run", reader_expanded, AT(run), &run_at},
        {"step", reader_expanded, AT(step), &step_at},
        {"unlisted", reader_choice, AT(unlisted), unlisteds},
        {"replay_reads", reader_choice, AT(replay_reads), replay_reads},
        {"ledger", reader_section, 0, &ledger_section},
        {"events", read_events_path, AT(events_path), NULL},
        {"include", writes_include, 0, NULL},
        {"writes", writes_read, 0, NULL},
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
		rc = writes_included(r, root, policy);
	if (!rc && index_make(policy, &policy->index) != 0)
		rc = reader_nomem(r);
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
		rc = expand_tree(&r, root);
	}
	if (!rc)
		rc = read_policy(&r, root, policy);
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
	index_free(policy->index);
	reader_free_list(&policy->files);
	free(policy->path);
	free(policy->scope);
	free(policy->run);
	free(policy->step);
	free(policy->scope_from.header);
	free(policy->run_from.header);
	free(policy->step_from.header);
	free(policy->ledger_path);
	free(policy->events_path);
	free(policy);
}

/* --- the file --- */

int policy_load(const char *path, policy_env *env, void *ctx, struct policy **out,
                struct policy_error *error)
{
	struct buf b = {0};
	int saved = errno, rc;

	*out = NULL;
	*error = (struct policy_error){0};
	rc = file_read(path, &b, error);
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
