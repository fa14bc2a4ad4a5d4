/* See payload.h. The file has no name (O_TMPFILE), or had one for a moment where the file system
 * cannot do without; its descriptor is closed once it is mapped, so a program that closes every
 * descriptor does no harm. Where no file can be had (read-only container, file size limit) memory
 * serves. What is written is never seen by a second process. How the bytes were cut is remembered
 * for the first million reads; what came after them is cut as it fits. */
#include "base/payload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/filesize.h"

enum { CUTS_MAX = 1 << 20, PATH_ROOM = 4096 };

struct payload {
	atomic_uint refs;
	struct buf memory; /* empty once there is a file */
	int fd;            /* -1: none */
	bool no_file;      /* not to be tried again */
	void *map;
	size_t size;
	size_t *cut; /* where each read ended */
	size_t cuts, cut_room;
};

struct payload *payload_new(void)
{
	struct payload *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	atomic_init(&p->refs, 1);
	p->fd = -1;
	return p;
}

struct payload *payload_ref(struct payload *p)
{
	/* relaxed: whoever passes the pointer on holds a reference already */
	atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
	return p;
}

void payload_unref(struct payload *p)
{
	/* acq_rel: every use by others happens before the memory is freed */
	if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (p->map)
		munmap(p->map, p->size);
	if (p->fd >= 0)
		close(p->fd);
	buf_free(&p->memory);
	free(p->cut);
	free(p);
}

/* --- the file --- */

static int open_in(const char *folder)
{
	char path[PATH_ROOM];
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), n;

	if (fd >= 0)
		return fd_above_stdio(fd);
	n = snprintf(path, sizeof(path), "%s/sendonce-XXXXXX", folder);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -1;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd_above_stdio(fd);
}

static int open_file(void)
{
	const char *folder = getenv("TMPDIR");
	int fd = -1;

	if (folder && *folder == '/')
		fd = open_in(folder);
	return fd >= 0 ? fd : open_in("/tmp");
}

static int write_all(int fd, const char *data, size_t n)
{
	struct filesize_guard guard;
	ssize_t done = 1;

	filesize_enter(&guard);
	while (n && done > 0) {
		done = write(fd, data, n);
		if (done < 0 && errno == EINTR) {
			done = 1;
			continue;
		}
		data += done > 0 ? done : 0;
		n -= done > 0 ? (size_t)done : 0;
	}
	filesize_leave(&guard);
	return n ? -1 : 0;
}

/* The disk is full: what it has goes back to memory. */
static int leave_file(struct payload *p)
{
	char *copy = malloc(p->size + 1);
	size_t n = 0;

	while (copy && n < p->size) {
		ssize_t got = pread(p->fd, copy + n, p->size - n, (off_t)n);

		if (got <= 0)
			break;
		n += (size_t)got;
	}
	close(p->fd);
	p->fd = -1;
	p->no_file = true;
	if (!copy || n < p->size) {
		free(copy);
		return -1;
	}
	copy[n] = '\0';
	p->memory = (struct buf){.data = copy, .n = n, .room = n + 1};
	return 0;
}

static void enter_file(struct payload *p)
{
	if (p->fd >= 0 || p->no_file || p->memory.n <= PAYLOAD_IN_MEMORY)
		return;
	p->fd = open_file();
	if (p->fd >= 0 && write_all(p->fd, p->memory.data, p->memory.n) == 0) {
		buf_free(&p->memory);
		return;
	}
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	p->no_file = true;
}

/* --- the bytes --- */

/* A new piece begins. Once there is no place for more, the last one is as long as all the rest. */
static bool make_cut(struct payload *p)
{
	if (p->cuts == p->cut_room) {
		size_t room = p->cut_room ? p->cut_room * 2 : 8;
		size_t *more = realloc(p->cut, room * sizeof(*more));

		if (!more)
			return false;
		p->cut = more;
		p->cut_room = room;
	}
	p->cut[p->cuts++] = p->size;
	return true;
}

static int add(struct payload *p, const void *data, size_t n)
{
	if (p->fd >= 0) {
		if (write_all(p->fd, data, n) == 0)
			return 0;
		if (leave_file(p) != 0)
			return -1;
	}
	buf_add(&p->memory, data, n);
	if (p->memory.failed)
		return -1;
	enter_file(p);
	return 0;
}

int payload_extend(struct payload *p, const void *data, size_t n)
{
	int saved = errno, rc = n ? add(p, data, n) : 0;

	if (rc == 0)
		p->size += n;
	if (rc == 0 && p->cuts)
		p->cut[p->cuts - 1] = p->size;
	errno = saved;
	return rc;
}

int payload_add(struct payload *p, const void *data, size_t n)
{
	if (n && p->cuts < CUTS_MAX && !make_cut(p))
		return -1;
	return payload_extend(p, data, n);
}

int payload_seal(struct payload *p)
{
	int saved = errno, rc = 0;

	if (p->fd >= 0) {
		p->map = mmap(NULL, p->size, PROT_READ, MAP_PRIVATE, p->fd, 0);
		if (p->map == MAP_FAILED) {
			p->map = NULL;
			rc = leave_file(p);
		} else {
			close(p->fd);
			p->fd = -1;
		}
	}
	errno = saved;
	return rc;
}

size_t payload_size(const struct payload *p)
{
	return p->size;
}

struct span payload_bytes(const struct payload *p)
{
	if (!p->size)
		return (struct span){"", 0};
	return (struct span){p->map ? p->map : p->memory.data, p->size};
}

size_t payload_piece(const struct payload *p, size_t at)
{
	size_t low = 0, high = p->cuts;

	if (at >= p->size)
		return 0;
	while (low < high) { /* the first cut behind `at` */
		size_t middle = low + (high - low) / 2;

		if (p->cut[middle] > at)
			high = middle;
		else
			low = middle + 1;
	}
	return (low < p->cuts ? p->cut[low] : p->size) - at;
}
