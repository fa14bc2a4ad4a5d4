/* What the ledger's bench asks of every store: the same work, in the store's own best manner. */
#ifndef BENCH_LEDGER_STORE_H
#define BENCH_LEDGER_STORE_H

#include <stdbool.h>
#include <stdint.h>

enum { KEY_BYTES = 32, ANSWER_BYTES = 512 };

struct item {
	uint8_t key[KEY_BYTES];
	char answer[ANSWER_BYTES];
};

struct store {
	const char *name;
	/* Of the folder, made when it is missing; null when it cannot be. `mode`: how durable. */
	void *(*open)(const char *folder, const char *mode);
	/* Many records with their answers, in any manner: not timed. */
	bool (*load)(void *db, uint64_t from, uint64_t count);
	/* Reserve a key nobody has, then commit its answer: two steps another process may see. */
	bool (*pair)(void *db, const struct item *item);
	/* The answer of a key, copied out; there is room for one byte more. */
	bool (*find)(void *db, const uint8_t *key, char *answer);
};

extern const struct store store_sendonce, store_lmdb, store_sqlite, store_redis, store_floor,
        store_flush;

/* Number n of the records: the same key and answer in every process. */
void item_make(uint64_t n, struct item *item);

#endif
