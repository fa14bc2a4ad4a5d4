/* See log.h. The file is read in pieces of a megabyte, each line by scan.c; a line that cannot be
 * read is counted. An event's beginning is its time less its duration: the log is written when a
 * write ends, the report is about when it began. */
#include "report/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "report/scan.h"
#include "report/texts.h"

enum { TEXT_MAX = 1024, CHUNK = 1 << 20 };

/* What a line is read into. */
/* Some years: what is more is no time a call took. */
#define MS_MOST INT64_C(1000000000000)

struct reading {
	struct log *log;
	struct entry *e;
	int64_t ms, lost;
	bool failed;
};

/* --- values --- */

static int64_t two(const char *p)
{
	return (p[0] - '0') * 10 + (p[1] - '0');
}

/* 2026-11-30T14:05:11.000001Z, as clock_rfc3339 writes it; 0 when it is none. */
static int64_t read_time(struct span v)
{
	static const char form[] = "dddd-dd-ddTdd:dd:dd.ddddddZ";
	struct tm t = {0};
	int64_t us = 0;

	if (v.n != sizeof(form) - 1)
		return 0;
	for (size_t i = 0; i < v.n; i++) {
		bool digit = v.p[i] >= '0' && v.p[i] <= '9';

		if (form[i] == 'd' ? !digit : v.p[i] != form[i])
			return 0;
	}
	t.tm_year = (int)(two(v.p) * 100 + two(v.p + 2) - 1900);
	t.tm_mon = (int)two(v.p + 5) - 1;
	t.tm_mday = (int)two(v.p + 8);
	t.tm_hour = (int)two(v.p + 11);
	t.tm_min = (int)two(v.p + 14);
	t.tm_sec = (int)two(v.p + 17);
	for (int i = 20; i < 26; i++)
		us = us * 10 + (v.p[i] - '0');
	return (int64_t)timegm(&t) * 1000000 + us;
}

static uint64_t read_hex(struct span v)
{
	uint64_t number = 0;

	if (v.n == 0 || v.n > 16)
		return 0;
	for (size_t i = 0; i < v.n; i++) {
		char c = v.p[i];
		unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
		                 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
		                                        : 16;

		if (digit > 15)
			return 0;
		number = number << 4 | digit;
	}
	return number;
}

static uint32_t keep_text(struct reading *r, struct span value)
{
	char text[TEXT_MAX];
	int64_t number;

	if (memchr(value.p, '\\', value.n))
		value = (struct span){text, scan_unescape(value, text, sizeof(text))};
	number = texts_add(r->log->texts, value);
	if (number < 0)
		r->failed = true;
	return number < 0 ? 0 : (uint32_t)number;
}

static int name_in(struct span v, const char *(*name)(int), int count)
{
	for (int i = 0; i < count; i++)
		if (span_is(v, name(i)))
			return i;
	return -1;
}

static const char *outcome_name(int i)
{
	return outcome_kind_name((enum outcome_kind)i);
}

static const char *verdict_name(int i)
{
	return verdict_kind_name((enum verdict_kind)i);
}

static uint8_t kind_of(struct span v)
{
	static const struct {
		const char *name;
		enum entry_kind kind;
	} kinds[] = {{"write", ENTRY_WRITE},
	             {"unlisted", ENTRY_UNLISTED},
	             {"refusal", ENTRY_REFUSAL},
	             {"unprotected", ENTRY_UNPROTECTED},
	             {"warning", ENTRY_WARNING}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (span_is(v, kinds[i].name))
			return (uint8_t)kinds[i].kind;
	return ENTRY_OTHER;
}

static int16_t read_short(struct span v)
{
	long long number = scan_number(v, -1);

	return (int16_t)(number > INT16_MAX ? INT16_MAX : number < -1 ? -1 : number);
}

/* --- parts --- */

static int add_part(void *ctx, const struct scan_member *m)
{
	struct reading *r = ctx;
	struct log *log = r->log;
	struct log_part *part;
	size_t room;

	if (m->kind != SCAN_TEXT || m->value.n < 2)
		return 0;
	if (log->part_count == log->part_room) {
		room = log->part_room ? log->part_room + log->part_room / 2 : 4096;
		part = realloc(log->part, room * sizeof(*part));
		if (!part) {
			r->failed = true;
			return -1;
		}
		log->part = part;
		log->part_room = room;
	}
	part = &log->part[log->part_count++];
	part->name = keep_text(r, m->name);
	part->sort = m->value.p[0];
	part->hash = (uint32_t)read_hex((struct span){m->value.p + 1, m->value.n - 1});
	r->e->part_count++;
	return 0;
}

static void read_parts(struct reading *r, struct span object)
{
	r->e->parts_at = (uint32_t)r->log->part_count;
	r->e->part_count = 0;
	scan_object(object, add_part, r);
}

/* --- members --- */

static void read_reason(struct reading *r, struct span v)
{
	r->e->reason = keep_text(r, v);
	r->e->body_lost = span_is(v, "body-not-seen");
	r->e->wire_resend = span_is(v, "wire-resend");
}

/* Where each text of an event is kept. */
static uint32_t *text_place(struct entry *e, struct span name)
{
	switch (name.n) {
	case 3:
		return span_is(name, "run")   ? &e->run
		       : span_is(name, "exe") ? &e->exe
		       : span_is(name, "key") ? &e->key
		                              : NULL;
	case 4:
		return span_is(name, "host")   ? &e->host
		       : span_is(name, "path") ? &e->path
		       : span_is(name, "mode") ? &e->mode
		       : span_is(name, "text") ? &e->text
		                               : NULL;
	case 5:
		return span_is(name, "scope") ? &e->scope : NULL;
	case 6:
		return span_is(name, "method") ? &e->method : NULL;
	case 9:
		return span_is(name, "operation") ? &e->operation : NULL;
	default:
		return NULL;
	}
}

static bool read_hash(struct entry *e, const struct scan_member *m)
{
	uint64_t *at = span_is(m->name, "identity")      ? &e->identity
	               : span_is(m->name, "fingerprint") ? &e->fingerprint
	               : span_is(m->name, "own_key")     ? &e->own_key
	                                                 : NULL;

	if (at)
		*at = read_hex(m->value);
	return at != NULL;
}

static bool read_number(struct reading *r, const struct scan_member *m)
{
	struct entry *e = r->e;

	if (span_is(m->name, "ms"))
		r->ms = scan_number(m->value, 0) % MS_MOST;
	else if (span_is(m->name, "pid"))
		e->pid = (int32_t)scan_number(m->value, 0);
	else if (span_is(m->name, "status"))
		e->status = read_short(m->value);
	else if (span_is(m->name, "curlcode"))
		e->curlcode = (int32_t)scan_number(m->value, -1);
	else if (span_is(m->name, "lost"))
		r->lost = scan_number(m->value, 0);
	else if (span_is(m->name, "wire_sends"))
		e->wire_sends = read_short(m->value);
	else if (span_is(m->name, "attempt"))
		e->attempt = read_short(m->value);
	else
		return false;
	return true;
}

static int keep_member(void *ctx, const struct scan_member *m)
{
	struct reading *r = ctx;
	uint32_t *text = m->kind == SCAN_TEXT ? text_place(r->e, m->name) : NULL;

	if (text)
		*text = keep_text(r, m->value);
	else if (m->kind == SCAN_OBJECT && span_is(m->name, "parts"))
		read_parts(r, m->value);
	else if (m->kind == SCAN_WORD && read_number(r, m))
		return 0;
	else if (span_is(m->name, "time"))
		r->e->ended_us = read_time(m->value);
	else if (span_is(m->name, "event"))
		r->e->kind = kind_of(m->value);
	else if (span_is(m->name, "outcome"))
		r->e->outcome = (int8_t)name_in(m->value, outcome_name, OUTCOME_UNKNOWN + 1);
	else if (span_is(m->name, "verdict"))
		r->e->verdict = (int8_t)name_in(m->value, verdict_name, VERDICT_REFUSE + 1);
	else if (span_is(m->name, "reason"))
		read_reason(r, m->value);
	else
		read_hash(r->e, m);
	return 0;
}

/* --- lines --- */

static int make_room(struct log *log)
{
	size_t room = log->room ? log->room + log->room / 2 : 1024;
	struct entry *entry;

	if (!log->texts)
		log->texts = texts_new();
	if (!log->texts)
		return LOG_NOMEM;
	if (log->count < log->room)
		return LOG_OK;
	entry = realloc(log->entry, room * sizeof(*entry));
	if (!entry)
		return LOG_NOMEM;
	log->entry = entry;
	log->room = room;
	return LOG_OK;
}

static int add_line(struct log *log, struct span line)
{
	struct reading r = {.log = log};

	if (make_room(log) != LOG_OK)
		return LOG_NOMEM;
	r.e = &log->entry[log->count];
	*r.e = (struct entry){.curlcode = -1,
	                      .status = -1,
	                      .wire_sends = -1,
	                      .attempt = -1,
	                      .outcome = -1,
	                      .verdict = -1};
	if (scan_object(line, keep_member, &r) != 0 || r.e->ended_us == 0) {
		if (r.failed)
			return LOG_NOMEM;
		log->damaged++;
		line = scan_untorn(line);
		return line.n ? add_line(log, line) : LOG_OK;
	}
	if (r.failed)
		return LOG_NOMEM;
	log->lost += r.lost > 0 ? (unsigned long)r.lost : 0;
	r.e->began_us = r.e->ended_us - r.ms * 1000;
	log->count++;
	return LOG_OK;
}

int log_add(struct log *log, struct span lines)
{
	const char *p = lines.p, *end = lines.p + lines.n, *stop;
	int rc = LOG_OK;

	while (rc == LOG_OK && p < end) {
		stop = memchr(p, '\n', (size_t)(end - p));
		if (!stop)
			stop = end;
		if (stop > p)
			rc = add_line(log, (struct span){p, (size_t)(stop - p)});
		p = stop + 1;
	}
	return rc;
}

/* Moves what is left of a line to the front of the buffer and reads on. */
static ssize_t refill(int fd, struct buf *chunk, size_t used)
{
	ssize_t n;

	chunk->n -= used;
	memmove(chunk->data, chunk->data + used, chunk->n);
	if (chunk->room - chunk->n < CHUNK / 2) {
		char *more = realloc(chunk->data, chunk->room + CHUNK);

		if (!more) {
			errno = ENOMEM;
			return -1;
		}
		chunk->data = more;
		chunk->room += CHUNK;
	}
	do
		n = read(fd, chunk->data + chunk->n, chunk->room - chunk->n);
	while (n < 0 && errno == EINTR);
	chunk->n += n > 0 ? (size_t)n : 0;
	return n;
}

static int read_lines(struct log *log, int fd)
{
	struct buf chunk = {0};
	size_t used = 0;
	int rc = LOG_OK;
	ssize_t n;

	while (rc == LOG_OK && (n = refill(fd, &chunk, used)) > 0) {
		char *last = memrchr(chunk.data, '\n', chunk.n);

		used = last ? (size_t)(last + 1 - chunk.data) : 0;
		rc = log_add(log, (struct span){chunk.data, used});
	}
	if (rc == LOG_OK && n < 0)
		rc = errno == ENOMEM ? LOG_NOMEM : LOG_CANNOT;
	if (rc == LOG_OK)
		rc = log_add(log, (struct span){chunk.data, chunk.n});
	free(chunk.data);
	return rc;
}

int log_read_open(struct log *log, int fd, int64_t from)
{
	int rc;

	if (from != 0 && lseek(fd, from, SEEK_SET) != from)
		return LOG_CANNOT;
	rc = make_room(log);
	return rc == LOG_OK ? read_lines(log, fd) : rc;
}

int log_read(struct log *log, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc, saved;

	if (fd < 0)
		return LOG_CANNOT;
	rc = log_read_open(log, fd, 0);
	saved = errno;
	close(fd);
	errno = saved;
	return rc;
}

void log_keep_run(struct log *log, const char *run)
{
	uint32_t wanted = run && *run ? log_find_text(log, span_of(run)) : 0;
	size_t kept = 0;

	if (!run || !*run)
		return;
	for (size_t i = 0; i < log->count; i++) {
		if (wanted && log->entry[i].run == wanted)
			log->entry[kept++] = log->entry[i];
	}
	log->others += log->count - kept;
	log->count = kept;
}

static int compare_entries(const void *left, const void *right, void *log)
{
	const struct entry *entry = ((const struct log *)log)->entry;
	uint32_t x = *(const uint32_t *)left, y = *(const uint32_t *)right;
	const struct entry *a = &entry[x], *b = &entry[y];

	if (a->began_us != b->began_us)
		return a->began_us < b->began_us ? -1 : 1;
	if (a->ended_us != b->ended_us)
		return a->ended_us < b->ended_us ? -1 : 1;
	return x < y ? -1 : x > y;
}

int log_sort(struct log *log)
{
	free(log->order);
	log->order = malloc((log->count + 1) * sizeof(*log->order));
	if (!log->order)
		return LOG_NOMEM;
	for (size_t i = 0; i < log->count; i++)
		log->order[i] = (uint32_t)i;
	qsort_r(log->order, log->count, sizeof(*log->order), compare_entries, log);
	return LOG_OK;
}

void log_free(struct log *log)
{
	free(log->entry);
	free(log->order);
	free(log->part);
	texts_free(log->texts);
	*log = (struct log){0};
}

const char *log_text(const struct log *log, uint32_t text)
{
	return texts_get(log->texts, text);
}

uint32_t log_find_text(const struct log *log, struct span text)
{
	int64_t number = texts_find(log->texts, text);

	return number < 0 ? 0 : (uint32_t)number;
}
