/* Opening the ledger: every reason not to trust a file is found here, before it is mapped.
 *
 * The descriptor is closed once the file is mapped, so that a program that closes every descriptor,
 * or forks, keeps its ledger. The fixed part of the header is copied and checked; from then on no
 * bound is read from the file. A file that is not right is left as it is: it is never replaced by
 * an empty one, because an empty ledger lets every old write happen again. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "ledger/internal.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

int file_fail(struct ledger_error *error, int code, const char *format, ...)
{
	va_list args;

	if (!error)
		return code;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return code;
}

/* One call for the whole mapping: the kernel writes what is dirty, ours and our neighbours', so
 * that flushes of several processes are one. Its price is the disk's, not the range's. */
int file_flush(struct ledger *l)
{
	int saved = errno, rc = LEDGER_OK;

	if (l->durable && msync(l->base, l->size, MS_SYNC) != 0)
		rc = LEDGER_CANNOT;
	errno = saved;
	return rc;
}

int file_flush_range(struct ledger *l, const void *at, uint64_t n)
{
	uint64_t from = (uint64_t)((const char *)at - l->base) / LAYOUT_PAGE * LAYOUT_PAGE;
	uint64_t to = (uint64_t)((const char *)at - l->base) + n;
	int saved = errno, rc = msync(l->base + from, to - from, MS_SYNC);

	errno = saved;
	return rc == 0 ? LEDGER_OK : LEDGER_CANNOT;
}

/* Asks the kernel for the pages instead of finding out by SIGBUS. An old kernel that knows no such
 * call leaves us with what was allocated at creation. */
bool file_populate(struct ledger *l, uint64_t at, uint64_t n)
{
	uint64_t from = at / LAYOUT_PAGE * LAYOUT_PAGE;
	uint64_t to = (at + n + LAYOUT_PAGE - 1) / LAYOUT_PAGE * LAYOUT_PAGE;
	int saved = errno;
	bool fine = true;

	to = to > l->size ? l->size : to;
	if (madvise(l->base + from, to - from, MADV_POPULATE_WRITE) != 0)
		fine = errno != EFAULT && errno != ENOMEM && errno != ENOSPC && errno != EHWPOISON;
	errno = saved;
	return fine;
}

bool file_ready(struct ledger *l, const void *at, size_t n)
{
	return !l->populate || file_populate(l, (uint64_t)((const char *)at - l->base), n);
}

bool file_header_ready(struct ledger *l)
{
	return file_ready(l, l->header, LAYOUT_HEADER);
}

/* Where an overwrite goes to new blocks; btrfs, ZFS, bcachefs, NILFS. */
static bool copies_on_write(unsigned long type)
{
	return type == 0x9123683e || type == 0x2fc12fc1 || type == 0xca451a4e || type == 0x3434;
}

/* For a piece of 64 KiB at once, so that it is one call for many: that costs two thirds of what
 * pieces of 16 KiB do. */
bool file_populate_ahead(struct ledger *l, uint64_t area, uint64_t offset, uint64_t n)
{
	uint64_t piece = 16 * LAYOUT_PAGE, from = offset / piece * piece;
	uint64_t to = (offset + n + piece - 1) / piece * piece;
	bool fresh = offset == from || to - from > piece;

	return !fresh || file_populate(l, area + from, to - from);
}

static int check_filesystem(int fd, struct ledger *l, struct ledger_error *error)
{
	static const struct {
		unsigned long type;
		const char *name;
	} refused[] = {{0x6969, "NFS"},      {0x01021997, "9p"},  {0x6a656a63, "virtiofs"},
	               {0xff534d42, "CIFS"}, {0xfe534d42, "SMB"}, {0x517b, "SMB"},
	               {0x00c36400, "Ceph"}, {0x5346414f, "AFS"}, {0x0bd00bd0, "Lustre"}};
	struct statfs fs;
	unsigned long type;

	if (fstatfs(fd, &fs) != 0)
		return LEDGER_OK;
	type = (unsigned long)fs.f_type & 0xffffffff;
	l->populate = copies_on_write(type);
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		if (refused[i].type == type)
			return file_fail(
			        error, LEDGER_CANNOT,
			        "%s: is on %s, where processes on two machines do not see "
			        "each other's writes at once; move the ledger to a local disk",
			        l->path, refused[i].name);
	}
	if (type == 0x65735546)
		snprintf(l->warning, sizeof(l->warning),
		         "%.160s: is on FUSE; safe only if one kernel mounts it", l->path);
	return LEDGER_OK;
}

/* Our own plan of a file of this size must be what the header says, word for word. */
static bool plan_fits(const struct layout_fixed *f)
{
	struct layout_fixed plan = {0};

	create_plan(&plan, f->size);
	return f->header_size == LAYOUT_HEADER &&
	       memcmp(&plan.owners_at, &f->owners_at,
	              offsetof(struct layout_fixed, made_us) -
	                      offsetof(struct layout_fixed, owners_at)) == 0;
}

static int fail_damaged(int fd, struct ledger *l, bool ours, struct ledger_error *error,
                        const char *format, ...) __attribute__((format(printf, 5, 6)));

/* `ours`: it was a ledger once, and those who have it mapped are told. */
static int fail_damaged(int fd, struct ledger *l, bool ours, struct ledger_error *error,
                        const char *format, ...)
{
	const char *done = ours ? "" : "it is left alone, name another path; else ";
	char why[256];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	if (l->set_aside && aside_put(fd, l->path, why, ours, l->group))
		done = "it was set aside, and ";
	return file_fail(error, LEDGER_FOREIGN,
	                 "%s: %s; %swrites are refused until a person runs `sendonce ledger "
	                 "recover`",
	                 l->path, why, done);
}

static int read_header(int fd, struct ledger *l, struct ledger_error *error)
{
	char name[PATH_MAX];
	ssize_t n;

	do
		n = pread(fd, &l->fixed, sizeof(l->fixed), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return file_fail(error, LEDGER_CANNOT, "%s: cannot be read: %s", l->path,
		                 strerror(errno));
	if ((size_t)n == sizeof(l->fixed) &&
	    memcmp(l->fixed.magic, LAYOUT_MAGIC, sizeof(l->fixed.magic)) == 0)
		return LEDGER_OK;
	if (aside_note(fd, name, sizeof(name)))
		return file_fail(error, LEDGER_FOREIGN,
		                 "%s: was found damaged and set aside as %.200s; writes are "
		                 "refused until a person runs `sendonce ledger recover`",
		                 l->path, name);
	return fail_damaged(fd, l, false, error, "is not a sendonce ledger");
}

static int check_header(int fd, uint64_t size, struct ledger *l, struct ledger_error *error)
{
	const struct layout_fixed *f = &l->fixed;
	int rc = read_header(fd, l, error);

	if (rc != LEDGER_OK)
		return rc;
	if (f->layout != LAYOUT_VERSION || (f->incompatible & ~LAYOUT_INCOMPATIBLE))
		return file_fail(
		        error, LEDGER_FOREIGN,
		        "%s: is a ledger of another version (layout %u, this one reads %u)",
		        l->path, f->layout, (unsigned)LAYOUT_VERSION);
	if (f->sum != sum_bytes(0, f, offsetof(struct layout_fixed, sum)))
		return fail_damaged(fd, l, true, error, "its header is damaged");
	if (f->size != size)
		return fail_damaged(fd, l, true, error,
		                    "is %llu bytes, its header says %llu: it was cut or grown",
		                    (unsigned long long)size, (unsigned long long)f->size);
	if (!plan_fits(f))
		return fail_damaged(fd, l, true, error, "is damaged (layout)");
	return LEDGER_OK;
}

/* A replacement that was begun by somebody who died before the files were exchanged is off. */
static bool give_up_replacement(int fd, const char *path, uint64_t word)
{
	uint64_t none = 0;
	bool off = false;

	if ((word & RETIRE_FOR_GOOD) || (word >> 2 & 7) == RETIRE_DAMAGED || !swap_lock(fd, path))
		return false;
	off = pwrite(fd, &none, sizeof(none), offsetof(struct layout_header, retired)) ==
	      (ssize_t)sizeof(none);
	swap_unlock(fd);
	return off;
}

/* Who only looks may also look at what was replaced. */
static int check_retired(int fd, const struct ledger *l, struct ledger_error *error)
{
	uint64_t word = 0;
	ssize_t n;

	if (l->read_only)
		return LEDGER_OK;
	n = pread(fd, &word, sizeof(word), offsetof(struct layout_header, retired));
	if (n == (ssize_t)sizeof(word) &&
	    ((word & 3) == RETIRE_NOT || give_up_replacement(fd, l->path, word)))
		return LEDGER_OK;
	return file_fail(error, LEDGER_CANNOT, "%s: %s", l->path, retire_text(word));
}

/* So that a first lookup need not look into the header, which is a page fault. */
static void read_level(int fd, struct ledger *l)
{
	uint64_t level = 0;

	if (pread(fd, &level, sizeof(level), offsetof(struct layout_header, index_level)) ==
	    (ssize_t)sizeof(level))
		atomic_store_explicit(&l->level, level, memory_order_relaxed);
}

static int check_file(int fd, struct ledger *l, struct ledger_error *error)
{
	struct stat st;
	int rc;

	if (fstat(fd, &st) != 0)
		return file_fail(error, LEDGER_CANNOT, "%s: %s", l->path, strerror(errno));
	rc = access_file(&st, l->path, l->group, error);
	if (rc == LEDGER_OK)
		rc = check_filesystem(fd, l, error);
	if (rc == LEDGER_OK)
		rc = check_header(fd, (uint64_t)st.st_size, l, error);
	return rc == LEDGER_OK ? check_retired(fd, l, error) : rc;
}

static int fail_open(const struct ledger_options *o, int code, struct ledger_error *error)
{
	if (code == ENOENT)
		return file_fail(error, LEDGER_CANNOT, "%s: does not exist", o->path);
	if (code == ELOOP)
		return file_fail(error, LEDGER_CANNOT,
		                 "%s: is a symbolic link; name the file itself", o->path);
	if (code == EROFS || code == EACCES || code == EPERM)
		return file_fail(
		        error, LEDGER_CANNOT,
		        "%s: cannot be opened for %s: %s; make it %s if it is this user's, "
		        "else name another ledger",
		        o->path, o->read_only ? "reading" : "writing", strerror(code),
		        o->read_only ? "readable" : "writable");
	return file_fail(error, LEDGER_CANNOT, "%s: %s", o->path, strerror(code));
}

/* Never with O_CREAT: a missing ledger is made elsewhere, whole, and linked into place. */
static int open_file(const struct ledger_options *o, struct ledger_error *error)
{
	int flags = (o->read_only ? O_RDONLY : O_RDWR) | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
	int fd = -1, rc;

	for (int tries = 0; tries < 3; tries++) {
		fd = create_fd_high(open(o->path, flags));
		if (fd >= 0)
			return fd;
		if (errno != ENOENT || !o->create || o->read_only)
			return fail_open(o, errno, error);
		rc = create_file(o, error);
		if (rc != LEDGER_OK)
			return rc;
	}
	return file_fail(error, LEDGER_CANNOT, "%s: disappears as soon as it is made", o->path);
}

static struct ledger *ledger_new(const struct ledger_options *o)
{
	size_t n = strlen(o->path);
	struct ledger *l = calloc(1, sizeof(*l) + n + 1);

	if (!l)
		return NULL;
	memcpy(l->path, o->path, n);
	l->durable = o->durable;
	l->read_only = o->read_only;
	l->group = o->group;
	l->set_aside = o->set_aside && !o->read_only;
	l->max_response = o->max_response;
	return l;
}

/* Others learn that what is here is relied on after a power loss. And pages that have to come from
 * the disk come one by one: of larger pieces every flush would write the whole. */
static void open_durable(struct ledger *l)
{
	madvise(l->base, l->size, MADV_RANDOM);
	if (atomic_load_explicit(&l->header->flushed, memory_order_relaxed) == 0 &&
	    file_header_ready(l))
		atomic_store_explicit(&l->header->flushed, 1, memory_order_relaxed);
}

static int map_file(int fd, struct ledger *l, struct ledger_error *error)
{
	int protection = l->read_only ? PROT_READ : PROT_READ | PROT_WRITE;
	void *base = mmap(NULL, l->fixed.size, protection, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED)
		return file_fail(error, LEDGER_CANNOT,
		                 "%s: cannot be mapped: %s; its %llu bytes must fit into what the "
		                 "process may use (ulimit -v)",
		                 l->path, strerror(errno), (unsigned long long)l->fixed.size);
	l->base = base;
	l->size = l->fixed.size;
	l->header = base;
	if (l->durable && !l->read_only)
		open_durable(l);
	return LEDGER_OK;
}

static int open_and_map(const struct ledger_options *o, struct ledger *l,
                        struct ledger_error *error)
{
	int fd, rc = create_folder_check(o, error);

	if (rc != LEDGER_OK)
		return rc;
	fd = open_file(o, error);
	rc = fd >= 0 ? check_file(fd, l, error) : fd;
	if (rc == LEDGER_OK)
		read_level(fd, l);
	if (rc == LEDGER_OK)
		rc = map_file(fd, l, error);
	if (fd >= 0)
		close(fd);
	return rc;
}

static int open_all(const struct ledger_options *o, struct ledger **out, struct ledger_error *error)
{
	bool memory = memory_path(o->path);
	struct ledger *l;
	int rc;

	if (!memory && (!o->path || o->path[0] != '/'))
		return file_fail(error, LEDGER_CANNOT,
		                 "%s: the ledger's path must be absolute (begin with /)",
		                 o->path ? o->path : "(none)");
	l = ledger_new(o);
	if (!l)
		return file_fail(error, LEDGER_NOMEM, "%s: out of memory", o->path);
	rc = memory ? memory_map(l, o, error) : open_and_map(o, l, error);
	if (rc != LEDGER_OK) {
		free(l);
		return rc;
	}
	*out = l;
	return LEDGER_OK;
}

int ledger_open(const struct ledger_options *options, struct ledger **out,
                struct ledger_error *error)
{
	int saved = errno, rc;

	*out = NULL;
	if (error)
		error->text[0] = '\0';
	rc = open_all(options, out, error);
	errno = saved;
	return rc;
}

void ledger_close(struct ledger *ledger)
{
	int saved = errno;

	if (!ledger)
		return;
	munmap(ledger->base, ledger->size);
	free(ledger);
	errno = saved;
}

const uint8_t *ledger_secret(const struct ledger *ledger)
{
	return ledger->fixed.secret;
}

const char *ledger_path(const struct ledger *ledger)
{
	return ledger->path;
}

const char *ledger_warning(const struct ledger *ledger)
{
	return ledger->warning[0] ? ledger->warning : NULL;
}
