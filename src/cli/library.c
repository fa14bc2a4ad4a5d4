/* Where libsendonce.so is: beside this program (a build) or in ../lib/sendonce (installed). */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

/* FOLDER/TAIL/libsendonce.so without links and dots, when it and the core beside it are there. */
static bool find_in(const char *folder, const char *tail, char *out)
{
	char path[2 * PATH_MAX], core[PATH_MAX + 32];
	char *slash;

	snprintf(path, sizeof(path), "%s%s/libsendonce.so", folder, tail);
	if (!realpath(path, out))
		return false;
	snprintf(core, sizeof(core), "%s", out);
	slash = strrchr(core, '/');
	strcpy(slash, "/libsendonce-core.so");
	return access(core, R_OK) == 0;
}

static bool find_library(char *out)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n <= 0)
		return false;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return find_in(self, "", out) || find_in(self, "/../lib/sendonce", out);
}

int cli_set_preload(const char *command)
{
	const char *before = getenv("LD_PRELOAD");
	char path[PATH_MAX], *text = NULL;
	int rc = 0;

	if (!find_library(path))
		return cli_fail(
		        CLI_CANNOT, command,
		        "libsendonce.so and libsendonce-core.so are neither beside this program "
		        "nor in ../lib/sendonce: install them together");
	if (strpbrk(path, ": "))
		return cli_fail(CLI_CANNOT, command,
		                "%s: the loader cannot preload a path with a space or a colon",
		                path);
	if (asprintf(&text, "%s%s%s", path, before && *before ? ":" : "", before ? before : "") < 0)
		return cli_fail(CLI_CANNOT, command, "out of memory");
	if (cli_set_env("LD_PRELOAD", text))
		rc = CLI_CANNOT;
	free(text);
	return rc;
}
