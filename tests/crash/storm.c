/* A kill storm: how long does who survives stand still?
 *
 *     storm FOLDER SECONDS KILLS WORKERS
 *
 * Workers make writes as fast as they can: reserve, gate, done, each of few enough contents that
 * they meet. One after the other is killed and followed by a new one. As many others do the same at
 * a ledger of their own and are left alone; the two groups take turns of some milliseconds, so that
 * whatever else the machine does meets both. What the one stands still for longer than the other is
 * the kills'.
 *
 * Each times every operation; of one that takes long it also asks the kernel how long it was ready
 * to run and did not get a processor, which is the machine's stall and not the ledger's. (That of a
 * holder of a lock it waits for is not in it: for this there is the other group.) Who is killed
 * asleep in an operation counts with what he stood still for until then. Beside them an idle
 * process sleeps for a millisecond at a time, and tells by how much it overslept.
 *
 * Prints what the worst operation of each group took, with and without that, and whether what was
 * acknowledged is there. */
#include "crash/crowd.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { CONTENTS = 256, WORKERS_MOST = 32 };

/* What a worker is at: since when, and how long it had waited for a processor before. 0: nothing.
 */
struct at_work {
	_Atomic int64_t began, waited;
};

struct group {
	_Atomic int64_t operations, worst_us, worst_net_us;
	_Atomic uint32_t acknowledged[CONTENTS];
	_Atomic unsigned lost;
	struct at_work at_work[WORKERS_MOST];
};
enum { STORM, CONTROL, GROUPS };

struct shared {
	_Atomic bool stop;
	_Atomic int turn; /* whose */
	_Atomic int64_t idle_worst_us;
	struct group group[GROUPS];
};
static struct shared *shared;
static struct ledger *ledgers[GROUPS];

static void raise_to(_Atomic int64_t *worst, int64_t us)
{
	int64_t seen = atomic_load(worst);

	while (us > seen && !atomic_compare_exchange_weak(worst, &seen, us))
		;
}

/* Microseconds a process was ready to run and had to wait for a processor. */
static int64_t waited_for_processor(int fd)
{
	char text[80];
	long long ran, waited = 0;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return sscanf(text, "%lld %lld", &ran, &waited) == 2 ? waited / 1000 : 0;
}

static int open_schedstat(int pid)
{
	char name[40];

	snprintf(name, sizeof(name), "/proc/%d/schedstat", pid);
	return open(name, O_RDONLY | O_CLOEXEC);
}

/* An operation of this process takes, or took, so long. */
static void note_stall(struct group *g, int fd, int64_t took, int64_t waited_before)
{
	if (took < 1000)
		return;
	raise_to(&g->worst_us, took);
	raise_to(&g->worst_net_us, took - (waited_for_processor(fd) - waited_before));
}

static void make_one(struct ledger *l, struct group *g, unsigned n)
{
	struct record_view v;
	struct write w;
	struct hold hold;
	char text[ANSWER_MAX];
	struct ledger_answer answer = {.status = 201, .blob = {text, 0}};
	uint32_t seen = atomic_load(&g->acknowledged[n]), generation = 1;
	int rc;

	write_make(&w, n);
	ledger_find(l, &w.ids, clock_now(), &v);
	if (v.generation < seen)
		atomic_fetch_add(&g->lost, 1);
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
	       !atomic_compare_exchange_weak(&g->acknowledged[n], &seen, generation))
		;
}

static void work(int which, int number)
{
	struct group *g = &shared->group[which];
	struct at_work *at = &g->at_work[number];
	int fd = open_schedstat(getpid());
	uint64_t chance = (uint64_t)getpid() * 2654435761u;
	int64_t begin, waited;

	/* The first one finds a slot and its pages. */
	for (bool first = true; !atomic_load(&shared->stop); first = false) {
		chance = chance * UINT64_C(6364136223846793005) + 1442695040888963407u;
		while (atomic_load(&shared->turn) != which && !atomic_load(&shared->stop))
			sleep_us(300);
		waited = waited_for_processor(fd);
		begin = us_now();
		atomic_store(&at->waited, waited);
		atomic_store(&at->began, first ? 0 : begin);
		make_one(ledgers[which], g, (unsigned)(chance >> 33) % CONTENTS);
		atomic_store(&at->began, 0);
		atomic_fetch_add(&g->operations, 1);
		if (!first)
			note_stall(g, fd, us_now() - begin, waited);
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

static pid_t start(int which, int number)
{
	pid_t pid = fork();

	if (pid == 0)
		work(which, number);
	return pid;
}

static unsigned count_lost(int which)
{
	struct group *g = &shared->group[which];
	struct ledger *l = ledgers[which];
	unsigned lost = g->lost;
	struct record_view v;
	struct write w;
	uint32_t known;

	for (unsigned n = 0; n < CONTENTS; n++) {
		write_make(&w, n);
		known = atomic_load(&g->acknowledged[n]);
		ledger_find(l, &w.ids, clock_now(), &v);
		lost += v.generation < known || (v.generation == known && known &&
		                                 (v.state != REC_DONE || !answer_fits(l, &v, n)));
	}
	return lost + (ledger_verify(l, NULL, NULL) != 0);
}

static bool open_both(const char *folder)
{
	char own[300];

	snprintf(own, sizeof(own), "%s/control", folder);
	ledgers[STORM] = open_ledger(folder, INT64_C(16) << 20);
	if (mkdir(own, 0700) == 0)
		ledgers[CONTROL] = open_ledger(own, INT64_C(16) << 20);
	return ledgers[STORM] && ledgers[CONTROL];
}

/* What the kernel says of a process that is ready to run does not have the time since then. */
static bool sleeps(int pid)
{
	char name[40], text[200] = "";
	const char *at;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	f = fopen(name, "r");
	if (!f)
		return false;
	at = fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
	fclose(f);
	return at && at[2] == 'S';
}

static void kill_one(pid_t *victim, int number)
{
	struct group *g = &shared->group[STORM];
	struct at_work *at = &g->at_work[number];
	int64_t began = atomic_load(&at->began);
	int fd = open_schedstat(*victim);

	if (began && sleeps(*victim))
		note_stall(g, fd, us_now() - began, atomic_load(&at->waited));
	close(fd);
	kill(*victim, SIGKILL);
	waitpid(*victim, NULL, 0);
	atomic_store(&at->began, 0);
	*victim = start(STORM, number);
}

/* A turn of the storm, with one kill in the middle of it, and one of the others. */
static void turn_with_kill(pid_t *victim, int number, int64_t turn_us)
{
	atomic_store(&shared->turn, STORM);
	sleep_us(turn_us / 2);
	kill_one(victim, number);
	sleep_us(turn_us / 2);
	atomic_store(&shared->turn, CONTROL);
	sleep_us(turn_us);
}

static void say(int workers, int kills, int seconds, unsigned lost)
{
	const struct group *storm = &shared->group[STORM], *control = &shared->group[CONTROL];

	printf("kill storm: %d workers, %d kills in %d s, %lld operations, %u acknowledged lost; "
	       "worst stall of a survivor %.1f ms, %.1f ms of it not waiting for a processor; "
	       "without kills, %lld operations, %.1f ms, and %.1f ms; an idle process %.1f ms\n",
	       workers, kills, seconds, (long long)storm->operations, lost,
	       (double)storm->worst_us / 1000, (double)storm->worst_net_us / 1000,
	       (long long)control->operations, (double)control->worst_us / 1000,
	       (double)control->worst_net_us / 1000, (double)shared->idle_worst_us / 1000);
}

int main(int argc, char **argv)
{
	pid_t pid[GROUPS][WORKERS_MOST], idler;
	int seconds = argc > 2 ? atoi(argv[2]) : 5, kills = argc > 3 ? atoi(argv[3]) : 300;
	int workers = argc > 4 ? atoi(argv[4]) : 4;
	unsigned lost;

	if (argc < 5 || workers < 1 || workers > WORKERS_MOST || kills < 1)
		return 2;
	shared = shared_memory(sizeof(*shared));
	if (!open_both(argv[1]))
		return 2;
	/* Where that is allowed: others on this machine are not what is measured. */
	setpriority(PRIO_PROCESS, 0, -20);
	idler = fork();
	if (idler == 0)
		idle();
	for (int i = 0; i < workers; i++) {
		pid[STORM][i] = start(STORM, i);
		pid[CONTROL][i] = start(CONTROL, i);
	}
	for (int i = 0; i < kills; i++)
		turn_with_kill(&pid[STORM][i % workers], i % workers, seconds * SECOND / kills);
	atomic_store(&shared->stop, true);
	waitpid(idler, NULL, 0);
	for (int i = 0; i < workers; i++) {
		waitpid(pid[STORM][i], NULL, 0);
		waitpid(pid[CONTROL][i], NULL, 0);
	}
	lost = count_lost(STORM) + count_lost(CONTROL);
	ledger_close(ledgers[STORM]);
	ledger_close(ledgers[CONTROL]);
	say(workers, kills, seconds, lost);
	return lost ? 1 : 0;
}
