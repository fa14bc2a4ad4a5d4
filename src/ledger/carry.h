/* Records that leave a ledger and come into another one: export and import, resize, recover.
 *
 * A carried record is all that a record means, without the place it had: no id, no owner, no lease.
 * Everything that copies records is a loop over carry_read and carry_put or carry_in. */
#ifndef SENDONCE_LEDGER_CARRY_H
#define SENDONCE_LEDGER_CARRY_H

#include "ledger/ledger.h"

struct ledger_record {
	struct record_view view; /* id, word, hit, owner and lease mean nothing here */
	struct buf answer;       /* the final one; empty: none is kept */
	uint8_t (*own_keys)[LEDGER_HASH];
	size_t own_key_count;
	uint64_t maker_boot; /* who made it: whom `resolve` does not believe */
	uint32_t maker_pid;
};
void carry_free(struct ledger_record *record);

/* The record that `view` was made of. `out` is all zero before and freed by carry_free in any
 * case. LEDGER_OK; LEDGER_LOST: it changed meanwhile, look again; LEDGER_NOMEM. */
int carry_read(struct ledger *l, const struct record_view *view, struct ledger_record *out);

/* Make it a record of `l`, beside whatever is there; `over` (may be null): in the place of that
 * one, which nobody may own. What was `reserved` there becomes freed, for nothing had left; what
 * was `sent` is in doubt. Not flushed. LEDGER_OK, LEDGER_FULL, LEDGER_LOST, LEDGER_CANNOT. */
int carry_put(struct ledger *l, const struct ledger_record *record, const struct record_view *over,
              struct stamp now);

/* What becomes of one that is carried to a ledger. */
enum carry_act {
	CARRY_KEEP,   /* what is there is newer, or is being sent: nothing changes */
	CARRY_MERGE,  /* the same, with the runs and own keys of both */
	CARRY_TAKE,   /* in the place of what is there */
	CARRY_INSERT, /* beside it, or there is none */
};

/* The table of docs/ledger-format.md, pure. `theirs` and `ours` have one content; `ours` null:
 * there is none. `same`: they come from one ledger, so that the time they were made orders them. */
enum carry_act carry_decide(const struct record_view *theirs, const struct record_view *ours,
                            bool same);

/* Import one: look for ours, decide, do it. `did` is set when LEDGER_OK is returned; otherwise as
 * carry_put. */
int carry_in(struct ledger *l, const struct ledger_record *record, bool same, struct stamp now,
             enum carry_act *did);

/* Bind its own keys to the record `id`; one that means another record here stays with that one. */
int carry_bind(struct ledger *l, uint64_t id, const struct ledger_record *record);
/* Everything so far is on the disk. */
int carry_flush(struct ledger *l);
/* Which ledger this is, also after it was resized: a number without meaning. */
uint64_t carry_origin(const struct ledger *l);

#endif
