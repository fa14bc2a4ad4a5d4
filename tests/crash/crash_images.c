/* What a power loss can leave, opened under another boot.
 *
 * A ledger of durability `power` works on while a disk is imagined beside it: at every flush the
 * disk gets everything; between flushes, before and after each store to a bank or an extent, it may
 * get any of the pages or 512-byte sectors that have changed. Images are the disk with a further
 * random choice of them. Each is opened under a new boot id: what a program was told before must
 * be there, what nobody did must not, and the write can be completed.
 *
 * usage: crash_images FOLDER IMAGES [SEED] */
#include "crash/crash.h"

enum { WRITES = 24, PAGE = 4096, SECTOR = 512, CHANCE = 4 };

static char live_path[200], image_path[200];
static char *live_map, *image_map, *disk;
static struct ledger *ledger;
static struct write writes[WRITES];
static uint64_t random_state, images, wanted, flushes, doubts, evicted, generations, moves;
static bool busy;

/* What a program was told, and what is under way. States are bits. */
static struct {
	enum record_state told;
	unsigned possible;
	bool replaced; /* the next generation was begun: the answer may be gone */
	uint32_t generation;
} known[WRITES];

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static unsigned bit(enum record_state state)
{
	return 1u << (unsigned)state;
}

/* Some of what differs, in pieces of one size, goes from the mapping to `to`. */
static uint64_t write_back(char *to, size_t piece, unsigned percent)
{
	uint64_t count = 0;

	for (size_t at = 0; at < LEDGER_SIZE; at += piece) {
		if (memcmp(to + at, live_map + at, piece) == 0 || random_next() % 100 >= percent)
			continue;
		memcpy(to + at, live_map + at, piece);
		count++;
	}
	return count;
}

static void image_make(void)
{
	size_t piece = random_next() % 2 ? PAGE : SECTOR;

	memcpy(image_map, disk, LEDGER_SIZE);
	write_back(image_map, piece, (unsigned)(random_next() % 5) * 25);
}

/* --- what must hold in an image --- */

static void check_write(struct ledger *l, size_t i)
{
	static const uint8_t nothing[LEDGER_HASH];
	struct record_view v = find_write(l, &writes[i]);
	unsigned possible = bit(known[i].told) | known[i].possible;

	where_number = i;
	if (v.state == REC_UNKNOWN && known[i].told != REC_UNKNOWN)
		doubts++;
	if (!(possible & bit(v.state)))
		fail("image %llu: is %s, told was %s", (unsigned long long)images,
		     record_state_name(v.state), record_state_name(known[i].told));
	if (v.state != REC_NONE && memcmp(v.content, writes[i].content, LEDGER_HASH) != 0)
		return; /* by a key that was another's */
	/* Torn is never played; told is never lost; not yet told may come back without it. */
	if (v.state == REC_DONE && !answer_is(l, &writes[i], &v) && known[i].told == REC_DONE &&
	    !known[i].replaced)
		fail("image %llu: done without its answer", (unsigned long long)images);
	if (v.state != REC_NONE && v.generation < known[i].generation)
		fail("image %llu: an earlier generation", (unsigned long long)images);
	if (memcmp(v.fingerprint, v.key[0] ? writes[i].content : nothing, LEDGER_HASH) != 0 ||
	    (v.key[0] && strcmp(v.key, writes[i].rec.key) != 0))
		fail("image %llu: facts are shown in part", (unsigned long long)images);
	if (v.owner == OWNER_ALIVE || v.lease_fresh)
		fail("image %llu: owned by the past", (unsigned long long)images);
}

static int check_known(void *ctx, const struct record_view *v)
{
	(void)ctx;
	if (v->state == REC_UNKNOWN && v->key[0] == '\0')
		return 0; /* a damaged one knows less */
	for (size_t i = 0; i < WRITES; i++) {
		if (memcmp(v->content, writes[i].content, LEDGER_HASH) == 0)
			return 0;
	}
	fail("image %llu: a write nobody made", (unsigned long long)images);
}

static void check_image(void)
{
	int64_t began = boot_began_us;
	struct ledger *l;

	checking = true;
	waits = 0;
	boot_here = random_next() | 1;
	boot_began_us = machine_boot_us() - 30 * SECOND;
	l = open_ledger(image_path, false, true);
	for (size_t i = 0; i < WRITES; i++)
		check_write(l, i);
	ledger_each(l, clock_now(), check_known, NULL);
	where_number = random_next() % WRITES;
	complete(l, &writes[where_number]);
	ledger_close(l);
	boot_here = 0;
	boot_began_us = began;
	checking = false;
	images++;
}

/* A moment: the kernel may have written something, and the power may fail. */
static void moment(void)
{
	if (busy || !ledger)
		return;
	busy = true;
	if (random_next() % CHANCE == 0)
		evicted += write_back(disk, random_next() % 2 ? PAGE : SECTOR, 30);
	if (random_next() % CHANCE == 0 && images < wanted) {
		image_make();
		check_image();
	}
	busy = false;
}

/* --- where moments are: every store of many bytes, every lock dropped, every flush --- */

void __real_shared_in(void *to, const void *from, size_t n);
void __wrap_shared_in(void *to, const void *from, size_t n);
void __wrap_shared_in(void *to, const void *from, size_t n)
{
	moment();
	__real_shared_in(to, from, n);
	moment();
}

void __real_heap_give(struct ledger *l, uint32_t unit, uint64_t parent);
void __wrap_heap_give(struct ledger *l, uint32_t unit, uint64_t parent);
void __wrap_heap_give(struct ledger *l, uint32_t unit, uint64_t parent)
{
	moment();
	__real_heap_give(l, unit, parent);
}

int msync(void *at, size_t n, int flags)
{
	size_t from = ledger ? (size_t)((char *)at - ledger->base) : 0;

	(void)flags;
	if (busy || !ledger)
		return 0;
	moment();
	memcpy(disk + from, live_map + from, n);
	flushes++;
	moment();
	return 0;
}

/* --- the work --- */

static void begin(size_t i, unsigned possible)
{
	known[i].possible = possible;
}

static void told(size_t i, enum record_state state)
{
	known[i].told = state;
	known[i].possible = 0;
	moment();
}

static void expect(int rc, const char *what)
{
	if (rc != LEDGER_OK)
		fail("%s: %d", what, rc);
}

static void deliver(size_t i)
{
	struct record_view v = find_write(ledger, &writes[i]);

	/* Delivering changes no state, and loses none. */
	expect(ledger_delivered(ledger, v.id, v.generation, random_next() % 9, clock_now()),
	       "delivered");
	moment();
}

/* How a write ends: mostly well. */
static void finish(size_t i, struct hold *h)
{
	unsigned how = (unsigned)(random_next() % 8);

	if (how == 0) {
		begin(i, bit(REC_UNKNOWN));
		expect(ledger_unknown(ledger, h, true, NULL, clock_now()), "unknown");
		told(i, REC_UNKNOWN);
	} else if (how == 1) {
		begin(i, bit(REC_FREED) | bit(REC_UNKNOWN));
		expect(ledger_freed(ledger, h, FREED_ANSWER, NULL, clock_now()), "freed");
		told(i, REC_FREED);
	} else if (how > 2) {
		begin(i, bit(REC_DONE) | bit(REC_UNKNOWN));
		expect(ledger_done(ledger, h, &writes[i].reply, clock_now()), "done");
		told(i, REC_DONE);
		deliver(i);
	}
}

static bool is_over(enum record_state state)
{
	return state == REC_DONE || state == REC_FREED || state == REC_TOMBSTONE;
}

/* Time goes by, and a sweep finds what is over: a ttl long, or both. */
static void expire(int64_t us)
{
	for (size_t i = 0; i < WRITES; i++) {
		if (!is_over(known[i].told))
			continue;
		known[i].possible |= bit(REC_TOMBSTONE) | bit(REC_NONE) | bit(known[i].told);
		/* What lay in the heap may be another's by then, and a record that lacks it is a
		 * doubt. */
		known[i].possible |= bit(REC_UNKNOWN);
		known[i].replaced = true;
	}
	/* In that time the kernel has written everything. */
	memcpy(disk, live_map, LEDGER_SIZE);
	skew_us += us;
	sweep_some(ledger, UINT64_MAX, clock_now());
	moment();
	for (size_t i = 0; i < WRITES; i++) {
		struct record_view v = find_write(ledger, &writes[i]);
		if (is_over(known[i].told) && v.state == REC_NONE)
			known[i].generation = 0;
	}
}

static void work(size_t i);

/* The key of a write that is over comes with another content. */
static void move_key(size_t from, size_t to)
{
	struct record_view v = find_write(ledger, &writes[from]);

	if (from == to || !writes[from].ids.own_key ||
	    (v.state != REC_FREED && v.state != REC_TOMBSTONE) ||
	    find_write(ledger, &writes[to]).state != REC_NONE || known[to].told != REC_NONE)
		return;
	writes[to].rec.own_key = writes[to].ids.own_key = writes[from].ids.own_key;
	writes[from].rec.own_key = writes[from].ids.own_key = NULL;
	known[to].possible |= bit(REC_FREED) | bit(REC_TOMBSTONE) | bit(known[from].told);
	known[to].replaced = true;
	moves++;
	work(to);
}

static void work(size_t i)
{
	struct record_view v = find_write(ledger, &writes[i]);
	struct record_new rec = writes[i].rec;
	struct hold h;

	where_number = i;
	if (v.state == REC_NONE)
		known[i].generation = 0; /* never was, or swept meanwhile */
	if (v.state == REC_DONE && (v.run_count == 0 || random_next() % 4)) {
		deliver(i);
		return;
	}
	/* Before its gate a write may be anything but done: nothing was told yet. */
	begin(i, known[i].possible | bit(REC_NONE) | bit(REC_RESERVED) | bit(REC_UNKNOWN));
	known[i].replaced |= v.state == REC_DONE;
	if (v.state == REC_UNKNOWN || v.state == REC_SENT) {
		begin(i, bit(REC_UNKNOWN) | bit(REC_SENT));
		skew_us += 20 * SECOND;
		expect(ledger_take(ledger, &v, clock_now(), &h), "take");
	} else {
		rec.generation = v.state == REC_NONE ? 1 : v.generation;
		if (v.state == REC_DONE || v.state == REC_TOMBSTONE)
			rec.generation++;
		generations += rec.generation > 1;
		expect(ledger_reserve(ledger, &rec, v.state == REC_NONE ? NULL : &v, clock_now(),
		                      &h),
		       "reserve");
	}
	known[i].possible |= bit(REC_SENT);
	expect(ledger_gate(ledger, &h, clock_now()), "gate");
	known[i].told = REC_SENT;
	known[i].replaced = false;
	known[i].generation = find_write(ledger, &writes[i]).generation;
	begin(i, bit(REC_UNKNOWN)); /* which is what a sent one of another boot is */
	moment();
	finish(i, &h);
}

/* A fresh ledger, on a disk that has it. */
static void round_begin(void)
{
	if (ledger)
		ledger_close(ledger);
	ledger = NULL;
	unlink(live_path);
	ledger = open_ledger(live_path, true, true);
	live_map = ledger->base;
	memcpy(disk, live_map, LEDGER_SIZE);
	memset(known, 0, sizeof(known));
	for (unsigned i = 0; i < WRITES; i++) {
		write_make(&writes[i], i + 1, i % 6 == 5 ? ANSWER_MAX / 2 : 40 + i * 37);
		writes[i].rec.ttl_us = 86400 * SECOND;
		writes[i].rec.tombstone_us = 2 * 86400 * SECOND;
	}
}

static void set_up(const char *folder)
{
	int fd;

	snprintf(live_path, sizeof(live_path), "%s/live", folder);
	snprintf(image_path, sizeof(image_path), "%s/image", folder);
	unlink(image_path);
	ledger_close(open_ledger(image_path, true, true));
	fd = open(image_path, O_RDWR | O_CLOEXEC);
	image_map = mmap(NULL, LEDGER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	disk = malloc(LEDGER_SIZE);
	if (image_map == MAP_FAILED || !disk)
		fail("no memory");
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	wanted = strtoull(argv[2], NULL, 10);
	random_state = argc > 3 ? strtoull(argv[3], NULL, 10) : 88172645463325252;
	where = "write";
	set_up(argv[1]);
	while (images < wanted) {
		round_begin();
		for (int i = 0; i < 8 * WRITES && images < wanted; i++) {
			work(random_next() % WRITES);
			if (random_next() % 40 == 0)
				expire((random_next() % 2 ? 90000 : 200000) * SECOND);
			move_key(random_next() % WRITES, random_next() % WRITES);
		}
	}
	printf("%llu images, %llu flushes, %llu pieces written early, %llu doubts, "
	       "%llu generations, %llu keys moved\n",
	       (unsigned long long)images, (unsigned long long)flushes, (unsigned long long)evicted,
	       (unsigned long long)doubts, (unsigned long long)generations,
	       (unsigned long long)moves);
	return 0;
}
