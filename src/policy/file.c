/* A policy's file is read in one go, bounded, from a descriptor that is closed again before the
 * text is looked at. */
#include "policy/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/tree.h"

static int fail_file(struct policy_error *error, const char *path, int code, const char *text)
{
	tree_error(error, path, 0, 0, "%s", text);
	return code;
}

/* ENOTDIR: a folder of the path is missing in another way. */
static int fail_open(struct policy_error *error, const char *path, int number)
{
	if (number == ENOENT || number == ENOTDIR)
		return fail_file(error, path, POLICY_MISSING, "there is no such policy file");
	if (number == EACCES)
		return fail_file(error, path, POLICY_INVALID,
		                 "the policy cannot be read: permission denied");
	return fail_file(error, path, POLICY_INVALID, "the policy cannot be read");
}

/* A pipe could keep the host waiting for ever. */
static int check_file(int fd, const char *path, struct policy_error *error)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return fail_open(error, path, errno);
	if (!S_ISREG(st.st_mode))
		return fail_file(error, path, POLICY_INVALID,
		                 "the policy cannot be read: not a regular file");
	return 0;
}

/* One byte more than allowed is enough for tree_parse to refuse it. */
static int read_all(int fd, struct buf *b, const char *path, struct policy_error *error)
{
	char chunk[8192];

	while (b->n <= TREE_BYTES) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n == 0)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_open(error, path, errno);
		buf_add(b, chunk, (size_t)n);
		if (b->failed)
			return fail_file(error, path, POLICY_NOMEM, "out of memory");
	}
	return 0;
}

int file_read(const char *path, struct buf *b, struct policy_error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int rc;

	if (fd < 0)
		return fail_open(error, path, errno);
	rc = check_file(fd, path, error);
	if (!rc)
		rc = read_all(fd, b, path, error);
	close(fd);
	return rc;
}
