/* A kill storm: how long does who survives stand still?
 *
 *     storm FOLDER SECONDS KILLS WORKERS
 *
 * Workers make writes as fast as they can: reserve, gate, done, each of few enough contents that
 * they meet. One after the other is killed and followed by a new one. Each times every operation;
 * of one that takes long it also asks the kernel how long it was ready to run and did not get a
 * processor, which is the machine's stall and not the ledger's. Beside them an idle process sleeps
 * for a millisecond at a time, and tells by how much it overslept.
 *
 * Prints what the survivors' worst operation took, with and without that, and whether what was
 * acknowledged is there. */
#include "crash/crowd.h"

#include <fcntl.h>
#include <sys/resource.h>

enum { CONTENTS = 256, WORKERS_MOST = 32 };

struct shared {
	_Atomic bool stop;
	_Atomic int64_t operations, worst_us, worst_net_us, idle_worst_us;
	_Atomic uint32_t acknowledged[CONTENTS];
	_Atomic unsigned lost;
};
static struct shared *shared;

static void raise_to(_Atomic int64_t *worst, int64_t us)
{
	int64_t seen = atomic_load(worst);

	while (us > seen && !atomic_compare_exchange_weak(worst, &seen, us))
		;
}

/* Microseconds this process was ready to run and had to wait for a processor. */
static int64_t waited_for_processor(int fd)
{
	char text[80];
	long long ran, waited = 0;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return sscanf(text, "%lld %lld", &ran, &waited) == 2 ? waited / 1000 : 0;
}

static void make_one(struct ledger *l, unsigned n)
{
	struct record_view v;
	struct write w;
	struct hold hold;
	char text[ANSWER_MAX];
	struct ledger_answer answer = {.status = 201, .blob = {text, 0}};
	uint32_t seen = atomic_load(&shared->acknowledged[n]), generation = 1;
	int rc;

	write_make(&w, n);
	ledger_find(l, &w.ids, clock_now(), &v);
	if (v.generation < seen)
		atomic_fetch_add(&shared->lost, 1);
	if (v.state != REC_NONE)
		generation = v.generation + (v.state == REC_DONE);
	w.rec.generation = generation;
	if (v.state == REC_RESERVED || v.state == REC_SENT || v.state == REC_UNKNOWN)
		rc = v.owner == OWNER_ALIVE ? LEDGER_LOST : ledger_take(l, &v, clock_now(), &hold);
	else
		rc = ledger_reserve(l, &w.rec, v.state == REC_NONE ? NULL : &v, clock_now(), &hold);
	if (rc != LEDGER_OK || ledger_gate(l, &hold, clock_now()) != LEDGER_OK)
		return;
	answer.blob.n = answer_make(text, n, generation);
	if (ledger_done(l, &hold, &answer, clock_now()) != LEDGER_OK)
		return;
	while (seen < generation &&
	       !atomic_compare_exchange_weak(&shared->acknowledged[n], &seen, generation))
		;
}

static void work(struct ledger *l)
{
	int fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
	uint64_t chance = (uint64_t)getpid() * 2654435761u;
	int64_t begin, took, waited;

	/* The first one finds a slot and its pages. */
	for (bool first = true; !atomic_load(&shared->stop); first = false) {
		chance = chance * UINT64_C(6364136223846793005) + 1442695040888963407u;
		waited = waited_for_processor(fd);
		begin = us_now();
		make_one(l, (unsigned)(chance >> 33) % CONTENTS);
		took = us_now() - begin;
		atomic_fetch_add(&shared->operations, 1);
		if (first || took < 1000)
			continue;
		waited = waited_for_processor(fd) - waited;
		raise_to(&shared->worst_us, took);
		raise_to(&shared->worst_net_us, took - waited);
	}
	_exit(0);
}

static void idle(void)
{
	int64_t begin;

	while (!atomic_load(&shared->stop)) {
		begin = us_now();
		sleep_us(1000);
		raise_to(&shared->idle_worst_us, us_now() - begin - 1000);
	}
	_exit(0);
}

static pid_t start(struct ledger *l)
{
	pid_t pid = fork();

	if (pid == 0)
		work(l);
	return pid;
}

static unsigned count_lost(struct ledger *l)
{
	unsigned lost = shared->lost;
	struct record_view v;
	struct write w;
	uint32_t known;

	for (unsigned n = 0; n < CONTENTS; n++) {
		write_make(&w, n);
		known = atomic_load(&shared->acknowledged[n]);
		ledger_find(l, &w.ids, clock_now(), &v);
		lost += v.generation < known || (v.generation == known && known &&
		                                 (v.state != REC_DONE || !answer_fits(l, &v, n)));
	}
	return lost + (ledger_verify(l, NULL, NULL) != 0);
}

int main(int argc, char **argv)
{
	pid_t pid[WORKERS_MOST], idler;
	int seconds = argc > 2 ? atoi(argv[2]) : 5, kills = argc > 3 ? atoi(argv[3]) : 300;
	int workers = argc > 4 ? atoi(argv[4]) : 4;
	struct ledger *l;
	unsigned lost;

	if (argc < 5 || workers < 1 || workers > WORKERS_MOST || kills < 1)
		return 2;
	shared = shared_memory(sizeof(*shared));
	l = open_ledger(argv[1], INT64_C(16) << 20);
	if (!l)
		return 2;
	/* Where that is allowed: others on this machine are not what is measured. */
	setpriority(PRIO_PROCESS, 0, -20);
	idler = fork();
	if (idler == 0)
		idle();
	for (int i = 0; i < workers; i++)
		pid[i] = start(l);
	for (int i = 0; i < kills; i++) {
		sleep_us(seconds * SECOND / kills);
		kill(pid[i % workers], SIGKILL);
		waitpid(pid[i % workers], NULL, 0);
		pid[i % workers] = start(l);
	}
	atomic_store(&shared->stop, true);
	waitpid(idler, NULL, 0);
	for (int i = 0; i < workers; i++)
		waitpid(pid[i], NULL, 0);
	lost = count_lost(l);
	ledger_close(l);
	printf("kill storm: %d workers, %d kills in %d s, %lld operations, %u acknowledged lost; "
	       "worst "
	       "stall of a survivor %.1f ms, %.1f ms of it not waiting for a processor; an idle "
	       "process %.1f ms\n",
	       workers, kills, seconds, (long long)shared->operations, lost,
	       (double)shared->worst_us / 1000, (double)shared->worst_net_us / 1000,
	       (double)shared->idle_worst_us / 1000);
	return lost ? 1 : 0;
}
