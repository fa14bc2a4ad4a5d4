/* What people ask of the ledger: list, resolve, forget, verify, counters, names. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ledger/internal.h"

int ledger_each(struct ledger *l, struct stamp now, ledger_visit *visit, void *ctx)
{
	struct record_view view;
	int saved = errno, rc = 0;

	for (uint64_t i = 0; i < record_end(l) && rc == 0; i++) {
		if (record_view(l, record_at(l, i), now, &view))
			rc = visit(ctx, &view);
	}
	errno = saved;
	return rc;
}

static int begin_seen(struct ledger *l, const struct record_view *view, struct change *c)
{
	int rc = change_begin(l, view->id, c);

	if (rc != LEDGER_OK)
		return rc;
	if (c->seen == view->word)
		return LEDGER_OK;
	change_cancel(c);
	return LEDGER_LOST;
}

/* What it was written with may be damaged: then it is gone from here on, and what a person said of
 * the write counts. */
static bool resolve_change(struct ledger *l, struct change *c, bool executed,
                           const struct ledger_answer *answer, uint32_t unit, struct stamp now)
{
	struct facts facts;

	c->word.state = executed ? REC_DONE : REC_FREED;
	c->bank.freed = executed ? FREED_NOT : FREED_RESOLVED;
	c->bank.ended = stamp_pack(now);
	c->bank.flags &= (uint8_t) ~(BANK_IN_DOUBT | BANK_CURLCODE);
	if (!record_facts(l, c->rec, c->id, &c->bank, &facts))
		c->bank.facts = c->bank.facts_size = 0;
	change_own(c, (struct owner){0, 0});
	return answer_attach(l, c, executed ? answer : NULL, executed ? unit : 0, true, now);
}

/* Only a doubt can be resolved: not what somebody alive is sending, nor what is known. */
int ledger_resolve(struct ledger *l, const struct record_view *view, bool executed,
                   const struct ledger_answer *answer, struct stamp now)
{
	struct change c;
	uint32_t unit = 0;
	int saved = errno, rc = LEDGER_CANNOT;

	if (l->read_only)
		return rc;
	if (executed)
		answer_write(l, answer, view->id, now, &unit);
	rc = begin_seen(l, view, &c);
	if (rc == LEDGER_OK && ((c.word.state != REC_SENT && c.word.state != REC_UNKNOWN &&
	                         view->state != REC_UNKNOWN) ||
	                        change_owner_holds(l, &c, now))) {
		change_cancel(&c);
		rc = LEDGER_LOST;
	}
	if (rc == LEDGER_OK) {
		if (resolve_change(l, &c, executed, answer, unit, now))
			rc = change_publish(l, &c, NULL);
		else
			change_cancel(&c), rc = LEDGER_LOST;
		if (rc == LEDGER_OK)
			rc = file_flush(l);
	}
	if (rc == LEDGER_LOST || rc == LEDGER_NONE)
		heap_give(l, unit, view->id);
	errno = saved;
	return rc;
}

/* The generation stays, so that the next one gets another key: the provider may remember this. */
int ledger_forget(struct ledger *l, const struct record_view *view, struct stamp now)
{
	struct change c;
	int saved = errno, rc = begin_seen(l, view, &c);

	if (rc == LEDGER_OK && change_owner_holds(l, &c, now)) {
		change_cancel(&c);
		rc = LEDGER_LOST;
	}
	if (rc == LEDGER_OK) {
		change_drop_answer(&c);
		c.word.state = REC_FREED;
		c.bank.freed = FREED_STORED;
		c.bank.ended = stamp_pack(now);
		change_drop_facts(&c);
		c.bank.flags = 0;
		change_own(&c, (struct owner){0, 0});
		rc = change_publish(l, &c, NULL);
		if (rc == LEDGER_OK)
			rc = file_flush(l);
	}
	errno = saved;
	return rc;
}

static bool pid_in(uint32_t pid, const int *pids, size_t count)
{
	if (pid == (uint32_t)getpid())
		return true;
	for (size_t i = 0; i < count; i++) {
		if (pids[i] > 0 && (uint32_t)pids[i] == pid)
			return true;
	}
	return false;
}

bool ledger_has_pid(struct ledger *l, const int *pids, size_t count)
{
	struct bank bank;
	struct facts facts;
	struct layout_record *rec;
	uint64_t id, word, boot = clock_now().boot;
	struct word w;

	for (uint64_t i = 0; i < record_end(l); i++) {
		rec = record_at(l, i);
		if (!record_read(l, rec, &id, &word, &bank))
			continue;
		w = word_read(word);
		if (w.owner && pid_in((uint32_t)owner_pid(l, w.owner, w.nonce), pids, count))
			return true;
		if (record_facts(l, rec, id, &bank, &facts) && facts.fixed.maker_boot == boot &&
		    pid_in(facts.fixed.maker_pid, pids, count))
			return true;
	}
	return false;
}

bool ledger_has_run(struct ledger *l, uint64_t run)
{
	struct bank bank;
	uint64_t id, word;

	for (uint64_t i = 0; run && i < record_end(l); i++) {
		if (!record_read(l, record_at(l, i), &id, &word, &bank))
			continue;
		for (uint32_t k = 0; k < bank.run_count && k < LEDGER_RUNS; k++) {
			if (bank.runs[k].run == run)
				return true;
		}
	}
	return false;
}

/* Relaxed: counters order nothing and are read by people. */
void ledger_count(struct ledger *l, enum ledger_counter counter)
{
	if (!l->read_only && (unsigned)counter < COUNT_COUNT && file_header_ready(l))
		atomic_fetch_add_explicit(&l->header->counters[counter], 1, memory_order_relaxed);
}

uint64_t ledger_counter(const struct ledger *l, enum ledger_counter counter)
{
	if ((unsigned)counter >= COUNT_COUNT)
		return 0;
	return atomic_load_explicit(&l->header->counters[counter], memory_order_relaxed);
}

const char *ledger_counter_name(enum ledger_counter counter)
{
	static const char *const names[] = {
#define LEDGER_COUNTER_TEXT(name) #name,
	        LEDGER_COUNTERS(LEDGER_COUNTER_TEXT)
#undef LEDGER_COUNTER_TEXT
	};

	return (unsigned)counter < COUNT_COUNT ? names[counter] : "invalid";
}

const char *record_state_name(enum record_state state)
{
	static const char *const names[] = {"none", "reserved", "sent",     "unknown",
	                                    "done", "freed",    "tombstone"};

	return (unsigned)state < sizeof(names) / sizeof(*names) ? names[state] : "invalid";
}

uint64_t ledger_name_hash(struct span name)
{
	uint64_t h;

	if (name.n == 0)
		return 0;
	h = sum_bytes(0x6e616d65, name.p, name.n);
	return h ? h : 1;
}
