/* SQLite with a write-ahead log: two transactions a pair, prepared once. Mode: off, normal, full.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

struct db {
	sqlite3 *sql;
	sqlite3_stmt *reserve, *commit, *find, *load;
};

static bool prepare(struct db *db, const char *text, sqlite3_stmt **out)
{
	return sqlite3_prepare_v3(db->sql, text, -1, SQLITE_PREPARE_PERSISTENT, out, NULL) ==
	       SQLITE_OK;
}

static void *sqlite_open(const char *folder, const char *mode)
{
	struct db *db = calloc(1, sizeof(*db));
	char path[512], setup[256];

	snprintf(path, sizeof(path), "%s/sqlite", folder);
	snprintf(setup, sizeof(setup),
	         "PRAGMA journal_mode=WAL; PRAGMA synchronous=%s;"
	         "CREATE TABLE IF NOT EXISTS w(k BLOB PRIMARY KEY, s INT, a BLOB) WITHOUT ROWID",
	         mode);
	if (!db || sqlite3_open(path, &db->sql) != SQLITE_OK)
		return NULL;
	sqlite3_busy_timeout(db->sql, 60000);
	if (sqlite3_exec(db->sql, setup, NULL, NULL, NULL) != SQLITE_OK ||
	    !prepare(db, "INSERT INTO w VALUES(?1, 1, NULL)", &db->reserve) ||
	    !prepare(db, "UPDATE w SET s = 2, a = ?2 WHERE k = ?1 AND s = 1", &db->commit) ||
	    !prepare(db, "INSERT INTO w VALUES(?1, 2, ?2)", &db->load) ||
	    !prepare(db, "SELECT a FROM w WHERE k = ?1 AND s = 2", &db->find))
		return NULL;
	return db;
}

static bool run(sqlite3_stmt *s, const struct item *item, bool answer)
{
	bool fine;

	sqlite3_bind_blob(s, 1, item->key, KEY_BYTES, SQLITE_STATIC);
	if (answer)
		sqlite3_bind_blob(s, 2, item->answer, ANSWER_BYTES, SQLITE_STATIC);
	fine = sqlite3_step(s) == SQLITE_DONE;
	return sqlite3_reset(s) == SQLITE_OK && fine;
}

static bool sqlite_pair(void *at, const struct item *item)
{
	struct db *db = at;

	return run(db->reserve, item, false) && run(db->commit, item, true);
}

static bool sqlite_load(void *at, uint64_t from, uint64_t count)
{
	struct db *db = at;
	struct item item;
	bool fine = sqlite3_exec(db->sql, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK;

	for (uint64_t i = 0; fine && i < count; i++) {
		item_make(from + i, &item);
		fine = run(db->load, &item, true);
	}
	return fine && sqlite3_exec(db->sql, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
}

static bool sqlite_find(void *at, const uint8_t *key, char *answer)
{
	struct db *db = at;
	bool fine;

	sqlite3_bind_blob(db->find, 1, key, KEY_BYTES, SQLITE_STATIC);
	fine = sqlite3_step(db->find) == SQLITE_ROW &&
	       sqlite3_column_bytes(db->find, 0) == ANSWER_BYTES;
	if (fine)
		memcpy(answer, sqlite3_column_blob(db->find, 0), ANSWER_BYTES);
	sqlite3_reset(db->find);
	return fine;
}

const struct store store_sqlite = {"sqlite", sqlite_open, sqlite_load, sqlite_pair, sqlite_find};
