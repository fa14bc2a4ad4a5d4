/* Making a record `reserved`: a new one, or the next use of one that is there.
 *
 * A new record is made whole while nobody can see it: a place of its own is locked, hashes, facts
 * and bank are written there, then, under the table lock, come a second look for the same content
 * or own key, its index entries, and last its state word. So of many processes exactly one inserts
 * and the others are told LEDGER_LOST. One that dies on the way leaves a place marked `linked`
 * whose word says REC_NONE; the sweep takes its entries out again. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ledger/carry.h"
#include "base/pid.h"
#include "ledger/internal.h"

enum { SWEEP_PER_RESERVE = 4 };

/* Under the table lock. */
static void settings_note(struct ledger *l, uint64_t operation, uint64_t settings)
{
	struct layout_setting *s = l->header->settings;

	if (find_settings(l, operation, settings) & SETTINGS_SAME)
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

static size_t text_put(char *to, const char *text, size_t room)
{
	size_t n = text ? strnlen(text, room) : 0;

	memcpy(to, text ? text : "", n);
	return n;
}

/* The bytes to be stored. */
static struct span facts_fill(const struct record_new *rec, uint64_t id, struct facts *facts,
                              struct stamp now)
{
	struct layout_facts *f = &facts->fixed;
	char *at = facts->texts, exe[VIEW_EXE];
	size_t n;

	memset(f, 0, sizeof(*f));
	f->settings = rec->settings;
	f->maker_boot = now.boot;
	f->maker_pid = pid_own();
	if (rec->place)
		memcpy(f->place, rec->place, LEDGER_HASH);
	memcpy(f->fingerprint, rec->fingerprint, LEDGER_HASH);
	memcpy(f->wire_body, rec->wire_body, LEDGER_HASH);
	if (rec->trace)
		memcpy(f->trace, rec->trace, sizeof(f->trace));
	at += f->key_size = (uint8_t)text_put(at, rec->key, LEDGER_KEY_MAX);
	at += f->operation_size = (uint8_t)text_put(at, rec->operation, VIEW_OPERATION - 1);
	owner_exe(exe);
	at += f->exe_size =
	        (uint8_t)text_put(at, rec->copy_of ? rec->copy_of->view.exe : exe, VIEW_EXE - 1);
	if (rec->copy_of) {
		f->maker_boot = rec->copy_of->maker_boot;
		f->maker_pid = rec->copy_of->maker_pid;
	}
	n = (size_t)(at - (char *)facts);
	f->sum = sum_bytes(facts_seed(id, rec->generation), (const char *)f + sizeof(f->sum),
	                   n - sizeof(f->sum));
	return (struct span){(const char *)facts, n};
}

static void bank_start(struct bank *bank, const struct record_new *rec, struct stamp now)
{
	struct layout_stamp first_sent = bank->first_sent;
	bool again = bank->generation == rec->generation;

	memset(bank, 0, offsetof(struct bank, runs));
	bank->generation = rec->generation;
	/* Same key: the provider's memory of it began with the first send. */
	if (again)
		bank->first_sent = first_sent;
	bank->made = stamp_pack(now);
	bank->ttl_us = rec->ttl_us;
	bank->tombstone_us = rec->tombstone_us;
	if (rec->run) {
		bank->runs[0] = (struct run_entry){rec->run, now.wall_us, 0};
		bank->run_count = 1;
	}
}

/* Under the table lock nobody alive is between binding a key and publishing its record: a key whose
 * record is empty was left by a death or a power loss. */
static bool key_used(struct ledger *l, const uint8_t *own_key)
{
	int64_t id = key_find(l, own_key);
	struct layout_record *rec = id >= 0 ? record_of(l, (uint64_t)id, NULL) : NULL;
	struct bank bank;
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

/* What an insertion has in its hands. */
struct insertion {
	struct layout_record *at;
	uint64_t id, place_token, table_token;
	struct bank bank;
	struct word word; /* to be installed */
	uint64_t seen;    /* the word as it was */
	uint32_t in_heap; /* the facts, where they did not fit */
};

/* A process that stood still may have lost its place, which is another record's by now. */
static bool place_is_ours(struct ledger *l, const struct insertion *in)
{
	return lock_held(&in->at->lock, in->place_token) && record_of(l, in->id, NULL) == in->at;
}

static bool facts_write(struct ledger *l, struct insertion *in, struct span bytes, struct stamp now)
{
	struct change c = {.rec = in->at, .id = in->id, .token = in->place_token};
	uint32_t at = room_gap(&in->bank, &in->bank, bytes.n);

	if (!at)
		at = in->in_heap = heap_take(l, bytes.n, EXTENT_FACTS, in->id, now);
	in->bank.facts = at;
	in->bank.facts_size = (uint32_t)bytes.n;
	return at && room_put(l, &c, at, EXTENT_FACTS, bytes);
}

/* A place of our own, marked as linked: should we die, the sweep frees it. */
static int place_claim(struct ledger *l, struct insertion *in)
{
	struct word w;
	uint64_t life, old;

	in->at = place_take(l, &in->place_token);
	if (!in->at)
		return LEDGER_FULL;
	in->seen = atomic_load_explicit(&in->at->word, memory_order_relaxed);
	w = word_read(in->seen);
	if (w.state != REC_NONE)
		return LEDGER_LOST;
	if (!lock_held(&in->at->lock, in->place_token))
		return LEDGER_LOST;
	w.state = REC_RESERVED;
	w.tenure++;
	w.sequence++;
	w.bank = !w.bank;
	in->word = w;
	old = atomic_load_explicit(&in->at->life, memory_order_relaxed);
	life = (old + 1) & INT32_MAX;
	in->id = record_id(record_number(l, in->at), life);
	/* Release: ids of the earlier life end here. By compare-and-swap, as somebody else may live
	 * here by now. */
	if (!atomic_compare_exchange_strong_explicit(&in->at->life, &old, life,
	                                             memory_order_release, memory_order_relaxed))
		return LEDGER_LOST;
	atomic_store_explicit(&in->at->keys, 0, memory_order_relaxed);
	atomic_store_explicit(&in->at->linked, 1, memory_order_release);
	return LEDGER_OK;
}

/* Everything of the record but its index entries and its state. */
static int place_fill(struct ledger *l, const struct record_new *rec, struct owner self,
                      struct stamp now, struct insertion *in)
{
	struct facts facts;
	struct span bytes = facts_fill(rec, in->id, &facts, now);

	bank_start(&in->bank, rec, now);
	if (!place_is_ours(l, in))
		return LEDGER_LOST;
	shared_in(in->at->content, rec->content, LEDGER_HASH);
	shared_in(in->at->any_account, rec->any_account, LEDGER_HASH);
	if (!facts_write(l, in, bytes, now))
		return in->bank.facts ? LEDGER_LOST : LEDGER_FULL;
	in->word.owner = self.slot;
	in->word.nonce = self.nonce;
	in->word.generation = rec->generation & 0xfff;
	change_seal(in->at, &in->bank, in->word);
	if (!place_is_ours(l, in))
		return LEDGER_LOST;
	bank_store(l, in->at, in->id, in->word.bank, &in->bank);
	/* Release: a lease is there before the word that needs it. */
	atomic_store_explicit(&in->at->lease, lease_make(now, LEASE_SECONDS), memory_order_release);
	return LEDGER_OK;
}

/* Index entries and state word of a record that is complete. Under the table lock. */
static int place_publish(struct ledger *l, const struct record_new *rec, struct insertion *in,
                         struct hold *out)
{
	uint64_t number = record_number(l, in->at), seen = in->seen;

	if (index_add(l, rec->content, INDEX_CONTENT, number) != LEDGER_OK ||
	    index_add(l, rec->any_account, INDEX_ANY, number) != LEDGER_OK)
		return LEDGER_FULL;
	if (rec->own_key && key_bind(l, in->id, rec->own_key) != LEDGER_OK)
		return LEDGER_FULL;
	*out = (struct hold){in->id, word_make(in->word)};
	/* A process that stood still here may have lost the lock, and another one its look for the
	 * same content: then there must not be a second record. */
	if (!lock_held(&l->header->table_lock, in->table_token))
		return LEDGER_LOST;
	if (retire_no_new(l))
		return LEDGER_CANNOT;
	/* Sequentially consistent: publishes all of the above; from here on it exists. */
	return atomic_compare_exchange_strong(&in->at->word, &seen, out->word) ? LEDGER_OK
	                                                                       : LEDGER_LOST;
}

/* Under the table lock from the second look to the publication. */
static int insert_locked(struct ledger *l, const struct record_new *rec, bool keyed_over,
                         struct stamp now, struct insertion *in, struct hold *out)
{
	bool late;
	int rc = LEDGER_OK;

	in->table_token = lock_take(l, &l->header->table_lock);
	if (!place_is_ours(l, in) || appeared(l, rec, keyed_over, now))
		rc = LEDGER_LOST;
	if (rc == LEDGER_OK)
		rc = place_publish(l, rec, in, out);
	/* Lost between the last look and the publication: then there may be two, and this one goes.
	 */
	late = rc == LEDGER_OK && !lock_held(&l->header->table_lock, in->table_token);
	lock_drop(&l->header->table_lock, in->table_token);
	lock_drop(&in->at->lock, in->place_token);
	if (late)
		return ledger_withdraw(l, out, now) == LEDGER_CANNOT ? LEDGER_CANNOT : LEDGER_LOST;
	return rc;
}

static int insert(struct ledger *l, const struct record_new *rec, bool keyed_over,
                  struct owner self, struct stamp now, struct hold *out)
{
	struct insertion in = {.in_heap = 0};
	int rc = place_claim(l, &in);

	if (!in.at)
		return rc;
	if (rc == LEDGER_OK)
		rc = place_fill(l, rec, self, now, &in);
	if (rc == LEDGER_OK) {
		rc = insert_locked(l, rec, keyed_over, now, &in, out);
		if (rc == LEDGER_OK) {
			due_note(l, record_number(l, in.at), due_of(&in.bank));
			return rc;
		}
	} else {
		lock_drop(&in.at->lock, in.place_token);
	}
	heap_give(l, in.in_heap, in.id);
	sweep_one(l, in.at, now);
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

/* What this generation is written with, beside the earlier one's, which counts until the end. */
static int reuse_facts(struct ledger *l, const struct record_new *rec, struct stamp now,
                       struct change *c)
{
	struct facts facts;
	struct span bytes = facts_fill(rec, c->id, &facts, now);
	uint32_t at = room_gap(&c->live, &c->bank, bytes.n);

	if (!at)
		at = heap_take(l, bytes.n, EXTENT_FACTS, c->id, now);
	if (!at)
		return LEDGER_FULL;
	c->bank.facts = at;
	c->bank.facts_size = (uint32_t)bytes.n;
	return room_put(l, c, at, EXTENT_FACTS, bytes) ? LEDGER_OK : LEDGER_LOST;
}

static int reuse(struct ledger *l, const struct record_new *rec, const struct record_view *over,
                 struct owner self, struct stamp now, struct hold *out)
{
	struct change c;
	int rc = reuse_begin(l, rec, over, now, &c);

	if (rc != LEDGER_OK)
		return rc;
	/* The note is in one bank, the flushed one is about to be written over: see runs.c. */
	if (c.live.state == REC_DONE && (c.live.flags & BANK_NOTED) && file_flush(l) != LEDGER_OK) {
		change_cancel(&c);
		return LEDGER_CANNOT;
	}
	bank_start(&c.bank, rec, now);
	c.word.state = REC_RESERVED;
	change_own(&c, self);
	rc = reuse_facts(l, rec, now, &c);
	if (rc == LEDGER_OK)
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
		room_give(l, c.bank.facts, over->id);
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

	if (find_settings(l, operation, rec->settings) & SETTINGS_SAME)
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

	if (l->read_only || retire_no_new(l) || !file_header_ready(l))
		return LEDGER_CANNOT;
	self = owner_self(l);
	index_fetch(l, rec->content, INDEX_CONTENT);
	index_fetch(l, rec->any_account, INDEX_ANY);
	if (self.slot != 0)
		rc = reserve(l, rec, over, self, now, out);
	if (self.slot != 0 && rc == LEDGER_FULL) {
		sweep_for_room(l, now);
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
