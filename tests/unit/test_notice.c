/* Lines that a batch holds back are in the log before the call that ends it returns, also where
 * another thread is just writing them; a child and an exit in the middle keep none and wait for
 * nobody. The log is a script, which can be made to stand still. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "intercept/process.h"
#include "ledger/events.h"
#include "unit/threads_here.h"

enum { SOON_MS = 150 };

static struct process process = {.events_path = "/nowhere"};
static atomic_bool stands; /* the log takes nothing for a while */
static atomic_int asked, written;
static void (*meanwhile)(void);

static void nap_ms(long ms)
{
	const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

static void fake_format(struct buf *out)
{
	buf_add_text(out, "line\n");
}

static size_t fake_append(struct span lines)
{
	asked++;
	if (meanwhile)
		meanwhile();
	while (stands)
		nap_ms(1);
	for (size_t i = 0; i < lines.n; i++)
		written += lines.p[i] == '\n';
	return 0;
}

static int fake_write(void)
{
	written++;
	return 0;
}

#define process_get()           (&process)
#define process_ledger_opened() NULL
#define event_format(b, e, n)   ((void)(e), fake_format(b))
#define event_append(p, l)      fake_append(l)
#define event_write(p, e)       ((void)(e), fake_write())
#include "../../src/intercept/notice.c"

static void send_one(void)
{
	struct event event = event_make("write");

	notice_send(&process, &event);
}

static int start(void **state)
{
	(void)state;
	stands = false;
	meanwhile = NULL;
	asked = written = 0;
	exiting = false;
	return 0;
}

static void test_together_at_the_end(void **state)
{
	(void)state;
	notice_batch_begin();
	send_one();
	send_one();
	assert_int_equal(written, 0);
	notice_batch_end();
	assert_int_equal(written, 2);
	assert_int_equal(asked, 1);
	send_one();
	assert_int_equal(written, 3);
	notice_batch_begin();
	notice_batch_end();
	assert_int_equal(asked, 1); /* for nothing the log is not opened */
}

/* --- two threads --- */

static atomic_bool holds, may_end;
static atomic_int seen;

/* A call of the program's loop, in a thread of its own. */
static void *one_call(void *line)
{
	notice_batch_begin();
	if (line)
		send_one();
	holds = true;
	while (!may_end)
		nap_ms(1);
	notice_batch_end();
	seen = written;
	return NULL;
}

static void *end_first(void *ctx)
{
	(void)ctx;
	notice_batch_begin();
	send_one();
	notice_batch_end();
	return NULL;
}

/* Another thread has taken this one's line along, and its log stands still. */
static pthread_t taken_along(void *line, pthread_t *other)
{
	pthread_t one;

	holds = may_end = false;
	seen = -1;
	assert_int_equal(pthread_create(&one, NULL, one_call, line), 0);
	while (!holds)
		nap_ms(1);
	stands = true;
	assert_int_equal(pthread_create(other, NULL, end_first, NULL), 0);
	while (!asked)
		nap_ms(1);
	may_end = true;
	nap_ms(SOON_MS);
	return one;
}

static void test_taken_by_another_thread(void **state)
{
	pthread_t other, one = taken_along(&process, &other);

	(void)state;
	assert_int_equal(seen, -1); /* its line is not there yet */
	stands = false;
	pthread_join(one, NULL);
	pthread_join(other, NULL);
	assert_int_equal(seen, 2);
}

static void test_without_a_line_nobody_waits(void **state)
{
	pthread_t other, one = taken_along(NULL, &other);

	(void)state;
	assert_int_equal(seen, 0);
	stands = false;
	pthread_join(one, NULL);
	pthread_join(other, NULL);
}

/* --- a child, an exit --- */

static void test_a_child_holds_nothing_back(void **state)
{
	int status;
	pid_t child;

	(void)state;
	notice_batch_begin();
	send_one();
	child = fork();
	if (child == 0) {
		send_one();
		_exit(written);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 1);
	notice_batch_end();
	assert_int_equal(written, 1);
}

static void exit_now(void)
{
	meanwhile = NULL;
	at_exit();
	written = 100;
}

/* exit(3) by a signal handler, on top of a thread that is writing. */
static void test_exit_while_writing(void **state)
{
	(void)state;
	notice_batch_begin();
	send_one();
	meanwhile = exit_now;
	alarm(10);
	notice_batch_end();
	alarm(0);
	assert_int_equal(written, 101);
}

static void test_exit_while_formatting(void **state)
{
	(void)state;
	notice_batch_begin();
	send_one();
	pthread_mutex_lock(&lock);
	alarm(10);
	at_exit();
	alarm(0);
	pthread_mutex_unlock(&lock);
	assert_int_equal(written, 0); /* nobody knows what is there */
	notice_batch_end();
	assert_int_equal(written, 1);
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_together_at_the_end),         TEST(test_taken_by_another_thread),
	        TEST(test_without_a_line_nobody_waits), TEST(test_a_child_holds_nothing_back),
	        TEST(test_exit_while_writing),          TEST(test_exit_while_formatting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
