/* How a program will be seen by sendonce: what doctor says of it. */
#ifndef SENDONCE_CLI_DIAGNOSE_H
#define SENDONCE_CLI_DIAGNOSE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

enum sight {
	SIGHT_PROTECTED, /* its writes through libcurl are seen */
	SIGHT_PARTLY,    /* it depends on what it starts or loads */
	SIGHT_NOT        /* they are not, or it makes none through libcurl */
};

struct diagnosis {
	enum sight sight;
	bool curl_inside;
	char name[PATH_MAX]; /* the file that was looked at, or the process's */
	char why[768];
	char advice[256]; /* "" when there is nothing to do */
};

const char *sight_name(enum sight sight);

/* Of a command, found through PATH. 0, or -1 when there is none (errno). Nothing is run. */
int diagnose_command(const char *command, struct diagnosis *out);
/* Of a file. */
void diagnose_file(const char *path, struct diagnosis *out);
/* Of a process, by its maps and its executable. 0, or -1 (errno). `*concerned`: it has libcurl,
 * loaded or inside, or sendonce. */
int diagnose_process(pid_t pid, struct diagnosis *out, bool *concerned);

#endif
