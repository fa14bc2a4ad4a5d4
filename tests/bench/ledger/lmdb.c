/* LMDB with a writable map: two transactions a pair. Mode: nosync, sync. */
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

struct db {
	MDB_env *env;
	MDB_dbi dbi;
	MDB_txn *reader; /* kept and renewed, as LMDB's own advice is */
};

static bool open_table(struct db *db)
{
	MDB_txn *txn;

	return mdb_txn_begin(db->env, NULL, 0, &txn) == 0 &&
	       mdb_dbi_open(txn, NULL, 0, &db->dbi) == 0 && mdb_txn_commit(txn) == 0 &&
	       mdb_txn_begin(db->env, NULL, MDB_RDONLY, &db->reader) == 0;
}

static void *lmdb_open(const char *folder, const char *mode)
{
	struct db *db = calloc(1, sizeof(*db));
	unsigned flags = MDB_WRITEMAP | (strcmp(mode, "nosync") == 0 ? MDB_NOSYNC : 0);

	if (!db || mdb_env_create(&db->env) != 0 ||
	    mdb_env_set_mapsize(db->env, (size_t)1 << 30) != 0 ||
	    mdb_env_open(db->env, folder, flags, 0600) != 0 || !open_table(db))
		return NULL;
	mdb_txn_reset(db->reader);
	return db;
}

static bool put(MDB_txn *txn, MDB_dbi dbi, const void *key, const void *data, size_t n,
                unsigned flags)
{
	MDB_val k = {KEY_BYTES, (void *)(uintptr_t)key}, v = {n, (void *)(uintptr_t)data};

	return mdb_put(txn, dbi, &k, &v, flags) == 0;
}

static bool step(struct db *db, const void *key, const void *data, size_t n, unsigned flags)
{
	MDB_txn *txn;

	return mdb_txn_begin(db->env, NULL, 0, &txn) == 0 &&
	       put(txn, db->dbi, key, data, n, flags) && mdb_txn_commit(txn) == 0;
}

static bool lmdb_pair(void *at, const struct item *item)
{
	return step(at, item->key, "R", 1, MDB_NOOVERWRITE) &&
	       step(at, item->key, item->answer, ANSWER_BYTES, 0);
}

static bool lmdb_load(void *at, uint64_t from, uint64_t count)
{
	struct db *db = at;
	struct item item;
	MDB_txn *txn;
	bool fine = mdb_txn_begin(db->env, NULL, 0, &txn) == 0;

	for (uint64_t i = 0; fine && i < count; i++) {
		item_make(from + i, &item);
		fine = put(txn, db->dbi, item.key, item.answer, ANSWER_BYTES, 0);
	}
	return fine && mdb_txn_commit(txn) == 0;
}

static bool lmdb_find(void *at, const uint8_t *key, char *answer)
{
	struct db *db = at;
	MDB_val k = {KEY_BYTES, (void *)(uintptr_t)key}, v;
	bool fine;

	if (mdb_txn_renew(db->reader) != 0)
		return false;
	fine = mdb_get(db->reader, db->dbi, &k, &v) == 0 && v.mv_size == ANSWER_BYTES;
	if (fine)
		memcpy(answer, v.mv_data, ANSWER_BYTES);
	mdb_txn_reset(db->reader);
	return fine;
}

const struct store store_lmdb = {"lmdb", lmdb_open, lmdb_load, lmdb_pair, lmdb_find};
