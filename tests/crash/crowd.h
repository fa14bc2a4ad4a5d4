/* What the tests with many processes share: writes to make, and a ledger to make them at. Only the
 * ledger's public functions, on the machine's own clock. */
#ifndef SENDONCE_TESTS_CROWD_H
#define SENDONCE_TESTS_CROWD_H

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ledger/ledger.h"

#define SECOND INT64_C(1000000)
enum { ANSWER_MAX = 3000 };

struct write {
	uint8_t content[LEDGER_HASH], any[LEDGER_HASH], place[LEDGER_HASH];
	struct ledger_ids ids;
	struct record_new rec;
	unsigned n;
};

static inline void write_make(struct write *w, unsigned n)
{
	memset(w->content, 1, LEDGER_HASH);
	memset(w->any, 2, LEDGER_HASH);
	memset(w->place, 3, LEDGER_HASH);
	memcpy(w->content, &n, sizeof(n));
	memcpy(w->any, &n, sizeof(n));
	/* Unlike hashes, these would all share the first bits. */
	w->content[5] = w->any[6] = (uint8_t)(n * 37);
	w->n = n;
	w->ids = (struct ledger_ids){w->content, w->any, NULL, NULL, 7, "op"};
	w->rec = (struct record_new){.content = w->content,
	                             .any_account = w->any,
	                             .place = w->place,
	                             .fingerprint = w->content,
	                             .wire_body = w->content,
	                             .settings = 7,
	                             .operation = "op",
	                             .key = "the-key",
	                             .generation = 1,
	                             .ttl_us = 3600 * SECOND,
	                             .tombstone_us = 3600 * SECOND};
}

/* The answer to generation g of write n: a length and bytes of its own. */
static inline size_t answer_make(char *text, unsigned n, uint32_t generation)
{
	size_t size = 20 + (n * 131 + generation * 57) % (ANSWER_MAX - 20);

	for (size_t i = 0; i < size; i++)
		text[i] = (char)(1 + (i * 7 + n * 31 + generation * 13 + i / 256) % 255);
	return size;
}

static inline bool answer_fits(struct ledger *l, const struct record_view *view, unsigned n)
{
	char text[ANSWER_MAX];
	size_t size = answer_make(text, n, view->generation);
	struct buf blob = {0};
	long status = 0;
	int rc = ledger_answer(l, view, &blob, &status);
	bool fits = rc == LEDGER_OK && status == 201 && blob.n == size &&
	            memcmp(blob.data, text, size) == 0;

	buf_free(&blob);
	return fits;
}

static inline struct ledger *open_ledger(const char *folder, int64_t size)
{
	struct ledger_options o = {.size = size, .max_response = 1 << 16, .create = true};
	struct ledger_error error;
	struct ledger *l;
	char path[300];

	snprintf(path, sizeof(path), "%s/ledger", folder);
	o.path = path;
	if (ledger_open(&o, &l, &error) == LEDGER_OK)
		return l;
	printf("%s\n", error.text);
	return NULL;
}

/* Shared by everybody who is forked later; never given back. */
static inline void *shared_memory(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		exit(2);
	return at;
}

static inline int64_t us_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * SECOND + t.tv_nsec / 1000;
}

static inline void sleep_us(int64_t us)
{
	struct timespec t = {us / SECOND, us % SECOND * 1000};

	nanosleep(&t, NULL);
}

#endif
