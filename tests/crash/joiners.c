/* Many processes join one write that is under way, and its leader is killed.
 *
 *     joiners FOLDER PROCESSES STATE
 *
 * STATE is where the leader dies: `reserved` (nothing left; one of the others sends it first),
 * `sent` (one of the others sends it again), `twice` (so does the one that follows, and a third one
 * sends it), or `none` (he lives, and answers). Each joiner has a mapping of its own, does what a
 * courier does, and ends with the answer; its whole wait is measured from the leader's death.
 * Prints how long the last one took, and how many sent. */
#include "crash/crowd.h"

enum { PROCESSES_MOST = 512, BOUND_S = 10 };

struct shared {
	_Atomic int waiting, ended, first_sends, resends, faults, deaths_left;
	_Atomic int64_t died_us, last_us;
};
static struct shared *shared;

static void give_answer(struct ledger *l, struct hold *hold)
{
	char text[ANSWER_MAX];
	struct ledger_answer answer = {.status = 201, .blob = {text, answer_make(text, 1, 1)}};

	if (ledger_done(l, hold, &answer, clock_now()) != LEDGER_OK)
		atomic_fetch_add(&shared->faults, 1);
}

static void die(void)
{
	atomic_store(&shared->died_us, us_now());
	raise(SIGKILL);
}

/* The leader of now: sends, and dies if it is its turn. */
static void lead(struct ledger *l, struct hold *hold, bool first)
{
	if (ledger_gate(l, hold, clock_now()) != LEDGER_OK)
		return;
	atomic_fetch_add(first ? &shared->first_sends : &shared->resends, 1);
	sleep_us(20000);
	if (atomic_fetch_sub(&shared->deaths_left, 1) > 0)
		die();
	give_answer(l, hold);
}

static bool has_answer(struct ledger *l, const struct record_view *v)
{
	if (v->state != REC_DONE)
		return false;
	if (!answer_fits(l, v, 1))
		atomic_fetch_add(&shared->faults, 1);
	return true;
}

static void follow(const char *folder)
{
	struct ledger *l = open_ledger(folder, 0);
	struct record_view v;
	struct write w;
	struct hold hold;
	bool told = false;
	int64_t until = us_now() + BOUND_S * SECOND;

	write_make(&w, 1);
	while (l && us_now() < until) {
		ledger_find(l, &w.ids, clock_now(), &v);
		if (has_answer(l, &v)) {
			atomic_store(&shared->last_us, us_now());
			atomic_fetch_add(&shared->ended, 1);
			_exit(0);
		}
		if (v.lease_fresh && v.owner == OWNER_ALIVE) {
			if (!told)
				atomic_fetch_add(&shared->waiting, 1);
			told = true;
			ledger_wait(l, v.id, v.word, BOUND_S * SECOND);
		} else if (ledger_take(l, &v, clock_now(), &hold) == LEDGER_OK) {
			lead(l, &hold, v.state == REC_RESERVED);
		}
	}
	_exit(1);
}

/* The first leader: waits for everybody, then ends as it shall. */
static void first_leader(struct ledger *l, const char *state, int joiners)
{
	struct write w;
	struct hold hold;
	int64_t until = us_now() + BOUND_S * SECOND;

	write_make(&w, 1);
	if (ledger_reserve(l, &w.rec, NULL, clock_now(), &hold) != LEDGER_OK)
		_exit(1);
	if (strcmp(state, "reserved") != 0 && ledger_gate(l, &hold, clock_now()) != LEDGER_OK)
		_exit(1);
	if (strcmp(state, "reserved") != 0)
		atomic_fetch_add(&shared->first_sends, 1);
	while (atomic_load(&shared->waiting) < joiners && us_now() < until) {
		ledger_renew(l, &hold, clock_now());
		sleep_us(2000);
	}
	sleep_us(20000);
	if (strcmp(state, "none") != 0)
		die();
	atomic_store(&shared->died_us, us_now());
	give_answer(l, &hold);
	_exit(0);
}

int main(int argc, char **argv)
{
	int joiners = argc > 2 ? atoi(argv[2]) : 0, killed = 0, status, faults;
	struct record_view v = {0};
	struct ledger *l;
	struct write w;
	pid_t pid;

	if (argc < 4 || joiners < 1 || joiners > PROCESSES_MOST)
		return 2;
	shared = shared_memory(sizeof(*shared));
	l = open_ledger(argv[1], INT64_C(1) << 20);
	if (!l)
		return 2;
	atomic_store(&shared->deaths_left, strcmp(argv[3], "twice") == 0);
	pid = fork();
	if (pid == 0)
		first_leader(l, argv[3], joiners);
	write_make(&w, 1);
	while (v.state == REC_NONE)
		ledger_find(l, &w.ids, clock_now(), &v);
	for (int i = 0; i < joiners; i++)
		if (fork() == 0)
			follow(argv[1]);
	while (waitpid(-1, &status, 0) > 0) {
		killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
		if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
			atomic_fetch_add(&shared->faults, 1);
	}
	faults = shared->faults + ledger_verify(l, NULL, NULL);
	ledger_close(l);
	printf("%d of %d waited, %d ended with the answer, %d killed, %d first sends, %d resends, "
	       "%d "
	       "faults, the last after %lld ms\n",
	       shared->waiting, joiners, shared->ended, killed, shared->first_sends,
	       shared->resends, faults, (long long)(shared->last_us - shared->died_us) / 1000);
	return faults ? 1 : 0;
}
