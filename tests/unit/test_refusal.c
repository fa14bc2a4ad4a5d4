/* Every refusal: its status, its headers, and that its body is JSON that says what it may say. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/curlapi.h"
#include "player/refusal.h"
#include "verdict/verdict.h"

/* --- a JSON checker: returns where the value ends, or null --- */

static const char *json_value(const char *s);

static const char *json_text(const char *s)
{
	if (*s++ != '"')
		return NULL;
	for (; *s != '"'; s++) {
		if ((unsigned char)*s < 0x20)
			return NULL;
		if (*s != '\\')
			continue;
		s++;
		if (*s == 'u') {
			for (int i = 1; i <= 4; i++)
				if (!isxdigit((unsigned char)s[i]))
					return NULL;
			s += 4;
		} else if (!*s || !strchr("\"\\/bfnrt", *s)) {
			return NULL;
		}
	}
	return s + 1;
}

static const char *json_object(const char *s)
{
	if (*s++ != '{')
		return NULL;
	for (;;) {
		s = json_text(s);
		if (!s || *s++ != ':')
			return NULL;
		s = json_value(s);
		if (!s)
			return NULL;
		if (*s == '}')
			return s + 1;
		if (*s++ != ',')
			return NULL;
	}
}

static const char *json_value(const char *s)
{
	if (*s == '{')
		return json_object(s);
	if (*s == '"')
		return json_text(s);
	const char *end = s + strspn(s, "0123456789");
	return end > s ? end : NULL;
}

static bool is_json(const char *s)
{
	const char *end = json_value(s);
	return end && strcmp(end, "\n") == 0;
}

static bool is_utf8(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	while (*s) {
		int more = *s < 0x80 ? 0 : *s >= 0xf0 ? 3 : *s >= 0xe0 ? 2 : *s >= 0xc2 ? 1 : -1;
		if (more < 0)
			return false;
		for (s++; more > 0; more--, s++)
			if ((*s & 0xc0) != 0x80)
				return false;
	}
	return true;
}

/* --- */

struct answer {
	struct buf head, body, error;
};

static struct answer make(const struct refusal_facts *facts)
{
	struct answer a = {0};
	refusal_answer(facts, &a.head, &a.body);
	refusal_error(facts, &a.error);
	assert_false(a.head.failed || a.body.failed || a.error.failed);
	assert_true(is_json(a.body.data));
	assert_true(is_utf8(a.body.data));
	assert_true(is_utf8(a.error.data));
	assert_true(a.error.n < CURL_ERROR_SIZE);
	assert_null(strpbrk(a.error.data, "\r\n"));
	return a;
}

static void drop(struct answer *a)
{
	buf_free(&a->head);
	buf_free(&a->body);
	buf_free(&a->error);
}

static bool has(const struct buf *b, const char *text)
{
	return strstr(b->data, text) != NULL;
}

static const struct refusal_facts full = {.operation = "orders.create",
                                          .first_sent_us = 1796047511000001,
                                          .exe = "/usr/bin/curl",
                                          .pid = 4711,
                                          .key = "0123456789abcdef",
                                          .attempts = 2};

static void status_and_headers_of_every_reason(void **state)
{
	(void)state;
	static const struct {
		enum verdict_reason reason;
		long status;
		bool retry_after, should_retry;
	} rows[] = {
	        {REASON_UNKNOWN_OUTCOME, 424, false, false},
	        {REASON_IN_PROGRESS, 409, true, true},
	        {REASON_KEY_CONFLICT, 422, false, false},
	        {REASON_ANSWER_NOT_KEPT, 409, false, false},
	        {REASON_POLICY_INVALID, 503, true, false},
	        {REASON_LEDGER_UNAVAILABLE, 503, true, false},
	        {REASON_LEDGER_FULL, 503, true, false},
	        {REASON_CORE_MISSING, 503, true, false},
	        {REASON_REPLAY_MISS, 403, false, false},
	        {REASON_KEY_REQUIRED, 403, false, false},
	        {REASON_KEY_INVALID, 403, false, false},
	        {REASON_SETTINGS_CHANGED, 403, false, false},
	        {REASON_EXPIRED, 403, false, false},
	        {REASON_BODY_TOO_LARGE, 403, false, false},
	        {REASON_UNLISTED, 403, false, false},
	        {REASON_REDIRECTED_INTO_RULE, 403, false, false},
	};
	static const char *const names[] = {
#define NAME(id, text) text,
	        VERDICT_REASONS(NAME)
#undef NAME
	};
	assert_int_equal(sizeof(rows) / sizeof(rows[0]),
	                 REASON_COUNT - 1); /* NONE refuses nothing */
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char line[128];
		struct refusal_facts facts = full;
		facts.reason = names[rows[i].reason];
		struct answer a = make(&facts);
		assert_int_equal(refusal_status(facts.reason), rows[i].status);
		snprintf(line, sizeof(line), "HTTP/1.1 %ld ", rows[i].status);
		assert_int_equal(strncmp(a.head.data, line, strlen(line)), 0);
		snprintf(line, sizeof(line), "\r\nContent-Length: %zu\r\n", a.body.n);
		assert_true(has(&a.head, line));
		snprintf(line, sizeof(line), "\r\nSendonce-Verdict: refused; reason=%s\r\n",
		         facts.reason);
		assert_true(has(&a.head, line));
		assert_true(has(&a.head, "\r\nContent-Type: application/problem+json\r\n"));
		assert_true(has(&a.head, "\r\nCache-Control: no-store\r\n"));
		assert_int_equal(has(&a.head, "\r\nRetry-After: "), rows[i].retry_after);
		assert_int_equal(has(&a.head, "\r\nx-should-retry: true\r\n"),
		                 rows[i].should_retry);
		assert_int_equal(has(&a.head, "\r\nx-should-retry: false\r\n"),
		                 !rows[i].should_retry);
		assert_int_equal(has(&a.head, "\r\nStripe-Should-Retry: false\r\n"),
		                 !rows[i].should_retry);
		assert_string_equal(a.head.data + a.head.n - 4, "\r\n\r\n");
		assert_ptr_equal(strstr(a.head.data, "\r\n\r\n"), a.head.data + a.head.n - 4);
		snprintf(line, sizeof(line), "{\"type\":\"urn:sendonce:%s\",", facts.reason);
		assert_int_equal(strncmp(a.body.data, line, strlen(line)), 0);
		snprintf(line, sizeof(line), ",\"status\":%ld,", rows[i].status);
		assert_true(has(&a.body, line));
		snprintf(line, sizeof(line), "sendonce: %s: ", facts.reason);
		assert_int_equal(strncmp(a.error.data, line, strlen(line)), 0);
		assert_false(has(&a.body, "resolve")); /* never the operator's command */
		assert_false(has(&a.error, "resolve"));
		drop(&a);
	}
}

static void tells_what_is_known(void **state)
{
	(void)state;
	struct refusal_facts facts = full;
	facts.reason = "unknown-outcome";
	struct answer a = make(&facts);
	assert_true(has(&a.body, "\"operation\":\"orders.create\""));
	assert_true(has(&a.body, "\"key\":\"01234567\""));
	assert_true(has(&a.body, "\"first_sent\":\"2026-11-30T"));
	assert_true(has(&a.body, "\"attempts\":2"));
	assert_true(has(&a.body, "\"program\":\"/usr/bin/curl\""));
	assert_true(has(&a.body, "by curl (process 4711), 2 times so far. "));
	assert_true(has(&a.body, "do not retry"));
	assert_true(has(&a.body, "operator"));
	assert_true(has(&a.error, "orders.create was first sent at 2026-11-30T"));
	assert_false(has(&a.body, "89abcdef"));
	drop(&a);
}

static void says_nothing_it_does_not_know(void **state)
{
	(void)state;
	struct answer a = make(&(struct refusal_facts){.reason = "policy-invalid",
	                                               .detail = "policy.yaml:3:1: unknown key"});
	assert_false(has(&a.body, "first"));
	assert_false(has(&a.body, "\"key\""));
	assert_false(has(&a.body, "attempts"));
	assert_true(has(&a.body, "policy.yaml:3:1: unknown key. "));
	assert_true(has(&a.error, "policy.yaml:3:1: unknown key. "));
	drop(&a);
}

static void generic_tells_nothing_of_the_other_account(void **state)
{
	(void)state;
	struct refusal_facts facts = full;
	facts.reason = "unknown-outcome";
	facts.detail = "a secret detail";
	facts.generic = true;
	struct answer a = make(&facts);
	static const char *const hidden[] = {"orders",   "01234567", "2026",   "curl",
	                                     "attempts", "program",  "secret", "4711"};
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		assert_false(has(&a.body, hidden[i]));
		assert_false(has(&a.error, hidden[i]));
	}
	assert_true(has(&a.body, "under another credential"));
	assert_true(has(&a.error, "do not retry"));
	drop(&a);
}

static void hostile_texts_stay_texts(void **state)
{
	(void)state;
	static const char *const texts[] = {"\"},{\"a\":\"",
	                                    "back\\slash",
	                                    "new\r\nline\ttab\x01\x7f",
	                                    "\xff\xfe",
	                                    "\xc3",
	                                    "\xe2\x82",
	                                    "\xed\xa0\x80",
	                                    "\xf4\x90\x80\x80",
	                                    "\xc0\xaf",
	                                    "gr\xc3\xbc\xc3\x9f",
	                                    "%s%n",
	                                    ""};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct refusal_facts facts = full;
		facts.reason = "key-conflict";
		facts.operation = facts.detail = facts.exe = facts.key = texts[i];
		struct answer a = make(&facts);
		assert_null(strpbrk(a.head.data, "{}\x01"));
		drop(&a);
	}
	struct answer a = make(&(struct refusal_facts){.reason = "no\r\nsuch: reason"});
	assert_true(has(&a.head, "reason=refused\r\n"));
	drop(&a);
}

static void long_texts_are_cut_between_characters(void **state)
{
	(void)state;
	char detail[CURL_ERROR_SIZE * 4];
	for (size_t shift = 0; shift < 3; shift++) {
		memset(detail, 'x', shift);
		for (size_t i = shift; i + 3 < sizeof(detail); i += 3)
			memcpy(detail + i, "\xe2\x82\xac", 4);
		struct refusal_facts facts = {.reason = "policy-invalid", .detail = detail};
		struct answer a = make(&facts);
		assert_true(a.error.n >= CURL_ERROR_SIZE - 4);
		drop(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(status_and_headers_of_every_reason),
	        cmocka_unit_test(tells_what_is_known),
	        cmocka_unit_test(says_nothing_it_does_not_know),
	        cmocka_unit_test(generic_tells_nothing_of_the_other_account),
	        cmocka_unit_test(hostile_texts_stay_texts),
	        cmocka_unit_test(long_texts_are_cut_between_characters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
