/* Which of several equal writes of one run: each has a record of its own, and a run that is resumed
 * asks for them in the order in which they were made.
 *
 * Takes no lock: what the index gives is noted with its generation, sorted, and the one that is
 * wanted is read again by its id. A record that comes or goes meanwhile is one that this call was
 * concurrent with. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/internal.h"

struct turn {
	uint32_t generation;
	uint64_t id;
};

struct turns {
	struct turn *list;
	size_t count, room;
};

static bool has_asked(const struct record_view *view, uint64_t run)
{
	for (size_t i = 0; i < view->run_count; i++)
		if (view->runs[i].run == run)
			return true;
	return false;
}

static int add(struct turns *t, const struct record_view *view)
{
	if (t->count == t->room) {
		size_t room = t->room ? t->room * 2 : 16;
		struct turn *more = realloc(t->list, room * sizeof(*more));

		if (!more)
			return LEDGER_NOMEM;
		t->list = more;
		t->room = room;
	}
	t->list[t->count++] = (struct turn){view->generation, view->id};
	return LEDGER_OK;
}

static int collect(struct ledger *l, const uint8_t *content, uint64_t run, struct stamp now,
                   struct turns *t)
{
	struct index_walk walk = index_start(l, content, INDEX_CONTENT);
	struct layout_record *rec;
	struct record_view view;
	int64_t number;
	int rc = LEDGER_OK;

	while (rc == LEDGER_OK && (number = index_next(l, &walk)) >= 0) {
		rec = record_at(l, (uint64_t)number);
		if (rec && record_view(l, rec, now, &view) && has_asked(&view, run) &&
		    memcmp(view.content, content, LEDGER_HASH) == 0)
			rc = add(t, &view);
	}
	return rc;
}

static int by_generation(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	return (x->generation > y->generation) - (x->generation < y->generation);
}

int ledger_find_turn(struct ledger *l, const uint8_t *content, uint64_t run, uint32_t turn,
                     struct stamp now, struct record_view *out, uint32_t *place)
{
	struct turns t = {0};
	int saved = errno, rc = collect(l, content, run, now, &t);

	memset(out, 0, sizeof(*out));
	*place = 0;
	if (rc == LEDGER_OK && t.count == 0)
		rc = LEDGER_NONE;
	if (rc == LEDGER_OK) {
		qsort(t.list, t.count, sizeof(*t.list), by_generation);
		*place = turn < t.count ? turn : (uint32_t)t.count;
		rc = ledger_look(l, t.list[*place ? *place - 1 : 0].id, now, out);
		out->hit = rc == LEDGER_OK ? HIT_CONTENT : HIT_NONE;
	}
	free(t.list);
	errno = saved;
	return rc;
}
