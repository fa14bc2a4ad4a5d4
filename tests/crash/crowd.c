/* Many processes, many operations, and some of them killed: exact accounting.
 *
 *     crowd FOLDER PROCESSES OPERATIONS KILLS WRITES
 *
 * Each operation picks one of a few writes and does what a courier would: looks, joins, replays,
 * sends, sends a doubt again, withdraws, is told "not executed", repeats a delivered one as the
 * next generation. What was done is also written down beside the ledger, before and after, in
 * memory that outlives the killed; every look at the ledger is held against that:
 *
 *   - no generation passes the gate twice as a first send;
 *   - no two processes that live are between gate and end of one write;
 *   - what was acknowledged as done is done, or of a later generation, with its answer whole;
 *   - no wait takes longer than it may.
 *
 * A killed process is followed by another one that does the rest of its operations. At the end a
 * reader goes over all writes, finishes what is open, and counts. */
#include "crash/crowd.h"

enum { GENERATIONS = 250, WAIT_MOST_S = 20, TRIES = 2000 };

struct account {
	_Atomic uint32_t first_sends[GENERATIONS + 2]; /* of a generation, by who thought so */
	_Atomic uint32_t acknowledged;                 /* highest generation told done */
	_Atomic int busy;                              /* pid between gate and end; 0 */
	_Atomic int64_t busy_since;
};

struct shared {
	_Atomic int64_t gates, dones, replays, resends, waits, longest_wait_us, kills;
	_Atomic int left[256]; /* operations of each worker */
	_Atomic int pid[256];
	_Atomic unsigned faults;
	char fault[200];
	struct account account[];
};

static struct shared *shared;
static unsigned writes;
static uint64_t chance;

static void fault(unsigned n, const char *what, uint32_t generation, long number)
{
	if (atomic_fetch_add(&shared->faults, 1) == 0)
		snprintf(shared->fault, sizeof(shared->fault), "write %u generation %u: %s (%ld)",
		         n, generation, what, number);
}

static unsigned roll(unsigned sides)
{
	chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(chance >> 33) % sides;
}

/* A zombie is gone as well. */
static bool is_gone(int pid)
{
	char path[40], text[200] = "";
	const char *at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return true;
	at = fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
	fclose(f);
	return !at || at[2] == 'Z' || at[2] == 'X';
}

/* --- one operation --- */

/* The gate has opened for us: nobody else may be behind it, but one whose lease is over. */
static void enter(struct account *a, const struct record_view *was, unsigned n, uint32_t generation,
                  bool first)
{
	int64_t since = atomic_load(&a->busy_since);
	int before = atomic_exchange(&a->busy, getpid());

	if (before && before != getpid() && !is_gone(before) && us_now() - since < 14 * SECOND)
		fault(n, "two behind one gate", generation, before);
	atomic_store(&a->busy_since, us_now());
	if (generation <= atomic_load(&a->acknowledged))
		fault(n, "sent again after it was done", generation, (long)was->state);
	if (first && atomic_fetch_add(&a->first_sends[generation], 1) != 0)
		fault(n, "two first sends", generation, (long)was->state);
	atomic_fetch_add(first ? &shared->gates : &shared->resends, 1);
}

static void leave(struct account *a)
{
	int me = getpid();

	atomic_compare_exchange_strong(&a->busy, &me, 0);
}

static void acknowledge(struct account *a, uint32_t generation)
{
	uint32_t seen = atomic_load(&a->acknowledged);

	while (seen < generation &&
	       !atomic_compare_exchange_weak(&a->acknowledged, &seen, generation))
		;
	atomic_fetch_add(&shared->dones, 1);
}

/* A tenth each: no answer; and, of a first send, "not executed", which takes it off the books. */
static void end_send(struct ledger *l, struct hold *hold, unsigned n, uint32_t generation,
                     bool first)
{
	struct account *a = &shared->account[n];
	char text[ANSWER_MAX];
	struct ledger_answer answer = {.status = 201,
	                               .blob = {text, answer_make(text, n, generation)}};
	unsigned what = roll(10);
	int rc;

	leave(a);
	if (what == 0) {
		ledger_unknown(l, hold, false, NULL, clock_now());
	} else if (what == 1 && first) {
		atomic_store(&a->first_sends[generation], 0);
		ledger_freed(l, hold, FREED_ANSWER, NULL, clock_now());
	} else {
		rc = ledger_done(l, hold, &answer, clock_now());
		if (rc == LEDGER_OK)
			acknowledge(a, generation);
		else if (rc != LEDGER_LOST)
			fault(n, "done is refused", generation, rc);
	}
}

static void send_it(struct ledger *l, const struct record_view *was, struct hold *hold, unsigned n,
                    uint32_t generation, bool first)
{
	int rc;

	if (roll(10) == 0) {
		ledger_withdraw(l, hold, clock_now());
		return;
	}
	rc = ledger_gate(l, hold, clock_now());
	if (rc == LEDGER_LOST)
		return;
	if (rc != LEDGER_OK) {
		fault(n, "the gate fails", generation, rc);
		return;
	}
	enter(&shared->account[n], was, n, generation, first);
	if (roll(8) == 0)
		sleep_us(roll(2000));
	end_send(l, hold, n, generation, first);
}

static void join(struct ledger *l, const struct record_view *v, unsigned n)
{
	int64_t begin = us_now(), took, longest = atomic_load(&shared->longest_wait_us);

	if (ledger_wait(l, v->id, v->word, WAIT_MOST_S * SECOND) != LEDGER_OK)
		fault(n, "a wait without end", v->generation, (long)v->state);
	took = us_now() - begin;
	while (took > longest &&
	       !atomic_compare_exchange_weak(&shared->longest_wait_us, &longest, took))
		;
	atomic_fetch_add(&shared->waits, 1);
}

/* What every look has to show, whatever happens meanwhile. `known` was acknowledged before. */
static void check(struct ledger *l, const struct record_view *v, unsigned n, uint32_t known)
{
	struct record_view again;

	if (v->generation < known ||
	    (v->generation == known && known && v->state != REC_DONE && v->state != REC_TOMBSTONE))
		fault(n, "what was done is forgotten", known, (long)v->state);
	if (v->state != REC_DONE || answer_fits(l, v, n))
		return;
	/* It may have become another generation between the look and the answer. */
	if (ledger_look(l, v->id, clock_now(), &again) == LEDGER_OK && again.word == v->word)
		fault(n, "a torn answer", v->generation, again.status);
}

static bool is_driven(const struct record_view *v)
{
	return v->lease_fresh && (v->owner == OWNER_ALIVE || v->owner == OWNER_UNKNOWABLE);
}

/* The next generation of a done one, or its answer. True: this operation is over. */
static bool repeat_or_replay(struct ledger *l, struct write *w, const struct record_view *v)
{
	struct record_view told;
	struct hold hold;

	ledger_delivered(l, v->id, v->generation, 5, clock_now());
	atomic_fetch_add(&shared->replays, 1);
	if (v->generation >= GENERATIONS || roll(2) != 0)
		return true;
	/* Being told changed its word. */
	if (ledger_look(l, v->id, clock_now(), &told) != LEDGER_OK || told.state != REC_DONE ||
	    told.generation != v->generation)
		return true;
	w->rec.generation = v->generation + 1;
	if (ledger_reserve(l, &w->rec, &told, clock_now(), &hold) == LEDGER_OK)
		send_it(l, v, &hold, w->n, v->generation + 1, true);
	return true;
}

/* One look and what follows from it. True: this operation is over. */
static bool step(struct ledger *l, struct write *w)
{
	uint32_t known = atomic_load(&shared->account[w->n].acknowledged);
	struct record_view v;
	struct hold hold;
	bool first;
	int rc;

	if (ledger_find(l, &w->ids, clock_now(), &v) == LEDGER_NONE && known)
		fault(w->n, "what was done is gone", known, 0);
	if (v.state == REC_NONE) {
		w->rec.generation = 1;
		rc = ledger_reserve(l, &w->rec, NULL, clock_now(), &hold);
		if (rc == LEDGER_OK)
			send_it(l, &v, &hold, w->n, 1, true);
		return rc == LEDGER_OK;
	}
	check(l, &v, w->n, known);
	if (v.state == REC_DONE)
		return repeat_or_replay(l, w, &v);
	if (v.state == REC_FREED || v.state == REC_TOMBSTONE) {
		w->rec.generation = v.generation + (v.state == REC_TOMBSTONE);
		if (w->rec.generation > GENERATIONS)
			return true;
		rc = ledger_reserve(l, &w->rec, &v, clock_now(), &hold);
		if (rc == LEDGER_OK)
			send_it(l, &v, &hold, w->n, w->rec.generation, true);
		return rc == LEDGER_OK;
	}
	if (is_driven(&v)) {
		join(l, &v, w->n);
		return false;
	}
	first = v.state == REC_RESERVED;
	rc = ledger_take(l, &v, clock_now(), &hold);
	if (rc == LEDGER_OK)
		send_it(l, &v, &hold, w->n, v.generation, first);
	return rc == LEDGER_OK;
}

static void operation(struct ledger *l)
{
	struct write w;

	write_make(&w, roll(writes));
	/* Some live so short that the sweep meets everybody else. */
	if (w.n % 8 == 0)
		w.rec.ttl_us = 30000;
	for (int tries = 0; tries < TRIES; tries++)
		if (step(l, &w))
			return;
	fault(w.n, "never comes to an end", 0, TRIES);
}

/* --- processes --- */

static pid_t worker(const char *folder, struct ledger *l, int number)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	chance = (uint64_t)getpid() * 2654435761u + (uint64_t)number;
	if (number % 2)
		l = open_ledger(folder, 0); /* a mapping of its own */
	while (l && atomic_load(&shared->left[number]) > 0 && !atomic_load(&shared->faults)) {
		operation(l);
		atomic_fetch_sub(&shared->left[number], 1);
	}
	_exit(l ? 0 : 3);
}

/* Waits for the workers, and kills some of them: each time one, after a random while. */
static void supervise(const char *folder, struct ledger *l, int processes, int kills)
{
	int running = processes, status, number;
	pid_t pid;

	while (running > 0) {
		if (kills > 0) {
			sleep_us(500 + roll(2000));
			number = (int)roll((unsigned)processes);
			if (atomic_load(&shared->pid[number]) > 0) {
				kill(atomic_load(&shared->pid[number]), SIGKILL);
				kills--;
			}
		}
		pid = waitpid(-1, &status, kills > 0 ? WNOHANG : 0);
		for (number = 0; pid > 0 && number < processes; number++)
			if (atomic_load(&shared->pid[number]) == pid)
				break;
		if (pid <= 0 || number == processes)
			continue;
		atomic_store(&shared->pid[number], 0);
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
			atomic_fetch_add(&shared->kills, 1);
			atomic_store(&shared->pid[number], worker(folder, l, number));
			continue;
		}
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			fault(0, "a worker ended otherwise", 0, status);
		running--;
	}
}

/* Nothing is left open, and everything that was acknowledged is there. */
static void read_all(struct ledger *l)
{
	struct record_view v;
	struct write w;
	uint32_t known;
	int tries;

	for (unsigned n = 0; n < writes; n++) {
		write_make(&w, n);
		for (tries = 0; tries < TRIES; tries++) {
			known = atomic_load(&shared->account[n].acknowledged);
			if (ledger_find(l, &w.ids, clock_now(), &v) == LEDGER_NONE)
				break;
			if (v.state == REC_DONE || v.state == REC_FREED || v.state == REC_TOMBSTONE)
				break;
			if (is_driven(&v))
				fault(n, "still owned though everybody has gone", v.generation,
				      v.owner_pid);
			step(l, &w);
		}
		if (v.state == REC_NONE ? known > 0 : tries == TRIES)
			fault(n, "open at the end", known, (long)v.state);
		if (v.state != REC_NONE)
			check(l, &v, n, known);
	}
	if (ledger_verify(l, NULL, NULL) != 0)
		fault(0, "verify finds damage", 0, ledger_verify(l, NULL, NULL));
}

int main(int argc, char **argv)
{
	int processes = argc > 2 ? atoi(argv[2]) : 8, operations = argc > 3 ? atoi(argv[3]) : 500;
	int kills = argc > 4 ? atoi(argv[4]) : 1;
	int64_t made = (int64_t)processes * operations;
	struct ledger *l;
	int64_t begin = us_now();

	if (argc < 6 || processes > 256)
		return 2;
	writes = (unsigned)atoi(argv[5]);
	shared = shared_memory(sizeof(*shared) + writes * sizeof(struct account));
	l = open_ledger(argv[1], INT64_C(64) << 20);
	if (!l)
		return 2;
	chance = (uint64_t)begin;
	for (int i = 0; i < processes; i++) {
		atomic_store(&shared->left[i], operations);
		atomic_store(&shared->pid[i], worker(argv[1], l, i));
	}
	supervise(argv[1], l, processes, kills);
	for (int i = 0; i < processes; i++)
		made -= atomic_load(&shared->left[i]);
	if (!shared->faults)
		read_all(l);
	ledger_close(l);
	printf("%lld operations by %d processes, %lld killed: %lld first sends, %lld resends, %lld "
	       "done, %lld replays, %lld waits, the longest %lld ms; %lld ms in all\n",
	       (long long)made, processes, (long long)shared->kills, (long long)shared->gates,
	       (long long)shared->resends, (long long)shared->dones, (long long)shared->replays,
	       (long long)shared->waits, (long long)shared->longest_wait_us / 1000,
	       (long long)(us_now() - begin) / 1000);
	if (shared->faults)
		printf("%u faults; the first: %s\n", shared->faults, shared->fault);
	return shared->faults ? 1 : 0;
}
