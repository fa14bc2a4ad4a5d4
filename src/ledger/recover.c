/* `ledger recover`: what a damaged ledger still says, in a new one.
 *
 * The damaged file is mapped privately, what is missing of it as zeroes, so that neither a hole nor
 * a change of ours can do harm. Its header's fixed part exists twice; where both are gone the
 * places follow from the file's size, and only the secret is lost. Every place of a record is
 * looked at, whatever the header says was used. A record whose sums hold is kept as it is; one of
 * which the earlier bank is left, or not what it was written with, is kept as a doubt. Places that
 * must have held a record and tell nothing any more are counted: the new ledger is then told what
 * was lost (lost.c), and writes without a record are in doubt.
 *
 * Programs may still have the file mapped. They are told first, and given a moment: a change takes
 * microseconds. What one of them owns is a doubt here, also what it had only reserved. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ledger/internal.h"
#include "ledger/rebuilding.h"

enum { MOMENT_NS = 10000000 };

struct source {
	struct ledger *l;
	bool header_bad; /* its fixed part had to be repaired */
	bool damaged;    /* in any way */
	bool index_bad;  /* it may lack entries */
	uint64_t blank;  /* records the index knows and that were wiped */
	uint64_t used;   /* places its header says were used; may be wrong */
	struct stat st;
	struct ledger_lost lost;
	uint64_t last; /* number of the last place with a record, plus 1 */
	bool strange;  /* an operation the header does not list */
};

/* --- the header --- */

static bool fixed_good(const struct layout_fixed *f)
{
	struct layout_fixed plan = {0};

	if (memcmp(f->magic, LAYOUT_MAGIC, sizeof(f->magic)) != 0 || f->layout != LAYOUT_VERSION ||
	    f->sum != sum_bytes(0, f, offsetof(struct layout_fixed, sum)) ||
	    f->size < (uint64_t)LAYOUT_MIN_SIZE || f->size > (uint64_t)LAYOUT_MAX_SIZE)
		return false;
	create_plan(&plan, f->size);
	return plan.record_count == f->record_count && plan.heap_at == f->heap_at;
}

static bool read_fixed(int fd, off_t at, struct layout_fixed *out)
{
	return pread(fd, out, sizeof(*out), at) == (ssize_t)sizeof(*out) && fixed_good(out);
}

/* Neither copy is left: the places follow from the size, the secret is gone. */
static int invent_fixed(const struct source *s, const struct ledger_options *o,
                        struct layout_fixed *out)
{
	struct ledger_options like = *o;

	if (s->st.st_size >= LAYOUT_MIN_SIZE)
		like.size = s->st.st_size < LAYOUT_MAX_SIZE ? s->st.st_size : LAYOUT_MAX_SIZE;
	like.secret = NULL;
	like.made_us = 1;
	return create_header(out, &like);
}

static int find_fixed(int fd, struct source *s, const struct ledger_options *o,
                      struct rebuild_report *report, struct ledger_error *error)
{
	struct layout_fixed *f = &s->l->fixed;
	off_t again = offsetof(struct layout_header, again);
	uint32_t layout = LAYOUT_VERSION;

	if (read_fixed(fd, 0, f))
		return LEDGER_OK;
	s->header_bad = true;
	if (memcmp(f->magic, LAYOUT_MAGIC, sizeof(f->magic)) == 0)
		layout = f->layout;
	if (read_fixed(fd, again, f))
		return LEDGER_OK;
	if (layout != LAYOUT_VERSION)
		return file_fail(error, LEDGER_CANNOT,
		                 "%s: says it is of another version (layout %u); use the sendonce "
		                 "that made it",
		                 s->l->path, layout);
	report->secret_lost = true;
	if (invent_fixed(s, o, f) != 0)
		return file_fail(error, LEDGER_CANNOT, "%s: no random bytes", s->l->path);
	return LEDGER_OK;
}

/* --- mapping --- */

static bool map_source(int fd, struct source *s)
{
	struct ledger *l = s->l;
	uint64_t have = (uint64_t)s->st.st_size, whole;
	void *at;

	l->size = l->fixed.size;
	have = have < l->size ? have : l->size;
	whole = have / LAYOUT_PAGE * LAYOUT_PAGE;
	at = mmap(NULL, l->size, PROT_READ | PROT_WRITE,
	          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return false;
	l->base = at;
	l->header = at;
	if (whole &&
	    mmap(at, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
		return false;
	return have == whole || pread(fd, l->base + whole, have - whole, (off_t)whole) >= 0;
}

/* Everything may have been used, whatever the header says. */
static void open_bounds(struct source *s)
{
	struct layout_header *h = s->l->header;

	s->used = atomic_load(&h->next_record);
	atomic_store(&h->next_record, s->l->fixed.record_count);
	atomic_store(&h->next_heap, s->l->fixed.heap_size / LAYOUT_UNIT);
}

/* Those who have it mapped are told, unless it never was a ledger. */
static void tell_users(int fd, uint64_t for_good)
{
	struct timespec moment = {0, MOMENT_NS};
	char magic[8];

	if (pread(fd, magic, sizeof(magic), 0) != (ssize_t)sizeof(magic) ||
	    memcmp(magic, LAYOUT_MAGIC, sizeof(magic)) != 0)
		return;
	retire_file(fd, retire_word(RETIRE_ALL, RETIRE_RECOVERED) | for_good);
	if (!for_good)
		nanosleep(&moment, NULL);
}

/* --- what is left of a place --- */

static bool all_zero(const void *at, size_t n)
{
	const char *p = at;

	return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* Neither bank is one: nothing certain is known of the record that was here. */
static bool is_unreadable(const struct source *s, struct layout_record *rec)
{
	struct bank bank;
	uint64_t id, word;

	if (!record_read(s->l, rec, &id, &word, &bank))
		return false;
	return (bank.flags & BANK_DAMAGED) && bank.made.wall_us == 0;
}

/* Blank places are nothing strange: processes take several at once and use them later. So it is the
 * index that tells of records that were wiped; only where it cannot be trusted every blank place
 * that may have been used counts. */
static void count_places(struct source *s, struct rebuild_report *report)
{
	uint64_t holes = 0, beyond = 0;

	for (uint64_t i = 0; i < s->l->fixed.record_count; i++) {
		struct layout_record *rec = record_at(s->l, i);

		if (!all_zero(rec, sizeof(*rec))) {
			report->unreadable += is_unreadable(s, rec);
			s->last = i + 1;
			holes += beyond;
			beyond = 0;
		} else {
			beyond++;
		}
	}
	if (s->used > s->last && s->used <= s->l->fixed.record_count)
		holes += s->used - s->last;
	report->unreadable += s->index_bad ? holes : s->blank;
}

static bool anything_lost(const struct source *s, const struct rebuild_report *report)
{
	/* A header that says less was used than is there may hide what was there besides. */
	return report->unreadable || report->secret_lost || s->used < s->last ||
	       s->used > s->l->fixed.record_count;
}

/* --- the damaged file --- */

static void note_fault(void *ctx, uint64_t offset, const char *what)
{
	struct source *s = ctx;

	(void)offset;
	if (strcmp(what, VERIFY_BLANK) == 0)
		s->blank++;
	else if (strncmp(what, VERIFY_INDEX, sizeof(VERIFY_INDEX) - 1) == 0)
		s->index_bad = true;
}

static int open_source(int fd, const char *path, const struct ledger_options *o, struct source *s,
                       struct rebuild_report *report, struct ledger_error *error)
{
	int rc;

	s->l = calloc(1, sizeof(*s->l) + strlen(path) + 1);
	if (!s->l || fstat(fd, &s->st) != 0)
		return file_fail(error, LEDGER_NOMEM, "%s: %s", path, strerror(errno));
	strcpy(s->l->path, path);
	s->l->read_only = true;
	rc = access_file(&s->st, path, o->group, error);
	if (rc == LEDGER_OK)
		rc = find_fixed(fd, s, o, report, error);
	if (rc != LEDGER_OK)
		return rc;
	if (!map_source(fd, s))
		return file_fail(error, LEDGER_CANNOT, "%s: cannot be mapped: %s", path,
		                 strerror(errno));
	memcpy(&s->l->header->fixed, &s->l->fixed, sizeof(s->l->fixed));
	s->index_bad = (uint64_t)s->st.st_size != s->l->fixed.size;
	s->damaged = ledger_verify(s->l, note_fault, s) != 0 || s->header_bad || s->index_bad;
	open_bounds(s);
	count_places(s, report);
	return LEDGER_OK;
}

static void close_source(struct source *s)
{
	if (s->l && s->l->base)
		munmap(s->l->base, s->l->size);
	free(s->l);
}

/* --- what becomes of a record --- */

/* Nobody there goes on sending it: a doubt. So is what was about to be sent a moment ago. */
static bool keep(void *ctx, struct ledger_record *record)
{
	struct source *s = ctx;
	struct record_view *v = &record->view;
	bool known;

	if (is_unreadable(s, record_of(s->l, v->id, NULL)))
		return false;
	if (v->state == REC_RESERVED && v->lease_fresh) {
		v->state = REC_UNKNOWN;
		v->ever_sent = v->in_doubt = true;
		if (!v->first_sent.wall_us)
			v->first_sent = v->made;
	}
	if (!v->operation[0])
		return true;
	known = lost_add(&s->lost, find_operation_hash(v->operation));
	s->strange = s->strange || !known;
	return true;
}

/* --- what was lost --- */

static void list_operations(struct source *s)
{
	struct layout_header *h = s->l->header;

	for (int i = 0; i < LAYOUT_SETTINGS; i++) {
		uint64_t operation = atomic_load(&h->settings[i].operation);

		if (operation)
			lost_add(&s->lost, operation);
	}
	if (s->lost.count == 0 || atomic_load(&h->settings_full))
		s->lost.every = true;
}

/* An earlier stretch that is not settled becomes a part of this one. */
static void describe_lost(struct source *s, struct ledger *to, const struct rebuild_report *report)
{
	struct ledger_lost earlier;
	bool again = ledger_lost(to, &earlier);

	s->lost.from_us = s->l->fixed.made_us;
	s->lost.until = clock_now();
	/* A list that lacks what is in use says nothing about what else it lacks. */
	s->lost.every |= s->strange || report->secret_lost || (again && earlier.every);
	for (size_t i = 0; again && i < earlier.count; i++)
		lost_add(&s->lost, earlier.operations[i]);
	if (again && earlier.from_us < s->lost.from_us)
		s->lost.from_us = earlier.from_us;
	lost_set(to, &s->lost);
}

static int fill(struct source *s, struct ledger *to, struct rebuild_report *report)
{
	int rc;

	list_operations(s);
	rc = rebuild_copy(s->l, to, keep, s, report);
	report->lost = anything_lost(s, report);
	if (rc == LEDGER_OK && report->lost) {
		describe_lost(s, to, report);
		rc = file_flush(to);
	}
	return rc;
}

/* --- the whole --- */

static int build(struct source *s, const struct ledger_options *o, const char *name,
                 struct rebuild_report *report, struct ledger_error *error)
{
	struct ledger_options like = *o;
	struct ledger *to = NULL;
	int rc;

	like.size = (int64_t)s->l->fixed.size;
	rc = rebuild_make(&like, name, s->l, &to, error);
	if (rc != LEDGER_OK)
		return rc;
	rc = fill(s, to, report);
	report->size = (int64_t)to->size;
	ledger_close(to);
	if (rc != LEDGER_OK)
		file_fail(error, rc, "%s: the new ledger could not be written (code %d)", o->path,
		          rc);
	return rc;
}

/* `note`: what lies at the path is a note, and goes; else the damaged file, which is kept. */
static int replace(const struct ledger_options *o, const char *file, bool note, const char *name,
                   struct rebuild_report *report, struct ledger_error *error)
{
	if (swap_exchange(o->path, name) != 0)
		return file_fail(error, LEDGER_CANNOT, "%s: the new file cannot take its place: %s",
		                 o->path, strerror(errno));
	if (note)
		unlink(name);
	snprintf(report->old, sizeof(report->old), "%s", note ? file : name);
	return LEDGER_OK;
}

/* `fd`: the damaged file, `file` its name. */
static int recover_from(int fd, const char *file, bool note, const struct ledger_options *o,
                        struct rebuild_report *report, struct ledger_error *error)
{
	struct source s = {0};
	char name[PATH_MAX];
	int rc = open_source(fd, file, o, &s, report, error);

	if (rc == LEDGER_OK && !note && !s.damaged)
		rc = LEDGER_NONE;
	if (rc == LEDGER_OK && swap_name(name, sizeof(name), o->path, "damaged") != 0)
		rc = file_fail(error, LEDGER_CANNOT, "%s: there is no name for the damaged file",
		               o->path);
	if (rc == LEDGER_OK) {
		tell_users(fd, 0);
		rc = build(&s, o, name, report, error);
		if (rc == LEDGER_OK)
			rc = replace(o, file, note, name, report, error);
		if (rc == LEDGER_OK)
			tell_users(fd, RETIRE_FOR_GOOD);
		else
			unlink(name);
	}
	close_source(&s);
	return rc;
}

static int recover(int fd, const struct ledger_options *o, struct rebuild_report *report,
                   struct ledger_error *error)
{
	char file[PATH_MAX];
	int other, rc;

	if (!aside_note(fd, file, sizeof(file)))
		return recover_from(fd, o->path, false, o, report, error);
	other = create_fd_high(open(file, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
	if (other < 0)
		return file_fail(error, LEDGER_CANNOT,
		                 "%s: was set aside as %.300s, and that cannot be opened: %s; put "
		                 "it back there",
		                 o->path, file, strerror(errno));
	rc = recover_from(other, file, true, o, report, error);
	close(other);
	return rc;
}

int ledger_recover(const struct ledger_options *o, struct rebuild_report *report,
                   struct ledger_error *error)
{
	int saved = errno, fd, rc;

	memset(report, 0, sizeof(*report));
	error->text[0] = '\0';
	fd = rebuild_lock(o->path, error);
	rc = fd < 0 ? fd : recover(fd, o, report, error);
	if (fd >= 0) {
		swap_unlock(fd);
		close(fd);
	}
	errno = saved;
	return rc;
}
