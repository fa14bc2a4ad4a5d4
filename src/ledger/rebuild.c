/* `ledger resize`: a new file, complete under another name, exchanged for the old one.
 *
 * First nobody may become an owner any more, then it is looked whether anybody is one, then nothing
 * may change any more, and only then the records are copied: each step takes every lock once, so
 * that what was under way under it has ended (retire.c). Until the exchange the old file is the
 * ledger; whoever dies before leaves it retired, and the next opener calls that off (file.c). */
#include "ledger/rebuild.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ledger/carry.h"
#include "ledger/internal.h"
#include "ledger/rebuilding.h"

/* --- copying --- */

struct copying {
	struct ledger *from, *to;
	struct rebuild_report *report;
	rebuild_filter *filter;
	void *ctx;
	int rc;
};

static int copy_one(void *ctx, const struct record_view *view)
{
	struct copying *c = ctx;
	struct ledger_record record = {0};

	c->rc = carry_read(c->from, view, &record);
	if (c->rc == LEDGER_OK && (!c->filter || c->filter(c->ctx, &record)))
		c->rc = carry_put(c->to, &record, NULL, clock_now());
	if (c->rc == LEDGER_OK)
		c->report->records++;
	carry_free(&record);
	return c->rc;
}

static void copy_header(const struct ledger *from, struct ledger *to)
{
	struct ledger_lost lost;

	for (int i = 0; i < LAYOUT_COUNTERS; i++)
		atomic_store(&to->header->counters[i], atomic_load(&from->header->counters[i]));
	if (ledger_lost(from, &lost))
		lost_set(to, &lost);
}

int rebuild_copy(struct ledger *from, struct ledger *to, rebuild_filter *filter, void *ctx,
                 struct rebuild_report *report)
{
	struct copying c = {from, to, report, filter, ctx, LEDGER_OK};

	copy_header(from, to);
	ledger_each(from, clock_now(), copy_one, &c);
	return c.rc == LEDGER_OK ? file_flush(to) : c.rc;
}

int rebuild_make(const struct ledger_options *like, const char *name, const struct ledger *from,
                 struct ledger **out, struct ledger_error *error)
{
	struct ledger_options o = *like;
	int rc;

	o.path = name;
	o.create = true;
	o.read_only = o.set_aside = o.make_folder = false;
	o.max_response = 0;
	o.secret = from ? from->fixed.secret : NULL;
	o.made_us = from ? from->fixed.made_us : 0;
	rc = create_file(&o, error);
	return rc == LEDGER_OK ? ledger_open(&o, out, error) : rc;
}

/* --- who is there --- */

static int is_owned(void *ctx, const struct record_view *view)
{
	struct record_view *found = ctx;
	bool open = view->state == REC_RESERVED || view->state == REC_SENT ||
	            view->state == REC_UNKNOWN;

	if (!open || !view->lease_fresh ||
	    (view->owner != OWNER_ALIVE && view->owner != OWNER_UNKNOWABLE))
		return 0;
	*found = *view;
	return 1;
}

static int refuse_owned(struct ledger *l, struct ledger_error *error)
{
	struct record_view view;

	if (ledger_each(l, clock_now(), is_owned, &view) == 0)
		return LEDGER_OK;
	if (view.owner_pid)
		return file_fail(error, LEDGER_CANNOT,
		                 "%s: process %d is sending %s; wait for it, or stop it", l->path,
		                 view.owner_pid, view.operation);
	return file_fail(error, LEDGER_CANNOT,
	                 "%s: a process of another container or pid namespace is sending %s; wait "
	                 "for it, or stop it",
	                 l->path, view.operation);
}

/* Whatever was under way under any lock has ended when this returns. */
static void pass_all_locks(struct ledger *l)
{
	struct layout_record *rec;
	uint64_t token = lock_take(l, &l->header->table_lock);

	lock_drop(&l->header->table_lock, token);
	for (uint64_t i = 0; i < atomic_load(&l->header->next_record) && (rec = record_at(l, i));
	     i++) {
		token = lock_take(l, &rec->lock);
		lock_drop(&rec->lock, token);
	}
}

static int quiesce(struct ledger *l, struct ledger_error *error)
{
	int rc = refuse_owned(l, error);

	if (rc != LEDGER_OK)
		return rc;
	retire_set(l, RETIRE_NEW, RETIRE_RESIZED);
	pass_all_locks(l);
	rc = refuse_owned(l, error);
	if (rc != LEDGER_OK) {
		retire_set(l, RETIRE_NOT, RETIRE_RESIZED);
		return rc;
	}
	retire_set(l, RETIRE_ALL, RETIRE_RESIZED);
	pass_all_locks(l);
	return LEDGER_OK;
}

/* --- resize --- */

static int fail_copy(const struct ledger_options *o, int rc, struct ledger_error *error)
{
	if (rc == LEDGER_FULL)
		return file_fail(error, rc,
		                 "%s: its records do not fit into %lld bytes; choose a larger size",
		                 o->path, (long long)o->size);
	return file_fail(error, rc, "%s: the copy could not be written (code %d)", o->path, rc);
}

static int fail_exchange(const char *path, struct ledger_error *error)
{
	return file_fail(error, LEDGER_CANNOT, "%s: the new file cannot take its place: %s", path,
	                 strerror(errno));
}

static int build(const struct ledger_options *o, struct ledger *from, const char *name,
                 struct rebuild_report *report, struct ledger_error *error)
{
	struct ledger *to = NULL;
	int rc = rebuild_make(o, name, from, &to, error);

	if (rc != LEDGER_OK)
		return rc;
	rc = rebuild_copy(from, to, NULL, NULL, report);
	report->size = (int64_t)to->size;
	ledger_close(to);
	return rc == LEDGER_OK ? rc : fail_copy(o, rc, error);
}

static int resize(const struct ledger_options *o, struct ledger *from, int fd,
                  struct rebuild_report *report, struct ledger_error *error)
{
	int rc;

	if (swap_name(report->old, sizeof(report->old), o->path, "old") != 0)
		return file_fail(error, LEDGER_CANNOT, "%s: there is no name for the old file",
		                 o->path);
	rc = quiesce(from, error);
	if (rc != LEDGER_OK)
		return rc;
	rc = build(o, from, report->old, report, error);
	if (rc == LEDGER_OK && swap_exchange(o->path, report->old) != 0)
		rc = fail_exchange(o->path, error);
	if (rc != LEDGER_OK) {
		unlink(report->old);
		retire_set(from, RETIRE_NOT, RETIRE_RESIZED);
	} else {
		retire_file(fd, retire_word(RETIRE_ALL, RETIRE_RESIZED) | RETIRE_FOR_GOOD);
	}
	return rc;
}

int rebuild_lock(const char *path, struct ledger_error *error)
{
	int fd = create_fd_high(open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));

	if (fd < 0)
		return file_fail(error, LEDGER_CANNOT, "%s: %s", path, strerror(errno));
	if (swap_lock(fd, path))
		return fd;
	close(fd);
	return file_fail(error, LEDGER_CANNOT, "%s: is being replaced by somebody else", path);
}

int ledger_resize(const struct ledger_options *o, struct rebuild_report *report,
                  struct ledger_error *error)
{
	struct ledger_options here = *o;
	struct ledger *from = NULL;
	int saved = errno, fd, rc;

	memset(report, 0, sizeof(*report));
	error->text[0] = '\0';
	here.create = here.set_aside = false;
	/* First without the lock: what another replacement left is called off there. */
	rc = ledger_open(&here, &from, error);
	fd = rc == LEDGER_OK ? rebuild_lock(o->path, error) : -1;
	if (rc == LEDGER_OK && fd >= 0 && retire_no_new(from))
		rc = file_fail(error, LEDGER_CANNOT, "%s: %s meanwhile", o->path,
		               ledger_retired(from));
	else if (rc == LEDGER_OK)
		rc = fd < 0 ? fd : resize(o, from, fd, report, error);
	if (fd >= 0) {
		swap_unlock(fd);
		close(fd);
	}
	ledger_close(from);
	errno = saved;
	return rc;
}
