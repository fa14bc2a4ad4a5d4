/* What no store can be faster than: a mapped file, one compare-and-swap a record, and nothing that
 * would find out what a dead process left half done. And the price of one flush of one page. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store.h"

enum { INDEX_BITS = 21, CAPACITY = 1200000, RESERVED = 1, DONE = 2 };

struct floor_record {
	_Atomic uint64_t state;
	struct item item;
};

struct floor_file {
	_Atomic uint64_t next;
	uint64_t pad[511];
	_Atomic uint64_t index[1 << INDEX_BITS]; /* number + 1 in 32 bits, half of the key's word */
	struct floor_record records[CAPACITY];
};

static void *map_file(const char *folder, size_t size)
{
	char path[512];
	void *base;
	int fd;

	snprintf(path, sizeof(path), "%s/floor", folder);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || posix_fallocate(fd, 0, (off_t)size) != 0)
		return NULL;
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return base == MAP_FAILED ? NULL : base;
}

static void *floor_open(const char *folder, const char *mode)
{
	(void)mode;
	return map_file(folder, sizeof(struct floor_file));
}

static uint64_t first_word(const uint8_t *key)
{
	uint64_t word;

	memcpy(&word, key, 8);
	return word;
}

static struct floor_record *lookup(struct floor_file *f, const uint8_t *key)
{
	uint64_t hash = first_word(key), entry;
	struct floor_record *rec;

	for (uint64_t i = 0;; i++) {
		entry = atomic_load_explicit(&f->index[(hash + i) & ((1 << INDEX_BITS) - 1)],
		                             memory_order_acquire);
		if (entry == 0)
			return NULL;
		if (entry >> 32 != hash >> 32)
			continue;
		rec = &f->records[(entry & UINT32_MAX) - 1];
		if (memcmp(rec->item.key, key, KEY_BYTES) == 0)
			return rec;
	}
}

/* False: somebody has the key. */
static bool reserve(struct floor_file *f, const uint8_t *key, uint64_t number)
{
	uint64_t hash = first_word(key), expected;

	for (uint64_t i = 0;; i++) {
		expected = 0;
		if (atomic_compare_exchange_strong(&f->index[(hash + i) & ((1 << INDEX_BITS) - 1)],
		                                   &expected, hash >> 32 << 32 | (number + 1)))
			return true;
		if (expected >> 32 == hash >> 32 &&
		    memcmp(f->records[(expected & UINT32_MAX) - 1].item.key, key, KEY_BYTES) == 0)
			return false;
	}
}

static bool floor_pair(void *db, const struct item *item)
{
	struct floor_file *f = db;
	uint64_t number = atomic_fetch_add(&f->next, 1);
	struct floor_record *rec = &f->records[number];

	if (number >= CAPACITY)
		return false;
	memcpy(rec->item.key, item->key, KEY_BYTES);
	atomic_store_explicit(&rec->state, RESERVED, memory_order_relaxed);
	if (!reserve(f, item->key, number))
		return false;
	memcpy(rec->item.answer, item->answer, ANSWER_BYTES);
	atomic_store_explicit(&rec->state, DONE, memory_order_release);
	return true;
}

static bool floor_load(void *db, uint64_t from, uint64_t count)
{
	struct item item;
	bool fine = true;

	for (uint64_t i = 0; fine && i < count; i++) {
		item_make(from + i, &item);
		fine = floor_pair(db, &item);
	}
	return fine;
}

static bool floor_find(void *db, const uint8_t *key, char *answer)
{
	struct floor_record *rec = lookup(db, key);

	if (!rec || atomic_load_explicit(&rec->state, memory_order_acquire) != DONE)
		return false;
	memcpy(answer, rec->item.answer, ANSWER_BYTES);
	return true;
}

const struct store store_floor = {"floor", floor_open, floor_load, floor_pair, floor_find};

/* --- one flush --- */

enum { FLUSH_PAGES = 4096 };

static void *flush_open(const char *folder, const char *mode)
{
	(void)mode;
	return map_file(folder, FLUSH_PAGES * 4096);
}

static bool flush_load(void *db, uint64_t from, uint64_t count)
{
	(void)from, (void)count;
	memset(db, 1, FLUSH_PAGES * 4096);
	return msync(db, FLUSH_PAGES * 4096, MS_SYNC) == 0;
}

static bool flush_pair(void *db, const struct item *item)
{
	char *page = (char *)db + first_word(item->key) % FLUSH_PAGES * 4096;

	memcpy(page, item, sizeof(*item));
	return msync(page, 4096, MS_SYNC) == 0;
}

const struct store store_flush = {"flush", flush_open, flush_load, flush_pair, NULL};
