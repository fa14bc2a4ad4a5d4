/* Feeding one answer to a program's callbacks.
 *
 * Each header line and each piece of body goes where libcurl would send it: header lines to the
 * body callback first when CURLOPT_HEADER is set, then to the header callback; bodies in pieces of
 * at most CURL_MAX_WRITE_SIZE. A callback that pauses leaves its bytes here (`held`), and gets them
 * again when the pause ends.
 *
 * Everything a callback could make us forget is written down before it is called, since it may
 * longjmp: a half-played answer can always be played on or stopped. No lock is ever held.
 *
 * Not promised: what libcurl does below this line (decoding, redirects, authentication). That is
 * the sender's work, and is done when the bytes arrive here. */
#include "player/inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

enum { HOLD_NONE = 0, HOLD_BODY = 1, HOLD_HEADER = 2 };

/* What is so short is copied to the stack. */
enum { SHORT = 256 };

void player_start(struct player *p, const struct player_sink *sink, int64_t now_us)
{
	memset(p, 0, sizeof(*p));
	p->sink = *sink;
	p->started_us = p->connecting_us = p->seen_us = now_us;
	p->body_total = -1;
	player_measure(p, now_us, false);
	if (p->sink.error_buffer)
		p->sink.error_buffer[0] = 0;
}

static void drop_held(struct player *p)
{
	free(p->held);
	p->held = NULL;
	p->held_size = p->held_at = 0;
	p->held_kind = HOLD_NONE;
}

static void drop_copy(struct player *p)
{
	free(p->copy);
	p->copy = NULL;
	p->copy_size = 0;
}

void player_stop(struct player *p)
{
	drop_held(p);
	drop_copy(p);
	p->ended = true;
}

static size_t call_default(const char *data, size_t n, void *file)
{
	return fwrite(data, 1, n, file ? file : stdout);
}

/* Callbacks get a copy with a NUL behind it. libcurl's buffers happen to be writable and terminated
 * and programs have come to rely on both, though neither is promised; the pieces of a tape are read
 * by others too and must not change. */
static size_t call_with(char *copy, curl_write_callback fn, const char *data, size_t n, void *arg)
{
	memcpy(copy, data, n);
	copy[n] = 0;
	return fn(copy, 1, n, arg);
}

static size_t call_short(curl_write_callback fn, const char *data, size_t n, void *arg)
{
	char copy[SHORT + 1];
	return call_with(copy, fn, data, n, arg);
}

/* On the heap, and the player's, as the callback may jump out: a piece is larger than what the
 * stack of a fiber has left. */
static char *copy_room(struct player *p, size_t n)
{
	if (n < p->copy_size)
		return p->copy;
	free(p->copy);
	p->copy = malloc(n + 1);
	p->copy_size = p->copy ? n + 1 : 0;
	return p->copy;
}

static size_t call_copied(struct player *p, curl_write_callback fn, const char *data, size_t n,
                          void *arg)
{
	if (n <= SHORT)
		return call_short(fn, data, n, arg);
	char *copy = copy_room(p, n);
	return copy ? call_with(copy, fn, data, n, arg) : 0;
}

static size_t call_out(struct player *p, curl_write_callback fn, const char *data, size_t n,
                       void *arg)
{
	p->delivering = true;
	size_t took = fn ? call_copied(p, fn, data, n, arg) : call_default(data, n, arg);
	p->delivering = false;
	return took;
}

static size_t call_body(struct player *p, const char *data, size_t n)
{
	return call_out(p, p->sink.write, data, n, p->sink.write_data);
}

/* HEADERDATA without HEADERFUNCTION: the body's function with the header's pointer. */
static size_t call_header(struct player *p, const char *data, size_t n)
{
	const struct player_sink *s = &p->sink;
	return call_out(p, s->header ? s->header : s->write, data, n, s->header_data);
}

static CURLcode hold(struct player *p, int kind, const char *data, size_t n)
{
	char *copy = malloc(n ? n : 1);
	if (!copy)
		return player_fail(p, CURLE_OUT_OF_MEMORY, "Out of memory");
	memcpy(copy, data, n);
	drop_held(p);
	p->held = copy;
	p->held_size = n;
	p->held_kind = kind;
	return p->code;
}

static size_t chunk_of(size_t n)
{
	return n < CURL_MAX_WRITE_SIZE ? n : CURL_MAX_WRITE_SIZE;
}

static CURLcode short_write(struct player *p, size_t gave, size_t took, const char *text)
{
	if (!p->sink.counts_late)
		return player_fail(p, CURLE_WRITE_ERROR, "%s", text);
	return player_fail(p, CURLE_WRITE_ERROR,
	                   "Failure writing output to destination, passed %zu returned %zd", gave,
	                   (ssize_t)took);
}

static CURLcode short_body(struct player *p, size_t gave, size_t took)
{
	return short_write(p, gave, took, "Failure writing output to destination");
}

static CURLcode short_header(struct player *p, size_t gave, size_t took)
{
	return short_write(p, gave, took, "Failed writing header");
}

/* Body callback. On a pause the rest is held for `kind`, and *held says so. */
static CURLcode give_body(struct player *p, int kind, const char *data, size_t n, bool *held)
{
	while (n > 0) {
		size_t chunk = chunk_of(n);
		bool wait = p->paused;
		size_t took = wait ? CURL_WRITEFUNC_PAUSE : call_body(p, data, chunk);
		if (took == CURL_WRITEFUNC_PAUSE) {
			p->paused = *held = true;
			return hold(p, kind, data, n);
		}
		if (took != chunk)
			return short_body(p, chunk, took);
		data += chunk;
		n -= chunk;
	}
	return p->code;
}

static bool wants_headers(const struct player *p)
{
	return p->sink.header || p->sink.header_data;
}

static CURLcode give_header(struct player *p, const char *data, size_t n)
{
	size_t took = call_header(p, data, n);
	if (took == CURL_WRITEFUNC_PAUSE) {
		p->paused = true;
		return hold(p, HOLD_HEADER, data, n);
	}
	if (took != n)
		return short_header(p, n, took);
	return p->code;
}

/* The rest of a piece of body that a callback did not take. held_at is moved before the callback
 * runs, so that a longjmp out of it does not deliver the same bytes twice. */
static CURLcode release_body(struct player *p)
{
	while (p->held_at < p->held_size && !p->paused) {
		size_t at = p->held_at;
		size_t chunk = chunk_of(p->held_size - at);
		p->held_at += chunk;
		size_t took = call_body(p, p->held + at, chunk);
		if (took == CURL_WRITEFUNC_PAUSE) {
			p->held_at = at;
			p->paused = true;
		} else if (took != chunk) {
			return short_body(p, chunk, took);
		}
	}
	if (p->held_at == p->held_size)
		p->held_kind &= ~HOLD_BODY;
	return p->code;
}

static CURLcode release_header(struct player *p)
{
	p->held_kind = HOLD_NONE;
	size_t took = call_header(p, p->held, p->held_size);
	if (took == CURL_WRITEFUNC_PAUSE) {
		p->held_kind = HOLD_HEADER;
		p->paused = true;
	} else if (took != p->held_size) {
		return short_header(p, p->held_size, took);
	}
	return p->code;
}

/* Give what is held as far as the program takes it; afterwards it is paused or nothing is held. */
static CURLcode release(struct player *p)
{
	if ((p->held_kind & HOLD_BODY) && !p->paused)
		(void)release_body(p);
	if (!p->code && (p->held_kind & HOLD_HEADER) && !(p->held_kind & HOLD_BODY) && !p->paused)
		(void)release_header(p);
	if (p->code || p->held_kind == HOLD_NONE)
		drop_held(p);
	return p->code;
}

static CURLcode give_line(struct player *p, const char *line, size_t n, bool to_body)
{
	bool held = false;
	int kind = HOLD_BODY | (wants_headers(p) ? HOLD_HEADER : 0);
	if (to_body && (give_body(p, kind, line, n, &held) || held))
		return p->code;
	return wants_headers(p) ? give_header(p, line, n) : p->code;
}

/* --- what the lines mean for the playing --- */

static bool is_blank(const char *line, size_t n)
{
	return n == 0 || line[0] == '\r' || line[0] == '\n';
}

static bool is_status_line(struct span line)
{
	return span_starts(line, "HTTP/");
}

/* "HTTP/1.1 201 Created", "HTTP/2 201": the number after the first space. */
static long status_of(struct span line)
{
	size_t i = 0;
	long status = 0;
	while (i < line.n && line.p[i] != ' ')
		i++;
	while (i < line.n && line.p[i] == ' ')
		i++;
	for (int digits = 0; digits < 3 && i < line.n; digits++, i++) {
		if (line.p[i] < '0' || line.p[i] > '9')
			return 0;
		status = status * 10 + (line.p[i] - '0');
	}
	return status;
}

static bool named(struct span line, const char *name, struct span *value)
{
	size_t n = strlen(name);
	if (line.n <= n || line.p[n] != ':' || !span_is_nocase((struct span){line.p, n}, name))
		return false;
	*value = span_trim((struct span){line.p + n + 1, line.n - n - 1});
	return true;
}

/* The leading digits; -1: none; INT64_MAX: more than fit. */
static int64_t number_of(struct span text)
{
	int64_t number = -1;
	for (size_t i = 0; i < text.n && text.p[i] >= '0' && text.p[i] <= '9'; i++) {
		int digit = text.p[i] - '0';
		if (number > (INT64_MAX - digit) / 10)
			return INT64_MAX;
		number = (number < 0 ? 0 : number * 10) + digit;
	}
	return number;
}

static void begin_block(struct player *p, struct span line)
{
	p->status = status_of(line);
	p->in_head = p->connected = true;
	p->in_body = p->chunked = p->must_fail = false;
	p->body_total = -1;
	p->body_seen = 0;
}

static CURLcode too_large(struct player *p)
{
	return player_fail(p, CURLE_FILESIZE_EXCEEDED, "Maximum file size exceeded");
}

/* A Content-Range that names no place: what was resumed begins anew. */
static void read_range(struct player *p, struct span value)
{
	size_t i = 0;
	while (i < value.n && value.p[i] != '*' && (value.p[i] < '0' || value.p[i] > '9'))
		i++;
	bool placed = i < value.n && value.p[i] != '*';
	if (!placed && (p->status < 300 || !p->sink.resumed_through_416))
		p->sink.resumed = false;
}

static CURLcode read_field(struct player *p, struct span line)
{
	struct span value;
	if (named(line, "Content-Range", &value))
		read_range(p, value);
	if (named(line, "Transfer-Encoding", &value))
		p->chunked = true;
	if (!named(line, "Content-Length", &value))
		return p->code;
	int64_t size = number_of(value);
	if (size == INT64_MAX)
		return p->sink.max_filesize ? too_large(p) : p->code;
	p->body_total = size;
	return p->code;
}

static bool is_interim(const struct player *p)
{
	return p->status >= 100 && p->status < 200 && p->status != 101;
}

static bool is_too_large(const struct player *p)
{
	return p->sink.max_filesize > 0 && p->body_total > p->sink.max_filesize;
}

/* The blank line of a block, before the program sees it: what libcurl decides here. */
static CURLcode end_block(struct player *p)
{
	p->in_head = false;
	if (is_interim(p)) {
		p->body_total = -1;
		return p->code;
	}
	if (p->status == 204 || p->status == 304)
		p->body_total = 0;
	else if (p->chunked)
		p->body_total = -1;
	else if (is_too_large(p) && !p->sink.counts_late)
		return too_large(p);
	p->in_body = true;
	p->must_fail =
	        p->sink.fail_on_error && p->status >= 400 && !(p->status == 416 && p->sink.resumed);
	return p->code;
}

static CURLcode fail_on_error(struct player *p)
{
	return player_fail(p, CURLE_HTTP_RETURNED_ERROR, "The requested URL returned error: %ld",
	                   p->status);
}

/* With credentials the sender may answer a challenge: only what comes next tells. */
static bool may_be_challenge(const struct player *p)
{
	return (p->status == 401 && p->sink.has_password) ||
	       (p->status == 407 && p->sink.has_proxy_password);
}

static CURLcode play_field(struct player *p, struct span line)
{
	bool blank = is_blank(line.p, line.n);
	if (blank ? end_block(p) : read_field(p, line))
		return p->code;
	if (give_line(p, line.p, line.n, p->sink.header_in_body))
		return p->code;
	/* must_fail was set before the callback ran: a longjmp out of it does not lose it. */
	if (blank && p->must_fail && !may_be_challenge(p))
		return fail_on_error(p);
	if (blank && p->in_body && p->sink.counts_late && is_too_large(p))
		return too_large(p);
	return p->code;
}

CURLcode player_header(struct player *p, const char *line, size_t n)
{
	if (p->code || p->ended || (p->held && release(p)))
		return p->code;
	struct span s = {line, n};
	if (!p->in_head && is_status_line(s)) {
		begin_block(p, s);
		return give_line(p, line, n, p->sink.header_in_body);
	}
	if (p->in_body) /* a trailer: it has no meaning of its own */
		return give_line(p, line, n, p->sink.counts_late && p->sink.header_in_body);
	return play_field(p, s);
}

CURLcode player_connect_header(struct player *p, const char *line, size_t n)
{
	if (p->code || p->ended || (p->held && release(p)))
		return p->code;
	return give_line(p, line, n, p->sink.header_in_body);
}

CURLcode player_body(struct player *p, const char *data, size_t n)
{
	bool held = false;
	if (p->code || p->ended || (p->held && release(p)))
		return p->code;
	if (p->must_fail)
		return fail_on_error(p);
	if (!p->sink.counts_late)
		p->body_seen += (curl_off_t)n;
	if (give_body(p, HOLD_BODY, data, n, &held))
		return p->code;
	if (p->sink.counts_late)
		p->body_seen += (curl_off_t)n;
	return p->code;
}

CURLcode player_pause(struct player *p, int bits)
{
	bool pause = (bits & CURLPAUSE_RECV) != 0;
	if (p->code || p->ended || pause == p->paused)
		return p->code;
	p->paused = pause;
	if (pause)
		return p->code;
	player_speed_again(p);
	/* Inside a callback, whoever called it goes on with what is left. */
	return p->delivering ? p->code : release(p);
}

CURLcode player_end(struct player *p, CURLcode code, const char *text)
{
	if (p->ended)
		return p->code;
	if (!p->code && p->held)
		(void)release(p);
	if (!p->code && p->must_fail && code == CURLE_OK)
		(void)fail_on_error(p);
	if (!p->code && code) {
		p->code = code;
		player_error(p, text);
	}
	/* libcurl shows the final state once more, with the speed as it is then, unless the program
	 * has just asked it to stop. */
	player_measure(p, p->seen_us, true);
	if (p->code != CURLE_ABORTED_BY_CALLBACK)
		(void)player_progress(p, true);
	p->ended = true;
	drop_held(p);
	drop_copy(p);
	return p->code;
}
