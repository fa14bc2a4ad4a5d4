/* How an explanation looks: a text for people, or one JSON object. The JSON names are an interface
 * and stay. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/explain.h"
#include "ledger/events.h"

enum { NAME_WIDTH = 28, LABEL_WIDTH = 10, VALUE_MAX = 200 };

static const char *carrier_kind(const struct rule *rule)
{
	static const char *const kinds[] = {[CARRIER_HEADER] = "header:",
	                                    [CARRIER_QUERY] = "query:",
	                                    [CARRIER_JSON] = "json:",
	                                    [CARRIER_NONE] = "none"};

	return kinds[rule->carrier];
}

static const char *carrier_name(const struct rule *rule)
{
	return rule->carrier != CARRIER_NONE && rule->carrier_name ? rule->carrier_name : "";
}

/* --- text --- */

static void label(const char *text)
{
	printf("%-*s", LABEL_WIDTH, text);
}

static void plain(const char *text)
{
	cli_plain_text(stdout, text, 0);
}

static void show_request(const struct explained *e)
{
	const struct request_target *t = &e->shadow.target;
	struct buf path = {0};

	describe_path(span_of(t->path), (struct span){0}, &path);
	label("request");
	plain(request_method(&e->shadow.options));
	printf(" %s://%s:%u", t->scheme, t->host, t->port);
	plain(path.data ? path.data : "");
	buf_free(&path);
	if (t->query)
		fputs("?...", stdout);
	putchar('\n');
}

static void show_rules(const struct explaining *all, const struct explained *e)
{
	const struct policy *policy = all->process.policy;
	const struct rule *named = e->write.rule;
	struct buf parts = {0};

	label("policy");
	plain(policy->path);
	printf(", mode %s\n", all->process.mode);
	label("rule");
	plain(named ? named->operation : "none");
	if (named)
		printf(" (line %d: %s)", named->line, named->match_text);
	putchar('\n');
	for (size_t i = 0; i < policy->rule_count; i++) {
		const struct rule *rule = &policy->rules[i];

		if (rule == named)
			continue;
		buf_reset(&parts);
		explain_mismatch(e, rule, &parts);
		label("  not");
		plain(rule->operation);
		printf(" (line %d): %s\n", rule->line,
		       parts.n ? parts.data : "an earlier rule fits");
	}
	buf_free(&parts);
}

static void show_list(const char *title, const struct description *d)
{
	label(title);
	putchar('\n');
	for (size_t i = 0; i < d->count; i++) {
		const char *value = d->list[i].value;

		fputs("  ", stdout);
		cli_plain_text(stdout, d->list[i].name, NAME_WIDTH);
		printf("  %.*s%s\n", VALUE_MAX, value, strlen(value) > VALUE_MAX ? "..." : "");
	}
}

static void show_account(const struct explained *e)
{
	label("account");
	if (e->account.count == 0)
		puts(e->write.rule->account == ACCOUNT_NONE ? "not looked at (account: none)"
		                                            : "no credentials");
	for (size_t i = 0; i < e->account.count; i++)
		printf("%s%s: %s%s\n", i ? "          " : "", e->account.list[i].name,
		       e->account.list[i].value,
		       e->account_opaque ? " (opaque: another token is another account)" : "");
}

static void show_name(const char *title, const char *name)
{
	label(title);
	plain(name);
	putchar('\n');
}

static void show_identity(const struct explaining *all, const struct explained *e)
{
	const struct names *names = &e->write.tally.names;
	char hex[2 * HASH_SIZE + 1];

	show_name("scope", names->scope);
	show_name("run", names->run[0] ? names->run : "not known");
	if (names->step[0])
		show_name("step", names->step);
	show_account(e);
	show_list("identity", &e->parts);
	if (e->write.rule->must_match.count)
		show_list("must match", &e->must_match);
	hex_encode(hex, e->write.id.content, HASH_SIZE);
	printf("%-*s%s%s\n", LABEL_WIDTH, "content", hex,
	       all->has_secret ? "" : " (until there is a ledger, of this output only)");
}

static void show_key(const struct explained *e)
{
	const struct rule *rule = e->write.rule;

	label("key");
	if (e->key_source) {
		plain(e->key);
		printf(" (%s, generation %" PRIu32 ")", e->key_source, e->generation);
	} else {
		fputs("-", stdout);
	}
	printf(" in %s%s\n", carrier_kind(rule), carrier_name(rule));
}

static void show_record(const struct explained *e)
{
	label("record");
	if (e->view.state == REC_NONE) {
		puts("none");
		return;
	}
	printf("%.8s, %s%s, generation %" PRIu32 ", attempts %" PRIu32 "\n", e->view.key,
	       record_state_name(e->view.state), cli_in_doubt(&e->view) ? ", in doubt" : "",
	       e->view.generation, e->view.attempts);
}

/* What its rule says of the two bad ends, for a write that is not there yet as well. */
static void show_prospects(const struct explained *e)
{
	const struct rule *rule = e->write.rule;

	label("in doubt");
	puts(e->doubt_resent ? "sent again with the same key, as long as the provider remembers it"
	                     : "refused (unknown-outcome) until a person has looked");
	label("expired");
	printf("after %lld minutes, and then %s\n", (long long)(rule->ttl / 60000000),
	       rule->on_expired == EXPIRED_REFUSE ? "refused" : "sent as a new write");
}

void explain_show_text(const struct explaining *all, const struct explained *e)
{
	show_request(e);
	show_rules(all, e);
	if (e->write.rule) {
		show_identity(all, e);
		show_key(e);
		show_prospects(e);
		show_record(e);
	}
	label("verdict");
	printf("%s%s%s: %s\n", e->decision, e->verdict.reason ? ", " : "",
	       verdict_reason_name(e->verdict.reason), e->why);
	if (e->text[0])
		printf("%-*s%s\n", LABEL_WIDTH, "", e->text);
}

/* --- JSON --- */

/* What is no UTF-8 is replaced, as in the event log: it came from a request. */
static void json_text(const char *text)
{
	struct buf quoted = {0};

	if (text)
		event_add_string(&quoted, span_of(text));
	fputs(text && !quoted.failed ? quoted.data : "null", stdout);
	buf_free(&quoted);
}

static void member(const char *name, const char *text)
{
	printf(",\"%s\":", name);
	json_text(text);
}

static void json_rule(const struct rule *rule)
{
	fputs("{\"operation\":", stdout);
	json_text(rule->operation);
	member("match", rule->match_text);
	member("file", rule->file);
	printf(",\"line\":%d", rule->line);
}

static void json_rules(const struct explaining *all, const struct explained *e)
{
	const struct policy *policy = all->process.policy;
	struct buf parts = {0};
	const char *comma = "";

	fputs(",\"rule\":", stdout);
	if (e->write.rule) {
		json_rule(e->write.rule);
		putchar('}');
	} else {
		fputs("null", stdout);
	}
	fputs(",\"others\":[", stdout);
	for (size_t i = 0; i < policy->rule_count; i++) {
		if (&policy->rules[i] == e->write.rule)
			continue;
		buf_reset(&parts);
		explain_mismatch(e, &policy->rules[i], &parts);
		fputs(comma, stdout);
		json_rule(&policy->rules[i]);
		member("differs", parts.n ? parts.data : "");
		putchar('}');
		comma = ",";
	}
	putchar(']');
	buf_free(&parts);
}

static void json_list(const char *name, const struct description *d)
{
	printf(",\"%s\":[", name);
	for (size_t i = 0; i < d->count; i++) {
		fputs(i ? ",{\"name\":" : "{\"name\":", stdout);
		json_text(d->list[i].name);
		member("value", d->list[i].value);
		printf(",\"hidden\":%s}", d->list[i].hidden ? "true" : "false");
	}
	putchar(']');
}

static void json_hex(const char *name, const uint8_t *bytes, size_t n)
{
	char hex[2 * HASH_SIZE + 1];

	hex_encode(hex, bytes, n);
	member(name, hex);
}

static void json_identity(const struct explained *e)
{
	json_list("account", &e->account);
	printf(",\"account_opaque\":%s", e->account_opaque ? "true" : "false");
	json_list("identity", &e->parts);
	json_list("must_match", &e->must_match);
	json_hex("content", e->write.id.content, HASH_SIZE);
	json_hex("fingerprint", e->write.id.fingerprint, 8);
	member("if_in_doubt", e->doubt_resent ? "resend" : "refuse");
	member("if_expired", e->write.rule->on_expired == EXPIRED_REFUSE ? "refuse" : "execute");
}

static void json_key(const struct explained *e)
{
	const struct rule *rule = e->write.rule;

	printf(",\"key\":{\"carrier\":\"%s", carrier_kind(rule));
	/* a carrier's name is a token or a pointer; its quotes are the only thing to escape */
	for (const char *c = carrier_name(rule); *c; c++)
		printf(*c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
	putchar('"');
	member("value", e->key_source ? e->key : NULL);
	member("source", e->key_source);
	printf(",\"generation\":%" PRIu32 "}", e->generation);
}

static void json_record(const struct explained *e)
{
	char *text = NULL;
	size_t n = 0;
	FILE *memory;

	fputs(",\"record\":", stdout);
	memory = e->view.state == REC_NONE ? NULL : open_memstream(&text, &n);
	if (memory) {
		cli_record_json(memory, &e->view);
		fclose(memory);
		fwrite(text, 1, n ? n - 1 : 0, stdout);
		free(text);
		return;
	}
	fputs("null", stdout);
}

void explain_show_json(const struct explaining *all, const struct explained *e)
{
	const struct request_target *t = &e->shadow.target;
	const struct names *names = &e->write.tally.names;
	struct buf path = {0};

	describe_path(span_of(t->path), (struct span){0}, &path);
	fputs("{\"method\":", stdout);
	json_text(request_method(&e->shadow.options));
	member("scheme", t->scheme);
	member("host", t->host);
	printf(",\"port\":%u", t->port);
	member("path", path.data);
	buf_free(&path);
	member("mode", all->process.mode);
	member("scope", names->scope);
	member("run", names->run[0] ? names->run : NULL);
	member("step", names->step[0] ? names->step : NULL);
	json_rules(all, e);
	if (e->write.rule) {
		json_identity(e);
		json_key(e);
		json_record(e);
	}
	member("verdict", e->decision);
	member("reason", e->verdict.reason ? verdict_reason_name(e->verdict.reason) : NULL);
	member("why", e->why);
	member("text", e->text[0] ? e->text : NULL);
	puts("}");
}

/* --- two of them --- */

struct difference {
	bool json;
	size_t count;
};

static void print_difference(struct difference *d, const char *name, const char *a, const char *b)
{
	if (!d->json) {
		fputs("  ", stdout);
		cli_plain_text(stdout, name, NAME_WIDTH);
		printf("  %s | %s\n", a ? a : "(absent)", b ? b : "(absent)");
	} else {
		fputs(d->count ? ",{\"name\":" : "{\"name\":", stdout);
		json_text(name);
		member("first", a);
		member("second", b);
		putchar('}');
	}
	d->count++;
}

static void on_difference(void *ctx, const char *name, const char *a, const char *b)
{
	print_difference(ctx, name, a, b);
}

static const char *operation_of(const struct explained *e)
{
	return e->write.rule ? e->write.rule->key_id : NULL;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static void list_differences(const struct explained *a, const struct explained *b,
                             struct difference *d)
{
	const char *own_a = a->write.id.has_own_key ? a->write.id.own_key_text : NULL;
	const char *own_b = b->write.id.has_own_key ? b->write.id.own_key_text : NULL;

	if (!same_text(operation_of(a), operation_of(b)))
		print_difference(d, "operation", operation_of(a), operation_of(b));
	if (strcmp(a->write.tally.names.scope, b->write.tally.names.scope) != 0)
		print_difference(d, "scope", a->write.tally.names.scope,
		                 b->write.tally.names.scope);
	if (strcmp(a->write.tally.names.step, b->write.tally.names.step) != 0)
		print_difference(d, "step", a->write.tally.names.step, b->write.tally.names.step);
	describe_compare(&a->account, &b->account, on_difference, d);
	describe_compare(&a->parts, &b->parts, on_difference, d);
	describe_compare(&a->must_match, &b->must_match, on_difference, d);
	if (!same_text(own_a, own_b))
		print_difference(d, "the program's own key", own_a, own_b);
}

/* What the ledger would compare decides; the parts say why. */
static const char *relation(const struct explained *a, const struct explained *b)
{
	const struct identity *x = &a->write.id, *y = &b->write.id;

	if (!a->write.rule || !b->write.rule)
		return "not both are writes of the policy";
	if (memcmp(x->content, y->content, HASH_SIZE) != 0)
		return "different";
	if (memcmp(x->fingerprint, y->fingerprint, HASH_SIZE) != 0)
		return "conflict";
	if (x->has_own_key && y->has_own_key && strcmp(x->own_key_text, y->own_key_text) != 0)
		return a->write.rule->app_key == APP_KEY_TRUST ? "same content, another own key"
		                                               : "same";
	return "same";
}

static const char *relation_text(const char *relation)
{
	if (strcmp(relation, "same") == 0)
		return "the same write: the second one is answered from the first";
	if (strcmp(relation, "conflict") == 0)
		return "the same write with another value in must_match: the second one is "
		       "refused, "
		       "key-conflict";
	if (strcmp(relation, "different") == 0)
		return "two writes; these parts differ:";
	if (strncmp(relation, "same content", 12) == 0)
		return "the same content under two own keys: two writes once the first is "
		       "answered, "
		       "a retry before";
	return relation;
}

bool explain_compare(const struct explaining *all, const struct explained *a,
                     const struct explained *b, bool json)
{
	const char *how = relation(a, b);
	struct difference d = {json, 0};

	(void)all;
	if (json) {
		fputs("{\"relation\":", stdout);
		json_text(how);
		fputs(",\"differs\":[", stdout);
	} else {
		puts(relation_text(how));
	}
	list_differences(a, b, &d);
	if (json)
		puts("]}");
	return strcmp(how, "same") == 0;
}
