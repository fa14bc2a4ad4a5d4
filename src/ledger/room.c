/* A record's room: what a generation was written with and its answer, next to what changes.
 *
 * Most writes fit into their record, so that one is made, sent and answered in 1,344 bytes side by
 * side, on one page. What does not fit lies in the heap. A reference says where: an offset
 * within the record with LAYOUT_INLINE, else a unit of the heap. Bytes that a bank refers to are
 * never written again while it is the one that counts: the next generation's go into a gap beside
 * them. Writing into the room needs the record's lock, as filling the spare bank does. */
#include <string.h>

#include "ledger/internal.h"

struct stretch {
	size_t from, end;
};

static struct stretch stretch_of(uint32_t at, size_t n)
{
	size_t from = at & ~LAYOUT_INLINE;

	if (!(at & LAYOUT_INLINE))
		return (struct stretch){0, 0};
	return (struct stretch){from, from + (n + 7) / 8 * 8};
}

/* Neither of the banks uses any of it. */
static bool is_gap(struct stretch gap, const struct stretch *used, size_t count)
{
	if (gap.end > LAYOUT_RECORD)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (gap.from < used[i].end && used[i].from < gap.end)
			return false;
	}
	return true;
}

uint32_t room_gap(const struct bank *live, const struct bank *made, size_t n)
{
	struct stretch used[4] = {stretch_of(live->facts, live->facts_size),
	                          stretch_of(live->answer, live->answer_size),
	                          stretch_of(made->facts, made->facts_size),
	                          stretch_of(made->answer, made->answer_size)};
	struct stretch gap;
	size_t start = offsetof(struct layout_record, room);

	for (size_t i = 0; i <= 4; i++) {
		gap = stretch_of((uint32_t)start | LAYOUT_INLINE, n);
		if (n && is_gap(gap, used, 4))
			return (uint32_t)start | LAYOUT_INLINE;
		start = i < 4 && used[i].end ? used[i].end : offsetof(struct layout_record, room);
	}
	return 0;
}

void *room_at(const struct ledger *l, struct layout_record *rec, uint64_t id, uint32_t at,
              enum extent_kind kind, size_t n)
{
	size_t from = at & ~LAYOUT_INLINE;

	if (!(at & LAYOUT_INLINE))
		return heap_at(l, at, kind, id, (n + 7) / 8 * 8);
	if (from % 8 || from < offsetof(struct layout_record, room) || from > LAYOUT_RECORD ||
	    (n + 7) / 8 * 8 > LAYOUT_RECORD - from)
		return NULL;
	return (char *)rec + from;
}

void room_give(struct ledger *l, uint32_t at, uint64_t id)
{
	if (at && !(at & LAYOUT_INLINE))
		heap_give(l, at, id);
}

bool room_put(struct ledger *l, struct change *c, uint32_t at, enum extent_kind kind,
              struct span bytes)
{
	void *to = room_at(l, c->rec, c->id, at, kind, bytes.n);

	if (!at || !to || !lock_held(&c->rec->lock, c->token))
		return false;
	shared_in_bytes(to, bytes.p, bytes.n);
	return true;
}
