/* A process that stands still inside a change for so long that its lock is taken from it: whoever
 * took it only made a note, and the change must still be made; or took the record over, and then it
 * must not.
 *
 * transition.c is included with a publication that is late on demand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ledger/internal.h"

enum meanwhile { NOTHING, A_NOTE, TAKEN_OVER };
static enum meanwhile meanwhile;

static void others(struct ledger *l, struct change *c)
{
	enum meanwhile what = meanwhile;
	struct stamp later = clock_now();
	struct record_view v;
	struct hold theirs;

	meanwhile = NOTHING;
	if (what == NOTHING)
		return;
	later.wall_us += 16000000;
	later.boot_us += 16000000;
	atomic_store(&c->rec->lock, 0);
	if (what == A_NOTE) {
		assert_int_equal(ledger_asked(l, c->id, 1, 99, later), LEDGER_OK);
		return;
	}
	assert_int_equal(ledger_look(l, c->id, later, &v), LEDGER_OK);
	assert_false(v.lease_fresh);
	assert_int_equal(ledger_take(l, &v, later, &theirs), LEDGER_OK);
}

static int late_publish(struct ledger *l, struct change *c, uint64_t *installed)
{
	others(l, c);
	return change_publish(l, c, installed);
}

#define change_publish late_publish
#include "ledger/transition.c"
#undef change_publish

static struct stamp now;
static char folder[] = "/tmp/sendonce-late-XXXXXX";
static char path[64];
static struct ledger *ledger;
static unsigned writes;

static struct hold held(bool is_sent)
{
	uint8_t content[LEDGER_HASH] = {1}, any[LEDGER_HASH] = {2}, place[LEDGER_HASH] = {3};
	struct record_new rec = {.content = content,
	                         .any_account = any,
	                         .place = place,
	                         .fingerprint = content,
	                         .wire_body = content,
	                         .settings = 7,
	                         .operation = "op",
	                         .key = "the-key",
	                         .generation = 1,
	                         .ttl_us = INT64_C(100000000),
	                         .tombstone_us = INT64_C(200000000)};
	struct hold h;

	writes++;
	memcpy(content + 8, &writes, sizeof(writes));
	memcpy(any + 8, &writes, sizeof(writes));
	assert_int_equal(ledger_reserve(ledger, &rec, NULL, now, &h), LEDGER_OK);
	if (is_sent)
		assert_int_equal(ledger_gate(ledger, &h, now), LEDGER_OK);
	return h;
}

static enum record_state state_of(const struct hold *h)
{
	struct record_view v;

	assert_int_equal(ledger_look(ledger, h->id, now, &v), LEDGER_OK);
	return v.state;
}

enum change_kind { GATE, WIRE, WITHDRAW, FINAL, DOUBT, NOT_EXECUTED };

static int change_make(enum change_kind kind, struct hold *h)
{
	struct ledger_answer a = {.status = 201, .blob = {"created", 7}};

	switch (kind) {
	case GATE:
		return ledger_gate(ledger, h, now);
	case WIRE:
		return ledger_wire_send(ledger, h);
	case WITHDRAW:
		return ledger_withdraw(ledger, h, now);
	case FINAL:
		return ledger_done(ledger, h, &a, now);
	case DOUBT:
		return ledger_unknown(ledger, h, false, NULL, now);
	default:
		return ledger_freed(ledger, h, FREED_ANSWER, NULL, now);
	}
}

static const struct {
	enum change_kind kind;
	bool from_sent;
	enum record_state to;
	int taken_rc; /* when the record was taken over meanwhile */
	enum record_state taken;
} table[] = {
        {GATE, false, REC_SENT, LEDGER_LOST, REC_RESERVED},
        {WIRE, true, REC_SENT, LEDGER_LOST, REC_UNKNOWN},
        {WITHDRAW, false, REC_FREED, LEDGER_LOST, REC_RESERVED},
        {FINAL, true, REC_DONE, LEDGER_OK, REC_DONE}, /* accepted whatever the owner */
        {DOUBT, true, REC_UNKNOWN, LEDGER_OK, REC_UNKNOWN},
        {NOT_EXECUTED, true, REC_FREED, LEDGER_LOST, REC_UNKNOWN},
};

static void a_note_of_somebody_else_ends_nothing(void **state)
{
	struct hold h;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		h = held(table[i].from_sent);
		meanwhile = A_NOTE;
		assert_int_equal(change_make(table[i].kind, &h), LEDGER_OK);
		assert_int_equal(meanwhile, NOTHING);
		assert_int_equal(state_of(&h), table[i].to);
	}
}

static void who_was_followed_changes_nothing(void **state)
{
	struct hold h;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		h = held(table[i].from_sent);
		meanwhile = TAKEN_OVER;
		assert_int_equal(change_make(table[i].kind, &h), table[i].taken_rc);
		assert_int_equal(meanwhile, NOTHING);
		assert_int_equal(state_of(&h), table[i].taken);
	}
}

static void the_answer_is_kept_whole(void **state)
{
	struct hold h = held(true);
	struct record_view v;
	struct buf blob = {0};
	long status;

	(void)state;
	meanwhile = A_NOTE;
	assert_int_equal(change_make(FINAL, &h), LEDGER_OK);
	assert_int_equal(ledger_look(ledger, h.id, now, &v), LEDGER_OK);
	assert_int_equal(ledger_answer(ledger, &v, &blob, &status), LEDGER_OK);
	assert_true(span_is(span_buf(&blob), "created"));
	assert_int_equal(v.run_count, 1); /* and the note with it */
	buf_free(&blob);
}

static int set_up(void **state)
{
	struct ledger_options o = {
	        .path = path, .size = 512 * 1024, .max_response = 4096, .create = true};
	struct ledger_error e;

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/ledger", folder);
	now = clock_now();
	return ledger_open(&o, &ledger, &e);
}

static int tear_down(void **state)
{
	int faults = ledger_verify(ledger, NULL, NULL);

	(void)state;
	ledger_close(ledger);
	unlink(path);
	return rmdir(folder) || faults ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_note_of_somebody_else_ends_nothing),
	        cmocka_unit_test(who_was_followed_changes_nothing),
	        cmocka_unit_test(the_answer_is_kept_whole),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
