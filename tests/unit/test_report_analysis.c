/* What the report finds in a log, as a table: events in, findings, causes and verdicts out. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "report/analysis.c"
#include "report/judge.c"
#undef COUNT
#include "report/log.c"
#include "report/near.c"
#include "report/scan.c"
#include "report/simulate.c"
#include "report/texts.c"

#define ROWS(a) (sizeof(a) / sizeof *(a))

/* One event. `ends`: "201", "52" a curl code below 100, "503", ... and what the outcome was. */
struct row {
	int at_ms, ms;
	const char *identity, *key, *ends, *outcome, *extra;
	const char *found, *verdict; /* wanted; verdict null: not looked at */
	enum cause cause;
};

static const char *parts_of(const char *identity)
{
	/* the same amount and customer under every identity that begins with 'w': other words */
	static char text[256];

	if (identity[0] != 'w')
		return "";
	snprintf(text, sizeof(text),
	         ",\"parts\":{\"/amount\":\"n00000001\",\"/to\":\"s00000002\",\"/note\":\"t%08x\"}",
	         (unsigned)identity[1]);
	return text;
}

static void add_hash(struct buf *out, const char *name, const char *text)
{
	if (!*text)
		return;
	buf_printf(out, ",\"%s\":\"", name);
	for (int i = 0; i < 16; i++)
		buf_printf(out, "%x",
		           (unsigned)text[i % (int)strlen(text)] * (unsigned)(i + 3) & 15);
	buf_add_char(out, '"');
}

static void add_event(struct buf *out, const struct row *r)
{
	char time[32];
	int code = atoi(r->ends);

	clock_rfc3339(time, sizeof(time),
	              INT64_C(1764511200000000) + ((int64_t)r->at_ms + r->ms) * 1000);
	buf_printf(out, "{\"time\":\"%s\",\"event\":\"write\",\"scope\":\"s\",\"mode\":\"audit\"",
	           time);
	buf_add_text(out,
	             ",\"operation\":\"op\",\"method\":\"POST\",\"host\":\"h\",\"path\":\"/p\"");
	add_hash(out, "identity", r->identity);
	add_hash(out, "fingerprint", r->identity);
	add_hash(out, "own_key", r->key);
	buf_printf(out, ",\"ms\":%d,\"outcome\":\"%s\"", r->ms, r->outcome);
	if (code >= 100)
		buf_printf(out, ",\"status\":%d,\"curlcode\":0", code);
	else
		buf_printf(out, ",\"curlcode\":%d", code);
	if (!r->extra || !strstr(r->extra, "wire_sends"))
		buf_add_text(out, ",\"wire_sends\":1");
	if (!r->extra || !strstr(r->extra, "pid"))
		buf_add_text(out, ",\"pid\":7");
	buf_printf(out, "%s%s}\n", r->extra ? r->extra : "", parts_of(r->identity));
}

static const struct rule *the_rule(void *ctx, const char *operation)
{
	(void)operation;
	return ctx;
}

static const char *found_text(unsigned found)
{
	static char text[128];

	text[0] = '\0';
	for (int i = 0; i < FIND_COUNT; i++)
		if (found >> i & 1)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
			         *text ? " " : "", finding_name((enum finding)i));
	return text;
}

static const char *verdict_text(const struct judged *j)
{
	static char text[64];

	snprintf(text, sizeof(text), "%s%s%s",
	         j->verdict < 0 ? "-" : verdict_kind_name((enum verdict_kind)j->verdict),
	         j->verdict == VERDICT_REFUSE ? " " : "",
	         j->verdict == VERDICT_REFUSE ? verdict_reason_name((enum verdict_reason)j->reason)
	                                      : "");
	return text;
}

static struct policy *defaults; /* for all tests */

static struct rule rule_here(void)
{
	if (!defaults)
		assert_int_equal(policy_defaults(&defaults), POLICY_OK);
	return defaults->rules[0]; /* a copy that borrows */
}

static void check(const struct rule *rule, const struct row *rows, size_t n)
{
	struct buf text = {0};
	struct log log = {0};
	struct analysis a;

	for (size_t i = 0; i < n; i++)
		add_event(&text, &rows[i]);
	assert_int_equal(log_add(&log, span_buf(&text)), LOG_OK);
	assert_int_equal(log.damaged, 0);
	assert_int_equal(log.count, n);
	assert_int_equal(log_sort(&log), LOG_OK);
	assert_int_equal(analysis_make(&log, the_rule, (void *)(uintptr_t)rule, &a), 0);
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(found_text(a.of[i].found), rows[i].found);
		assert_int_equal(a.of[i].cause, rows[i].cause);
		if (rows[i].verdict)
			assert_string_equal(verdict_text(&a.of[i]), rows[i].verdict);
	}
	analysis_free(&a);
	log_free(&log);
	buf_free(&text);
}

#define CHECK(rule, rows) check(rule, rows, ROWS(rows))

static void exact_duplicates(void **state)
{
	struct rule rule = rule_here();
	static const struct row after_answer[] = {
	        {0, 5, "a", "", "201", "done", NULL, "", "execute", CAUSE_NONE},
	        {100, 5, "a", "", "201", "done", NULL, "duplicate", "replay", CAUSE_AFTER_ANSWER},
	        {200, 5, "b", "", "201", "done", NULL, "", "execute", CAUSE_NONE},
	};
	static const struct row no_answer[] = {
	        {0, 5, "a", "", "52", "unknown", NULL, "", "execute", CAUSE_NONE},
	        {100, 5, "a", "", "201", "done", NULL, "duplicate", "refuse unknown-outcome",
	         CAUSE_NO_ANSWER},
	};
	static const struct row doubt[] = {
	        {0, 5, "a", "", "503", "unknown", NULL, "", "execute", CAUSE_NONE},
	        {100, 5, "a", "", "503", "unknown", NULL, "duplicate unknown",
	         "refuse unknown-outcome", CAUSE_DOUBT},
	};
	static const struct row overlap[] = {
	        {0, 500, "a", "", "201", "done", NULL, "", "execute", CAUSE_NONE},
	        {100, 5, "a", "", "201", "done", NULL, "duplicate", "join", CAUSE_OVERLAP},
	};
	/* within linger enforce's courier is still there */
	static const struct row timed_out[] = {
	        {0, 1000, "a", "", "28", "unknown", NULL, "", "execute", CAUSE_NONE},
	        {1100, 5, "a", "", "201", "done", NULL, "duplicate", "join", CAUSE_NO_ANSWER},
	};

	(void)state;
	CHECK(&rule, after_answer);
	CHECK(&rule, no_answer);
	CHECK(&rule, doubt);
	CHECK(&rule, overlap);
	CHECK(&rule, timed_out);
}

static void what_is_no_duplicate(void **state)
{
	struct rule rule = rule_here(), repeated = rule_here(), dedups = rule_here();
	static const struct row never_left[] = {
	        {0, 5, "a", "", "7", "not-executed", ",\"wire_sends\":0", "", "execute",
	         CAUSE_NONE},
	        {100, 5, "a", "", "201", "done", NULL, "", "execute", CAUSE_NONE},
	};
	static const struct row refused_there[] = {
	        {0, 5, "a", "", "422", "freed", NULL, "", "execute", CAUSE_NONE},
	        {100, 5, "a", "", "201", "done", NULL, "", "execute", CAUSE_NONE},
	};
	static const struct row an_hour_later[] = {
	        {0, 5, "a", "", "201", "done", NULL, "", "execute", CAUSE_NONE},
	        {3600000, 5, "a", "", "201", "done", NULL, "", "execute", CAUSE_NONE},
	};
	static const struct row other_runs[] = {
	        {0, 5, "a", "", "201", "done", ",\"run\":\"one\"", "", "execute", CAUSE_NONE},
	        {100, 5, "a", "", "201", "done", ",\"run\":\"two\"", "", "execute", CAUSE_NONE},
	};
	static const struct row answered[] = {
	        {0, 5, "a", "", "201", "done", NULL, "", "execute", CAUSE_NONE},
	        {100, 5, "a", "", "201", "done", NULL, "", "execute", CAUSE_NONE},
	};
	static const struct row same_key[] = {
	        {0, 5, "a", "k", "52", "unknown", NULL, "", "execute", CAUSE_NONE},
	        {100, 5, "a", "k", "201", "done", NULL, "", "resend", CAUSE_NONE},
	};

	(void)state;
	repeated.repeat = REPEAT_AFTER_ANSWER;
	dedups.dedups = true;
	dedups.key_ttl = INT64_C(86400000000);
	CHECK(&rule, never_left);
	CHECK(&rule, refused_there);
	CHECK(&rule, an_hour_later);
	CHECK(&rule, other_runs);
	CHECK(&repeated, answered);
	CHECK(&dedups, same_key);
}

static void keys_of_the_program(void **state)
{
	struct rule rule = rule_here();
	static const struct row conflict[] = {
	        {0, 5, "a", "k", "201", "done", NULL, "", "execute", CAUSE_NONE},
	        {100, 5, "b", "k", "201", "done", NULL, "conflict", "refuse key-conflict",
	         CAUSE_NONE},
	        {200, 5, "b", "l", "201", "done", NULL, "fresh-key", "execute", CAUSE_AFTER_ANSWER},
	};
	/* after an answer a new key is new intent; before one it is the same write again */
	static const struct row fresh[] = {
	        {0, 5, "a", "k", "201", "done", NULL, "", "execute", CAUSE_NONE},
	        {100, 5, "a", "l", "201", "done", NULL, "fresh-key", "execute", CAUSE_AFTER_ANSWER},
	};
	static const struct row fresh_in_doubt[] = {
	        {0, 5, "a", "k", "52", "unknown", NULL, "", "execute", CAUSE_NONE},
	        {100, 5, "a", "l", "201", "done", NULL, "duplicate fresh-key",
	         "refuse unknown-outcome", CAUSE_NO_ANSWER},
	};
	static const struct row freed[] = {
	        {0, 5, "a", "k", "422", "freed", NULL, "", "execute", CAUSE_NONE},
	        {100, 5, "b", "k", "201", "done", NULL, "", "execute", CAUSE_NONE},
	};

	(void)state;
	CHECK(&rule, conflict);
	CHECK(&rule, fresh);
	CHECK(&rule, fresh_in_doubt);
	CHECK(&rule, freed);
}

static void other_words(void **state)
{
	struct rule rule = rule_here();
	static const struct row near[] = {
	        {0, 5, "w1", "", "201", "done", NULL, "", "execute", CAUSE_NONE},
	        {100, 5, "w2", "", "201", "done", NULL, "near-duplicate", "execute",
	         CAUSE_AFTER_ANSWER},
	};
	static const struct row lost[] = {
	        {0, 5, "w1", "", "52", "unknown", NULL, "unknown", "execute", CAUSE_NONE},
	        {3600000, 5, "w2", "", "201", "done", NULL, "near-duplicate", "execute",
	         CAUSE_NO_ANSWER},
	};
	static const struct row late[] = {
	        {0, 5, "w1", "", "201", "done", NULL, "", "execute", CAUSE_NONE},
	        {3600000, 5, "w2", "", "201", "done", NULL, "", "execute", CAUSE_NONE},
	};
	static const struct row did_not_happen[] = {
	        {0, 5, "w1", "", "422", "freed", NULL, "", "execute", CAUSE_NONE},
	        {100, 5, "w2", "", "201", "done", NULL, "", "execute", CAUSE_NONE},
	};
	static const struct row exact_first[] = {
	        {0, 5, "w1", "", "201", "done", NULL, "", "execute", CAUSE_NONE},
	        {100, 5, "w1", "", "201", "done", NULL, "duplicate", "replay", CAUSE_AFTER_ANSWER},
	};

	(void)state;
	CHECK(&rule, near);
	CHECK(&rule, lost);
	CHECK(&rule, late);
	CHECK(&rule, did_not_happen);
	CHECK(&rule, exact_first);
}

static void by_itself(void **state)
{
	struct rule rule = rule_here();
	static const struct row wire[] = {
	        {0, 5, "a", "", "201", "done", ",\"wire_sends\":2,\"reason\":\"wire-resend\"",
	         "wire-duplicate", "execute", CAUSE_WIRE},
	        {100, 5, "b", "", "201", "done", ",\"wire_sends\":2", "", "execute", CAUSE_NONE},
	};
	static const struct row body_lost[] = {
	        {0, 5, "", "", "52", "unknown", ",\"reason\":\"body-not-seen\"", "unknown", NULL,
	         CAUSE_NONE},
	        {100, 5, "", "", "201", "done", ",\"reason\":\"body-not-seen\"", "", NULL,
	         CAUSE_NONE},
	};

	(void)state;
	CHECK(&rule, wire);
	CHECK(&rule, body_lost);
}

/* What enforce did is taken as it is. */
static void enforced(void **state)
{
	struct rule rule = rule_here();
	static const struct row rows[] = {
	        {0, 5, "a", "", "201", "done", ",\"verdict\":\"execute\"", "", "execute",
	         CAUSE_NONE},
	        {100, 0, "a", "", "201", "done", ",\"verdict\":\"replay\",\"wire_sends\":0", "",
	         "replay", CAUSE_NONE},
	};

	(void)state;
	CHECK(&rule, rows);
}

static void groups_and_counts(void **state)
{
	struct rule rule = rule_here();
	static const struct row rows[] = {
	        {0, 5, "a", "", "52", "unknown", NULL, "", NULL, CAUSE_NONE},
	        {10, 5, "b", "", "201", "done", NULL, "", NULL, CAUSE_NONE},
	        {20, 5, "a", "", "201", "done", NULL, "", NULL, CAUSE_NONE},
	        {30, 5, "a", "", "201", "done", NULL, "", NULL, CAUSE_NONE},
	        {40, 5, "c", "", "52", "unknown", NULL, "", NULL, CAUSE_NONE},
	};
	struct buf text = {0};
	struct log log = {0};
	struct analysis a;

	(void)state;
	for (size_t i = ROWS(rows); i-- > 0;) /* the order of the file is not that of the events */
		add_event(&text, &rows[i]);
	buf_add_text(&text, "{\"time\":\"torn\n\n{\"no\":\"time\"}\n");
	assert_int_equal(log_add(&log, span_buf(&text)), LOG_OK);
	assert_int_equal(log.damaged, 2);
	assert_int_equal(log_sort(&log), LOG_OK);
	assert_int_equal(analysis_make(&log, the_rule, &rule, &a), 0);
	assert_int_equal(a.all.writes, 5);
	assert_int_equal(a.all.wire_sends, 5);
	assert_int_equal(a.all.found[FIND_DUPLICATE], 2);
	assert_int_equal(a.all.found[FIND_UNKNOWN], 1);
	assert_int_equal(a.op_count, 1);
	assert_int_equal(a.group_count, 2);
	assert_int_equal(a.group[0].attempts, 3);
	assert_int_equal(a.group[1].found, FOUND(UNKNOWN));
	assert_true(analysis_has(&a, FOUND(DUPLICATE)));
	assert_false(analysis_has(&a, FOUND(CONFLICT) | FOUND(NEAR_DUPLICATE)));
	analysis_free(&a);
	log_free(&log);
	buf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(exact_duplicates),    cmocka_unit_test(what_is_no_duplicate),
	        cmocka_unit_test(keys_of_the_program), cmocka_unit_test(other_words),
	        cmocka_unit_test(by_itself),           cmocka_unit_test(enforced),
	        cmocka_unit_test(groups_and_counts),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	policy_free(defaults);
	return failed;
}
