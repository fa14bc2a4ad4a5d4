/* A list of name and value, in the order they came, each with where it came from.
 *
 * The rules are libcurl's: names compare without case, `amount` and `index` count only what the
 * caller's mask and request number let through, a folded line continues the value before it. The
 * anchor of a header is its position in the list, so that a stale one can do no harm.
 *
 * Not promised: anything about a list whose lines were added while the program holds the name or
 * value of a folded header: both may move. */
#include "player/headers.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"

/* What most answers fit in; one that does not goes on elsewhere. */
enum { ROOM_LINES = 12, ROOM_BYTES = 320 };

enum {
	ORIGINS = CURLH_HEADER | CURLH_TRAILER | CURLH_CONNECT | CURLH_1XX | CURLH_PSEUDO,
	RESERVED_BIT = 1 << 27 /* libcurl sets it so that nobody compares origins with == */
};

struct header {
	char *name; /* with the value behind it: in the room, or in one allocation */
	char *value;
	unsigned origin;
	int request;
};

struct headers {
	struct header *list; /* `first`, or allocated */
	size_t count, room;
	int requests;    /* highest request number seen */
	unsigned origin; /* of the block the next line belongs to */
	bool in_head;
	struct curl_header out;
	size_t used; /* of `bytes` */
	struct header first[ROOM_LINES];
	char bytes[ROOM_BYTES];
};

struct headers *headers_new(void)
{
	struct headers *h = malloc(sizeof(*h));

	if (!h)
		return NULL;
	memset(h, 0, offsetof(struct headers, first)); /* the rest as it is used */
	h->list = h->first;
	h->room = ROOM_LINES;
	h->origin = CURLH_HEADER;
	return h;
}

static bool is_in_room(const struct headers *h, const char *text)
{
	return text >= h->bytes && text < h->bytes + ROOM_BYTES;
}

static char *text_new(struct headers *h, size_t n)
{
	if (n > ROOM_BYTES - h->used)
		return malloc(n);
	h->used += n;
	return h->bytes + h->used - n;
}

/* One of `n` bytes becomes one of `more`. Null: no memory, and it is as it was. */
static char *text_grow(const struct headers *h, char *text, size_t n, size_t more)
{
	char *longer = realloc(is_in_room(h, text) ? NULL : text, more);

	if (longer && is_in_room(h, text))
		memcpy(longer, text, n);
	return longer;
}

void headers_free(struct headers *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->count; i++)
		if (!is_in_room(h, h->list[i].name))
			free(h->list[i].name);
	if (h->list != h->first)
		free(h->list);
	free(h);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f';
}

static struct span without_end(struct span s)
{
	while (s.n > 0 && is_space(s.p[s.n - 1]))
		s.n--;
	return s;
}

static struct span without_front(struct span s)
{
	while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
		s = (struct span){s.p + 1, s.n - 1};
	return s;
}

static bool grow(struct headers *h)
{
	bool first = h->list == h->first;
	struct header *list = realloc(first ? NULL : h->list, 2 * h->room * sizeof(*list));

	if (!list)
		return false;
	if (first)
		memcpy(list, h->first, sizeof(h->first));
	h->list = list;
	h->room *= 2;
	return true;
}

static int push(struct headers *h, struct span name, struct span value, unsigned origin,
                int request)
{
	if (h->count == h->room && !grow(h))
		return -1;
	char *text = text_new(h, name.n + value.n + 2);
	if (!text)
		return -1;
	memcpy(text, name.p, name.n);
	text[name.n] = 0;
	if (value.n)
		memcpy(text + name.n + 1, value.p, value.n);
	text[name.n + 1 + value.n] = 0;
	h->list[h->count++] = (struct header){text, text + name.n + 1, origin, request};
	return 0;
}

/* A folded line: one leading space of it is kept. */
static int unfold(struct headers *h, struct span line)
{
	if (h->count == 0)
		return -1;
	struct header *last = &h->list[h->count - 1];
	line = without_end(line);
	while (line.n > 1 && (line.p[1] == ' ' || line.p[1] == '\t'))
		line = (struct span){line.p + 1, line.n - 1};
	size_t at = (size_t)(last->value - last->name), old = at + strlen(last->value);
	char *text = text_grow(h, last->name, old, old + line.n + 1);
	if (!text)
		return -1;
	memcpy(text + old, line.p, line.n);
	text[old + line.n] = 0;
	last->name = text;
	last->value = text + at;
	return 0;
}

static bool starts_block(const struct headers *h, struct span line)
{
	return !h->in_head && span_starts(line, "HTTP/");
}

/* HTTP/2 and 3 have no status line: libcurl makes one, and keeps the pseudo header it came from. */
static int begin_block(struct headers *h, struct span line, int request)
{
	const char *space = memchr(line.p, ' ', line.n);
	struct span code = {NULL, 0};
	if (space)
		code = span_trim((struct span){space, line.n - (size_t)(space - line.p)});
	if (code.n > 3)
		code.n = 3;
	h->in_head = true;
	h->origin = code.n == 3 && code.p[0] == '1' ? CURLH_1XX : CURLH_HEADER;
	if (span_starts(line, "HTTP/2") || span_starts(line, "HTTP/3"))
		return push(h, span_of(":status"), code, CURLH_PSEUDO, request);
	return 0;
}

static int end_block(struct headers *h)
{
	if (h->in_head && h->origin == CURLH_HEADER)
		h->origin = CURLH_TRAILER;
	h->in_head = false;
	return 0;
}

int headers_add(struct headers *h, const char *line, size_t n, unsigned origin, int request)
{
	struct span s = {line, n};
	if (request > h->requests)
		h->requests = request;
	if (n == 0 || line[0] == '\r' || line[0] == '\n')
		return origin ? 0 : end_block(h);
	if (origin && span_starts(s, "HTTP/"))
		return 0;
	if (!origin && starts_block(h, s))
		return begin_block(h, s, request);
	if (line[0] == ' ' || line[0] == '\t')
		return unfold(h, s);
	const char *colon = memchr(line, ':', n);
	if (!colon || memchr(line, 0, n))
		return -1;
	struct span name = {line, (size_t)(colon - line)};
	struct span value = without_end((struct span){colon + 1, n - name.n - 1});
	return push(h, name, without_front(value), origin ? origin : h->origin, request);
}

static bool matches(const struct header *e, const char *name, unsigned origin, int request)
{
	return (e->origin & origin) && e->request == request && strcasecmp(e->name, name) == 0;
}

static struct curl_header *show(struct headers *h, size_t at, size_t index, size_t amount)
{
	h->out.name = h->list[at].name;
	h->out.value = h->list[at].value;
	h->out.amount = amount;
	h->out.index = index;
	h->out.origin = h->list[at].origin | RESERVED_BIT;
	h->out.anchor = (void *)(uintptr_t)(at + 1);
	return &h->out;
}

void headers_next_request(struct headers *h)
{
	h->requests++;
}

CURLHcode headers_get(struct headers *h, const char *name, size_t index, unsigned origin,
                      int request, struct curl_header **out)
{
	size_t amount = 0, pick = 0;
	if (!h || !name || !out || !origin || origin > ORIGINS || request < -1)
		return CURLHE_BAD_ARGUMENT;
	if (h->count == 0)
		return CURLHE_NOHEADERS;
	if (request > h->requests)
		return CURLHE_NOREQUEST;
	if (request == -1)
		request = h->requests;
	for (size_t i = 0; i < h->count; i++) {
		if (matches(&h->list[i], name, origin, request) && amount++ == index)
			pick = i;
	}
	if (amount == 0)
		return CURLHE_MISSING;
	if (index >= amount)
		return CURLHE_BADINDEX;
	*out = show(h, pick, index, amount);
	return CURLHE_OK;
}

struct curl_header *headers_next(struct headers *h, unsigned origin, int request,
                                 const struct curl_header *prev)
{
	if (!h || request > h->requests)
		return NULL;
	if (request == -1)
		request = h->requests;
	size_t at = prev ? (size_t)(uintptr_t)prev->anchor : 0;
	if (prev && at == 0)
		return NULL;
	while (at < h->count && !((h->list[at].origin & origin) && h->list[at].request == request))
		at++;
	if (at >= h->count)
		return NULL;

	size_t amount = 0, index = 0;
	for (size_t i = 0; i < h->count; i++) {
		if (!matches(&h->list[i], h->list[at].name, origin, request))
			continue;
		if (i == at)
			index = amount;
		amount++;
	}
	return show(h, at, index, amount);
}
