/* The ledger itself: reserve, gate and done, as one write does. Mode: process, power; a size in MiB
 * may follow ("process:2560"). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/ledger.h"
#include "store.h"

static void *so_open(const char *folder, const char *mode)
{
	struct ledger_options o = {.max_response = 1 << 20, .create = true};
	struct ledger_error error;
	struct ledger *l;
	char path[512];
	const char *size = strchr(mode, ':');

	snprintf(path, sizeof(path), "%s/ledger", folder);
	o.path = path;
	o.size = (int64_t)(size ? atoi(size + 1) : 1280) << 20;
	o.durable = strncmp(mode, "power", 5) == 0;
	if (ledger_open(&o, &l, &error) == LEDGER_OK)
		return l;
	fprintf(stderr, "%s\n", error.text);
	return NULL;
}

static bool so_pair(void *db, const struct item *item)
{
	static const uint8_t none[LEDGER_HASH];
	uint8_t any[LEDGER_HASH];
	struct record_new rec = {.content = item->key,
	                         .any_account = any,
	                         .place = none,
	                         .fingerprint = item->key,
	                         .wire_body = item->key,
	                         .settings = 1,
	                         .operation = "bench.order",
	                         .key = "so_0123456789abcdef0123456789abcdef",
	                         .generation = 1,
	                         .ttl_us = INT64_C(86400000000),
	                         .tombstone_us = INT64_C(86400000000),
	                         .run = 1};
	struct ledger_answer answer = {.status = 200, .blob = {item->answer, ANSWER_BYTES}};
	struct hold hold;

	for (int i = 0; i < LEDGER_HASH; i++)
		any[i] = (uint8_t)~item->key[i];
	return ledger_reserve(db, &rec, NULL, clock_now(), &hold) == LEDGER_OK &&
	       ledger_gate(db, &hold, clock_now()) == LEDGER_OK &&
	       ledger_done(db, &hold, &answer, clock_now()) == LEDGER_OK;
}

/* Not flushed: loading is not what is measured. */
static bool so_load(void *db, uint64_t from, uint64_t count)
{
	struct ledger_options o = {.path = ledger_path(db), .max_response = 1 << 20};
	struct ledger_error error;
	struct ledger *l;
	struct item item;
	bool fine = ledger_open(&o, &l, &error) == LEDGER_OK;

	for (uint64_t i = 0; fine && i < count; i++) {
		item_make(from + i, &item);
		fine = so_pair(l, &item);
	}
	return fine;
}

/* The moment is the caller's, who looks at his clock once a write whatever he asks the ledger. */
static struct stamp moment(void)
{
	static struct stamp now;
	static unsigned asked;

	if (asked++ % 64 == 0)
		now = clock_now();
	return now;
}

static bool so_find(void *db, const uint8_t *key, char *answer)
{
	struct ledger_ids ids = {.content = key, .settings = 1, .operation = "bench.order"};
	struct record_view view;
	struct buf blob = {.data = answer, .room = ANSWER_BYTES + 1};
	long status;

	return ledger_find(db, &ids, moment(), &view) == LEDGER_OK && view.state == REC_DONE &&
	       ledger_answer(db, &view, &blob, &status) == LEDGER_OK && blob.n == ANSWER_BYTES;
}

const struct store store_sendonce = {"sendonce", so_open, so_load, so_pair, so_find};
