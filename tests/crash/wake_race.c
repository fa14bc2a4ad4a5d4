/* A waiter is woken by the publication it waits for, not by the end of its time slice.
 *
 * usage: wake_race FOLDER */
#include "crash/crash.h"

#include <sys/wait.h>

enum { ROUNDS = 10, SLOW_US = 120000 };

static char path[200];

/* Microseconds from the publication to the return of ledger_wait in another process. */
static int64_t round_once(struct ledger *l, unsigned n, _Atomic int64_t *woken)
{
	struct write w;
	struct record_view v;
	struct hold h;
	int64_t published;
	int status;
	pid_t child;

	write_make(&w, n + 1, 10);
	if (ledger_reserve(l, &w.rec, NULL, clock_now(), &h) != LEDGER_OK)
		fail("not reserved");
	v = find_write(l, &w);
	child = fork();
	if (child == 0) {
		ledger_wait(l, v.id, v.word, 5 * SECOND);
		*woken = clock_boot_us();
		_exit(0);
	}
	while (atomic_load(&record_of(l, v.id, NULL)->waiting) == 0)
		usleep(1000);
	usleep(20000);
	published = clock_boot_us();
	if (ledger_gate(l, &h, clock_now()) != LEDGER_OK)
		fail("no gate");
	if (waitpid(child, &status, 0) != child || status != 0)
		fail("the waiter ended otherwise");
	return *woken - published;
}

int main(int argc, char **argv)
{
	_Atomic int64_t *woken =
	        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int64_t best = INT64_MAX, us;
	struct ledger *l;

	if (argc < 2 || woken == MAP_FAILED)
		return 2;
	snprintf(path, sizeof(path), "%s/wake", argv[1]);
	l = open_ledger(path, true, false);
	for (unsigned i = 0; i < ROUNDS; i++) {
		where_number = i;
		us = round_once(l, i, woken);
		best = us < best ? us : best;
	}
	if (best > SLOW_US)
		fail("woken after %lld us at best", (long long)best);
	printf("woken after %lld us at best\n", (long long)best);
	return 0;
}
