/* See scan.h. Written for a million lines: each byte is looked at once, nothing is copied, and a
 * text without escapes costs a memchr. It is no general JSON reader: what the log does not contain
 * (arrays, deeper objects) is a fault, and a fault is counted by the caller, never guessed at. */
#include "report/scan.h"

#include <string.h>

static const char *skip_space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n'))
		p++;
	return p;
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* What follows the escape at `p`; null: it is cut short, as a torn line's is. */
static const char *skip_escape(const char *p, const char *end)
{
	if (end - p < 2 || p[1] != 'u')
		return p + 2;
	for (int i = 2; i < 6; i++)
		if (end - p <= i || !is_hex(p[i]))
			return NULL;
	return p + 6;
}

/* `p` is at the opening quote; returns what follows the closing one, null when there is none. */
static const char *take_text(const char *p, const char *end, struct span *out)
{
	const char *from = ++p;

	while (p && p < end && *p != '"') {
		if ((unsigned char)*p < 0x20)
			return NULL;
		p = *p == '\\' ? skip_escape(p, end) : p + 1;
	}
	if (!p || p >= end)
		return NULL;
	*out = (struct span){from, (size_t)(p - from)};
	return p + 1;
}

static bool is_word_byte(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' ||
	       c == '.' || c == 'E';
}

static const char *take_word(const char *p, const char *end, struct span *out)
{
	const char *from = p;

	while (p < end && is_word_byte(*p))
		p++;
	*out = (struct span){from, (size_t)(p - from)};
	return p > from ? p : NULL;
}

/* To the brace that closes the one at `p`; texts inside may hold braces. */
static const char *take_object(const char *p, const char *end, struct span *out)
{
	const char *from = p++;
	struct span text;

	while (p && p < end && *p != '}') {
		if (*p == '{')
			return NULL;
		p = *p == '"' ? take_text(p, end, &text) : p + 1;
	}
	if (!p || p >= end)
		return NULL;
	*out = (struct span){from, (size_t)(p + 1 - from)};
	return p + 1;
}

static const char *take_value(const char *p, const char *end, struct scan_member *m)
{
	if (p >= end)
		return NULL;
	m->kind = *p == '"' ? SCAN_TEXT : *p == '{' ? SCAN_OBJECT : SCAN_WORD;
	switch (m->kind) {
	case SCAN_TEXT:
		return take_text(p, end, &m->value);
	case SCAN_OBJECT:
		return take_object(p, end, &m->value);
	case SCAN_WORD:
		break;
	}
	return take_word(p, end, &m->value);
}

/* `"name": value` at p. */
static const char *take_member(const char *p, const char *end, struct scan_member *m)
{
	p = skip_space(p, end);
	if (p >= end || *p != '"')
		return NULL;
	p = take_text(p, end, &m->name);
	if (!p)
		return NULL;
	p = skip_space(p, end);
	if (p >= end || *p != ':')
		return NULL;
	p = take_value(skip_space(p + 1, end), end, m);
	return p ? skip_space(p, end) : NULL;
}

int scan_object(struct span line, scan_visit *visit, void *ctx)
{
	const char *end = line.p + line.n, *p = skip_space(line.p, end);
	struct scan_member member;
	int rc;

	if (p >= end || *p++ != '{')
		return -1;
	p = skip_space(p, end);
	if (p < end && *p == '}')
		return skip_space(p + 1, end) == end ? 0 : -1;
	for (;;) {
		p = take_member(p, end, &member);
		if (!p || p >= end)
			return -1;
		rc = visit(ctx, &member);
		if (rc)
			return rc;
		if (*p != ',')
			break;
		p++;
	}
	return *p == '}' && skip_space(p + 1, end) == end ? 0 : -1;
}

/* --- escapes --- */

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The four digits at p, or -1. */
static long take_hex(const char *p, const char *end)
{
	long code = 0;

	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hex_value(p[i]);

		if (digit < 0)
			return -1;
		code = code * 16 + digit;
	}
	return code;
}

static const char *take_unicode(const char *p, const char *end, long *code)
{
	long low;

	*code = take_hex(p, end);
	if (*code < 0) {
		*code = 0xfffd;
		return p;
	}
	p += 4;
	if (*code < 0xd800 || *code > 0xdfff)
		return p;
	low = end - p >= 6 && p[0] == '\\' && p[1] == 'u' ? take_hex(p + 2, end) : -1;
	if (*code > 0xdbff || low < 0xdc00 || low > 0xdfff) {
		*code = 0xfffd;
		return p;
	}
	*code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
	return p + 6;
}

/* `p` is behind the backslash. */
static const char *take_escape(const char *p, const char *end, long *code)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;

	*code = 0xfffd;
	if (p >= end)
		return p;
	if (*p == 'u')
		return take_unicode(p + 1, end, code);
	at = *p ? strchr(from, *p) : NULL;
	if (at)
		*code = to[at - from];
	return p + 1;
}

static size_t encode_utf8(long code, char out[4])
{
	unsigned long c = (unsigned long)code;

	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

size_t scan_unescape(struct span text, char *out, size_t room)
{
	const char *p = text.p, *end = text.p + text.n;
	size_t n = 0, length;
	char bytes[4];
	long code;

	while (p < end) {
		length = 1;
		bytes[0] = *p++;
		if (bytes[0] == '\\') {
			p = take_escape(p, end, &code);
			length = encode_utf8(code, bytes);
		}
		if (n + length >= room)
			break;
		memcpy(out + n, bytes, length);
		n += length;
	}
	out[n] = '\0';
	return n;
}

/* No value holds the mark: its quotes would be escaped there. */
struct span scan_untorn(struct span line)
{
	static const char mark[] = "{\"time\":\"";
	struct span rest = {NULL, 0};
	const char *p = line.p, *end = line.p + line.n;

	while (p < end && (p = memmem(p + 1, (size_t)(end - p - 1), mark, sizeof(mark) - 1)))
		rest = (struct span){p, (size_t)(end - p)};
	return rest;
}

long long scan_number(struct span value, long long otherwise)
{
	long long number = 0;
	size_t i = value.n > 0 && value.p[0] == '-';

	if (value.n == i || value.n - i > 18)
		return otherwise;
	for (size_t at = i; at < value.n; at++) {
		if (value.p[at] < '0' || value.p[at] > '9')
			return otherwise;
		number = number * 10 + (value.p[at] - '0');
	}
	return i ? -number : number;
}
