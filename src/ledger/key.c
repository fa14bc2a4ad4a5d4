/* The program's own keys: small cells that name a record, found through the index.
 *
 * A record may have any number of them (SDKs mint a key per call). A cell names its record by id,
 * so that one left over from an earlier life of the place never finds the next. All writing happens
 * under the table lock. */
#include <string.h>

#include "ledger/internal.h"

enum { KEY_SEARCH = 64 };

static struct layout_key *cell_at(const struct ledger *l, uint64_t number)
{
	if (number >= l->fixed.key_count)
		return NULL;
	return (struct layout_key *)(void *)(l->base + l->fixed.keys_at) + number;
}

/* The cell with this key, also one whose record is gone. */
static struct layout_key *cell_find(const struct ledger *l, const uint8_t *own_key,
                                    uint64_t *number)
{
	struct index_walk walk = index_start(l, own_key, INDEX_KEY);
	uint8_t there[LEDGER_HASH];
	struct layout_key *cell;
	int64_t found;

	while ((found = index_next(l, &walk)) >= 0) {
		cell = cell_at(l, (uint64_t)found);
		if (!cell)
			continue;
		shared_out(there, cell->own_key, sizeof(there));
		if (memcmp(there, own_key, LEDGER_HASH) != 0)
			continue;
		*number = (uint64_t)found;
		return cell;
	}
	return NULL;
}

int64_t key_find(const struct ledger *l, const uint8_t *own_key)
{
	uint64_t number, target;
	struct layout_key *cell = cell_find(l, own_key, &number);

	if (!cell)
		return LEDGER_NONE;
	/* Acquire: publishes the record it names. */
	target = atomic_load_explicit(&cell->target, memory_order_acquire);
	if (!target || !record_of(l, target, NULL) || target > INT64_MAX)
		return LEDGER_NONE;
	return (int64_t)target;
}

/* A cell nobody uses: its record is gone, or it never had one. */
static bool cell_free(const struct ledger *l, struct layout_key *cell)
{
	uint64_t target = atomic_load_explicit(&cell->target, memory_order_relaxed);

	return target == 0 || !record_of(l, target, NULL);
}

static struct layout_key *cell_take(struct ledger *l, uint64_t *number)
{
	uint64_t next = atomic_load_explicit(&l->header->next_key, memory_order_relaxed);
	uint64_t cursor = atomic_load_explicit(&l->header->key_cursor, memory_order_relaxed);
	uint64_t search = next < l->fixed.key_count ? 2 : l->fixed.key_count;
	struct layout_key *cell;

	for (uint64_t i = 0; i < search && next; i++) {
		*number = (cursor + i) % (next < l->fixed.key_count ? next : l->fixed.key_count);
		cell = cell_at(l, *number);
		if (!cell_free(l, cell))
			continue;
		atomic_store_explicit(&l->header->key_cursor, *number + 1, memory_order_relaxed);
		return cell;
	}
	atomic_store_explicit(&l->header->key_cursor, cursor + search, memory_order_relaxed);
	if (next >= l->fixed.key_count)
		return NULL;
	if (!file_populate_ahead(l, l->fixed.keys_at, next * sizeof(*cell), sizeof(*cell)))
		return NULL;
	atomic_store_explicit(&l->header->next_key, next + 1, memory_order_relaxed);
	*number = next;
	return cell_at(l, next);
}

static void cell_forget(struct ledger *l, struct layout_key *cell, uint64_t number)
{
	uint8_t own_key[LEDGER_HASH];

	if (!file_ready(l, cell, sizeof(*cell)))
		return;
	shared_out(own_key, cell->own_key, sizeof(own_key));
	index_remove(l, own_key, INDEX_KEY, number);
	atomic_store_explicit(&cell->target, 0, memory_order_release);
}

int key_bind(struct ledger *l, uint64_t id, const uint8_t *own_key)
{
	struct layout_record *rec = record_of(l, id, NULL);
	struct layout_key *cell;
	uint64_t number;

	if (!rec)
		return LEDGER_NONE;
	cell = cell_find(l, own_key, &number);
	if (cell && atomic_load_explicit(&cell->target, memory_order_relaxed) == id)
		return LEDGER_OK;
	if (cell) {
		/* Of a record that is gone, or one this key is no longer meant for. The cell stays
		 * in the other's list, which tests the target before it touches one. */
		cell_forget(l, cell, number);
	}
	cell = cell_take(l, &number);
	if (!cell || !file_ready(l, cell, sizeof(*cell)))
		return LEDGER_FULL;
	cell_forget(l, cell, number);
	shared_in(cell->own_key, own_key, LEDGER_HASH);
	atomic_store_explicit(&cell->next, atomic_load_explicit(&rec->keys, memory_order_relaxed),
	                      memory_order_relaxed);
	/* Release: publishes the key in the cell. */
	atomic_store_explicit(&cell->target, id, memory_order_release);
	if (index_add(l, own_key, INDEX_KEY, number) != LEDGER_OK) {
		atomic_store_explicit(&cell->target, 0, memory_order_release);
		return LEDGER_FULL;
	}
	atomic_store_explicit(&rec->keys, number + 1, memory_order_release);
	return LEDGER_OK;
}

/* A list that was damaged, or cut by a death between two stores, ends at the first cell that is
 * not this record's; cells beyond it are found to be free by their target. */
void key_unbind_all(struct ledger *l, struct layout_record *rec, uint64_t id)
{
	uint64_t number = atomic_load_explicit(&rec->keys, memory_order_acquire), next;
	struct layout_key *cell;

	for (uint64_t i = 0; number && i < l->fixed.key_count; i++) {
		cell = cell_at(l, number - 1);
		if (!cell || atomic_load_explicit(&cell->target, memory_order_relaxed) != id)
			break;
		next = atomic_load_explicit(&cell->next, memory_order_relaxed);
		cell_forget(l, cell, number - 1);
		number = next;
	}
	atomic_store_explicit(&rec->keys, 0, memory_order_release);
}

/* A walk without the lock may meet a cell that goes to another record: it ends the list. */
size_t key_list(const struct ledger *l, struct layout_record *rec, uint64_t id,
                uint8_t (*out)[LEDGER_HASH], size_t room)
{
	uint64_t number = atomic_load_explicit(&rec->keys, memory_order_acquire);
	struct layout_key *cell;
	size_t count = 0;

	while (number && count < room) {
		cell = cell_at(l, number - 1);
		if (!cell || atomic_load_explicit(&cell->target, memory_order_acquire) != id)
			break;
		shared_out(out[count++], cell->own_key, LEDGER_HASH);
		number = atomic_load_explicit(&cell->next, memory_order_relaxed);
		if (count >= l->fixed.key_count)
			break;
	}
	return count;
}
