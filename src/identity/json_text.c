/* JSON's strings and numbers: checked, compared and written in one spelling.
 *
 * Strings are read as UTF-16 code units, the alphabet RFC 8785 sorts by, from UTF-8 or from
 * escapes. In the canonical spelling only the quote, the backslash, control characters and lone
 * surrogates are escaped; a lone surrogate is legal JSON and stays one ("\ud800"). Unicode is not
 * normalised. Numbers are decimals: digits and a power of ten, never a double, so that neighbours
 * above 2^53 stay apart and 1e999999999 costs nothing. An exponent of more than 17 digits is not
 * calculated with: such a number is equal only to its own spelling. */
#include "identity/parts.h"

#include <string.h>

enum { EXPONENT_DIGITS = 17, UNIT_END = -1 };

enum spelling { SPELLED_JSON, SPELLED_POINTER };

struct units {
	const unsigned char *p, *end;
	enum spelling spelling;
	int low; /* second half of a pair, still to be given */
};

static int hex_digit(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (unsigned char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int hex_unit(const unsigned char *p)
{
	int v = 0;

	for (int i = 0; i < 4; i++)
		v = v * 16 + hex_digit(p[i]);
	return v;
}

/* Bytes of the UTF-8 character at p, or 0 when it is none. */
static int utf8_length(const unsigned char *p, const unsigned char *end)
{
	int n = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0;

	if (n == 0 || end - p < n)
		return 0;
	for (int i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
	    (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

static int escape_length(const unsigned char *p, const unsigned char *end)
{
	if (end - p < 2)
		return 0;
	if (p[1] != 'u')
		return p[1] && strchr("\"\\/bfnrt", p[1]) ? 2 : 0;
	if (end - p < 6)
		return 0;
	for (int i = 2; i < 6; i++) {
		if (hex_digit(p[i]) < 0)
			return 0;
	}
	return 6;
}

int json_scan_string(const char **at, const char *limit)
{
	const unsigned char *p = (const unsigned char *)*at, *end = (const unsigned char *)limit;

	while (p < end && *p != '"') {
		int n = *p == '\\' ? escape_length(p, end) : *p < 0x20 ? 0 : utf8_length(p, end);

		if (n == 0)
			return -1;
		p += n;
	}
	*at = (const char *)p;
	return p < end ? 0 : -1;
}

static int unit_escaped(struct units *u)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	int unit;

	if (u->p[1] == 'u') {
		unit = hex_unit(u->p + 2);
		u->p += 6;
		return unit;
	}
	unit = to[strchr(from, u->p[1]) - from];
	u->p += 2;
	return unit;
}

/* The text was checked by json_scan_string, or is a policy's own valid UTF-8. */
static int unit_next(struct units *u)
{
	const unsigned char *p = u->p;
	int unit = u->low, n;

	u->low = 0;
	if (unit)
		return unit;
	if (p >= u->end)
		return UNIT_END;
	if (*p == '\\' && u->spelling == SPELLED_JSON)
		return unit_escaped(u);
	if (*p == '~' && u->spelling == SPELLED_POINTER && p + 1 < u->end && (p[1] | 1) == '1') {
		u->p += 2;
		return p[1] == '1' ? '/' : '~';
	}
	n = utf8_length(p, u->end);
	u->p += n ? n : 1;
	if (n < 2)
		return *p;
	if (n == 2)
		return (*p & 0x1f) << 6 | (p[1] & 0x3f);
	if (n == 3)
		return (*p & 0x0f) << 12 | (p[1] & 0x3f) << 6 | (p[2] & 0x3f);
	unit = (*p & 7) << 18 | (p[1] & 0x3f) << 12 | (p[2] & 0x3f) << 6 | (p[3] & 0x3f);
	u->low = 0xdc00 | ((unit - 0x10000) & 0x3ff);
	return 0xd800 | (unit - 0x10000) >> 10;
}

static struct units units_of(struct span s, enum spelling spelling)
{
	const unsigned char *p = (const unsigned char *)s.p;

	return (struct units){p, s.n ? p + s.n : p, spelling, 0};
}

static int compare(struct units a, struct units b)
{
	for (;;) {
		int x = unit_next(&a), y = unit_next(&b);

		if (x != y)
			return x < y ? -1 : 1;
		if (x == UNIT_END)
			return 0;
	}
}

static bool is_plain(char c)
{
	return (unsigned char)c < 0x80 && c != '\\';
}

/* Most names differ at a plain ASCII byte, where bytes and code units have one order. */
int json_compare_names(struct span a, struct span b)
{
	size_t i = 0;

	while (i < a.n && i < b.n && a.p[i] == b.p[i] && is_plain(a.p[i]))
		i++;
	if (i < a.n && i < b.n && is_plain(a.p[i]) && is_plain(b.p[i]))
		return a.p[i] < b.p[i] ? -1 : 1;
	if (i == a.n || i == b.n)
		return a.n == b.n ? 0 : a.n < b.n ? -1 : 1;
	return compare(units_of(a, SPELLED_JSON), units_of(b, SPELLED_JSON));
}

bool json_name_is(struct span name, struct span token)
{
	return compare(units_of(name, SPELLED_JSON), units_of(token, SPELLED_POINTER)) == 0;
}

static void emit_code(unsigned c, struct buf *out)
{
	char b[4];

	if (c < 0x800) {
		b[0] = (char)(0xc0 | c >> 6);
		b[1] = (char)(0x80 | (c & 0x3f));
		buf_add(out, b, 2);
		return;
	}
	if (c < 0x10000) {
		b[0] = (char)(0xe0 | c >> 12);
		b[1] = (char)(0x80 | (c >> 6 & 0x3f));
		b[2] = (char)(0x80 | (c & 0x3f));
		buf_add(out, b, 3);
		return;
	}
	b[0] = (char)(0xf0 | c >> 18);
	b[1] = (char)(0x80 | (c >> 12 & 0x3f));
	b[2] = (char)(0x80 | (c >> 6 & 0x3f));
	b[3] = (char)(0x80 | (c & 0x3f));
	buf_add(out, b, 4);
}

static void emit_unit(int c, struct buf *out)
{
	static const char hex[] = "0123456789abcdef";
	char text[6] = {'\\',       'u', hex[c >> 12 & 15], hex[c >> 8 & 15], hex[c >> 4 & 15],
	                hex[c & 15]};

	if (c < 0x20 || (c >= 0xd800 && c < 0xe000)) {
		buf_add(out, text, sizeof text);
	} else if (c < 0x80) {
		if (c == '"' || c == '\\')
			buf_add_char(out, '\\');
		buf_add_char(out, (char)c);
	} else {
		emit_code((unsigned)c, out);
	}
}

static void emit_decoded(struct units u, struct buf *out)
{
	int c = unit_next(&u);

	while (c != UNIT_END) {
		int next = unit_next(&u);

		if (c >= 0xd800 && c < 0xdc00 && next >= 0xdc00 && next < 0xe000) {
			emit_code(0x10000U +
			                  (((unsigned)c & 0x3ff) << 10 | ((unsigned)next & 0x3ff)),
			          out);
			next = unit_next(&u);
		} else {
			emit_unit(c, out);
		}
		c = next;
	}
}

void json_emit_string(struct span text, struct buf *out)
{
	buf_add_char(out, '"');
	if (text.n && memchr(text.p, '\\', text.n))
		emit_decoded(units_of(text, SPELLED_JSON), out);
	else
		buf_add_span(out, text); /* without a backslash it is canonical as it stands */
	buf_add_char(out, '"');
}

/* As emit_decoded, but plain text: only a lone surrogate, which has no UTF-8, stays an escape. */
void json_decode_string(struct span text, struct buf *out)
{
	struct units u = units_of(text, SPELLED_JSON);
	int c = unit_next(&u);

	while (c != UNIT_END) {
		int next = unit_next(&u);

		if (c >= 0xd800 && c < 0xdc00 && next >= 0xdc00 && next < 0xe000) {
			emit_code(0x10000U +
			                  (((unsigned)c & 0x3ff) << 10 | ((unsigned)next & 0x3ff)),
			          out);
			next = unit_next(&u);
		} else if (c < 0x80) {
			buf_add_char(out, (char)c);
		} else {
			emit_unit(c, out);
		}
		c = next;
	}
}

static const char *skip_digits(const char *p, const char *end)
{
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p;
}

int json_scan_number(const char **at, const char *end)
{
	const char *p = *at, *from;

	if (p < end && *p == '-')
		p++;
	from = p;
	p = skip_digits(p, end);
	if (p == from || (*from == '0' && p - from > 1))
		return -1;
	if (p < end && *p == '.') {
		from = ++p;
		p = skip_digits(p, end);
		if (p == from)
			return -1;
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		from = p;
		p = skip_digits(p, end);
		if (p == from)
			return -1;
	}
	*at = p;
	return 0;
}

struct decimal {
	bool minus, exponent_minus;
	struct span whole, fraction, exponent; /* digits; leading zeros of the exponent are gone */
};

static struct decimal decimal_of(struct span text)
{
	struct decimal d = {0};
	const char *p = text.p, *end = text.p + text.n, *from;

	d.minus = *p == '-';
	from = p + d.minus;
	p = skip_digits(from, end);
	d.whole = (struct span){from, (size_t)(p - from)};
	if (p < end && *p == '.') {
		from = p + 1;
		p = skip_digits(from, end);
		d.fraction = (struct span){from, (size_t)(p - from)};
	}
	if (p == end)
		return d;
	p++;
	d.exponent_minus = *p == '-';
	if (*p == '-' || *p == '+')
		p++;
	while (p < end && *p == '0')
		p++;
	d.exponent = (struct span){p, (size_t)(end - p)};
	return d;
}

static void strip_leading(struct span *s)
{
	while (s->n && *s->p == '0') {
		s->p++;
		s->n--;
	}
}

static void strip_trailing(struct span *s)
{
	while (s->n && s->p[s->n - 1] == '0')
		s->n--;
}

static long long exponent_value(const struct decimal *d)
{
	long long v = 0;

	for (size_t i = 0; i < d->exponent.n; i++)
		v = v * 10 + (d->exponent.p[i] - '0');
	return d->exponent_minus ? -v : v;
}

/* Too large to calculate with: the spelling is the value, marked by a capital E. */
static void emit_spelled(const struct decimal *d, struct buf *out)
{
	if (d->whole.n == 0)
		buf_add_char(out, '0');
	buf_add_span(out, d->whole);
	if (d->fraction.n) {
		buf_add_char(out, '.');
		buf_add_span(out, d->fraction);
	}
	buf_add_text(out, d->exponent_minus ? "E-" : "E");
	buf_add_span(out, d->exponent);
}

void json_emit_number(struct span text, struct buf *out)
{
	struct decimal d = decimal_of(text);
	long long exponent;
	size_t whole;

	strip_leading(&d.whole);
	strip_trailing(&d.fraction);
	if (d.whole.n == 0 && d.fraction.n == 0) {
		buf_add_char(out, '0');
		return;
	}
	if (d.minus)
		buf_add_char(out, '-');
	if (d.exponent.n > EXPONENT_DIGITS) {
		emit_spelled(&d, out);
		return;
	}
	exponent = exponent_value(&d) - (long long)d.fraction.n;
	whole = d.whole.n;
	if (d.fraction.n == 0) {
		strip_trailing(&d.whole);
		exponent += (long long)(whole - d.whole.n);
	} else if (whole == 0) {
		strip_leading(&d.fraction);
	}
	buf_add_span(out, d.whole);
	buf_add_span(out, d.fraction);
	if (exponent) {
		buf_add_char(out, 'e');
		buf_add_number(out, exponent);
	}
}
