/* The directory we lie in, which is where the core lies. The loader's name for us is used when it
 * is absolute; LD_PRELOAD=./libsendonce.so leaves a relative one, good for nothing after a chdir,
 * and a link elsewhere has no core beside it: then the kernel is asked, in /proc/self/maps.
 *
 * A file may get descriptor 0, 1 or 2 in a program that closed them, and catch what another thread
 * prints; so every descriptor is moved above them at once. */
#include "preload/ownpath.h"
#include "preload/object.h"
#include "preload/rawsys.h"

#include <linux/fcntl.h>

#define CHUNK_BYTES   256
#define FIRST_HIGH_FD 3

/* One line of /proc/self/maps, read byte by byte: "lo-hi perms offset device inode   path". */
struct map_line {
	unsigned long lo, hi;
	int field; /* 0 lo, 1 hi, then one more after each space; MAP_PATH in the path */
	int keeps; /* the line covers the address looked for */
};

enum { MAP_LO, MAP_HI, MAP_PATH = 100 };

static unsigned long hex_digit(char c)
{
	return c <= '9' ? (unsigned long)(c - '0') : (unsigned long)(c - 'a' + 10);
}

/* Returns 1 when the line that covers `address` is complete; its path is then in `path`. */
static int feed(struct map_line *line, char c, unsigned long address, struct text *path)
{
	if (c == '\n') {
		if (line->keeps)
			return 1;
		line->lo = line->hi = 0;
		line->field = MAP_LO;
		return 0;
	}
	if (line->field == MAP_LO && c == '-') {
		line->field = MAP_HI;
	} else if (line->field == MAP_HI && c == ' ') {
		line->field++;
		line->keeps = address >= line->lo && address < line->hi;
	} else if (line->field == MAP_LO) {
		line->lo = line->lo * 16 + hex_digit(c);
	} else if (line->field == MAP_HI) {
		line->hi = line->hi * 16 + hex_digit(c);
	} else if (line->keeps && (c == '/' || line->field == MAP_PATH)) {
		/* The device is "fe:01": the first slash begins the path. */
		line->field = MAP_PATH;
		text_add_bytes(path, &c, 1);
	}
	return 0;
}

static void add_mapped_path(struct text *path, unsigned long address)
{
	struct map_line line = {0, 0, MAP_LO, 0};
	char chunk[CHUNK_BYTES];
	long got;
	long fd = ownpath_open_high("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);

	if (fd < 0)
		return;
	while ((got = raw_syscall(__NR_read, fd, (long)chunk, sizeof(chunk), 0)) > 0) {
		for (long i = 0; i < got; i++) {
			if (feed(&line, chunk[i], address, path))
				goto cleanup;
		}
	}
cleanup:
	ownpath_close(fd);
}

void ownpath_add_directory(struct text *path, int resolved)
{
	const struct link_object *self = object_self();
	unsigned long start = path->length;

	if (resolved)
		add_mapped_path(path, (unsigned long)ownpath_add_directory);
	else if (self && self->path && self->path[0] == '/')
		text_add(path, self->path);
	path->length = start + text_directory_length(path->data + start);
	path->data[path->length] = '\0';
}

long ownpath_open_high(const char *path, long flags, long mode)
{
	long fd = raw_syscall(__NR_openat, AT_FDCWD, (long)path, flags, mode);
	if (fd < 0 || fd >= FIRST_HIGH_FD)
		return fd;
	long high = raw_syscall(__NR_fcntl, fd, F_DUPFD_CLOEXEC, FIRST_HIGH_FD, 0);
	ownpath_close(fd);
	return high;
}

void ownpath_close(long fd)
{
	raw_syscall(__NR_close, fd, 0, 0, 0);
}
