/* Refusals as an HTTP answer that an agent's model can act on, and as one line for ERRORBUFFER.
 *
 * Who reads it may be a person or a model that decides what to do next. So it says what is known,
 * what not to do, and whom to ask; and never how the operator settles the matter, because the
 * reader would then do it by himself. Every byte that did not come from this file is escaped.
 *
 * Not promised: that an HTTP library leaves the answer alone. Those that retry by status are told
 * not to by the two headers that the large SDKs know. */
#include "player/refusal.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/curlapi.h"

enum { KEY_SHOWN = 8, RETRY_BUSY_S = 2, RETRY_BROKEN_S = 30 };

struct reason {
	const char *name;
	long status;
	const char *title;
	const char *advice; /* what to do, after what is known */
};

#define ASK_FIRST                                                                                  \
	"Stop here: do not retry it, and do not send it again in another form. "                   \
	"Ask the operator to check at the provider whether it was executed."

static const struct reason reasons[] = {
        {"unknown-outcome", 424, "The outcome of this write is not known",
         "It may have been executed. " ASK_FIRST},
        {"in-progress", 409, "This write is being sent right now",
         "It has not failed. Wait, then ask again with the same request: the answer will be the "
         "one that the first send gets."},
        {"key-conflict", 422, "The idempotency key belongs to another request",
         "Nothing was sent. A key stands for one request: do not retry with this key and other "
         "content. If this is a new write, give it a new key."},
        {"answer-not-kept", 409, "This write was executed, and its answer is not kept",
         "It was executed: do not send it again. Look its result up at the provider, or ask the "
         "operator."},
        {"policy-invalid", 503, "The policy for writes cannot be used",
         "Nothing was sent. Do not retry in another way; ask the operator to repair the policy."},
        {"ledger-unavailable", 503, "The ledger of writes cannot be used",
         "Nothing was sent. Do not retry in another way; ask the operator to repair the ledger."},
        {"ledger-full", 503, "The ledger of writes is full",
         "Nothing was sent. Do not retry in another way; ask the operator to make room in the "
         "ledger."},
        {"core-missing", 503, "The protection of writes is not installed completely",
         "Nothing was sent. Do not retry in another way; ask the operator to repair the "
         "installation."},
        {"replay-miss", 403, "No stored answer for this write",
         "Nothing was sent, and nothing will be: this is a replay. Do not retry."},
        {"key-required", 403, "This write must carry an idempotency key",
         "Nothing was sent. Do not retry it without a key of its own."},
        {"key-invalid", 403, "The idempotency key cannot be used",
         "Nothing was sent. Do not retry with this key."},
        {"settings-changed", 403, "An unfinished write was made under other settings",
         "Nothing was sent. Do not retry; ask the operator to settle the earlier write first."},
        {"expired", 403, "This write was done long ago, and its record has expired",
         "It is not repeated by itself. Do not retry; ask the operator whether it is meant to "
         "happen again."},
        {"body-too-large", 403, "The body of this write is too large to be protected",
         "Nothing was sent. Do not retry with the same body."},
        {"unlisted", 403, "No rule names this write",
         "Nothing was sent. Do not retry; ask the operator to add a rule for it."},
        {"redirected-into-rule", 403, "A redirect led to a write that a rule names",
         "The redirect was not followed. Do not retry; send the write to its own address, or ask "
         "the operator."},
};

static const struct reason other = {
        "refused", 403, "This write was refused",
        "Nothing was sent. Do not retry; ask the operator for the reason."};

static const struct reason *reason_of(const char *name)
{
	for (size_t i = 0; name && i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (strcmp(reasons[i].name, name) == 0)
			return &reasons[i];
	}
	return &other;
}

long refusal_status(const char *reason)
{
	return reason_of(reason)->status;
}

static bool is(const struct reason *r, const char *name)
{
	return strcmp(r->name, name) == 0;
}

/* --- the text --- */

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

static void say_times(struct buf *out, uint32_t attempts)
{
	if (attempts == 1)
		buf_add_text(out, ", once");
	else if (attempts > 1)
		buf_printf(out, ", %u times so far", (unsigned)attempts);
}

/* "orders.create was first sent 2026-... by curl (process 12), twice." or nothing. */
static void say_known(const struct refusal_facts *f, struct buf *out)
{
	char when[32];
	if (f->first_sent_us <= 0)
		return;
	clock_rfc3339(when, sizeof(when), f->first_sent_us);
	buf_printf(out, "%s was first sent at %s", f->operation ? f->operation : "This write",
	           when);
	if (f->exe && *f->exe)
		buf_printf(out, " by %s", file_name(f->exe));
	if (f->exe && *f->exe && f->pid > 0)
		buf_printf(out, " (process %d)", f->pid);
	say_times(out, f->attempts);
	buf_add_text(out, ". ");
}

static void say(const struct refusal_facts *f, const struct reason *r, struct buf *out)
{
	if (f->generic) {
		buf_add_text(out,
		             "Another write with this content, under another credential, is not "
		             "settled. " ASK_FIRST);
		return;
	}
	say_known(f, out);
	if (f->detail && *f->detail)
		buf_printf(out, "%s. ", f->detail);
	buf_add_text(out, r->advice);
}

/* --- JSON --- */

/* Length of the UTF-8 character at s (shortest form, no surrogates), or 0 when there is none. */
static size_t utf8_length(const unsigned char *s)
{
	size_t n = s[0] < 0x80                    ? 1
	           : s[0] >= 0xc2 && s[0] <= 0xdf ? 2
	           : (s[0] & 0xf0) == 0xe0        ? 3
	           : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
	                                          : 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
	bool outside = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);
	return overlong || outside ? 0 : n;
}

static void add_json_text(struct buf *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	buf_add_char(out, '"');
	while (*s) {
		size_t n = utf8_length(s);
		if (n == 0)
			buf_add_text(out, "\\ufffd");
		else if (*s == '"' || *s == '\\')
			buf_printf(out, "\\%c", *s);
		else if (*s < 0x20 || *s == 0x7f)
			buf_printf(out, "\\u%04x", *s);
		else
			buf_add(out, s, n);
		s += n ? n : 1;
	}
	buf_add_char(out, '"');
}

static void add_member(struct buf *out, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	buf_printf(out, ",\"%s\":", name);
	add_json_text(out, value);
}

/* A member of our own: what is known of the earlier write, for programs. */
static void add_facts(struct buf *out, const struct refusal_facts *f)
{
	char key[KEY_SHOWN + 1] = "", when[32] = "";
	if (f->key)
		snprintf(key, sizeof(key), "%s", f->key);
	if (f->first_sent_us > 0)
		clock_rfc3339(when, sizeof(when), f->first_sent_us);
	add_member(out, "operation", f->operation);
	add_member(out, "key", key);
	add_member(out, "first_sent", when);
	if (f->attempts > 0)
		buf_printf(out, ",\"attempts\":%u", (unsigned)f->attempts);
	add_member(out, "program", f->exe);
}

static void add_body(const struct refusal_facts *f, const struct reason *r, struct buf *body)
{
	struct buf text = {0};
	say(f, r, &text);
	buf_printf(body, "{\"type\":\"urn:sendonce:%s\",\"title\":", r->name);
	add_json_text(body, r->title);
	buf_printf(body, ",\"status\":%ld", r->status);
	add_member(body, "detail", text.data);
	if (!f->generic)
		add_facts(body, f);
	buf_add_text(body, "}\n");
	if (text.failed)
		body->failed = true;
	buf_free(&text);
}

/* --- the header block --- */

static const char *phrase(long status)
{
	switch (status) {
	case 409:
		return "Conflict";
	case 422:
		return "Unprocessable Content";
	case 424:
		return "Failed Dependency";
	case 503:
		return "Service Unavailable";
	default:
		return "Forbidden";
	}
}

static void add_retry(struct buf *head, const struct reason *r)
{
	bool busy = is(r, "in-progress");
	if (busy)
		buf_printf(head, "Retry-After: %d\r\n", RETRY_BUSY_S);
	else if (r->status == 503)
		buf_printf(head, "Retry-After: %d\r\n", RETRY_BROKEN_S);
	buf_printf(head, "x-should-retry: %s\r\n", busy ? "true" : "false");
	if (!busy)
		buf_add_text(head, "Stripe-Should-Retry: false\r\n");
}

void refusal_answer(const struct refusal_facts *facts, struct buf *head, struct buf *body)
{
	const struct reason *r = reason_of(facts->reason);
	add_body(facts, r, body);
	buf_printf(head, "HTTP/1.1 %ld %s\r\n", r->status, phrase(r->status));
	buf_add_text(head, "Content-Type: application/problem+json\r\n");
	buf_printf(head, "Content-Length: %zu\r\n", body->n);
	buf_add_text(head, "Cache-Control: no-store\r\n");
	buf_printf(head, "Sendonce-Verdict: refused; reason=%s\r\n", r->name);
	add_retry(head, r);
	buf_add_text(head, "\r\n");
}

/* One line: control characters of a foreign text become spaces. Cut where a character ends. */
static void add_line(struct buf *out, const char *text, size_t max)
{
	const unsigned char *s = (const unsigned char *)text;
	while (*s) {
		size_t n = utf8_length(s);
		if (out->n + (n ? n : 1) > max)
			return;
		if (n == 0 || *s < 0x20 || *s == 0x7f)
			buf_add_char(out, n == 0 ? '?' : ' ');
		else
			buf_add(out, s, n);
		s += n ? n : 1;
	}
}

void refusal_error(const struct refusal_facts *facts, struct buf *text)
{
	const struct reason *r = reason_of(facts->reason);
	struct buf said = {0}, line = {0};
	buf_printf(&said, "sendonce: %s: ", r->name);
	say(facts, r, &said);
	if (said.data)
		add_line(&line, said.data, CURL_ERROR_SIZE - 1);
	if (said.failed || line.failed)
		text->failed = true;
	else
		buf_add_span(text, span_buf(&line));
	buf_free(&said);
	buf_free(&line);
}
