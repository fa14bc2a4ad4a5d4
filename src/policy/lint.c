/* What is allowed in a policy but probably not meant.
 *
 * Everything wrong is an error of policy_load; here stand settings that work and surprise. Only the
 * policy itself is looked at, never a ledger or a request, and only what can be said for certain: a
 * rule is called unreachable when one earlier rule covers it, not when several do together. */
#include "policy/policy.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "policy/index.h"
#include "policy/known.h"
#include "policy/matcher.h"

struct lint {
	const struct policy *policy;
	policy_report *report;
	void *ctx;
};

/* `rule` null: about the policy as a whole. */
__attribute__((format(printf, 3, 4))) static void
warn(const struct lint *l, const struct rule *rule, const char *format, ...)
{
	struct policy_warning warning = {.file = rule ? rule->file : l->policy->path};
	char text[1024];
	va_list args;
	int n;

	if (rule) {
		warning.line = rule->line;
		warning.column = rule->column;
		n = snprintf(text, sizeof(text), "%.400s:%d:%d: ", rule->file, rule->line,
		             rule->column);
	} else {
		n = snprintf(text, sizeof(text), "%.400s: ", l->policy->path);
	}
	if (n < 0)
		return;
	va_start(args, format);
	vsnprintf(text + n, sizeof(text) - (size_t)n, format, args);
	va_end(args);
	warning.text = text;
	l->report(l->ctx, &warning);
}

static void lint_reach(const struct lint *l, size_t at)
{
	const struct rule *rule = &l->policy->rules[at], *earlier = index_covering(l->policy, at);

	if (!earlier)
		return;
	if (strcmp(earlier->file, rule->file) == 0)
		warn(l, rule,
		     "`%.128s` is never reached: `%.128s` in line %d comes first and matches all "
		     "of it",
		     rule->operation, earlier->operation, earlier->line);
	else
		warn(l, rule,
		     "`%.128s` is never reached: `%.128s` of %.300s:%d comes first and matches all "
		     "of it",
		     rule->operation, earlier->operation, earlier->file, earlier->line);
}

static void lint_rule(const struct lint *l, const struct rule *rule)
{
	static const struct status_set none;

	if (rule->on_unknown == UNKNOWN_RESEND && !rule->dedups)
		warn(l, rule,
		     "`%.128s` sends again when it is not known whether the first one arrived "
		     "(on_unknown: resend), and the provider does not deduplicate: it may happen "
		     "twice",
		     rule->operation);
	if (rule->ttl < rule->linger)
		warn(l, rule,
		     "`%.128s` expires (ttl) before its sending is given up (linger): a repeat in "
		     "between is a second write",
		     rule->operation);
	if (memcmp(&rule->final, &none, sizeof(none)) == 0)
		warn(l, rule,
		     "`%.128s` has no final answer (answers.final): each of its writes stays in "
		     "doubt",
		     rule->operation);
}

static bool lint_is_loopback(const struct matcher *m)
{
	static const unsigned char one[16] = {[15] = 1};

	if (m->host_kind == HOST_IPV6)
		return memcmp(m->ipv6, one, sizeof(one)) == 0;
	return m->host_kind == HOST_LABELS &&
	       (span_is_nocase(m->host, "localhost") ||
	        (m->host.n > 4 && memcmp(m->host.p, "127.", 4) == 0));
}

/* Patterns that name less than they seem to: a rule that fits nothing protects nothing, in silence.
 */
static void lint_match(const struct lint *l, const struct rule *rule)
{
	const struct matcher *m = rule->matcher;
	const char *url = strrchr(rule->match_text, ' ');
	const char *authority = strstr(rule->match_text, "://");

	if (m->any_method)
		warn(l, rule,
		     "note: `%.200s` names every method: its reads are sent once too, and answered "
		     "from the ledger",
		     rule->match_text);
	if (m->host_kind != HOST_ANY && url && authority && !strchr(authority + 3, '/'))
		warn(l, rule, "`%.200s` names the path / only; all paths are %.200s/**",
		     rule->match_text, url + 1);
	if (m->port == PORT_DEFAULT && lint_is_loopback(m))
		warn(l, rule, "`%.200s` names the usual port only; any port is :*",
		     rule->match_text);
}

/* --- providers that are known --- */

static void lint_key(const struct lint *l, const struct rule *rule, const struct known *known)
{
	int length = known_key_length(rule->format);
	bool uuid = rule->format == FORMAT_UUID;
	bool quoted = rule->format == FORMAT_SF_STRING;

	if (known->key_max && length > known->key_max)
		warn(l, rule, "`%.128s`: a key in this format has %d characters, %s takes %d (%s)",
		     rule->operation, length, known->name, known->key_max, known->page);
	else if ((known->uuid_only && !uuid) || (known->plain_key && quoted))
		warn(l, rule, "`%.128s`: %s does not take a key in this format, use uuid (%s)",
		     rule->operation, known->name, known->page);
}

static void lint_known(const struct lint *l, const struct rule *rule)
{
	const struct known *known = known_provider(rule);

	if (!known)
		return;
	if (rule->dedups && known->no_keys)
		warn(l, rule,
		     "`%.128s` says that %s deduplicates (provider.dedups), and it has no keys: a "
		     "write in doubt is sent twice (%s)",
		     rule->operation, known->name, known->page);
	if (rule->dedups && known->key_ttl && rule->key_ttl > known->key_ttl)
		warn(l, rule,
		     "`%.128s`: %s forgets a key after %lld minutes, before provider.key_ttl is "
		     "over: a write in doubt may be sent twice (%s)",
		     rule->operation, known->name, (long long)(known->key_ttl / 60000000),
		     known->page);
	if (rule->carrier != CARRIER_NONE && !known->no_keys)
		lint_key(l, rule, known);
	/* An opaque token that rotates looks like another account: section 4 of the design. */
	if (known->rotating && rule->account == ACCOUNT_AUTO)
		warn(l, rule,
		     "`%.128s`: the access tokens of %s are replaced while a task runs, and with "
		     "identity.account: auto the new one is another account: name the account by "
		     "header:NAME or env:NAME, or none where the URL does",
		     rule->operation, known->name);
}

void policy_lint(const struct policy *policy, policy_report *report, void *ctx)
{
	struct lint l = {policy, report, ctx};

	if (!policy->scope && !policy->scope_from.header)
		warn(&l, NULL,
		     "no scope: all programs of one user share their writes; set SENDONCE_SCOPE, "
		     "or scope in the policy");
	if (policy->rule_count == 0 && !policy->has_writes)
		warn(&l, NULL, "no rule in `writes`: nothing is protected");
	for (size_t i = 0; i < policy->rule_count; i++) {
		lint_reach(&l, i);
		lint_match(&l, &policy->rules[i]);
		lint_rule(&l, &policy->rules[i]);
		lint_known(&l, &policy->rules[i]);
	}
}
