/* Method, body and headers, each compared with what the real libcurl puts on the wire. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "wire_here.h"
#include "request/request.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static struct wire wire;

/* What a read callback would be asked for: nothing more. */
static size_t no_data(char *to, size_t size, size_t n, void *ctx)
{
	(void)to;
	(void)size;
	(void)n;
	(void)ctx;
	return 0;
}

static size_t one_byte(char *to, size_t size, size_t n, void *ctx)
{
	(void)size;
	(void)n;
	(void)ctx;
	*to = 'x';
	return 1;
}

struct row {
	struct set set[SETS_MAX];
	const char *method;
	enum request_body kind;
	const char *body; /* of REQUEST_FIELDS */
	size_t body_n;    /* 0: its strlen */
};

static const struct row methods[] = {
        {{{0}}, "GET", REQUEST_NO_BODY, NULL, 0},
        {{SET(HTTPGET, 1)}, "GET", REQUEST_NO_BODY, NULL, 0},
        {{SET(NOBODY, 1)}, "HEAD", REQUEST_NO_BODY, NULL, 0},
        {{SET(POSTFIELDS, "a=1")}, "POST", REQUEST_FIELDS, "a=1", 0},
        {{SET(POSTFIELDS, "")}, "POST", REQUEST_FIELDS, "", 0},
        {{SET(POSTFIELDS, "abcdef"), SET(POSTFIELDSIZE, 3)}, "POST", REQUEST_FIELDS, "abc", 0},
        {{SET(POSTFIELDSIZE, 3), SET(POSTFIELDS, "abcdef")}, "POST", REQUEST_FIELDS, "abc", 0},
        {{SET(POSTFIELDS, "abc"), SET(POSTFIELDSIZE, -1)}, "POST", REQUEST_FIELDS, "abc", 0},
        {{SET(POSTFIELDS, "abc"), SET(POSTFIELDSIZE, 0)}, "POST", REQUEST_FIELDS, "", 0},
        {{SET(POSTFIELDS, "a\0b"), SET(POSTFIELDSIZE, 3)}, "POST", REQUEST_FIELDS, "a\0b", 3},
        {{SET(POSTFIELDS, "a\0b"), SET(POSTFIELDSIZE_LARGE, 3)}, "POST", REQUEST_FIELDS, "a\0b", 3},
        {{SET(POSTFIELDS, "a\0b")}, "POST", REQUEST_FIELDS, "a", 0},
        {{SET(POSTFIELDSIZE, 3), SET(COPYPOSTFIELDS, "a\0b")}, "POST", REQUEST_FIELDS, "a\0b", 3},
        {{SET(COPYPOSTFIELDS, "abc")}, "POST", REQUEST_FIELDS, "abc", 0},
        {{SET(POST, 1), SET(POSTFIELDS, "abc")}, "POST", REQUEST_FIELDS, "abc", 0},
        {{SET(POST, 1), SET(POSTFIELDSIZE, 0)}, "POST", REQUEST_FIELDS, "", 0},
        {{SET(POST, 1), SET(READFUNCTION, no_data)}, "POST", REQUEST_READ, NULL, 0},
        {{SET(POSTFIELDS, "abc"), SET(HTTPGET, 1)}, "GET", REQUEST_NO_BODY, NULL, 0},
        {{SET(POSTFIELDS, "abc"), SET(POST, 0)}, "GET", REQUEST_NO_BODY, NULL, 0},
        {{SET(POSTFIELDS, "abc"), SET(CUSTOMREQUEST, "PUT")}, "PUT", REQUEST_FIELDS, "abc", 0},
        {{SET(POSTFIELDS, "abc"), SET(CUSTOMREQUEST, "patch")}, "patch", REQUEST_FIELDS, "abc", 0},
        {{SET(CUSTOMREQUEST, "POST")}, "POST", REQUEST_NO_BODY, NULL, 0},
        {{SET(CUSTOMREQUEST, "DELETE")}, "DELETE", REQUEST_NO_BODY, NULL, 0},
        {{SET(CUSTOMREQUEST, "DELETE"), SET(CUSTOMREQUEST, NULL)}, "GET", REQUEST_NO_BODY, NULL, 0},
        {{SET(NOBODY, 1), SET(CUSTOMREQUEST, "DELETE")}, "DELETE", REQUEST_NO_BODY, NULL, 0},
        {{SET(NOBODY, 1), SET(POSTFIELDS, "abc"), SET(CUSTOMREQUEST, "PUT")},
         "PUT",
         REQUEST_NO_BODY,
         NULL,
         0},
        {{SET(NOBODY, 1), SET(POSTFIELDS, "abc")}, "HEAD", REQUEST_NO_BODY, NULL, 0},
        {{SET(UPLOAD, 1), SET(READFUNCTION, one_byte), SET(INFILESIZE, 1), SET(NOBODY, 1)},
         "HEAD",
         REQUEST_UPLOAD,
         NULL,
         0},
        {{SET(UPLOAD, 1), SET(READFUNCTION, one_byte), SET(INFILESIZE, 1), SET(NOBODY, 1),
          SET(CUSTOMREQUEST, "PATCH")},
         "PATCH",
         REQUEST_UPLOAD,
         NULL,
         0},
        {{SET(POSTFIELDS, "abc"), SET(NOBODY, 1), SET(CUSTOMREQUEST, "PUT")},
         "PUT",
         REQUEST_NO_BODY,
         NULL,
         0},
        {{SET(POST, 1), SET(NOBODY, 1), SET(NOBODY, 0)}, "GET", REQUEST_NO_BODY, NULL, 0},
        {{SET(POST, 1), SET(POSTFIELDS, "a"), SET(NOBODY, 0)}, "POST", REQUEST_FIELDS, "a", 0},
        {{SET(NOBODY, 1), SET(HTTPGET, 1)}, "GET", REQUEST_NO_BODY, NULL, 0},
        {{SET(NOBODY, 1), SET(POST, 1), SET(POSTFIELDS, "abc")}, "POST", REQUEST_FIELDS, "abc", 0},
        {{SET(UPLOAD, 1), SET(READFUNCTION, no_data)}, "PUT", REQUEST_UPLOAD, NULL, 0},
        {{SET(UPLOAD, 1), SET(INFILESIZE, 0)}, "PUT", REQUEST_UPLOAD, NULL, 0},
        {{SET(UPLOAD, 1), SET(READFUNCTION, no_data), SET(CUSTOMREQUEST, "POST")},
         "POST",
         REQUEST_UPLOAD,
         NULL,
         0},
        {{SET(UPLOAD, 1), SET(UPLOAD, 0)}, "GET", REQUEST_NO_BODY, NULL, 0},
        {{SET(UPLOAD, 1), SET(HTTPGET, 1)}, "GET", REQUEST_NO_BODY, NULL, 0},
        {{SET(UPLOAD, 1), SET(POSTFIELDS, "abc")}, "POST", REQUEST_UPLOAD, NULL, 0},
};

static void check_method(size_t i, const struct row *row, const struct options *o)
{
	struct span method = wire_word(&wire, 0), body = wire_body(&wire);
	struct span want = {row->body, row->body_n ? row->body_n
	                               : row->body ? strlen(row->body)
	                                           : 0};

	if (!span_is(method, row->method) || strcmp(request_method(o), row->method) != 0)
		fail_msg("row %zu: sent %.*s, said %s", i, (int)method.n, method.p,
		         request_method(o));
	if (request_body_kind(o) != row->kind)
		fail_msg("row %zu: body kind %d", i, (int)request_body_kind(o));
	if (!span_equal(request_body_bytes(o), want))
		fail_msg("row %zu: body said", i);
	if (row->kind == REQUEST_FIELDS || row->kind == REQUEST_NO_BODY) {
		if (!span_equal(body, want))
			fail_msg("row %zu: body sent: %.*s", i, (int)body.n, body.p);
	}
	if (!o->no_body && (row->kind == REQUEST_UPLOAD || row->kind == REQUEST_READ))
		if (body.n == 0 && !strstr(wire.text, "Content-Length: 0") &&
		    !strstr(wire.text, "Expect:"))
			fail_msg("row %zu: %s", i, wire.text);
	assert_int_equal(request_body_bytes(o).p == NULL, row->kind != REQUEST_FIELDS);
}

static void against_libcurl(void **state)
{
	char url[64];

	(void)state;
	wire_open(&wire);
	snprintf(url, sizeof url, "http://127.0.0.1:%u/p", wire.port);
	for (size_t i = 0; i < COUNT(methods); i++) {
		struct set set[SETS_MAX + 1] = {SET(URL, url)};
		struct options o;

		memcpy(set + 1, methods[i].set, sizeof methods[i].set);
		wire_send(&wire, set, COUNT(set), &o);
		check_method(i, &methods[i], &o);
		options_free(&o);
	}
	close(wire.listener);
}

static void reads(void **state)
{
	(void)state;
	assert_true(request_is_read("GET"));
	assert_true(request_is_read("HEAD"));
	assert_true(request_is_read("OPTIONS"));
	assert_true(request_is_read("TRACE"));
	assert_false(request_is_read("POST"));
	assert_false(request_is_read("get"));
	assert_false(request_is_read("GETX"));
	assert_false(request_is_read("DELETE"));
	assert_false(request_is_read(""));
	assert_false(request_is_read(NULL));
}

/* --- headers */

static void add_line(void *ctx, const struct request_header *h)
{
	struct buf *out = ctx;

	buf_add_span(out, h->name);
	buf_add_text(out, ": ");
	buf_add_span(out, h->value);
	buf_add_text(out, "\n");
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool says_nothing(const char *line)
{
	static const char *const skip[] = {
	        "Accept:", "Content-Length:", "Expect:", "Transfer-Encoding:"};

	for (size_t i = 0; i < COUNT(skip); i++) {
		if (strncasecmp(line, skip[i], strlen(skip[i])) == 0)
			return true;
	}
	return false;
}

/* The lines sorted, "Name: value" with one space, without those that are never given. */
static void normalise(struct buf *text, const char *own_host, struct buf *out)
{
	char *line[64], *save = NULL;
	size_t n = 0;

	for (char *at = strtok_r(text->data, "\r\n", &save); at && n < COUNT(line);
	     at = strtok_r(NULL, "\r\n", &save)) {
		if (!says_nothing(at) && strcmp(at, own_host) != 0)
			line[n++] = at;
	}
	qsort(line, n, sizeof *line, by_text);
	for (size_t i = 0; i < n; i++) {
		size_t name = strcspn(line[i], ":");

		add_line(out, &(struct request_header){{line[i], name},
		                                       span_trim(span_of(line[i] + name + 1))});
	}
}

struct header_row {
	const char *lines[6];
	struct set set[4];
};

static const struct header_row headers[] = {
        {{NULL}, {{0}}},
        {{"A: 1", "b:2", "C:  3  "}, {{0}}},
        {{"A:", "B: ", "C;", "D; ", "E; x", "F"}, {{0}}},
        {{": x", "X-Empty;"}, {{0}}},
        {{"A: 1", "A: 2", "a: 3"}, {{0}}},
        {{"A: b: c", "T:\tx"}, {{0}}},
        {{"A: 1\r\nB: 2\r\nC:3", "D: 4", "E:\r\nF: 5"}, {{0}}},
        {{"Host: other.example"}, {{0}}},
        {{"host:other.example", "Host: second.example"}, {{0}}},
        {{"Host:"}, {{0}}},
        {{NULL}, {SET(POSTFIELDS, "a")}},
        {{"Content-Type: application/json"}, {SET(POSTFIELDS, "a")}},
        {{"content-type:application/json"}, {SET(POSTFIELDS, "a")}},
        {{"Content-Type:"}, {SET(POSTFIELDS, "a")}},
        {{"Content-Type;"}, {SET(POSTFIELDS, "a")}},
        {{"Content-Type: text/plain"}, {{0}}},
        {{NULL}, {SET(CUSTOMREQUEST, "POST")}},
        {{NULL}, {SET(POSTFIELDS, "a"), SET(CUSTOMREQUEST, "PUT")}},
        {{NULL}, {SET(USERAGENT, "ua"), SET(REFERER, "http://r"), SET(COOKIE, "a=b; c=d")}},
        {{"User-Agent: mine", "Referer:", "Cookie: x=y"},
         {SET(USERAGENT, "ua"), SET(REFERER, "http://r"), SET(COOKIE, "a=b")}},
        {{NULL}, {SET(USERAGENT, ""), SET(ACCEPT_ENCODING, "gzip")}},
        {{"Accept-Encoding: br"}, {SET(ACCEPT_ENCODING, "gzip")}},
        {{NULL}, {SET(RANGE, "0-9,20-")}},
        {{"Range: bytes=5-"}, {SET(RANGE, "0-9")}},
        {{"Authorization: Bearer x", "X-Api-Key: k", "Idempotency-Key: 1"}, {SET(POSTFIELDS, "a")}},
};

static void headers_against_libcurl(void **state)
{
	const struct flavour *fl = flavour_here();
	char url[64], own_host[64];

	(void)state;
	wire_open(&wire);
	snprintf(url, sizeof url, "http://127.0.0.1:%u/p", wire.port);
	snprintf(own_host, sizeof own_host, "Host: 127.0.0.1:%u", wire.port);
	for (size_t i = 0; i < COUNT(headers); i++) {
		struct curl_slist *list = NULL;
		struct set set[6] = {SET(URL, url)};
		struct buf said = {0}, sent = {0}, a = {0}, b = {0};
		struct options o;
		char range[REQUEST_RANGE];
		const char *from;

		for (size_t k = 0; k < COUNT(headers[i].lines) && headers[i].lines[k]; k++)
			list = CURL_FN(fl, slist_append)(list, headers[i].lines[k]);
		set[1] = (struct set)SET(HTTPHEADER, list);
		memcpy(set + 2, headers[i].set, sizeof headers[i].set);
		wire_send(&wire, set, COUNT(set), &o);
		request_headers(&o, range, add_line, &said);
		from = strstr(wire.text, "\r\n") + 2;
		buf_add(&sent, from, (size_t)(strstr(wire.text, "\r\n\r\n") + 2 - from));
		buf_add_text(&said, "");
		normalise(&sent, own_host, &a);
		normalise(&said, own_host, &b);
		buf_add_text(&a, "");
		buf_add_text(&b, "");
		if (!span_equal(span_buf(&a), span_buf(&b)))
			fail_msg("row %zu\nsent:\n%s\nsaid:\n%s", i, a.data, b.data);
		options_free(&o);
		CURL_FN(fl, slist_free_all)(list);
		buf_free(&said);
		buf_free(&sent);
		buf_free(&a);
		buf_free(&b);
	}
	close(wire.listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(against_libcurl),
	        cmocka_unit_test(reads),
	        cmocka_unit_test(headers_against_libcurl),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
