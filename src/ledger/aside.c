/* Setting a damaged ledger aside.
 *
 * Whoever finds one at the ledger's path (a host, `sendonce run`; never a command that only looks)
 * gives it a name with the date and puts a note in its place, a short text for people. The note is
 * no ledger, so writes are refused until a person runs `sendonce ledger recover`: an empty ledger
 * in that place would let every old write happen again. Processes that have the damaged file mapped
 * learn it from the file itself (retire.c), where it still is one of ours; in a foreign file not a
 * byte is changed. If any step cannot be done the file stays where it is, and is refused there. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ledger/internal.h"

#define NOTE_MAGIC "sendonce: no ledger\n"
#define NOTE_FILE  "set aside: "

/* Of a note, with its two paths. On the heap: the program's stack may be a fiber's. */
enum { NOTE_ROOM = 2 * PATH_MAX };

static int note_text(char text[NOTE_ROOM], const char *at, const char *path, const char *why)
{
	char when[32];
	int n;

	clock_rfc3339(when, sizeof(when), clock_now().wall_us);
	n = snprintf(text, NOTE_ROOM,
	             NOTE_MAGIC NOTE_FILE "%s\nledger: %s\nfound: %s\nwhy: it %s\n"
	                                  "Writes are refused until a person runs `sendonce ledger "
	                                  "recover`. Do not remove this file: a new, empty\n"
	                                  "ledger lets every write of before happen again.\n",
	             at, path, when, why);
	return n < NOTE_ROOM ? n : -1;
}

static int note_save(const char *at, const char *text, int n, bool group)
{
	ssize_t done = -1;
	int fd;

	fd = create_fd_high(open(at, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
	if (fd < 0)
		return -1;
	if (fchmod(fd, group ? 0660 : 0600) == 0)
		done = write(fd, text, (size_t)n);
	if (done == n && fsync(fd) != 0)
		done = -1;
	close(fd);
	if (done == n)
		return 0;
	unlink(at);
	return -1;
}

static int note_write(const char *at, const char *path, const char *why, bool group)
{
	char *text = malloc(NOTE_ROOM);
	int n = text ? note_text(text, at, path, why) : -1;
	int rc = n < 0 ? -1 : note_save(at, text, n, group);

	free(text);
	return rc;
}

static bool put_locked(int fd, const char *path, const char *why, bool ours, bool group)
{
	char *name = malloc(PATH_MAX);
	bool done = false;

	if (name && swap_name(name, PATH_MAX, path, "damaged") == 0 &&
	    note_write(name, path, why, group) == 0) {
		if (ours)
			retire_file(fd, retire_word(RETIRE_NEW, RETIRE_DAMAGED));
		done = swap_exchange(path, name) == 0;
		if (!done)
			unlink(name);
	}
	free(name);
	return done;
}

bool aside_put(int fd, const char *path, const char *why, bool ours, bool group)
{
	bool done;

	if (!swap_lock(fd, path))
		return false;
	done = put_locked(fd, path, why, ours, group);
	swap_unlock(fd);
	return done;
}

static bool note_read(int fd, char text[NOTE_ROOM], char *name, size_t room)
{
	char *from, *end;
	ssize_t n;

	do
		n = pread(fd, text, NOTE_ROOM - 1, 0);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	text[n] = '\0';
	if (strncmp(text, NOTE_MAGIC NOTE_FILE, sizeof(NOTE_MAGIC NOTE_FILE) - 1) != 0)
		return false;
	from = text + sizeof(NOTE_MAGIC NOTE_FILE) - 1;
	end = strchr(from, '\n');
	if (!end || (size_t)(end - from) >= room)
		return false;
	*end = '\0';
	strcpy(name, from);
	return true;
}

bool aside_note(int fd, char *name, size_t room)
{
	char *text = malloc(NOTE_ROOM);
	bool found = text && note_read(fd, text, name, room);

	free(text);
	return found;
}
