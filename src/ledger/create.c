/* Making a ledger: complete under a temporary name, then linked into place.
 *
 * Nobody ever sees a half-made file: whoever dies on the way leaves only a temporary name, and of
 * several that make one at once link(2) lets one win. The space is allocated before anything is
 * mapped, so that a full disk is an error here and never a signal later. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/filesize.h"
#include "ledger/internal.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

enum { HIGH_FD = 10, RECORD_SHARE = 2560 };
/* What is written out at creation; what lies beyond in a larger file is merely allocated. */
#define ZEROED_MOST (UINT64_C(1) << 30)

/* A program may have closed 0, 1 or 2: what it prints next must not land in the ledger. */
int create_fd_high(int fd)
{
	int high, saved;

	if (fd < 0 || fd > 2)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
	saved = errno;
	close(fd);
	errno = saved;
	return high;
}

static uint64_t align(uint64_t n)
{
	return (n + LAYOUT_PAGE - 1) / LAYOUT_PAGE * LAYOUT_PAGE;
}

/* A record is 1.3 KiB, its index entries and keys some more; the rest of its share is for what
 * does not fit into it. */
void create_plan(struct layout_fixed *f, uint64_t size)
{
	uint64_t tables = LAYOUT_HEADER + LAYOUT_OWNERS * sizeof(struct layout_owner);
	uint64_t records = size > tables ? (size - tables) / RECORD_SHARE : 0, levels = 1, words;

	while ((UINT64_C(1) << (LAYOUT_LEVEL + levels - 1)) < 4 * records &&
	       levels <= LAYOUT_LEVEL_MAX - LAYOUT_LEVEL)
		levels++;
	words = (UINT64_C(1) << (LAYOUT_LEVEL + levels)) - (UINT64_C(1) << LAYOUT_LEVEL);
	f->size = size;
	f->header_size = LAYOUT_HEADER;
	f->owners_at = LAYOUT_HEADER;
	f->groups_at = f->owners_at + LAYOUT_OWNERS * sizeof(struct layout_owner);
	f->group_count = (records + LAYOUT_GROUP - 1) / LAYOUT_GROUP;
	f->index_at = f->groups_at + align(f->group_count * sizeof(struct layout_group));
	f->index_levels = levels;
	f->keys_at = f->index_at + align(words * 8);
	f->key_count = records;
	f->records_at = f->keys_at + align(records * sizeof(struct layout_key));
	f->record_count = records;
	f->heap_at = f->records_at + records / LAYOUT_PER_PAGE * LAYOUT_PAGE +
	             (records % LAYOUT_PER_PAGE ? LAYOUT_PAGE : 0);
	f->heap_size = f->heap_at < size ? size - f->heap_at : 0;
}

static void read_machine(uint8_t out[16])
{
	char text[33] = {0};
	int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
	unsigned byte;

	if (fd < 0)
		return;
	if (read(fd, text, 32) == 32) {
		for (int i = 0; i < 16 && sscanf(text + 2 * i, "%2x", &byte) == 1; i++)
			out[i] = (uint8_t)byte;
	}
	close(fd);
}

static int random_bytes(void *out, size_t n)
{
	ssize_t got;

	do
		got = getrandom(out, n, 0);
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)n ? 0 : -1;
}

int create_header(struct layout_fixed *f, const struct ledger_options *o)
{
	struct stamp now = clock_now();

	memset(f, 0, sizeof(*f));
	memcpy(f->magic, LAYOUT_MAGIC, sizeof(f->magic));
	f->layout = LAYOUT_VERSION;
	f->compatible = LAYOUT_COMPATIBLE;
	f->incompatible = LAYOUT_INCOMPATIBLE;
	create_plan(f, (uint64_t)o->size / LAYOUT_PAGE * LAYOUT_PAGE);
	f->boot = now.boot;
	f->made_us = o->made_us ? o->made_us : now.wall_us;
	read_machine(f->machine);
	if (o->secret)
		memcpy(f->secret, o->secret, sizeof(f->secret));
	else if (random_bytes(f->secret, sizeof(f->secret)) != 0)
		return -1;
	f->sum = sum_bytes(0, f, offsetof(struct layout_fixed, sum));
	return 0;
}

static int write_all(int fd, const void *data, size_t n, off_t at)
{
	const char *p = data;
	ssize_t done;

	while (n > 0) {
		done = pwrite(fd, p, n, at);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return -1;
		p += done;
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

/* Written out as zeroes, so that a first store finds a page in memory and a first flush has nothing
 * but that page to write. The pieces it is written in are the pieces the kernel keeps it in: for
 * durability `power` single pages, as each flush writes a piece whole; else pieces that the
 * processor can map at once, which is what makes a lookup fast (docs/ledger-format.md). */
static int write_zeroes(int fd, uint64_t size, bool durable)
{
	static const char page[LAYOUT_PAGE];
	uint64_t step = durable ? LAYOUT_PAGE : LAYOUT_LARGE;
	char *zeroes = durable ? NULL : calloc(1, step);
	int rc = 0;

	step = zeroes ? step : LAYOUT_PAGE;
	for (uint64_t at = 0; rc == 0 && at < size; at += step)
		rc = write_all(fd, zeroes ? zeroes : page, size - at < step ? size - at : step,
		               (off_t)at);
	free(zeroes);
	return rc;
}

static int allocate(int fd, uint64_t size)
{
	int rc;

	do
		rc = posix_fallocate(fd, 0, (off_t)size);
	while (rc == EINTR);
	errno = rc;
	return rc ? -1 : 0;
}

static int fill_file(int fd, const struct ledger_options *o)
{
	struct layout_fixed fixed;

	/* fchmod: neither the umask nor a folder's default ACL may make it more or less. */
	if (fchmod(fd, o->group ? 0660 : 0600) != 0 || create_header(&fixed, o) != 0)
		return -1;
	if (allocate(fd, fixed.size) != 0 ||
	    write_zeroes(fd, fixed.size < ZEROED_MOST ? fixed.size : ZEROED_MOST, o->durable) !=
	            0 ||
	    write_all(fd, &fixed, sizeof(fixed), offsetof(struct layout_header, again)) != 0 ||
	    write_all(fd, &fixed, sizeof(fixed), 0) != 0)
		return -1;
	return fsync(fd);
}

void create_sync_folder(const char *path)
{
	char folder[PATH_MAX];
	char *slash;
	int fd;

	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (!slash)
		return;
	slash[slash == folder] = '\0';
	fd = create_fd_high(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

static int fail_create(const char *path, struct ledger_error *error)
{
	int code = errno;
	const char *remedy = "";

	if (code == ENOSPC || code == EDQUOT || code == EFBIG)
		remedy = "; free some space or make ledger.size smaller";
	else if (code == EACCES || code == EROFS || code == EPERM)
		remedy = "; make its folder writable for this user or name another ledger";
	return file_fail(error, LEDGER_CANNOT, "%s: cannot be made: %s%s", path, strerror(code),
	                 remedy);
}

/* Never over another one. Where the file system can it has one name all the time, which is what an
 * opener asks for; else two for a moment. */
static int put_in_place(const char *temporary, const char *path)
{
	int rc = (int)syscall(SYS_renameat2, AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE);

	return rc != 0 && (errno == EINVAL || errno == ENOSYS) ? link(temporary, path) : rc;
}

int create_file(const struct ledger_options *o, struct ledger_error *error)
{
	struct filesize_guard guard;
	char temporary[PATH_MAX];
	uint64_t nonce;
	int fd, rc = LEDGER_OK;

	if (o->size < LAYOUT_MIN_SIZE || o->size > LAYOUT_MAX_SIZE)
		return file_fail(
		        error, LEDGER_CANNOT,
		        "%s: cannot be made: ledger.size is %lld bytes, it must be between "
		        "256KiB and 64GiB",
		        o->path, (long long)o->size);
	if (random_bytes(&nonce, sizeof(nonce)) != 0 ||
	    snprintf(temporary, sizeof(temporary), "%s.new.%llx", o->path,
	             (unsigned long long)nonce) >= (int)sizeof(temporary)) {
		return file_fail(error, LEDGER_CANNOT, "%s: cannot be made", o->path);
	}
	fd = create_fd_high(
	        open(temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
	if (fd < 0)
		return fail_create(o->path, error);
	filesize_enter(&guard);
	if (fill_file(fd, o) != 0)
		rc = fail_create(o->path, error);
	else if (put_in_place(temporary, o->path) != 0 && errno != EEXIST)
		rc = fail_create(o->path, error);
	filesize_leave(&guard);
	/* Before anybody looks: a ledger has one name. */
	unlink(temporary);
	close(fd);
	if (rc == LEDGER_OK)
		create_sync_folder(o->path);
	return rc;
}

static int make_folders(char *folder, struct ledger_error *error)
{
	char *at = folder;

	while ((at = strchr(at + 1, '/')) != NULL) {
		*at = '\0';
		if (mkdir(folder, 0700) != 0 && errno != EEXIST && errno != EROFS &&
		    errno != EACCES)
			return fail_create(folder, error);
		*at = '/';
	}
	if (mkdir(folder, 0700) != 0 && errno != EEXIST)
		return fail_create(folder, error);
	return LEDGER_OK;
}

int create_folder_check(const struct ledger_options *o, struct ledger_error *error)
{
	char folder[PATH_MAX];
	struct stat st;
	char *slash;
	int rc = LEDGER_OK;

	if (strlen(o->path) >= sizeof(folder))
		return file_fail(error, LEDGER_CANNOT, "the ledger's path is too long");
	strcpy(folder, o->path);
	slash = strrchr(folder, '/');
	slash[slash == folder] = '\0';
	if (stat(folder, &st) != 0 && errno == ENOENT && o->make_folder && !o->read_only) {
		rc = make_folders(folder, error);
		if (rc == LEDGER_OK && stat(folder, &st) != 0)
			return fail_create(folder, error);
	} else if (stat(folder, &st) != 0) {
		return file_fail(
		        error, LEDGER_CANNOT,
		        "%s: its folder %s cannot be used: %s; make it (mode 0700) or name "
		        "another ledger",
		        o->path, folder, strerror(errno));
	}
	if (rc != LEDGER_OK)
		return rc;
	return access_folder(&st, o->path, folder, o->group, error);
}
