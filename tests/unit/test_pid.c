/* The number of this process, on kernels that keep the promise it rests on, that do not know of it,
 * and that agree to everything. What is remembered is the process's, so each case has its own. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static int advise(void *page, size_t n, int advice);
static pid_t ask_pid(void);

#define madvise advise
#define getpid  ask_pid
#include "base/pid.c"
#undef madvise
#undef getpid

enum kernel { KEEPS, REFUSES, AGREES };

static enum kernel kernel;
static int asked;

static int advise(void *page, size_t n, int advice)
{
	if (kernel == KEEPS)
		return madvise(page, n, advice);
	errno = EINVAL;
	return kernel == AGREES ? 0 : -1;
}

static pid_t ask_pid(void)
{
	asked++;
	return getpid();
}

static bool ends_well(pid_t child)
{
	int status = -1;

	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* In a process that asked already, and in its child. */
static bool is_true_after_fork(int asked_most)
{
	pid_t child;

	errno = ENOTTY;
	for (int i = 0; i < 10; i++) {
		if (pid_own() != (unsigned)getpid() || errno != ENOTTY)
			return false;
	}
	if (asked > asked_most)
		return false;
	child = fork();
	if (child == 0)
		_exit(pid_own() != (unsigned)getpid());
	return ends_well(child);
}

static void check(enum kernel which, int asked_most)
{
	pid_t child = fork();

	if (child == 0) {
		kernel = which;
		_exit(!is_true_after_fork(asked_most));
	}
	assert_true(ends_well(child));
}

static void a_promise_is_used(void **state)
{
	(void)state;
	check(KEEPS, 1);
}

static void without_one_nothing_is_remembered(void **state)
{
	(void)state;
	check(REFUSES, 10);
}

static void a_yes_to_everything_is_no_promise(void **state)
{
	(void)state;
	check(AGREES, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_promise_is_used),
	        cmocka_unit_test(without_one_nothing_is_remembered),
	        cmocka_unit_test(a_yes_to_everything_is_no_promise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
