/* Putting another file where a ledger is, and keeping the one that was there.
 *
 * The path always names something, so that nobody who looks for the ledger meanwhile makes a new,
 * empty one: the two files exchange their names in one step. Where the file system cannot do that
 * the old one gets a second name first, and is refused for that by whoever opens it in between.
 * Only the holder of the old file's flock does it, after a look whether the path still means that
 * file: of several who want to replace it one does, and the others find something else there. The
 * kernel drops the lock of one that dies. Nothing here waits. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ledger/internal.h"

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

enum { NAMES_TRIED = 100 };

bool swap_lock(int fd, const char *path)
{
	struct stat opened, named;

	if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		return false;
	if (fstat(fd, &opened) == 0 && lstat(path, &named) == 0 && opened.st_dev == named.st_dev &&
	    opened.st_ino == named.st_ino)
		return true;
	swap_unlock(fd);
	return false;
}

/* Said, and not left to close(): a child forked meanwhile has the descriptor too. */
void swap_unlock(int fd)
{
	flock(fd, LOCK_UN);
}

int swap_name(char *out, size_t room, const char *path, const char *kind)
{
	time_t now = (time_t)(clock_now().wall_us / 1000000);
	struct tm t;
	char day[32];
	int n = -1;

	if (!gmtime_r(&now, &t) || strftime(day, sizeof(day), "%Y%m%dT%H%M%SZ", &t) == 0)
		return -1;
	for (int i = 1; i <= NAMES_TRIED; i++) {
		n = snprintf(out, room, "%s.%s-%s", path, kind, day);
		if (n > 0 && (size_t)n < room && i > 1)
			n += snprintf(out + n, room - (size_t)n, "-%d", i);
		if (n < 0 || (size_t)n >= room)
			return -1;
		if (access(out, F_OK) != 0 && errno == ENOENT)
			return 0;
	}
	return -1;
}

/* Without the exchange: two names for a moment. `other` is what is to be at `path`. */
static int replace(const char *path, const char *other)
{
	char spare[PATH_MAX];

	if (snprintf(spare, sizeof(spare), "%s.swap", other) >= (int)sizeof(spare))
		return -1;
	if (rename(other, spare) != 0)
		return -1;
	if (link(path, other) != 0) {
		rename(spare, other);
		return -1;
	}
	if (rename(spare, path) == 0)
		return 0;
	unlink(other);
	rename(spare, other);
	return -1;
}

int swap_exchange(const char *path, const char *other)
{
	int rc = (int)syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, other, RENAME_EXCHANGE);

	if (rc != 0 && (errno == EINVAL || errno == ENOSYS))
		rc = replace(path, other);
	if (rc == 0)
		create_sync_folder(path);
	return rc;
}
