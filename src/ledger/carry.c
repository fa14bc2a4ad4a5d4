/* One record out of a ledger, one record into it. See carry.h.
 *
 * Going in is two publications: a new place is reserved by this process, which nobody else then
 * touches, and gets what the record means together with its state. Who dies in between leaves a
 * record that never sent anything, as the sweep says; bringing the records in again corrects it. In
 * the place of one of the same generation it is a single publication. */
#include "ledger/carry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/internal.h"

enum { KEYS_STEP = 64 };

void carry_free(struct ledger_record *record)
{
	buf_free(&record->answer);
	free(record->own_keys);
	memset(record, 0, sizeof(*record));
}

/* --- out --- */

static int read_keys(const struct ledger *l, struct layout_record *rec, struct ledger_record *out)
{
	size_t room = KEYS_STEP;
	uint8_t(*more)[LEDGER_HASH];

	for (;;) {
		more = realloc(out->own_keys, room * sizeof(*more));
		if (!more)
			return LEDGER_NOMEM;
		out->own_keys = more;
		out->own_key_count = key_list(l, rec, out->view.id, more, room);
		if (out->own_key_count < room)
			return LEDGER_OK;
		room *= 4;
	}
}

static void read_maker(const struct ledger *l, struct layout_record *rec, struct ledger_record *out)
{
	struct bank bank;
	struct facts facts;
	uint64_t id, word;

	if (!record_read(l, rec, &id, &word, &bank) || !record_facts(l, rec, id, &bank, &facts))
		return;
	out->maker_boot = facts.fixed.maker_boot;
	out->maker_pid = facts.fixed.maker_pid;
}

static int read_answer(struct ledger *l, struct ledger_record *out)
{
	long status;
	int rc = LEDGER_NONE;

	if (out->view.answer_kept && out->view.answer_final)
		rc = ledger_answer(l, &out->view, &out->answer, &status);
	out->view.answer_kept = out->view.answer_final = rc == LEDGER_OK;
	return rc == LEDGER_NOMEM ? rc : LEDGER_OK;
}

int carry_read(struct ledger *l, const struct record_view *view, struct ledger_record *out)
{
	struct layout_record *rec = record_of(l, view->id, NULL);
	int saved = errno, rc = rec ? LEDGER_OK : LEDGER_LOST;

	out->view = *view;
	if (rc == LEDGER_OK)
		rc = read_keys(l, rec, out);
	if (rc == LEDGER_OK)
		rc = read_answer(l, out);
	if (rc == LEDGER_OK) {
		read_maker(l, rec, out);
		if (atomic_load_explicit(&rec->word, memory_order_acquire) != view->word)
			rc = LEDGER_LOST;
	}
	errno = saved;
	return rc;
}

/* --- in --- */

static enum record_state state_in(const struct record_view *view)
{
	if (view->state == REC_RESERVED)
		return REC_FREED;
	return view->state == REC_SENT ? REC_UNKNOWN : view->state;
}

static uint8_t flags_in(const struct record_view *view)
{
	uint8_t flags = 0;

	if (view->ever_sent)
		flags |= BANK_EVER_SENT;
	if (view->in_doubt || view->state == REC_SENT)
		flags |= BANK_IN_DOUBT;
	if (view->ended_by_curlcode)
		flags |= BANK_CURLCODE;
	return flags;
}

static void fill_bank(struct bank *bank, const struct record_view *view)
{
	bank->made = stamp_pack(view->made);
	bank->first_sent = stamp_pack(view->first_sent);
	bank->ended = stamp_pack(view->ended);
	bank->first_delivered = stamp_pack(view->first_delivered);
	bank->ttl_us = view->ttl_us;
	bank->tombstone_us = view->tombstone_us;
	bank->flags = flags_in(view);
	bank->freed = (uint8_t)view->freed;
	if (view->state == REC_RESERVED)
		bank->freed = FREED_WITHDRAWN;
	if (bank->ended.wall_us == 0)
		bank->ended = stamp_pack(view->made);
	bank->attempts = view->attempts;
	bank->wire_sends = view->wire_sends;
}

/* False: no room for all of them. */
static bool fill_runs(struct ledger *l, struct change *c, const struct record_view *view,
                      struct stamp now)
{
	size_t count = view->run_count < LEDGER_RUNS ? view->run_count : LEDGER_RUNS;

	if (change_runs_room(l, c, count, now) < count)
		return false;
	c->bank.run_count = (uint8_t)count;
	memcpy(c->bank.runs, view->runs, count * sizeof(*view->runs));
	return true;
}

static int fill(struct ledger *l, struct change *c, const struct ledger_record *record,
                uint32_t unit, struct stamp now)
{
	struct ledger_answer answer = {.status = record->view.status,
	                               .blob = span_buf(&record->answer)};

	int rc;

	c->word.state = state_in(&record->view);
	fill_bank(&c->bank, &record->view);
	if (!fill_runs(l, c, &record->view, now)) {
		change_cancel(c);
		return LEDGER_FULL;
	}
	if (!answer_attach(l, c, &answer, unit, true, now)) {
		change_cancel(c);
		return LEDGER_LOST;
	}
	if (answer.blob.n && !c->bank.answer) {
		change_cancel(c);
		return LEDGER_FULL;
	}
	if (c->word.state == REC_TOMBSTONE)
		c->bank.facts = c->bank.facts_size = 0;
	change_own(c, (struct owner){0, 0});
	rc = change_publish(l, c, NULL);
	if (rc != LEDGER_OK && c->bank.more_runs != c->live.more_runs)
		heap_give(l, c->bank.more_runs, c->id);
	return rc;
}

static int put_all(struct ledger *l, uint64_t id, uint64_t word, const struct ledger_record *record,
                   struct stamp now)
{
	struct ledger_answer answer = {.status = record->view.status,
	                               .blob = span_buf(&record->answer)};
	struct change c;
	uint32_t unit = 0;
	int rc;

	answer_write(l, &answer, id, now, &unit);
	rc = change_begin(l, id, &c);
	if (rc == LEDGER_OK && c.seen != word) {
		change_cancel(&c);
		rc = LEDGER_LOST;
	}
	if (rc == LEDGER_OK)
		rc = fill(l, &c, record, unit, now);
	if (rc != LEDGER_OK)
		heap_give(l, unit, id);
	return rc;
}

/* One that means another record here stays with that one. */
int carry_bind(struct ledger *l, uint64_t id, const struct ledger_record *record)
{
	uint64_t token;
	int rc = LEDGER_OK;

	for (size_t i = 0; i < record->own_key_count && rc == LEDGER_OK; i++) {
		token = lock_take(l, &l->header->table_lock);
		if (key_find(l, record->own_keys[i]) < 0)
			rc = key_bind(l, id, record->own_keys[i]);
		lock_drop(&l->header->table_lock, token);
	}
	return rc;
}

static int make_place(struct ledger *l, const struct ledger_record *record,
                      const struct record_view *over, struct stamp now, struct hold *hold)
{
	const struct record_view *view = &record->view;
	struct record_new rec = {.content = view->content,
	                         .any_account = view->any_account,
	                         .place = view->place,
	                         .fingerprint = view->fingerprint,
	                         .wire_body = view->wire_body,
	                         .settings = view->settings,
	                         .operation = view->operation,
	                         .key = view->key,
	                         .trace = view->trace,
	                         .generation = view->generation,
	                         .ttl_us = view->ttl_us,
	                         .tombstone_us = view->tombstone_us,
	                         .copy_of = record};

	return ledger_reserve(l, &rec, over, now, hold);
}

static bool same_facts(const struct ledger_record *record, const struct record_view *over)
{
	return over && over->generation == record->view.generation &&
	       strcmp(over->key, record->view.key) == 0 && over->state != REC_TOMBSTONE;
}

int carry_put(struct ledger *l, const struct ledger_record *record, const struct record_view *over,
              struct stamp now)
{
	bool there = same_facts(record, over);
	struct hold hold = {0};
	int saved = errno, rc = LEDGER_OK;

	if (l->read_only)
		return LEDGER_CANNOT;
	if (there)
		hold = (struct hold){over->id, over->word};
	else
		rc = make_place(l, record, over, now, &hold);
	if (rc == LEDGER_OK) {
		rc = put_all(l, hold.id, hold.word, record, now);
		if (rc != LEDGER_OK && !there)
			ledger_withdraw(l, &hold, now);
	}
	if (rc == LEDGER_OK)
		rc = carry_bind(l, hold.id, record);
	errno = saved;
	return rc;
}

int carry_flush(struct ledger *l)
{
	return file_flush(l);
}

uint64_t carry_origin(const struct ledger *l)
{
	return sum_bytes((uint64_t)l->fixed.made_us, l->fixed.secret, sizeof(l->fixed.secret));
}
