/* Keeping the answers of curl_easy_getinfo apart from the handle that gave them.
 *
 * One table says which values are kept and of which type. A value that libcurl offers both as a
 * double and as a curl_off_t is kept once, as the off_t; a libcurl that has only the double is read
 * through it. Strings are compared before they are copied, because most snapshots change nothing
 * but counters.
 *
 * Not kept, so that the hook asks the program's own handle: what belongs to a handle and not to a
 * transfer (PRIVATE, COOKIELIST, SSL_ENGINES, CAINFO, CAPATH), what only a live connection has
 * (LASTSOCKET, ACTIVESOCKET, TLS_SESSION, TLS_SSL_PTR), and what HTTP does not have (FTP, RTSP).
 * In a stored answer stands no EFFECTIVE_URL but one that a redirect led to, and never the user and
 * password of a URL: those are the program's. */
#include "player/info.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "player/certs.h"

enum entry_kind { KEEP_LONG, KEEP_SIZE, KEEP_TIME, KEEP_TEXT };

struct entry {
	CURLINFO id;
	CURLINFO twin;      /* the double of the same value; 0: none */
	unsigned char kind; /* enum entry_kind; small, for the table is walked often */
	signed char fresh;  /* value of a handle that never connected */
	bool stored;        /* part of a stored answer */
};

/* Numbers first, texts last: find_text relies on it. */
static const struct entry entries[] = {
        {CURLINFO_RESPONSE_CODE, 0, KEEP_LONG, 0, true},
        {CURLINFO_HTTP_CONNECTCODE, 0, KEEP_LONG, 0, false},
        {CURLINFO_FILETIME, 0, KEEP_LONG, -1, true},
        {CURLINFO_HEADER_SIZE, 0, KEEP_LONG, 0, true},
        {CURLINFO_REQUEST_SIZE, 0, KEEP_LONG, 0, true},
        {CURLINFO_SSL_VERIFYRESULT, 0, KEEP_LONG, 0, false},
        {CURLINFO_PROXY_SSL_VERIFYRESULT, 0, KEEP_LONG, 0, false},
        {CURLINFO_REDIRECT_COUNT, 0, KEEP_LONG, 0, true},
        {CURLINFO_HTTPAUTH_AVAIL, 0, KEEP_LONG, 0, true},
        {CURLINFO_PROXYAUTH_AVAIL, 0, KEEP_LONG, 0, false},
        {CURLINFO_OS_ERRNO, 0, KEEP_LONG, 0, false},
        {CURLINFO_NUM_CONNECTS, 0, KEEP_LONG, 0, false},
        {CURLINFO_CONDITION_UNMET, 0, KEEP_LONG, 0, false},
        {CURLINFO_PRIMARY_PORT, 0, KEEP_LONG, 0, true},
        {CURLINFO_LOCAL_PORT, 0, KEEP_LONG, 0, false},
        {CURLINFO_HTTP_VERSION, 0, KEEP_LONG, 0, true},
        {CURLINFO_PROTOCOL, 0, KEEP_LONG, 0, true},
        {CURLINFO_PROXY_ERROR, 0, KEEP_LONG, 0, false},
        {CURLINFO_FILETIME_T, 0, KEEP_SIZE, -1, true},
        {CURLINFO_RETRY_AFTER, 0, KEEP_SIZE, 0, true},
        {CURLINFO_SIZE_UPLOAD_T, CURLINFO_SIZE_UPLOAD, KEEP_SIZE, 0, true},
        {CURLINFO_SIZE_DOWNLOAD_T, CURLINFO_SIZE_DOWNLOAD, KEEP_SIZE, 0, true},
        {CURLINFO_SPEED_DOWNLOAD_T, CURLINFO_SPEED_DOWNLOAD, KEEP_SIZE, 0, false},
        {CURLINFO_SPEED_UPLOAD_T, CURLINFO_SPEED_UPLOAD, KEEP_SIZE, 0, false},
        {CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, CURLINFO_CONTENT_LENGTH_DOWNLOAD, KEEP_SIZE, -1, true},
        {CURLINFO_CONTENT_LENGTH_UPLOAD_T, CURLINFO_CONTENT_LENGTH_UPLOAD, KEEP_SIZE, -1, true},
        {CURLINFO_TOTAL_TIME_T, CURLINFO_TOTAL_TIME, KEEP_TIME, 0, false},
        {CURLINFO_NAMELOOKUP_TIME_T, CURLINFO_NAMELOOKUP_TIME, KEEP_TIME, 0, false},
        {CURLINFO_CONNECT_TIME_T, CURLINFO_CONNECT_TIME, KEEP_TIME, 0, false},
        {CURLINFO_PRETRANSFER_TIME_T, CURLINFO_PRETRANSFER_TIME, KEEP_TIME, 0, false},
        {CURLINFO_STARTTRANSFER_TIME_T, CURLINFO_STARTTRANSFER_TIME, KEEP_TIME, 0, false},
        {CURLINFO_REDIRECT_TIME_T, CURLINFO_REDIRECT_TIME, KEEP_TIME, 0, false},
        {CURLINFO_APPCONNECT_TIME_T, CURLINFO_APPCONNECT_TIME, KEEP_TIME, 0, false},
        {CURLINFO_EFFECTIVE_URL, 0, KEEP_TEXT, 0, true},
        {CURLINFO_EFFECTIVE_METHOD, 0, KEEP_TEXT, 0, true},
        {CURLINFO_CONTENT_TYPE, 0, KEEP_TEXT, 0, true},
        {CURLINFO_REDIRECT_URL, 0, KEEP_TEXT, 0, true},
        {CURLINFO_REFERER, 0, KEEP_TEXT, 0, false},
        {CURLINFO_PRIMARY_IP, 0, KEEP_TEXT, 0, true},
        {CURLINFO_LOCAL_IP, 0, KEEP_TEXT, 0, false},
        {CURLINFO_SCHEME, 0, KEEP_TEXT, 0, true},
};

enum {
	ENTRIES = sizeof(entries) / sizeof(entries[0]),
	TEXTS = 8,
	NUMBERS = ENTRIES - TEXTS,
	TEXT_MAX = 64 * 1024,
	ROOM = 160
};

/* Most texts are one of these. They are not copied. */
static char words[][8] = {"",       "GET",  "POST",  "PUT",  "PATCH",
                          "DELETE", "HTTP", "HTTPS", "http", "https"};

struct info {
	int64_t number[NUMBERS];
	char *texts[TEXTS]; /* see text_at */
	struct curl_certinfo certs;
	struct info *older; /* what was adopted from it holds texts that were given away */
	atomic_uint shared; /* references beside the first */
	/* Its short texts; what was replaced is not used again. */
	size_t used;
	char room[ROOM];
};

static char **text_at(struct info *info, size_t at)
{
	return &info->texts[at - NUMBERS];
}

static char *word_of(const char *value, size_t n)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strncmp(words[i], value, n) == 0 && words[i][n] == '\0')
			return words[i];
	return NULL;
}

/* In this one, or in one whose texts it was given. */
static bool is_in_room(const struct info *info, const char *text)
{
	for (; info; info = info->older)
		if ((uintptr_t)text - (uintptr_t)info->room < ROOM)
			return true;
	return false;
}

static void free_text(const struct info *info, char *text)
{
	if (is_in_room(info, text))
		return;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (text == words[i])
			return;
	free(text);
}

static char *copy_text(struct info *info, const char *value, size_t n)
{
	char *word = n < sizeof(words[0]) ? word_of(value, n) : NULL;
	char *at = info->room + info->used;

	if (word)
		return word;
	if (n >= ROOM - info->used)
		return span_dup((struct span){value, n});
	memcpy(at, value, n);
	at[n] = '\0';
	info->used += n + 1;
	return at;
}

static const struct entry *find(CURLINFO id, size_t *at)
{
	for (size_t i = 0; i < ENTRIES; i++) {
		if (entries[i].id == id || (entries[i].twin && entries[i].twin == id)) {
			*at = i;
			return &entries[i];
		}
	}
	return NULL;
}

static const struct entry *find_text(CURLINFO id, size_t *at)
{
	for (size_t i = ENTRIES; i-- > NUMBERS;) {
		*at = i;
		if (entries[i].id == id)
			return &entries[i];
	}
	return NULL;
}

/* Keeps the old text when it is the same, or when there is no memory for the new one. */
static int set_text(struct info *info, size_t at, const char *value, size_t n)
{
	char *old = *text_at(info, at);
	if (!value) {
		free_text(info, old);
		*text_at(info, at) = NULL;
		return 0;
	}
	if (old && strncmp(old, value, n) == 0 && old[n] == 0)
		return 0;
	char *copy = copy_text(info, value, n);
	if (!copy)
		return -1;
	free_text(info, old);
	*text_at(info, at) = copy;
	return 0;
}

/* --- taking --- */

struct info *info_new(void)
{
	struct info *info = calloc(1, sizeof(*info));
	if (!info)
		return NULL;
	for (size_t i = 0; i < NUMBERS; i++)
		info->number[i] = entries[i].fresh;
	info_set_text(info, CURLINFO_EFFECTIVE_URL, "");
	info_set_text(info, CURLINFO_EFFECTIVE_METHOD, "GET");
	info_set_text(info, CURLINFO_PRIMARY_IP, "");
	info_set_text(info, CURLINFO_LOCAL_IP, "");
	return info;
}

struct info *info_ref(struct info *info)
{
	/* relaxed: whoever passes the pointer on holds a reference already */
	atomic_fetch_add_explicit(&info->shared, 1, memory_order_relaxed);
	return info;
}

void info_free(struct info *info)
{
	/* acq_rel: every use by others happens before the memory is freed */
	if (!info || atomic_fetch_sub_explicit(&info->shared, 1, memory_order_acq_rel) != 0)
		return;
	for (size_t i = 0; i < TEXTS; i++)
		free_text(info, info->texts[i]);
	certs_free(&info->certs);
	info_free(info->older);
	free(info);
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

void info_adopt(struct info *to, struct info *from)
{
	struct curl_certinfo certs = to->certs;
	bool given_away = certs.num_of_certs != from->certs.num_of_certs;

	memcpy(to->number, from->number, sizeof(to->number));
	if (given_away) {
		to->certs = from->certs;
		from->certs = certs;
	}
	for (size_t i = 0; i < TEXTS; i++) {
		char *old = to->texts[i];
		if (same_text(old, from->texts[i]))
			continue;
		given_away = given_away || old || is_in_room(from, from->texts[i]);
		to->texts[i] = from->texts[i];
		from->texts[i] = is_in_room(to, old) ? NULL : old;
	}
	if (!given_away) {
		info_free(from);
		return;
	}
	from->older = to->older;
	to->older = from;
}

struct info *info_copy(const struct info *info)
{
	struct info *copy = calloc(1, sizeof(*copy));
	if (!copy)
		return NULL;
	memcpy(copy->number, info->number, sizeof(copy->number));
	bool failed = certs_copy(&copy->certs, &info->certs) != 0;
	for (size_t i = 0; i < TEXTS && !failed; i++) {
		const char *text = info->texts[i];
		copy->texts[i] = text ? copy_text(copy, text, strlen(text)) : NULL;
		failed = text && !copy->texts[i];
	}
	if (failed) {
		info_free(copy);
		return NULL;
	}
	return copy;
}

static int64_t scale_of(enum entry_kind kind)
{
	return kind == KEEP_TIME ? 1000000 : 1;
}

/* What fits, and no trap on what does not. */
static int64_t from_double(double value, int64_t scale)
{
	double scaled = value * (double)scale;
	if (!(scaled > -9.0e18 && scaled < 9.0e18))
		return 0;
	return (int64_t)scaled;
}

static void capture_entry(struct info *info, size_t at, const struct flavour *fl, CURL *handle)
{
	const struct entry *e = &entries[at];
	long number = 0;
	curl_off_t off = 0;
	double twin = 0;
	char *text = NULL;

	if (e->kind == KEEP_LONG) {
		if (CURL_FN(fl, easy_getinfo)(handle, e->id, &number) == CURLE_OK)
			info->number[at] = number;
	} else if (e->kind == KEEP_TEXT) {
		if (CURL_FN(fl, easy_getinfo)(handle, e->id, &text) == CURLE_OK)
			(void)set_text(info, at, text, text ? strlen(text) : 0);
	} else if (CURL_FN(fl, easy_getinfo)(handle, e->id, &off) == CURLE_OK) {
		info->number[at] = off;
	} else if (e->twin && CURL_FN(fl, easy_getinfo)(handle, e->twin, &twin) == CURLE_OK) {
		info->number[at] = from_double(twin, scale_of(e->kind));
	}
}

void info_capture(struct info *info, const struct flavour *fl, CURL *handle)
{
	struct curl_certinfo *certs = NULL;
	for (size_t i = 0; i < ENTRIES; i++)
		capture_entry(info, i, fl, handle);
	if (CURL_FN(fl, easy_getinfo)(handle, CURLINFO_CERTINFO, &certs) == CURLE_OK && certs &&
	    (certs->num_of_certs > 0 || info->certs.num_of_certs > 0))
		(void)certs_copy(&info->certs, certs);
}

/* --- overrides --- */

void info_set_long(struct info *info, CURLINFO id, long value)
{
	info_set_off(info, id, value);
}

void info_set_off(struct info *info, CURLINFO id, curl_off_t value)
{
	size_t at;
	const struct entry *e = find(id, &at);
	if (e && e->kind != KEEP_TEXT)
		info->number[at] = value;
}

void info_set_text(struct info *info, CURLINFO id, const char *value)
{
	size_t at;
	if (find_text(id, &at))
		(void)set_text(info, at, value, value ? strlen(value) : 0);
}

/* --- answering --- */

CURLcode info_get(const struct info *info, CURLINFO id, void *out)
{
	size_t at;
	if (id == CURLINFO_CERTINFO) {
		if (!out)
			return CURLE_UNKNOWN_OPTION;
		*(const struct curl_certinfo **)out = &info->certs;
		return CURLE_OK;
	}
	const struct entry *e = find(id, &at);
	if (!e || !out)
		return CURLE_UNKNOWN_OPTION;
	if (e->kind == KEEP_TEXT)
		*(char **)out = info->texts[at - NUMBERS];
	else if (e->kind == KEEP_LONG)
		*(long *)out = (long)info->number[at];
	else if (id == e->id)
		*(curl_off_t *)out = info->number[at];
	else
		*(double *)out = (double)info->number[at] / (double)scale_of(e->kind);
	return CURLE_OK;
}

long info_long(const struct info *info, CURLINFO id)
{
	size_t at;
	const struct entry *e = find(id, &at);
	return e && e->kind != KEEP_TEXT ? (long)info->number[at] : 0;
}

const char *info_text(const struct info *info, CURLINFO id)
{
	size_t at;
	return find_text(id, &at) ? info->texts[at - NUMBERS] : NULL;
}

/* --- the part that a stored answer carries ---
 *
 * "info 1\n", then a line each: "ID=NUMBER\n", or "ID:LENGTH:" and that many bytes and "\n". An ID
 * that is not known here is skipped, so that an older program reads a younger one's answers. */

/* A URL without user and password: what stands before and after them. */
static void split_url(struct span url, struct span part[2])
{
	const char *slashes = memmem(url.p, url.n, "://", 3);
	size_t from = slashes ? (size_t)(slashes - url.p) + 3 : 0;
	size_t end = from, at = from;
	while (end < url.n && !strchr("/?#", url.p[end]))
		end++;
	for (size_t i = from; i < end; i++) {
		if (url.p[i] == '@')
			at = i + 1;
	}
	part[0] = (struct span){url.p, from};
	part[1] = (struct span){url.p + at, url.n - at};
}

static void store_text(const struct info *info, size_t at, struct buf *out)
{
	CURLINFO id = entries[at].id;
	struct span part[2] = {span_of(info->texts[at - NUMBERS])};
	size_t n;

	if (!part[0].p ||
	    (id == CURLINFO_EFFECTIVE_URL && !info_long(info, CURLINFO_REDIRECT_COUNT)))
		return;
	if (id == CURLINFO_EFFECTIVE_URL || id == CURLINFO_REDIRECT_URL)
		split_url(part[0], part);
	n = part[0].n + part[1].n;
	if (n > TEXT_MAX)
		return;
	buf_add_number(out, id);
	buf_add_char(out, ':');
	buf_add_number(out, (int64_t)n);
	buf_add_char(out, ':');
	buf_add_span(out, part[0]);
	buf_add_span(out, part[1]);
	buf_add_char(out, '\n');
}

static void store_number(const struct info *info, size_t at, struct buf *out)
{
	buf_add_number(out, entries[at].id);
	buf_add_char(out, '=');
	buf_add_number(out, info->number[at]);
	buf_add_char(out, '\n');
}

void info_store(const struct info *info, struct buf *out)
{
	buf_add_text(out, "info 1\n");
	for (size_t i = 0; i < ENTRIES; i++) {
		if (!entries[i].stored)
			continue;
		if (entries[i].kind == KEEP_TEXT)
			store_text(info, i, out);
		else if (info->number[i] != entries[i].fresh)
			store_number(info, i, out);
	}
}

/* Takes a decimal number off the front. 0, or -1. */
static int take_number(struct span *s, int64_t *out)
{
	bool minus = s->n > 0 && s->p[0] == '-';
	size_t i = minus ? 1 : 0, digits = 0;
	int64_t value = 0;
	for (; i < s->n && s->p[i] >= '0' && s->p[i] <= '9'; i++, digits++) {
		int digit = s->p[i] - '0';
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return -1;
	}
	if (digits == 0)
		return -1;
	*out = minus ? -value : value;
	*s = (struct span){s->p + i, s->n - i};
	return 0;
}

static int take_char(struct span *s, char c)
{
	if (s->n == 0 || s->p[0] != c)
		return -1;
	*s = (struct span){s->p + 1, s->n - 1};
	return 0;
}

static int load_text(struct info *info, const struct entry *e, size_t at, struct span *s)
{
	int64_t n;
	if (take_number(s, &n) || take_char(s, ':') || n < 0 || n > TEXT_MAX ||
	    (uint64_t)n > s->n || memchr(s->p, 0, (size_t)n))
		return -1;
	if (e && e->kind == KEEP_TEXT && set_text(info, at, s->p, (size_t)n))
		return -1;
	*s = (struct span){s->p + n, s->n - (size_t)n};
	return 0;
}

/* Values are stored in the table's order, so the next one is looked for from `from` on first. */
static const struct entry *find_stored(CURLINFO id, size_t from, size_t *at)
{
	for (size_t i = 0; i < ENTRIES; i++) {
		*at = (from + i) % ENTRIES;
		if (entries[*at].stored && entries[*at].id == id)
			return &entries[*at];
	}
	return NULL;
}

/* *at: the entry of the line before, then that of this one. */
static int load_line(struct info *info, struct span *s, size_t *at)
{
	int64_t id, value;
	if (take_number(s, &id) || id < 0 || id > INT32_MAX)
		return -1;
	const struct entry *e = find_stored((CURLINFO)id, *at, at);
	if (take_char(s, '=') == 0) {
		if (take_number(s, &value))
			return -1;
		if (e && e->kind != KEEP_TEXT)
			info->number[*at] = value;
	} else if (take_char(s, ':') || load_text(info, e, *at, s)) {
		return -1;
	}
	return take_char(s, '\n');
}

int info_load(struct info *info, const char *data, size_t n)
{
	static const char head[] = "info 1\n";
	struct span s = {data, n};
	size_t at = 0;
	if (!span_starts(s, head))
		return -1;
	s = (struct span){s.p + strlen(head), s.n - strlen(head)};
	while (s.n > 0) {
		if (load_line(info, &s, &at))
			return -1;
	}
	return 0;
}
