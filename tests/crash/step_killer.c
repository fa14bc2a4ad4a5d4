/* Kills a process after every single instruction of what it does to a ledger, and looks.
 *
 * A child is single-stepped through one transition. After each instruction the file is copied: that
 * is what a kill -9 at this place leaves, as the page cache keeps all stores. The copy is opened
 * with the child dead, checked, completed and swept until it is empty. While the child stands
 * still but lives, its ledger is looked at too, and its record must not be taken from it. Real
 * kills, and stalls of 20 s after which it goes on although somebody else went on without it,
 * need a child each: `every` says at which instructions.
 *
 * usage: step_killer FOLDER EVERY [PHASE...] */
#include "crash/crash.h"

#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { MAIN = 1, NEIGHBOUR = 2, THIRD = 3, OTHERS = 8, PLACES = 40, RUN = 5, TAKE_EVERY = 16 };

struct told {
	_Atomic int ready, returned, rc;
	struct hold hold;
};

static struct told *told;
static struct write w, neighbour;
static char live_path[200], image_path[200];
static char *live_map, *image_map, *blank, *crowd;
/* Instructions between two changes of a lock, a life or a state word. Just before and after one it
 * is worst to stand still. How many there are before the first depends on the process id. */
static struct {
	uint64_t gap[64], at, seen;
	size_t count;
} turns;
static struct {
	uint64_t steps, images, kills, stalls;
} figures;

/* --- what is done before, and what is stepped through --- */

static void reserve_write(struct ledger *l)
{
	struct record_new rec = w.rec;
	struct record_view v = find_write(l, &w);

	rec.generation = v.state == REC_DONE ? v.generation + 1 : 1;
	told->rc =
	        ledger_reserve(l, &rec, v.state == REC_NONE ? NULL : &v, clock_now(), &told->hold);
}

static void gate_write(struct ledger *l)
{
	told->rc = ledger_gate(l, &told->hold, clock_now());
}

static void end_done(struct ledger *l)
{
	told->rc = ledger_done(l, &told->hold, &w.reply, clock_now());
}

static void end_unknown(struct ledger *l)
{
	told->rc = ledger_unknown(l, &told->hold, true, NULL, clock_now());
}

static void end_freed(struct ledger *l)
{
	told->rc = ledger_freed(l, &told->hold, FREED_ANSWER, NULL, clock_now());
}

static void withdraw(struct ledger *l)
{
	told->rc = ledger_withdraw(l, &told->hold, clock_now());
}

static void take_write(struct ledger *l)
{
	struct record_view v = find_write(l, &w);

	told->rc = ledger_take(l, &v, clock_now(), &told->hold);
}

static void deliver(struct ledger *l)
{
	struct record_view v = find_write(l, &w);

	told->rc = ledger_delivered(l, v.id, v.generation, RUN, clock_now());
}

static void bind_other_key(struct ledger *l)
{
	struct record_view v = find_write(l, &w);
	uint8_t key[LEDGER_HASH];

	fill_hash(key, 4, 99);
	told->rc = ledger_bind_key(l, v.id, key);
}

static void sweep_all(struct ledger *l)
{
	sweep_some(l, (unsigned)l->header->next_record, clock_now());
	told->rc = LEDGER_OK;
}

static void sent_before(struct ledger *l)
{
	reserve_write(l);
	gate_write(l);
}

static void unknown_before(struct ledger *l)
{
	sent_before(l);
	end_unknown(l);
}

static void done_before(struct ledger *l)
{
	sent_before(l);
	end_done(l);
}

static void freed_before(struct ledger *l)
{
	reserve_write(l);
	withdraw(l);
}

static void tombstone_before(struct ledger *l)
{
	done_before(l);
	skew_us = w.rec.ttl_us + SECOND;
	sweep_all(l);
}

struct phase {
	const char *name;
	void (*earlier)(struct ledger *); /* by a process that is dead */
	void (*before)(struct ledger *);  /* by the one that is going to be */
	void (*act)(struct ledger *);
	enum record_state from, to;
	int64_t skew_us;
	bool stall; /* at each turn */
};

static const struct phase phases[] = {
        {"reserve", NULL, NULL, reserve_write, REC_NONE, REC_RESERVED, 0, true},
        {"crowded", NULL, NULL, reserve_write, REC_NONE, REC_RESERVED, 0, true},
        {"again", freed_before, NULL, reserve_write, REC_FREED, REC_RESERVED, 0, false},
        {"next", done_before, NULL, reserve_write, REC_DONE, REC_RESERVED, 0, false},
        {"sent", NULL, reserve_write, gate_write, REC_RESERVED, REC_SENT, 0, true},
        {"done", NULL, sent_before, end_done, REC_SENT, REC_DONE, 0, true},
        {"unknown", NULL, sent_before, end_unknown, REC_SENT, REC_UNKNOWN, 0, false},
        {"freed", NULL, sent_before, end_freed, REC_SENT, REC_FREED, 0, false},
        {"withdraw", NULL, reserve_write, withdraw, REC_RESERVED, REC_FREED, 0, false},
        {"deliver", done_before, NULL, deliver, REC_DONE, REC_DONE, 0, false},
        {"bind", done_before, NULL, bind_other_key, REC_DONE, REC_DONE, 0, false},
        {"resend", unknown_before, NULL, take_write, REC_UNKNOWN, REC_UNKNOWN, 0, false},
        {"takeover", reserve_write, NULL, take_write, REC_RESERVED, REC_RESERVED, 0, true},
        {"doubt", sent_before, NULL, take_write, REC_SENT, REC_UNKNOWN, 0, true},
        {"expire", done_before, NULL, sweep_all, REC_DONE, REC_TOMBSTONE, 101 * SECOND, false},
        {"empty", tombstone_before, NULL, sweep_all, REC_TOMBSTONE, REC_NONE, 400 * SECOND, false},
        {"orphan", reserve_write, NULL, sweep_all, REC_RESERVED, REC_FREED, 0, false}};

/* --- the child --- */

static void step(pid_t child)
{
	int status;

	if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0 ||
	    waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
		fail("the child cannot be stepped");
	figures.steps++;
}

static void run_earlier(const struct phase *p)
{
	struct ledger *l;
	int status;
	pid_t child = fork();

	if (child == 0) {
		l = open_ledger(live_path, false, false);
		if (p->earlier)
			p->earlier(l);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		fail("could not be prepared");
}

static void child_run(const struct phase *p)
{
	struct ledger *l = open_ledger(live_path, false, false);

	/* Its slot too is claimed under the eyes of the killer, unless it was needed before. */
	if (p->before)
		p->before(l);
	skew_us = p->skew_us;
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	told->ready = 1;
	p->act(l);
	told->returned = 1;
	raise(SIGSTOP);
	_exit(0);
}

static void make_done(struct ledger *l, struct write *other)
{
	struct hold h;

	other->rec.ttl_us = other->rec.tombstone_us = INT64_C(86400) * SECOND;
	if (ledger_reserve(l, &other->rec, NULL, clock_now(), &h) != LEDGER_OK ||
	    ledger_gate(l, &h, clock_now()) != LEDGER_OK ||
	    ledger_done(l, &h, &other->reply, clock_now()) != LEDGER_OK)
		fail("no neighbour");
}

/* So many that the sweep of one reserve does not come round to the record that is watched. */
static void make_others(void)
{
	struct ledger *l = open_ledger(live_path, false, false);
	struct write other;

	for (unsigned i = 0; i < OTHERS; i++) {
		write_make(&other, 10 + i, 30);
		make_done(l, &other);
	}
	ledger_close(l);
}

/* A fresh ledger with a neighbour that nothing may touch, and a child stopped before its act. */
static pid_t child_start(const struct phase *p)
{
	struct ledger *l;
	int status;
	pid_t child;

	where = p->name;
	memcpy(live_map, strcmp(p->name, "crowded") == 0 ? crowd : blank, LEDGER_SIZE);
	memset(told, 0, sizeof(*told));
	l = open_ledger(live_path, false, false);
	make_done(l, &neighbour);
	ledger_close(l);
	run_earlier(p);
	child = fork();
	if (child == 0)
		child_run(p);
	if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
		fail("the child does not stop");
	return child;
}

static void child_end(pid_t child)
{
	int status;

	syscall(SYS_kill, child, SIGKILL);
	if (waitpid(child, &status, 0) != child)
		fail("the child does not end");
}

/* --- what must hold --- */

static void check_state(struct ledger *l, const struct phase *p, const struct record_view *v)
{
	bool fits = v->state == p->to || (!told->returned && v->state == p->from);

	if (!fits)
		fail("is %s", record_state_name(v->state));
	if (v->state == REC_DONE && !answer_is(l, &w, v))
		fail("done without its answer");
	if ((v->state == REC_RESERVED || v->state == REC_SENT) && v->in_doubt)
		fail("in doubt for no reason");
	if (v->state == REC_SENT && (!v->ever_sent || v->first_sent.wall_us == 0))
		fail("sent is forgotten");
	if (v->state != REC_NONE && v->state != REC_TOMBSTONE && strcmp(v->key, w.rec.key) != 0)
		fail("its key is lost");
}

static void check_neighbour(struct ledger *l)
{
	struct record_view v = find_write(l, &neighbour);

	if (v.state != REC_DONE || !answer_is(l, &neighbour, &v))
		fail("the neighbour was touched");
}

/* Remembered as a tombstone for as long as its rule says, then gone without a trace. */
static void check_expiry(struct ledger *l)
{
	int64_t start = skew_us;
	struct record_view v;

	skew_us = start + w.rec.ttl_us + SECOND;
	sweep_all(l);
	if (find_write(l, &w).state != REC_TOMBSTONE)
		fail("does not expire: %s", record_state_name(find_write(l, &w).state));
	skew_us += w.rec.tombstone_us - SECOND;
	sweep_all(l);
	if (find_write(l, &w).state != REC_TOMBSTONE)
		fail("a tombstone is dropped early");
	skew_us += 2 * SECOND;
	sweep_all(l);
	v = find_write(l, &w);
	if (v.state != REC_NONE)
		fail("a tombstone stays: %s", record_state_name(v.state));
	for (uint64_t i = 0; i < l->header->next_record; i++) {
		struct layout_record *rec = record_at(l, i);
		if (atomic_load(&rec->linked) && word_read(atomic_load(&rec->word)).state == 0)
			fail("a place is never free again");
	}
	skew_us = start;
}

static void check_damage(void *ctx, uint64_t offset, const char *what)
{
	(void)ctx;
	fail("damage at %llu: %s", (unsigned long long)offset, what);
}

static void check_dead(const struct phase *p, const char *path, pid_t child)
{
	struct ledger *l;
	struct record_view v;
	struct hold late = told->hold;

	checking = true;
	waits = 0;
	dead_pid = child;
	skew_us = p->skew_us;
	l = open_ledger(path, false, false);
	v = find_write(l, &w);
	check_state(l, p, &v);
	if (v.owner != OWNER_NONE && v.owner != OWNER_DEAD)
		fail("the dead one is still its owner");
	check_neighbour(l);
	complete(l, &w);
	v = find_write(l, &w);
	if (!answer_is(l, &w, &v))
		fail("completed, but its answer is not there");
	if (late.id && ledger_gate(l, &late, clock_now()) == LEDGER_OK)
		fail("executed again after it was done");
	check_neighbour(l);
	ledger_verify(l, check_damage, NULL);
	check_expiry(l);
	ledger_close(l);
	skew_us = 0;
	dead_pid = 0;
	checking = false;
}

/* The child stands still, but lives: what it owns it keeps. */
static void check_alive(const struct phase *p, struct ledger *l, uint64_t n)
{
	struct record_view v;
	struct layout_record *rec;
	struct hold h;

	skew_us = p->skew_us;
	v = find_write(l, &w);
	check_state(l, p, &v);
	rec = v.id ? record_of(l, v.id, NULL) : NULL;
	if (rec && v.owner == OWNER_ALIVE && !v.lease_fresh)
		fail("owned without a lease");
	if (rec && v.owner == OWNER_ALIVE && n % TAKE_EVERY == 0 && atomic_load(&rec->lock) == 0 &&
	    ledger_take(l, &v, clock_now(), &h) == LEDGER_OK)
		fail("two live owners");
	skew_us = 0;
}

/* --- the three ways --- */

/* True when this instruction changed one. */
static bool is_turn(struct ledger *l)
{
	uint64_t locks = atomic_load(&l->header->table_lock), seen = turns.seen;

	for (uint64_t i = 0; i < PLACES; i++)
		locks = locks * 31 + atomic_load(&record_at(l, i)->lock) * 7 +
		        atomic_load(&record_at(l, i)->life) * 3 +
		        atomic_load(&record_at(l, i)->linked) * 5 +
		        atomic_load(&record_at(l, i)->word);
	turns.seen = locks;
	return locks != seen;
}

static void note_turn(struct ledger *l, uint64_t n)
{
	if (!is_turn(l) || turns.count == 64)
		return;
	turns.gap[turns.count++] = n - turns.at;
	turns.at = n;
}

static uint64_t step_through(const struct phase *p)
{
	pid_t child = child_start(p);
	struct ledger *l = open_ledger(live_path, false, false);
	uint64_t n = 0;

	turns.count = 0;
	turns.at = 0;
	is_turn(l);
	while (!told->ready)
		step(child);
	for (; !told->returned; n++) {
		where_number = n;
		memcpy(image_map, live_map, LEDGER_SIZE);
		check_dead(p, image_path, child);
		note_turn(l, n);
		check_alive(p, l, n);
		figures.images++;
		step(child);
	}
	memcpy(image_map, live_map, LEDGER_SIZE);
	check_dead(p, image_path, child);
	if (told->rc != LEDGER_OK)
		fail("refused: %d", told->rc);
	ledger_close(l);
	child_end(child);
	return n;
}

static pid_t step_to(const struct phase *p, uint64_t n)
{
	pid_t child = child_start(p);

	where_number = n;
	while (!told->ready)
		step(child);
	for (uint64_t i = 0; i < n && !told->returned; i++)
		step(child);
	return child;
}

static void kill_at(const struct phase *p, uint64_t n)
{
	pid_t child = step_to(p, n);

	child_end(child);
	check_dead(p, live_path, 0);
	figures.kills++;
}

/* It stood still for 20 s, lost its lock and its lease, and goes on: not both may execute. */
static void stall(const struct phase *p, pid_t child)
{
	struct ledger *l = open_ledger(live_path, false, false);
	struct record_view v;
	struct write third;
	struct hold h;
	int rc, status;

	checking = true;
	waits = 0;
	skew_us = p->skew_us + 20 * SECOND;
	v = find_write(l, &w);
	rc = v.state == REC_NONE ? ledger_reserve(l, &w.rec, NULL, clock_now(), &h)
	                         : ledger_take(l, &v, clock_now(), &h);
	if (rc == LEDGER_OK)
		rc = ledger_gate(l, &h, clock_now());
	write_make(&third, THIRD, 900);
	make_done(l, &third);
	ptrace(PTRACE_CONT, child, NULL, NULL);
	if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status) || !told->returned)
		fail("the child does not go on: status %x, returned %d", (unsigned)status,
		     told->returned);
	/* From reserved the other one may go on at once; from sent it knows of a doubt. */
	if (rc == LEDGER_OK && (v.state == REC_NONE || v.state == REC_RESERVED) &&
	    (ledger_gate(l, &told->hold, clock_now()) == LEDGER_OK ||
	     (told->rc == LEDGER_OK && p->to == REC_SENT && v.state == p->from)))
		fail("two execute after a stall");
	v = find_write(l, &third);
	if (v.state != REC_DONE || !answer_is(l, &third, &v))
		fail("it went on in a place that is another's");
	skew_us = 0;
	checking = false;
	ledger_close(l);
	child_end(child);
	figures.stalls++;
}

/* Just before or just after turn number k. */
static void stall_turn(const struct phase *p, size_t k, bool after)
{
	pid_t child = step_to(p, 0);
	struct ledger *l = open_ledger(live_path, false, false);
	uint64_t left = k ? turns.gap[k] - 1 : 1;

	where_number = k;
	is_turn(l);
	for (size_t i = 0; i < k + (after ? 1 : 0) && !told->returned;) {
		step(child);
		i += is_turn(l) ? 1 : 0;
	}
	for (; !after && left > 0 && !told->returned; left--)
		step(child);
	ledger_close(l);
	stall(p, child);
}

static bool wanted(const char *name, int argc, char **argv)
{
	for (int i = 3; i < argc; i++) {
		if (strcmp(argv[i], name) == 0)
			return true;
	}
	return argc <= 3;
}

static char *map_new(const char *path)
{
	char *map;
	int fd;

	unlink(path);
	ledger_close(open_ledger(path, true, false));
	fd = open(path, O_RDWR | O_CLOEXEC);
	map = mmap(NULL, LEDGER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		fail("no map");
	close(fd);
	return map;
}

static void set_up(const char *folder)
{
	struct stat st;

	snprintf(live_path, sizeof(live_path), "%s/live", folder);
	snprintf(image_path, sizeof(image_path), "%s/image", folder);
	if (stat(folder, &st) != 0)
		fail("no folder %s", folder);
	live_map = map_new(live_path);
	image_map = map_new(image_path);
	blank = malloc(LEDGER_SIZE);
	memcpy(blank, live_map, LEDGER_SIZE);
	make_others();
	crowd = malloc(LEDGER_SIZE);
	memcpy(crowd, live_map, LEDGER_SIZE);
	told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	write_make(&w, MAIN, 300);
	write_make(&neighbour, NEIGHBOUR, 700);
}

int main(int argc, char **argv)
{
	uint64_t every = argc > 2 ? strtoull(argv[2], NULL, 10) : 0, n;

	if (every == 0)
		return 2;
	set_up(argv[1]);
	for (size_t i = 0; i < sizeof(phases) / sizeof(*phases); i++) {
		if (!wanted(phases[i].name, argc, argv))
			continue;
		n = step_through(&phases[i]);
		printf("%s: %llu instructions\n", phases[i].name, (unsigned long long)n);
		fflush(stdout);
		for (uint64_t at = 0; at <= n; at += every) {
			kill_at(&phases[i], at);
			stall(&phases[i], step_to(&phases[i], at));
		}
		for (size_t k = 0; phases[i].stall && k < turns.count; k++) {
			stall_turn(&phases[i], k, false);
			stall_turn(&phases[i], k, true);
		}
	}
	printf("%llu steps, %llu images, %llu kills, %llu stalls\n",
	       (unsigned long long)figures.steps, (unsigned long long)figures.images,
	       (unsigned long long)figures.kills, (unsigned long long)figures.stalls);
	return 0;
}
