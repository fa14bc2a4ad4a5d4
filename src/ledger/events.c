/* The event log: one line, or some of one moment, one write(2), on a descriptor opened for it.
 *
 * O_APPEND makes lines of many processes land whole one after the other. Whatever a program put
 * into a name is escaped, and invalid UTF-8 replaced, so that each line is one JSON object. A line
 * that cannot be written is lost; the caller counts it. */
#include "ledger/events.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/filesize.h"
#include "base/pid.h"

enum { HIGH_FD = 10, KEY_SHOWN = 8, HASH_SHOWN = 8, LINE_ROOM = 4096 };

struct event event_make(const char *name)
{
	struct event e = {0};

	e.event = name;
	e.generation = e.attempt = e.wire_sends = e.status = e.curlcode = e.ms = e.bytes = e.lost =
	        -1;
	return e;
}

/* Length of the UTF-8 sequence at p, 0 when it is none: no overlong forms, no surrogates. */
static size_t utf8_length(const unsigned char *p, size_t n)
{
	size_t want = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

	if (want == 0 || p[0] > 0xf4 || want > n)
		return 0;
	for (size_t i = 1; i < want; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return want;
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static bool is_all_plain(struct span text)
{
	size_t i = 0;

	while (i < text.n && is_plain((unsigned char)text.p[i]))
		i++;
	return i == text.n;
}

/* What is not plain at p; returns how many bytes that was. */
static size_t add_special(struct buf *out, const unsigned char *p, size_t n)
{
	size_t step = utf8_length(p, n);
	char hex[3];

	if (step == 0) {
		buf_add_text(out, "\\ufffd");
		return 1;
	}
	if (*p < 0x20 || *p == 0x7f) {
		hex_encode(hex, p, 1);
		buf_add_text(out, "\\u00");
		buf_add_text(out, hex);
		return 1;
	}
	if (step == 1)
		buf_add_char(out, '\\');
	buf_add(out, p, step);
	return step;
}

static void add_escaped(struct buf *out, struct span text)
{
	const unsigned char *p = (const unsigned char *)text.p;
	size_t run;

	for (size_t i = 0; i < text.n; i += run) {
		run = 1;
		if (is_plain(p[i]))
			buf_add_char(out, (char)p[i]);
		else
			run = add_special(out, p + i, text.n - i);
	}
}

void event_add_string(struct buf *out, struct span text)
{
	buf_add_char(out, '"');
	if (is_all_plain(text))
		buf_add_span(out, text);
	else
		add_escaped(out, text);
	buf_add_char(out, '"');
}

/* What stands before a field's value. */
#define NAME(name) ((struct span){",\"" name "\":", sizeof(",\"" name "\":") - 1})

static void add_text(struct buf *out, struct span name, const char *text, size_t most)
{
	if (!text)
		return;
	buf_add_span(out, name);
	event_add_string(out, (struct span){text, strnlen(text, most)});
}

static void add_number(struct buf *out, struct span name, int64_t value)
{
	if (value < 0)
		return;
	buf_add_span(out, name);
	buf_add_number(out, value);
}

static void add_hex(struct buf *out, struct span name, const uint8_t *bytes, size_t n)
{
	char hex[65];

	if (!bytes)
		return;
	hex_encode(hex, bytes, n);
	add_text(out, name, hex, sizeof(hex));
}

static bool read_exe(char *out, size_t room)
{
	char path[PATH_MAX];
	const char *slash, *name;
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n <= 0)
		return false;
	path[n] = '\0';
	slash = strrchr(path, '/');
	name = slash ? slash + 1 : path;
	n = (ssize_t)strnlen(name, room - 1);
	memcpy(out, name, (size_t)n);
	out[n] = '\0';
	return true;
}

/* The link is read once: only an exec changes it, and that is another process image. */
static void add_exe(struct buf *out)
{
	enum { EXE_UNKNOWN, EXE_BEING_KEPT, EXE_KEPT };
	static char kept[NAME_MAX + 1];
	static atomic_int state;
	char here[sizeof(kept)];
	int unknown = EXE_UNKNOWN;

	/* Acquire pairs with the release below, which publishes the text. */
	if (atomic_load_explicit(&state, memory_order_acquire) == EXE_KEPT) {
		add_text(out, NAME("exe"), kept, sizeof(kept));
		return;
	}
	if (!read_exe(here, sizeof(here)))
		return;
	add_text(out, NAME("exe"), here, sizeof(here));
	/* Relaxed: only decides who of several threads writes it down. */
	if (!atomic_compare_exchange_strong_explicit(&state, &unknown, EXE_BEING_KEPT,
	                                             memory_order_relaxed, memory_order_relaxed))
		return;
	memcpy(kept, here, sizeof(kept));
	atomic_store_explicit(&state, EXE_KEPT, memory_order_release);
}

static void add_record(struct buf *out, uint64_t record)
{
	uint8_t bytes[8];

	if (!record)
		return;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(record >> (56 - 8 * i));
	add_hex(out, NAME("record"), bytes, sizeof(bytes));
}

void event_format(struct buf *out, const struct event *e, struct stamp now)
{
	char time[32];
	int saved = errno;

	clock_rfc3339(time, sizeof(time), now.wall_us);
	buf_add_text(out, "{\"time\":");
	event_add_string(out, span_of(time));
	add_text(out, NAME("event"), e->event, SIZE_MAX);
	add_text(out, NAME("run"), e->run, SIZE_MAX);
	add_text(out, NAME("scope"), e->scope, SIZE_MAX);
	add_number(out, NAME("pid"), pid_own());
	add_exe(out);
	add_text(out, NAME("mode"), e->mode, SIZE_MAX);
	add_text(out, NAME("operation"), e->operation, SIZE_MAX);
	add_text(out, NAME("method"), e->method, SIZE_MAX);
	add_text(out, NAME("host"), e->host, SIZE_MAX);
	add_text(out, NAME("path"), e->path, SIZE_MAX);
	add_text(out, NAME("key"), e->key, KEY_SHOWN);
	add_hex(out, NAME("identity"), e->identity, HASH_SHOWN);
	add_hex(out, NAME("own_key"), e->own_key, HASH_SHOWN);
	add_hex(out, NAME("fingerprint"), e->fingerprint, HASH_SHOWN);
	add_record(out, e->record);
	add_number(out, NAME("generation"), e->generation);
	add_text(out, NAME("verdict"), e->verdict, SIZE_MAX);
	add_text(out, NAME("reason"), e->reason, SIZE_MAX);
	add_number(out, NAME("attempt"), e->attempt);
	add_number(out, NAME("wire_sends"), e->wire_sends);
	add_text(out, NAME("outcome"), e->outcome, SIZE_MAX);
	add_number(out, NAME("status"), e->status);
	add_number(out, NAME("curlcode"), e->curlcode);
	add_number(out, NAME("ms"), e->ms);
	add_number(out, NAME("bytes"), e->bytes);
	add_number(out, NAME("lost"), e->lost);
	add_text(out, NAME("served"), e->served, SIZE_MAX);
	add_hex(out, NAME("trace"), e->trace, 16);
	if (e->parts) {
		buf_add_span(out, NAME("parts"));
		buf_add_text(out, e->parts);
	}
	add_text(out, NAME("text"), e->text, SIZE_MAX);
	buf_add_text(out, "}\n");
	errno = saved;
}

static atomic_bool shared_log;

void event_log_shared(bool group)
{
	/* Relaxed: a setting; nothing is published by it. */
	atomic_store_explicit(&shared_log, group, memory_order_relaxed);
}

/* An empty log of our own is one that was just made, with the umask's idea of its mode. */
static void let_group_write(int fd)
{
	struct stat st;

	if (atomic_load_explicit(&shared_log, memory_order_relaxed) && fstat(fd, &st) == 0 &&
	    st.st_size == 0 && st.st_uid == geteuid())
		fchmod(fd, 0660);
}

/* Never 0-2: a program that closed them may be about to print. */
static int open_log(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
	              0600);
	int high;

	if (fd < 0 || fd > 2)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
	close(fd);
	return high;
}

int event_log_try(const char *path)
{
	int fd = open_log(path);

	if (fd < 0)
		return -1;
	let_group_write(fd);
	close(fd);
	return 0;
}

/* A block behind the end is asked for, which the next line would take; its size stays. What cannot
 * be asked (no such call on this file system) counts as room. */
bool event_log_is_full(const char *path)
{
	int fd = open_log(path), saved = errno;
	bool full = fd < 0 && errno == ENOSPC;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 &&
	    fallocate(fd, FALLOC_FL_KEEP_SIZE, st.st_size, LINE_ROOM) != 0)
		full = errno == ENOSPC || errno == EDQUOT;
	if (fd >= 0)
		close(fd);
	errno = saved;
	return full;
}

static size_t lines_in(struct span text)
{
	size_t lines = 0;

	for (size_t i = 0; i < text.n; i++)
		lines += text.p[i] == '\n';
	return lines;
}

static size_t write_all(int fd, struct span lines)
{
	struct filesize_guard guard;
	ssize_t n;

	filesize_enter(&guard);
	do
		n = write(fd, lines.p, lines.n);
	while (n < 0 && errno == EINTR);
	filesize_leave(&guard);
	return n < 0 ? 0 : (size_t)n;
}

size_t event_append(const char *path, struct span lines)
{
	int saved = errno, fd = open_log(path);
	size_t done = 0;

	if (fd >= 0) {
		let_group_write(fd);
		done = write_all(fd, lines);
		close(fd);
	}
	errno = saved;
	return lines_in((struct span){lines.p + done, lines.n - done});
}

int event_write(const char *path, const struct event *event)
{
	struct buf line = {0};
	size_t lost = 1;

	event_format(&line, event, clock_now());
	if (!line.failed)
		lost = event_append(path, span_buf(&line));
	buf_free(&line);
	return lost ? -1 : 0;
}
