/* Reading one entry of `writes`.
 *
 * The tables below are the schema: each key, how it is read, where it goes. Keys and words this
 * version does not act on are checked in their form first and then refused, so that a typing error
 * is never reported as a missing feature. */
#include "policy/rule.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "policy/matcher.h"
#include "policy/predicate.h"
#include "policy/values.h"

#define SECOND INT64_C(1000000)

/* --- values with a form of their own --- */

static int read_match(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	struct rule *rule = at;
	const char *problem = "";
	struct span text;
	int rc = reader_scalar(r, f, value, &text);

	if (rc)
		return rc;
	rc = matcher_parse(text, &rule->matcher, &problem);
	if (rc == MATCHER_NOMEM)
		return reader_nomem(r);
	if (rc)
		return reader_fail_value(r, f, value, problem);
	rc = reader_copy(r, text, &rule->match_text);
	return rc ? rc : reader_copy(r, span_of(matcher_path(rule->matcher)), &rule->path_text);
}

/* Events and the ledger's table show it, one line each. */
static int read_operation(struct reader *r, const struct field *f, const struct node *value,
                          void *at)
{
	int rc = reader_text(r, f, value, at);

	if (!rc && value->text.n > 128)
		rc = reader_fail_value(r, f, value, "is longer than 128 bytes");
	return rc;
}

static int read_target(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	char **target = at;
	int rc = reader_text(r, f, value, target);

	if (rc || strcmp(*target, "auto") != 0)
		return rc;
	free(*target);
	*target = NULL;
	return 0;
}

static int read_account_item(struct reader *r, const struct field *f, const struct node *item,
                             void *at)
{
	struct rule *rule = at;
	struct span text, name;
	bool header, env;
	int rc = reader_scalar(r, f, item, &text);

	if (rc)
		return rc;
	name = value_after(text, "header:", &header);
	if (header && !value_is_token(name))
		return reader_fail_value(r, f, item, "does not name a header: write header:NAME");
	if (!header)
		name = value_after(text, "env:", &env);
	if (!header && (!env || name.n == 0 || memchr(name.p, '=', name.n)))
		return reader_fail_value(r, f, item,
		                         "is no account: write auto, none, header:NAME, env:NAME, "
		                         "or a list of the last two");
	rule->account = ACCOUNT_LIST;
	return reader_append(r, text, &rule->account_from);
}

static int read_account(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	struct rule *rule = at;

	rule->account = ACCOUNT_AUTO;
	reader_free_list(&rule->account_from);
	if (value->kind == NODE_SCALAR && span_is(value->text, "auto"))
		return 0;
	if (value->kind == NODE_SCALAR && span_is(value->text, "none")) {
		rule->account = ACCOUNT_NONE;
		return 0;
	}
	if (value->kind == NODE_LIST && value->count == 0)
		return reader_fail(r, value, "`%s` is an empty list: write none if all are one",
		                   f->name);
	return reader_list(r, f, value, read_account_item, rule);
}

/* window:LENGTH */
static int read_window(struct reader *r, const struct field *f, const struct node *value,
                       struct span length, struct rule *rule)
{
	const char *problem = value_duration(length, &rule->window);

	if (problem)
		return reader_fail_value(r, f, value, problem);
	if (rule->window == 0)
		return reader_fail_value(r, f, value,
		                         "is no time at all: write after-answer instead");
	rule->repeat = REPEAT_WINDOW;
	return 0;
}

static int read_repeat(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	static const struct choice repeats[] = {{"replay", REPEAT_REPLAY, CHOICE_ON},
	                                        {"after-answer", REPEAT_AFTER_ANSWER, CHOICE_ON},
	                                        {"ordinal", REPEAT_ORDINAL, CHOICE_ON},
	                                        {"window:60s", REPEAT_WINDOW, CHOICE_ON},
	                                        {NULL, 0, CHOICE_ON}};
	const struct field word = {f->name, reader_choice, 0, repeats};
	struct rule *rule = at;
	struct span text, length;
	bool window;
	int rc = reader_scalar(r, f, value, &text);

	if (rc)
		return rc;
	length = value_after(text, "window:", &window);
	if (window)
		return read_window(r, f, value, length, rule);
	return reader_choice(r, &word, value, &rule->repeat);
}

static int read_pointer(struct reader *r, const struct field *f, const struct node *item, void *at)
{
	struct span text;
	int rc = reader_scalar(r, f, item, &text);

	if (!rc && value_pointer(text))
		rc = reader_fail_value(r, f, item, value_pointer(text));
	return rc ? rc : reader_append(r, text, at);
}

static int read_echo(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	reader_free_list(at);
	return reader_list(r, f, value, read_pointer, at);
}

/* --- tables --- */

static const char *const when_parts[] = {"json", "form", "query", "header", NULL};
static const char *const body_parts[] = {"json", NULL};

static const struct choice expireds[] = {{"execute", EXPIRED_EXECUTE, CHOICE_ON},
                                         {"refuse", EXPIRED_REFUSE, CHOICE_ON},
                                         {NULL, 0, CHOICE_ON}};
static const struct choice unknowns[] = {{"auto", UNKNOWN_AUTO, CHOICE_ON},
                                         {"resend", UNKNOWN_RESEND, CHOICE_ON},
                                         {"refuse", UNKNOWN_REFUSE, CHOICE_ON},
                                         {NULL, 0, CHOICE_ON}};
static const struct choice exits[] = {
        {"wait", EXIT_WAIT, CHOICE_ON}, {"detach", EXIT_DETACH, CHOICE_ON}, {NULL, 0, CHOICE_ON}};
static const struct choice oversizes[] = {{"refuse", OVERSIZE_REFUSE, CHOICE_ON},
                                          {"pass", OVERSIZE_PASS, CHOICE_ON},
                                          {NULL, 0, CHOICE_ON}};
static const struct choice stores[] = {
        {"full", STORE_FULL, CHOICE_ON}, {"meta", STORE_META, CHOICE_ON}, {NULL, 0, CHOICE_ON}};
static const struct choice refusals[] = {{"auto", REFUSE_AUTO, CHOICE_ON},
                                         {"response", REFUSE_RESPONSE, CHOICE_ON},
                                         {"error", REFUSE_ERROR, CHOICE_ON},
                                         {NULL, 0, CHOICE_ON}};

/* 0 would drop every doubt at once, which is what `on_unknown: resend` says openly. */
static const struct number_limits never = {1, "never", POLICY_NEVER};
static const struct number_limits automatic = {0, "auto", POLICY_AUTO};

#define AT(member) offsetof(struct rule, member)

static const struct field provider_fields[] = {
        {"provider.dedups", reader_bool, AT(dedups), NULL},
        {"provider.key_ttl", reader_duration, AT(key_ttl), NULL},
        {"provider.stores", reader_statuses, AT(stores), NULL},
        {NULL, NULL, 0, NULL}};
static const struct field identity_fields[] = {
        {"identity.target", read_target, AT(target), NULL},
        {"identity.fields", reader_selectors, AT(fields), NULL},
        {"identity.ignore", reader_selectors, AT(ignore), NULL},
        {"identity.must_match", reader_selectors, AT(must_match), NULL},
        {"identity.account", read_account, 0, NULL},
        {NULL, NULL, 0, NULL}};
static const struct field answers_fields[] = {
        {"answers.final", reader_statuses, AT(final), NULL},
        {"answers.not_executed", reader_statuses, AT(not_executed), NULL},
        {"answers.already_done", reader_statuses, AT(already_done), NULL},
        {"answers.in_progress", reader_statuses, AT(in_progress), NULL},
        {"answers.body", predicate_read, AT(body), body_parts},
        {"answers.echo", read_echo, AT(echo), NULL},
        {NULL, NULL, 0, NULL}};

const struct section rule_provider_section = {"`provider`", provider_fields};
const struct section rule_identity_section = {"`identity`", identity_fields};
const struct section rule_answers_section = {"`answers`", answers_fields};

static const struct field rule_fields[] = {
        {"operation", read_operation, AT(operation), NULL},
        {"match", read_match, 0, NULL},
        {"when", predicate_read, AT(when), when_parts},
        {"provider", reader_section, 0, &rule_provider_section},
        {"key", reader_section, 0, &rule_key_section},
        {"identity", reader_section, 0, &rule_identity_section},
        {"repeat", read_repeat, 0, NULL},
        {"replay_for", reader_duration, AT(replay_for), NULL},
        {"answers", reader_section, 0, &rule_answers_section},
        {"ttl", reader_duration, AT(ttl), NULL},
        {"on_expired", reader_choice, AT(on_expired), expireds},
        {"on_unknown", reader_choice, AT(on_unknown), unknowns},
        {"unknown_ttl", reader_duration, AT(unknown_ttl), &never},
        {"linger", reader_duration, AT(linger), NULL},
        {"exit", reader_choice, AT(exit), exits},
        {"exit_wait", reader_duration, AT(exit_wait), &automatic},
        {"max_request", reader_size, AT(max_request), NULL},
        {"oversize", reader_choice, AT(oversize), oversizes},
        {"store", reader_choice, AT(store), stores},
        {"refuse_as", reader_choice, AT(refuse_as), refusals},
        {NULL, NULL, 0, NULL}};
const struct section rule_section = {"a rule of `writes`", rule_fields};

/* --- the whole rule --- */

static void add_statuses(struct status_set *set, const char *const *text)
{
	for (; *text; text++)
		value_status(span_of(*text), set);
}

static int set_defaults(struct reader *r, struct rule *rule)
{
	static const char *const final[] = {"2xx", "303", NULL};
	static const char *const not_executed[] = {"400", "401", "402", "403", "404", "405", "411",
	                                           "413", "414", "415", "422", "429", NULL};

	add_statuses(&rule->final, final);
	add_statuses(&rule->not_executed, not_executed);
	rule->replay_for = 600 * SECOND;
	rule->ttl = 86400 * SECOND;
	rule->unknown_ttl = POLICY_NEVER;
	rule->linger = 30 * SECOND;
	rule->exit_wait = POLICY_AUTO;
	rule->max_request = INT64_C(64) << 20;
	/* The rest of the enums have their default first. */
	return reader_copy(r, span_of("Idempotency-Key"), &rule->carrier_name);
}

static const struct node *part(const struct node *map, const char *section, const char *key)
{
	const struct node *n = tree_get(map, section);

	return n ? tree_get(n, key) : NULL;
}

/* Only a header has quotes of its own around a text. */
static int check_key(struct reader *r, const struct node *map, const struct rule *rule)
{
	const struct node *carrier = part(map, "key", "carrier");

	if (rule->format == FORMAT_SF_STRING && rule->carrier != CARRIER_HEADER)
		return reader_fail(r, part(map, "key", "format"),
		                   "`key.format: sf-string` is for headers only: leave it out");
	if (rule->carrier != CARRIER_NONE)
		return 0;
	if (rule->dedups)
		return reader_fail(r, carrier,
		                   "`key.carrier: none` sends no key, so that `provider.dedups: "
		                   "true` cannot be: leave one of them out");
	if (rule->first_sent)
		return reader_fail(r, part(map, "key", "first_sent"),
		                   "`key.first_sent` says when a key was first sent, and "
		                   "`key.carrier: none` sends none: leave one of them out");
	if (rule->key_required)
		return reader_fail(r, carrier,
		                   "`key.carrier: none` has no place for the key that "
		                   "`key.required` asks for: leave one of them out");
	return 0;
}

static int check_provider(struct reader *r, const struct node *map, const struct rule *rule)
{
	const struct node *dedups = part(map, "provider", "dedups");

	if (!rule->dedups)
		return 0;
	if (rule->key_ttl <= 0)
		return reader_fail(r, dedups,
		                   "`provider.dedups: true` needs provider.key_ttl above 0: for "
		                   "how long the server remembers a key, as in 24h");
	if (!part(map, "provider", "stores"))
		return reader_fail(r, dedups,
		                   "`provider.dedups: true` needs provider.stores: which answers "
		                   "the server gives again for the same key, as in [2xx]; [] if "
		                   "none");
	return 0;
}

/* Only a provider that knows the key can be asked again. */
static int check_answers(struct reader *r, const struct node *map, const struct rule *rule)
{
	static const struct status_set none;

	if (rule->dedups || memcmp(&rule->in_progress, &none, sizeof(none)) == 0)
		return 0;
	return reader_fail(r, part(map, "answers", "in_progress"),
	                   "`answers.in_progress` asks again with the same key, which needs "
	                   "`provider.dedups: true`: add it, or leave this out");
}

static int check_rule(struct reader *r, const struct node *map, const struct rule *rule)
{
	int rc;

	if (!rule->operation)
		return reader_fail(r, map,
		                   "this rule has no `operation`: name the kind of write, "
		                   "as in orders.create");
	if (!rule->matcher)
		return reader_fail(r, map,
		                   "this rule has no `match`: write METHOD URL, as in POST "
		                   "https://api.example.com/v1/orders");
	if (rule->unknown_ttl != POLICY_NEVER && rule->on_expired == EXPIRED_REFUSE)
		return reader_fail(r, tree_get(map, "unknown_ttl"),
		                   "`unknown_ttl` drops doubts in time, which contradicts "
		                   "`on_expired: refuse`: leave one of them out");
	rc = check_key(r, map, rule);
	if (!rc)
		rc = check_answers(r, map, rule);
	return rc ? rc : check_provider(r, map, rule);
}

int rule_read(struct reader *r, const struct node *map, struct rule *rule)
{
	int rc = set_defaults(r, rule);

	rule->line = map->line;
	rule->column = map->column;
	rule->file = r->path;
	if (!rc)
		rc = reader_fields(r, map, &rule_section, rule);
	if (!rc)
		rc = check_rule(r, map, rule);
	if (!rc && !rule->key_id)
		rc = reader_copy(r, span_of(rule->operation), &rule->key_id);
	return rc;
}

void rule_free(struct rule *rule)
{
	free(rule->operation);
	free(rule->match_text);
	free(rule->path_text);
	matcher_free(rule->matcher);
	predicate_free(&rule->when);
	predicate_free(&rule->body);
	reader_free_list(&rule->echo);
	free(rule->carrier_name);
	free(rule->first_sent);
	free(rule->key_id);
	free(rule->target);
	reader_free_list(&rule->fields);
	reader_free_list(&rule->ignore);
	reader_free_list(&rule->must_match);
	reader_free_list(&rule->account_from);
}

int64_t rule_exit_wait(const struct rule *rule)
{
	if (rule->exit_wait != POLICY_AUTO)
		return rule->exit_wait;
	return rule->dedups ? 0 : 5 * SECOND;
}
