/* Making a record `reserved`: a new one, or the next use of one that is there.
 *
 * A new record is made whole while nobody can see it: hashes, bank and facts, then its index
 * entries, and last its state word. All of that happens under the table lock together with a second
 * look for the same content or own key, so that of many processes exactly one inserts and the
 * others are told LEDGER_LOST. One that dies on the way leaves a place marked `linked` whose word
 * says REC_NONE; the sweep takes its entries out again. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ledger/carry.h"
#include "ledger/internal.h"

enum { SWEEP_PER_RESERVE = 4, RECORD_SEARCH = 8 };

static bool settings_known(struct ledger *l, uint64_t operation, uint64_t settings)
{
	struct layout_setting *s = l->header->settings;
	uint64_t there;

	for (int i = 0; i < LAYOUT_SETTINGS; i++) {
		/* Acquire: the pair is whole. */
		there = atomic_load_explicit(&s[i].operation, memory_order_acquire);
		if (there == 0)
			return false;
		if (there == operation &&
		    atomic_load_explicit(&s[i].settings, memory_order_relaxed) == settings)
			return true;
	}
	return atomic_load_explicit(&l->header->settings_full, memory_order_relaxed) != 0;
}

/* Under the table lock. */
static void settings_note(struct ledger *l, uint64_t operation, uint64_t settings)
{
	struct layout_setting *s = l->header->settings;

	if (settings_known(l, operation, settings))
		return;
	for (int i = 0; i < LAYOUT_SETTINGS; i++) {
		if (atomic_load_explicit(&s[i].operation, memory_order_relaxed) != 0)
			continue;
		atomic_store_explicit(&s[i].settings, settings, memory_order_relaxed);
		/* Release: publishes the pair. */
		atomic_store_explicit(&s[i].operation, operation, memory_order_release);
		return;
	}
	atomic_store_explicit(&l->header->settings_full, 1, memory_order_release);
}

static void facts_fill(struct ledger *l, const struct record_new *rec, uint64_t id,
                       struct layout_facts *f, struct stamp now)
{
	memset(f, 0, sizeof(*f));
	f->settings = rec->settings;
	f->operation_hash = find_operation_hash(rec->operation);
	f->maker_boot = now.boot;
	f->maker_pid = owner_process();
	if (rec->place)
		memcpy(f->place, rec->place, LEDGER_HASH);
	memcpy(f->fingerprint, rec->fingerprint, LEDGER_HASH);
	memcpy(f->wire_body, rec->wire_body, LEDGER_HASH);
	strncpy(f->key, rec->key ? rec->key : "", sizeof(f->key) - 1);
	strncpy(f->operation, rec->operation ? rec->operation : "", sizeof(f->operation) - 1);
	memcpy(f->exe, rec->copy_of ? rec->copy_of->view.exe : l->exe, sizeof(f->exe));
	if (rec->copy_of) {
		f->maker_boot = rec->copy_of->maker_boot;
		f->maker_pid = rec->copy_of->maker_pid;
	}
	if (rec->trace)
		memcpy(f->trace, rec->trace, sizeof(f->trace));
	f->sum = sum_bytes(id, (const char *)f + sizeof(f->sum), sizeof(*f) - sizeof(f->sum));
}

static uint32_t facts_store(struct ledger *l, const struct record_new *rec, uint64_t id,
                            struct stamp now)
{
	struct layout_facts facts;
	uint32_t unit = heap_take(l, sizeof(facts), EXTENT_FACTS, id, now);
	void *at = heap_at(l, unit, EXTENT_FACTS, id, sizeof(facts));

	if (!unit || !at)
		return 0;
	facts_fill(l, rec, id, &facts, now);
	shared_in(at, &facts, sizeof(facts));
	return unit;
}

static void bank_start(struct layout_bank *bank, const struct record_new *rec, struct stamp now)
{
	struct stamp first_sent = bank->first_sent;
	bool again = bank->generation == rec->generation;

	memset(bank, 0, sizeof(*bank));
	bank->generation = rec->generation;
	/* Same key: the provider's memory of it began with the first send. */
	if (again)
		bank->first_sent = first_sent;
	bank->made = now;
	bank->ttl_us = rec->ttl_us;
	bank->tombstone_us = rec->tombstone_us;
	if (rec->run) {
		bank->runs[0] = (struct run_entry){rec->run, now.wall_us, 0};
		bank->run_count = 1;
	}
}

static bool record_unused(struct layout_record *rec)
{
	return word_read(atomic_load_explicit(&rec->word, memory_order_acquire)).state ==
	               REC_NONE &&
	       atomic_load_explicit(&rec->linked, memory_order_acquire) == 0;
}

/* Ours from here on, for everybody who looks for a place or for something to sweep. */
static bool place_lock(struct ledger *l, struct layout_record *rec, uint64_t *token)
{
	*token = record_unused(rec) ? lock_try(l, &rec->lock) : 0;
	if (*token == 0)
		return false;
	if (record_unused(rec))
		return true;
	lock_drop(&rec->lock, *token);
	return false;
}

/* The first place never used. After a power loss some beyond the mark may be in use. */
static struct layout_record *place_fresh(struct ledger *l, uint64_t *number, uint64_t *token)
{
	uint64_t next = atomic_load_explicit(&l->header->next_record, memory_order_relaxed);

	for (; next < l->fixed.record_count; next++) {
		if (!file_populate(l, l->fixed.records_at, next * sizeof(struct layout_record),
		                   sizeof(struct layout_record)))
			return NULL;
		*number = next;
		/* Release: a walk that sees the new end sees a zeroed or an older record. */
		atomic_store_explicit(&l->header->next_record, next + 1, memory_order_release);
		if (place_lock(l, record_at(l, next), token))
			return record_at(l, next);
	}
	return NULL;
}

/* An empty place, under the table lock; locked, so that the sweep leaves it alone. */
static struct layout_record *place_take(struct ledger *l, uint64_t *number, uint64_t *token)
{
	uint64_t next = atomic_load_explicit(&l->header->next_record, memory_order_relaxed);
	uint64_t cursor = atomic_load_explicit(&l->header->record_cursor, memory_order_relaxed);
	uint64_t count = l->fixed.record_count, search = next < count ? RECORD_SEARCH : count;

	if (next > count)
		next = count;
	for (uint64_t i = 0; i < search && next; i++) {
		*number = (cursor + i) % next;
		if (!place_lock(l, record_at(l, *number), token))
			continue;
		atomic_store_explicit(&l->header->record_cursor, *number, memory_order_relaxed);
		return record_at(l, *number);
	}
	atomic_store_explicit(&l->header->record_cursor, cursor + search, memory_order_relaxed);
	return place_fresh(l, number, token);
}

/* Under the table lock nobody alive is between binding a key and publishing its record: a key whose
 * record is empty was left by a death or a power loss. */
static bool key_used(struct ledger *l, const uint8_t *own_key)
{
	int64_t id = key_find(l, own_key);
	struct layout_record *rec = id >= 0 ? record_of(l, (uint64_t)id, NULL) : NULL;
	struct layout_bank bank;
	uint64_t there, word;

	return rec && record_read(l, rec, &there, &word, &bank);
}

/* Two tokens of one caller at the same instant: the content differs by the account alone. */
static bool neighbour_appeared(struct ledger *l, const struct record_new *rec, struct stamp now)
{
	struct record_view view;

	return rec->opaque && rec->any_account &&
	       find_by_hash(l, rec->any_account, INDEX_ANY, now, &view) &&
	       memcmp(view.content, rec->content, LEDGER_HASH) != 0;
}

/* Somebody was faster. A delivered one of another own key is not in the way: under `trust` the
 * same content with a new key is a new write. Nor is one of an earlier generation: that was the
 * write of another run, which may ask for its answer again. A key that is to leave its old record
 * (`keyed_over`) goes to the one that is there, where the caller's next look finds it. */
static bool appeared(struct ledger *l, const struct record_new *rec, bool keyed_over,
                     struct stamp now)
{
	struct record_view view;

	if (rec->copy_of)
		return false;
	if (rec->own_key && !keyed_over && key_used(l, rec->own_key))
		return true;
	if (neighbour_appeared(l, rec, now))
		return true;
	if (!find_by_hash(l, rec->content, INDEX_CONTENT, now, &view))
		return false;
	if (view.state == REC_DONE && view.first_delivered.wall_us &&
	    (rec->own_key || view.generation < rec->generation))
		return false;
	if (rec->own_key && keyed_over)
		key_bind(l, view.id, rec->own_key);
	return true;
}

/* Index entries and state word of a record that is complete. Under the table lock. */
static int place_publish(struct ledger *l, const struct record_new *rec, struct layout_bank *bank,
                         struct owner self, struct stamp now, uint64_t table_token,
                         struct hold *out)
{
	uint64_t number = (out->id & UINT32_MAX) - 1;
	struct layout_record *at = record_at(l, number);
	uint64_t seen = atomic_load_explicit(&at->word, memory_order_relaxed);
	struct word w = word_read(seen);

	if (w.state != REC_NONE)
		return LEDGER_LOST;
	w.state = REC_RESERVED;
	w.owner = self.slot;
	w.nonce = self.nonce;
	w.tenure++;
	w.sequence = (w.sequence + 1) & 0x3ffff;
	w.bank = !w.bank;
	w.generation = rec->generation & 0xfff;
	bank->state = REC_RESERVED;
	bank->sequence = w.sequence;
	shared_in(at->content, rec->content, LEDGER_HASH);
	shared_in(at->any_account, rec->any_account, LEDGER_HASH);
	bank->sum = bank_sum(at, bank);
	shared_in(&at->bank[w.bank], bank, sizeof(*bank));
	/* Release: a lease is there before the word that needs it. */
	atomic_store_explicit(&at->lease, lease_make(now, LEASE_SECONDS), memory_order_release);
	if (index_add(l, rec->content, INDEX_CONTENT, number) != LEDGER_OK ||
	    index_add(l, rec->any_account, INDEX_ANY, number) != LEDGER_OK)
		return LEDGER_FULL;
	if (rec->own_key && key_bind(l, out->id, rec->own_key) != LEDGER_OK)
		return LEDGER_FULL;
	out->word = word_make(w);
	/* A process that stood still here may have lost the lock, and another one its look for the
	 * same content: then there must not be a second record. */
	if (!lock_held(&l->header->table_lock, table_token))
		return LEDGER_LOST;
	if (retire_no_new(l))
		return LEDGER_CANNOT;
	/* Sequentially consistent: publishes all of the above; from here on it exists. */
	return atomic_compare_exchange_strong(&at->word, &seen, out->word) ? LEDGER_OK
	                                                                   : LEDGER_LOST;
}

/* A place of our own, marked as linked: should we die, the sweep frees it. */
static int place_claim(struct ledger *l, const struct record_new *rec, bool keyed_over,
                       struct stamp now, uint64_t *id, uint64_t *place_token)
{
	uint64_t token = lock_take(l, &l->header->table_lock), number, life;
	struct layout_record *at = NULL;
	int rc = LEDGER_LOST;

	if (appeared(l, rec, keyed_over, now))
		goto done;
	rc = LEDGER_FULL;
	at = place_take(l, &number, place_token);
	if (!at)
		goto done;
	life = (atomic_load_explicit(&at->life, memory_order_relaxed) + 1) & INT32_MAX;
	atomic_store_explicit(&at->linked, 1, memory_order_release);
	atomic_store_explicit(&at->keys, 0, memory_order_relaxed);
	/* Release: ids of the earlier life end here. */
	atomic_store_explicit(&at->life, life, memory_order_release);
	*id = record_id(number, life);
	rc = LEDGER_OK;
done:
	lock_drop(&l->header->table_lock, token);
	return rc;
}

static int insert(struct ledger *l, const struct record_new *rec, bool keyed_over,
                  struct owner self, struct stamp now, struct hold *out)
{
	struct layout_bank bank = {0};
	struct layout_record *at;
	uint64_t token, place_token;
	bool late;
	int rc = place_claim(l, rec, keyed_over, now, &out->id, &place_token);

	if (rc != LEDGER_OK)
		return rc;
	at = record_at(l, (out->id & UINT32_MAX) - 1);
	bank_start(&bank, rec, now);
	bank.boot = now.boot;
	bank.facts = facts_store(l, rec, out->id, now);
	token = lock_take(l, &l->header->table_lock);
	rc = bank.facts ? LEDGER_OK : LEDGER_FULL;
	/* A process that stood still may have lost its place, which is another record's by now. */
	if (!lock_held(&at->lock, place_token) || record_of(l, out->id, NULL) != at)
		rc = LEDGER_LOST;
	if (rc == LEDGER_OK && appeared(l, rec, keyed_over, now))
		rc = LEDGER_LOST;
	if (rc == LEDGER_OK)
		rc = place_publish(l, rec, &bank, self, now, token, out);
	/* Lost between the last look and the publication: then there may be two, and this one goes.
	 */
	late = rc == LEDGER_OK && !lock_held(&l->header->table_lock, token);
	lock_drop(&l->header->table_lock, token);
	lock_drop(&at->lock, place_token);
	if (late)
		return ledger_withdraw(l, out, now) == LEDGER_CANNOT ? LEDGER_CANNOT : LEDGER_LOST;
	if (rc == LEDGER_OK)
		return rc;
	heap_give(l, bank.facts, out->id);
	sweep_one(l, at, now);
	return rc;
}

/* May this record be used again? Everything but what is alive or may be: a doubt only when the
 * caller drops it, which it says by asking for the next generation. */
static bool reusable(struct ledger *l, const struct change *c, const struct record_new *rec,
                     struct stamp now)
{
	bool next = rec->generation > c->bank.generation;

	switch (c->word.state) {
	case REC_FREED:
	case REC_TOMBSTONE:
		return rec->generation >= c->bank.generation;
	case REC_DONE:
		return next;
	case REC_UNKNOWN:
	case REC_SENT:
		return next && !change_owner_holds(l, c, now);
	default:
		return false;
	}
}

static int reuse_begin(struct ledger *l, const struct record_new *rec,
                       const struct record_view *over, struct stamp now, struct change *c)
{
	int rc = change_begin(l, over->id, c);

	if (rc != LEDGER_OK)
		return rc == LEDGER_NONE ? LEDGER_LOST : rc;
	rc = c->seen == over->word && reusable(l, c, rec, now) ? LEDGER_OK : LEDGER_LOST;
	if (retire_no_new(l))
		rc = LEDGER_CANNOT;
	if (rc != LEDGER_OK)
		change_cancel(c);
	return rc;
}

static int bind_own_key(struct ledger *l, uint64_t id, const uint8_t *own_key)
{
	uint64_t token;
	int rc;

	if (!own_key)
		return LEDGER_OK;
	token = lock_take(l, &l->header->table_lock);
	rc = key_bind(l, id, own_key);
	lock_drop(&l->header->table_lock, token);
	return rc;
}

static int reuse(struct ledger *l, const struct record_new *rec, const struct record_view *over,
                 struct owner self, struct stamp now, struct hold *out)
{
	uint32_t facts = facts_store(l, rec, over->id, now);
	struct change c;
	int rc;

	if (!facts)
		return LEDGER_FULL;
	rc = reuse_begin(l, rec, over, now, &c);
	if (rc != LEDGER_OK) {
		heap_give(l, facts, over->id);
		return rc;
	}
	bank_start(&c.bank, rec, now);
	c.bank.facts = facts;
	c.word.state = REC_RESERVED;
	change_own(&c, self);
	rc = bind_own_key(l, over->id, rec->own_key);
	if (rc == LEDGER_OK) {
		/* Release: a lease is there before the word that needs it. */
		atomic_store_explicit(&c.rec->lease, lease_make(now, LEASE_SECONDS),
		                      memory_order_release);
		rc = change_publish(l, &c, &out->word);
	} else {
		change_cancel(&c);
	}
	if (rc != LEDGER_OK)
		heap_give(l, facts, over->id);
	out->id = over->id;
	return rc;
}

static int reserve(struct ledger *l, const struct record_new *rec, const struct record_view *over,
                   struct owner self, struct stamp now, struct hold *out)
{
	if (!over || over->state == REC_NONE)
		return insert(l, rec, false, self, now, out);
	if (memcmp(over->content, rec->content, LEDGER_HASH) != 0)
		return insert(l, rec, true, self, now, out);
	return reuse(l, rec, over, self, now, out);
}

static void note_settings(struct ledger *l, const struct record_new *rec)
{
	uint64_t token, operation = find_operation_hash(rec->operation);

	if (settings_known(l, operation, rec->settings))
		return;
	token = lock_take(l, &l->header->table_lock);
	settings_note(l, operation, rec->settings);
	lock_drop(&l->header->table_lock, token);
}

int ledger_reserve(struct ledger *l, const struct record_new *rec, const struct record_view *over,
                   struct stamp now, struct hold *out)
{
	struct owner self;
	int saved = errno, rc = LEDGER_FULL;

	if (l->read_only || retire_no_new(l))
		return LEDGER_CANNOT;
	self = owner_self(l);
	if (self.slot != 0)
		rc = reserve(l, rec, over, self, now, out);
	if (self.slot != 0 && rc == LEDGER_FULL) {
		/* Everything that is over at once, before a write is refused. */
		sweep_some(l, (unsigned)l->fixed.record_count, now);
		rc = reserve(l, rec, over, self, now, out);
	}
	if (rc == LEDGER_OK) {
		owner_seen(l, now);
		note_settings(l, rec);
	}
	/* Afterwards: it may well expire the very record that is used again. */
	sweep_some(l, SWEEP_PER_RESERVE, now);
	errno = saved;
	return rc;
}
