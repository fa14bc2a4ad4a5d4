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
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ledger/internal.h"

#define NOTE_MAGIC "sendonce: no ledger\n"
#define NOTE_FILE  "set aside: "

static int note_write(const char *at, const char *path, const char *why, bool group)
{
	char text[2 * PATH_MAX], when[32];
	ssize_t done = -1;
	int fd, n;

	clock_rfc3339(when, sizeof(when), clock_now().wall_us);
	n = snprintf(text, sizeof(text),
	             NOTE_MAGIC NOTE_FILE "%s\nledger: %s\nfound: %s\nwhy: it %s\n"
	                                  "Writes are refused until a person runs `sendonce ledger "
	                                  "recover`. Do not remove this file: a new, empty\n"
	                                  "ledger lets every write of before happen again.\n",
	             at, path, when, why);
	if (n < 0 || (size_t)n >= sizeof(text))
		return -1;
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

bool aside_put(int fd, const char *path, const char *why, bool ours, bool group)
{
	char name[PATH_MAX];
	bool done = false;

	if (!swap_lock(fd, path))
		return false;
	if (swap_name(name, sizeof(name), path, "damaged") == 0 &&
	    note_write(name, path, why, group) == 0) {
		if (ours)
			retire_file(fd, retire_word(RETIRE_NEW, RETIRE_DAMAGED));
		done = swap_exchange(path, name) == 0;
		if (!done)
			unlink(name);
	}
	swap_unlock(fd);
	return done;
}

bool aside_note(int fd, char *name, size_t room)
{
	char text[2 * PATH_MAX], *from, *end;
	ssize_t n;

	do
		n = pread(fd, text, sizeof(text) - 1, 0);
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
