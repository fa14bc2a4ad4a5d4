/* Wall time of a whole process with and without additions to its environment, in turn.
 *
 *   spawn ROUNDS NAME=VALUE[,NAME=VALUE...] NAME=VALUE|- COMMAND [ARG...]
 *
 * The first list is the environment of side A, the second that of side B; `-` is an empty one.
 * Output of the command is thrown away. Prints milliseconds: median of A, median of B, medians
 * of A/B and of A-B pair by pair. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ENV_MAX = 16, WARM = 5 };

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void split(char *text, char **env)
{
	size_t n = 0;

	env[n++] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
	for (char *part = strtok(text, ","); part && n < ENV_MAX - 1; part = strtok(NULL, ",")) {
		if (strcmp(part, "-") != 0)
			env[n++] = part;
	}
	env[n] = NULL;
}

static double run(char **argv, char **env)
{
	posix_spawn_file_actions_t files;
	double start = now_ms();
	int status;
	pid_t pid;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	if (posix_spawn(&pid, argv[0], &files, NULL, argv, env) != 0 ||
	    waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fprintf(stderr, "spawn: %s failed\n", argv[0]);
		exit(1);
	}
	posix_spawn_file_actions_destroy(&files);
	return now_ms() - start;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return values[n / 2];
}

int main(int argc, char **argv)
{
	char *env_a[ENV_MAX], *env_b[ENV_MAX];
	size_t rounds = argc > 4 ? strtoul(argv[1], NULL, 10) : 0;
	double *a, *b, *ratio, *more;

	if (rounds == 0)
		return 2;
	split(argv[2], env_a);
	split(argv[3], env_b);
	a = calloc(rounds, sizeof(*a));
	b = calloc(rounds, sizeof(*b));
	ratio = calloc(rounds, sizeof(*ratio));
	more = calloc(rounds, sizeof(*more));
	if (!a || !b || !ratio || !more)
		return 1;
	for (size_t i = 0; i < rounds + WARM; i++) {
		size_t at = i < WARM ? 0 : i - WARM;
		a[at] = run(argv + 4, env_a);
		b[at] = run(argv + 4, env_b);
		ratio[at] = a[at] / b[at];
		more[at] = a[at] - b[at];
	}
	printf("%.3f %.3f %.4f %.3f\n", median(a, rounds), median(b, rounds), median(ratio, rounds),
	       median(more, rounds));
	return 0;
}
