/* One process of the ledger's bench: opens a store and does what it is told on its standard input.
 *
 * worker STORE MODE FOLDER: answers "ready", then for each line
 *   load FROM COUNT              -> "loaded"
 *   pair FROM MAX MILLISECONDS   -> when it began and ended (ns), operations, latencies (ns)
 *   find RECORDS MAX MILLISECONDS SEED -> the same, keys at random below RECORDS
 *   cold RECORDS MAX MILLISECONDS SEED -> the same, each after the caches were used otherwise
 *   warm RECORDS                 -> "warm": each record was looked up once
 * worker STORE MODE FOLDER NUMBER: opens, looks NUMBER up once, prints the nanoseconds of both.
 * The driver (run) starts many and compares. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store.h"

enum { SAMPLES = 4000, OTHER_BYTES = 12 << 20 };

static const struct store *const stores[] = {&store_sendonce, &store_lmdb,  &store_sqlite,
                                             &store_redis,    &store_floor, &store_flush};

static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static void key_make(uint64_t n, uint8_t *key)
{
	uint64_t word;

	for (uint64_t i = 0; i < KEY_BYTES / 8; i++) {
		word = mix(n * 4 + i);
		memcpy(key + i * 8, &word, 8);
	}
}

void item_make(uint64_t n, struct item *item)
{
	uint64_t word;

	key_make(n, item->key);
	for (uint64_t i = 0; i < ANSWER_BYTES / 8; i++) {
		word = n + i;
		memcpy(item->answer + i * 8, &word, 8);
	}
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "bench: %s failed\n", what);
	exit(2);
}

static bool found_right(const struct store *store, void *db, uint64_t n)
{
	struct item item;
	char answer[ANSWER_BYTES + 1] = {0};

	item_make(n, &item);
	return store->find(db, item.key, answer) && memcmp(answer, item.answer, ANSWER_BYTES) == 0;
}

struct block {
	int64_t start, end;
	uint64_t done, samples;
	int64_t took[SAMPLES];
};

static void block_print(const struct block *b)
{
	printf("%lld %lld %llu", (long long)b->start, (long long)b->end,
	       (unsigned long long)b->done);
	for (uint64_t i = 0; i < b->samples; i++)
		printf(" %lld", (long long)b->took[i]);
	printf("\n");
}

/* What a program does between two writes: what the processor had at hand is gone. */
static void do_otherwise(void)
{
	static volatile char other[OTHER_BYTES];

	for (size_t i = 0; i < sizeof(other); i += 64)
		other[i]++;
}

static bool pair_one(const struct store *store, void *db, uint64_t n)
{
	struct item item;

	item_make(n, &item);
	return store->pair(db, &item);
}

static bool find_one(const struct store *store, void *db, uint64_t n)
{
	uint8_t key[KEY_BYTES];
	char answer[ANSWER_BYTES + 1];

	key_make(n, key);
	return store->find(db, key, answer);
}

/* One operation a turn. Every (max / SAMPLES)th is timed and told: reading the clock costs a tenth
 * of a fast lookup, and is not the store's. `seed` 0: pairs. */
static void block_run(const struct store *store, void *db, uint64_t from, uint64_t max,
                      int64_t limit_ns, uint64_t seed, bool cold)
{
	static struct block b;
	uint64_t step = max / SAMPLES + 1;
	int64_t before = 0;

	b = (struct block){.start = now_ns()};
	b.end = b.start;
	while (b.done < max && b.end - b.start < limit_ns) {
		bool timed = b.done % step == 0 && b.samples < SAMPLES;
		uint64_t n = seed ? mix(seed + b.done) % from : from + b.done;
		if (cold)
			do_otherwise();
		if (timed)
			before = now_ns();
		if (!(seed ? find_one(store, db, n) : pair_one(store, db, n)))
			die(seed ? "find" : "pair");
		if (timed) {
			b.end = now_ns();
			b.took[b.samples++] = b.end - before;
		}
		b.done++;
	}
	b.end = now_ns();
	block_print(&b);
}

static void obey(const struct store *store, void *db, const char *line)
{
	unsigned long long a, b, seed;
	long long ms;

	if (sscanf(line, "load %llu %llu", &a, &b) == 2) {
		if (!store->load(db, a, b))
			die("load");
		printf("loaded\n");
	} else if (sscanf(line, "pair %llu %llu %lld", &a, &b, &ms) == 3) {
		block_run(store, db, a, b, ms * 1000000, 0, false);
	} else if (sscanf(line, "find %llu %llu %lld %llu", &a, &b, &ms, &seed) == 4) {
		block_run(store, db, a, b, ms * 1000000, seed, false);
	} else if (sscanf(line, "cold %llu %llu %lld %llu", &a, &b, &ms, &seed) == 4) {
		block_run(store, db, a, b, ms * 1000000, seed, true);
	} else if (sscanf(line, "warm %llu", &a) == 1) {
		for (uint64_t i = 0; i < a; i++)
			if (!found_right(store, db, i))
				die("a look at what was loaded");
		printf("warm\n");
	} else {
		die("the order");
	}
	fflush(stdout);
}

static int first_lookup(const struct store *store, char **argv)
{
	int64_t start;
	void *db;

	/* Any program has used its heap before. */
	db = malloc(1000);
	free(db);
	start = now_ns();
	db = store->open(argv[3], argv[2]);

	if (!db || !found_right(store, db, strtoull(argv[4], NULL, 10)))
		die("the first lookup");
	printf("%lld\n", (long long)(now_ns() - start));
	return 0;
}

int main(int argc, char **argv)
{
	const struct store *store = NULL;
	char line[256];
	void *db;

	for (size_t i = 0; argc >= 4 && i < sizeof(stores) / sizeof(*stores); i++)
		if (strcmp(stores[i]->name, argv[1]) == 0)
			store = stores[i];
	if (!store)
		die("usage: worker STORE MODE FOLDER [NUMBER]");
	if (argc > 4)
		return first_lookup(store, argv);
	db = store->open(argv[3], argv[2]);
	if (!db)
		die("open");
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		obey(store, db, line);
	return 0;
}
