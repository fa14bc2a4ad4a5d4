/* Finding the record of a write: own key, content, content under another account, other settings.
 *
 * Takes no lock. The index gives candidates, each is copied consistently and compared whole. Of
 * several that fit the most pressing one is returned. Only the last kind of hit walks all records,
 * and only for an operation that was ever used with other settings. */
#include <errno.h>
#include <string.h>

#include "ledger/internal.h"

uint64_t find_operation_hash(const char *operation)
{
	return ledger_name_hash(span_of(operation ? operation : ""));
}

/* Undelivered and possible: what hinders the same write under another account or other settings. */
static bool hinders(const struct record_view *view, struct stamp now)
{
	switch (view->state) {
	case REC_RESERVED:
	case REC_SENT:
	case REC_UNKNOWN:
		return true;
	case REC_DONE:
		if (view->ended.wall_us && clock_age_min(view->ended, now) > view->ttl_us)
			return false;
		return view->first_delivered.wall_us == 0;
	default:
		return false;
	}
}

/* Of several records with one content (each with a key of its own) the most pressing one: alive or
 * in doubt before undelivered before the newest. */
static int rank(const struct record_view *view)
{
	if (view->state == REC_RESERVED || view->state == REC_SENT || view->state == REC_UNKNOWN)
		return 3;
	if (view->state == REC_DONE)
		return view->first_delivered.wall_us ? 1 : 2;
	return 0;
}

static bool better(const struct record_view *a, const struct record_view *b)
{
	if (rank(a) != rank(b))
		return rank(a) > rank(b);
	return a->made.wall_us > b->made.wall_us;
}

/* A record whose own hashes fail their check may be the one that is looked for: the index thinks
 * so, and a doubt is the safe answer. */
static bool is_it(struct ledger *l, struct layout_record *rec, const struct record_view *view,
                  const uint8_t *hash, enum index_kind kind)
{
	struct bank bank;
	const uint8_t *there = kind == INDEX_CONTENT ? view->content : view->any_account;
	uint64_t id, word;

	if (memcmp(there, hash, LEDGER_HASH) == 0)
		return true;
	return kind == INDEX_CONTENT && view->state == REC_UNKNOWN &&
	       record_read(l, rec, &id, &word, &bank) && (bank.flags & BANK_DAMAGED);
}

bool find_by_hash(struct ledger *l, const uint8_t *hash, enum index_kind kind, struct stamp now,
                  struct record_view *out)
{
	struct index_walk walk = index_start(l, hash, kind);
	struct record_view other, *view = out;
	struct layout_record *rec;
	int64_t number;

	while ((number = index_next(l, &walk)) >= 0) {
		rec = record_at(l, (uint64_t)number);
		if (!rec)
			continue;
		record_fetch(rec);
		if (!record_view(l, rec, now, view) || !is_it(l, rec, view, hash, kind))
			continue;
		if (kind == INDEX_ANY && !hinders(view, now))
			continue;
		/* The first one is where it belongs already. */
		if (view == &other && better(&other, out))
			*out = other;
		view = &other;
	}
	if (view == out)
		memset(out, 0, sizeof(*out));
	return view != out;
}

unsigned find_settings(struct ledger *l, uint64_t operation, uint64_t settings)
{
	struct layout_setting *s = l->header->settings;
	unsigned seen = SETTINGS_NONE;
	uint64_t there;

	for (int i = 0; i < LAYOUT_SETTINGS; i++) {
		/* Acquire: the pair is whole. */
		there = atomic_load_explicit(&s[i].operation, memory_order_acquire);
		if (there == 0)
			return seen;
		if (there != operation)
			continue;
		there = atomic_load_explicit(&s[i].settings, memory_order_relaxed);
		seen |= there == settings ? SETTINGS_SAME : SETTINGS_OTHER;
	}
	if (atomic_load_explicit(&l->header->settings_full, memory_order_relaxed))
		return SETTINGS_SAME | SETTINGS_OTHER;
	return seen;
}

/* Walks every record: only when the operation was ever used with other settings. */
static bool find_other_settings(struct ledger *l, const struct ledger_ids *ids, struct stamp now,
                                struct record_view *out)
{
	uint64_t end = record_end(l);
	char operation[sizeof(out->operation)] = {0};
	struct layout_record *rec;

	if (!(find_settings(l, find_operation_hash(ids->operation), ids->settings) &
	      SETTINGS_OTHER))
		return false;
	strncpy(operation, ids->operation ? ids->operation : "", sizeof(operation) - 1);
	for (uint64_t i = 0; i < end; i++) {
		rec = record_at(l, i);
		if (word_read(atomic_load_explicit(&rec->word, memory_order_acquire)).state == 0)
			continue;
		if (!record_view(l, rec, now, out) || out->settings == ids->settings)
			continue;
		if (hinders(out, now) && strcmp(out->operation, operation) == 0 &&
		    memcmp(out->place, ids->place, LEDGER_HASH) == 0)
			return true;
	}
	return false;
}

static enum record_hit find_neighbour(struct ledger *l, const struct ledger_ids *ids,
                                      struct stamp now, struct record_view *out)
{
	if (ids->any_account && find_by_hash(l, ids->any_account, INDEX_ANY, now, out))
		return HIT_ANY_ACCOUNT;
	if (ids->place && find_other_settings(l, ids, now, out))
		return HIT_OTHER_SETTINGS;
	return HIT_NONE;
}

static enum record_hit find(struct ledger *l, const struct ledger_ids *ids, struct stamp now,
                            struct record_view *out)
{
	int64_t id = ids->own_key ? key_find(l, ids->own_key) : LEDGER_NONE;

	if (id >= 0 && ledger_look(l, (uint64_t)id, now, out) == LEDGER_OK)
		return HIT_OWN_KEY;
	if (find_by_hash(l, ids->content, INDEX_CONTENT, now, out))
		return HIT_CONTENT;
	return find_neighbour(l, ids, now, out);
}

static int found(enum record_hit hit, struct record_view *out)
{
	if (hit == HIT_NONE) {
		memset(out, 0, sizeof(*out));
		return LEDGER_NONE;
	}
	out->hit = hit;
	return LEDGER_OK;
}

int ledger_find(struct ledger *l, const struct ledger_ids *ids, struct stamp now,
                struct record_view *out)
{
	int saved = errno;
	enum record_hit hit = find(l, ids, now, out);

	errno = saved;
	return found(hit, out);
}

int ledger_find_neighbour(struct ledger *l, const struct ledger_ids *ids, struct stamp now,
                          struct record_view *out)
{
	int saved = errno;
	enum record_hit hit = find_neighbour(l, ids, now, out);

	errno = saved;
	return found(hit, out);
}

static bool was_told(const struct record_view *view, uint64_t run)
{
	for (size_t i = 0; view->state == REC_DONE && i < view->run_count; i++)
		if (view->runs[i].run == run && view->runs[i].delivered_us)
			return true;
	return false;
}

int ledger_find_content(struct ledger *l, const uint8_t *content, uint64_t run, struct stamp now,
                        struct record_view *out)
{
	struct index_walk walk = index_start(l, content, INDEX_CONTENT);
	struct layout_record *rec;
	struct record_view view;
	int64_t number;
	int saved = errno;

	memset(out, 0, sizeof(*out));
	while ((number = index_next(l, &walk)) >= 0) {
		rec = record_at(l, (uint64_t)number);
		if (!rec || !record_view(l, rec, now, &view) ||
		    memcmp(view.content, content, LEDGER_HASH) != 0)
			continue;
		if (run && !was_told(&view, run))
			continue;
		if (out->state == REC_NONE || view.generation > out->generation)
			*out = view;
	}
	errno = saved;
	return found(out->state == REC_NONE ? HIT_NONE : HIT_CONTENT, out);
}

int ledger_look(struct ledger *l, uint64_t id, struct stamp now, struct record_view *out)
{
	struct layout_record *rec = record_of(l, id, NULL);
	int saved = errno;
	bool there = rec && record_view(l, rec, now, out) && out->id == id;

	errno = saved;
	if (!there)
		memset(out, 0, sizeof(*out));
	return there ? LEDGER_OK : LEDGER_NONE;
}
