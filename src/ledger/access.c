/* Who else may touch a ledger, and whether that is meant.
 *
 * A ledger is its user's alone: 0600, one name, in a folder where nobody else may replace it. With
 * `ledger.group: true` it is its group's: 0660, in a setgid folder, so that a daemon that starts as
 * one user and goes on as another keeps its records, whoever made the file. Either kind is refused
 * under the other setting: a file that is more open than the policy says was opened by somebody. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ledger/internal.h"

enum { GROUPS_MAX = 1024 };

/* Root may do anything, and is not asked. */
static bool in_group(gid_t group)
{
	static _Thread_local gid_t list[GROUPS_MAX];
	int n;

	if (geteuid() == 0 || getegid() == group)
		return true;
	n = getgroups(GROUPS_MAX, list);
	for (int i = 0; i < n; i++) {
		if (list[i] == group)
			return true;
	}
	return false;
}

static int check_shared(const struct stat *st, const char *path, struct ledger_error *error)
{
	unsigned mode = st->st_mode & 0777;

	if (mode & 07)
		return file_fail(error, LEDGER_CANNOT,
		                 "%s: everybody may read or write it (mode %03o); chmod 660 it if "
		                 "you trust what is in it",
		                 path, mode);
	if ((mode & 0660) != 0660)
		return file_fail(error, LEDGER_CANNOT,
		                 "%s: ledger.group is true, and its group may not write it (mode "
		                 "%03o); chgrp it to the daemons' group and chmod 660 it",
		                 path, mode);
	if (!in_group(st->st_gid))
		return file_fail(
		        error, LEDGER_CANNOT,
		        "%s: belongs to group %u, and this process (user %u) is not in it; add "
		        "the user to that group or name another ledger",
		        path, (unsigned)st->st_gid, (unsigned)geteuid());
	return LEDGER_OK;
}

static int check_private(const struct stat *st, const char *path, struct ledger_error *error)
{
	if (st->st_uid != geteuid())
		return file_fail(
		        error, LEDGER_CANNOT,
		        "%s: belongs to user %u, this process runs as user %u; name another "
		        "ledger or run as its owner",
		        path, (unsigned)st->st_uid, (unsigned)geteuid());
	if (st->st_mode & 077)
		return file_fail(error, LEDGER_CANNOT,
		                 "%s: others may read or write it (mode %03o); chmod 600 it if you "
		                 "trust what is in it%s",
		                 path, (unsigned)st->st_mode & 0777,
		                 st->st_mode & 07 ? "" : ", or set ledger.group: true");
	return LEDGER_OK;
}

int access_file(const struct stat *st, const char *path, bool group, struct ledger_error *error)
{
	int rc;

	if (!S_ISREG(st->st_mode))
		return file_fail(error, LEDGER_FOREIGN, "%s: is not a regular file", path);
	rc = group ? check_shared(st, path, error) : check_private(st, path, error);
	if (rc != LEDGER_OK)
		return rc;
	if (st->st_nlink != 1)
		return file_fail(error, LEDGER_CANNOT,
		                 "%s: has %lu names (hard links); a ledger has one", path,
		                 (unsigned long)st->st_nlink);
	return LEDGER_OK;
}

/* Whoever may rename files in the folder may replace the ledger: not everybody, then. And a file
 * that is made in a folder without setgid belongs to its maker's own group. */
int access_folder(const struct stat *st, const char *path, const char *folder, bool group,
                  struct ledger_error *error)
{
	if ((st->st_mode & S_IWOTH) && !(st->st_mode & S_ISVTX))
		return file_fail(error, LEDGER_CANNOT,
		                 "%s: everybody may replace files in %s; chmod o-w that folder",
		                 path, folder);
	if (group && !(st->st_mode & S_ISGID))
		return file_fail(error, LEDGER_CANNOT,
		                 "%s: ledger.group is true, and its folder %s does not hand on its "
		                 "group; chgrp the daemons' group to it and chmod 2770 it",
		                 path, folder);
	return LEDGER_OK;
}
