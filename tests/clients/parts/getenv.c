/* A getenv that remembers which thread asked for the variables that libcurl reads, preloaded in
 * front of everything. getenv_told lists those that another thread than the first asked for. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char told[2000];
static size_t used;
static int asked;

static int is_watched(const char *name)
{
	size_t n = strlen(name);

	return strcmp(name, "HOME") == 0 || strcmp(name, "NETRC") == 0 ||
	       (n >= 6 && strcasecmp(name + n - 6, "_proxy") == 0);
}

static void note(const char *name)
{
	pthread_mutex_lock(&lock);
	asked++;
	if (syscall(SYS_gettid) != getpid() && used + strlen(name) + 16 < sizeof(told))
		used += (size_t)snprintf(told + used, sizeof(told) - used, "elsewhere: %s\n", name);
	pthread_mutex_unlock(&lock);
}

static char *find(const char *name)
{
	size_t n = strlen(name);

	for (char **e = environ; e && *e; e++)
		if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
			return *e + n + 1;
	return NULL;
}

__attribute__((visibility("default"))) char *getenv(const char *name)
{
	if (is_watched(name))
		note(name);
	return find(name);
}

__attribute__((visibility("default"))) char *secure_getenv(const char *name)
{
	return getenv(name);
}

/* Into `out`, a line each, and the number of times anything was asked for at all. */
__attribute__((visibility("default"))) void getenv_told(char *out, size_t room)
{
	pthread_mutex_lock(&lock);
	snprintf(out, room, "%sasked %d\n", told, asked > 0);
	pthread_mutex_unlock(&lock);
}
