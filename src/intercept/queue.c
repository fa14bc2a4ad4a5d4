/* See queue.h. A binary heap of those that wait, by their time, and the notes that others leave
 * with the bell (bell.h). Both only say whom to look at: whether there is something to do is asked
 * of the transfer itself. Room for all of them is made when they join, so nothing fails later.
 *
 * In a child of fork(2) no bell is rung for what the parent was waiting for: there all are looked
 * at each time. */
#include "intercept/queue.h"

#include <stdlib.h>
#include <string.h>

#include "intercept/pseudo.h"
#include "intercept/serve.h"

/* --- the heap --- */

static void put(struct queue *q, size_t at, struct pseudo *p)
{
	q->heap[at] = p;
	p->place = at + 1;
}

static void rise(struct queue *q, size_t at, struct pseudo *p)
{
	while (at > 0 && q->heap[(at - 1) / 2]->due_us > p->due_us) {
		put(q, at, q->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	put(q, at, p);
}

static void sink(struct queue *q, size_t at, struct pseudo *p)
{
	size_t child;

	while ((child = 2 * at + 1) < q->timed) {
		if (child + 1 < q->timed && q->heap[child + 1]->due_us < q->heap[child]->due_us)
			child++;
		if (q->heap[child]->due_us >= p->due_us)
			break;
		put(q, at, q->heap[child]);
		at = child;
	}
	put(q, at, p);
}

static void take_out(struct queue *q, struct pseudo *p)
{
	size_t at = p->place - 1;
	struct pseudo *last;

	if (!p->place)
		return;
	p->place = 0;
	last = q->heap[--q->timed];
	if (last == p)
		return;
	if (at > 0 && q->heap[(at - 1) / 2]->due_us > last->due_us)
		rise(q, at, last);
	else
		sink(q, at, last);
}

void queue_settle(struct pseudo *p)
{
	struct queue *q = &p->multi->queue;
	bool ours = pseudo_is_ours(p);

	q->ours += (unsigned)ours - (unsigned)p->counted;
	p->counted = ours;
	take_out(q, p);
	p->due_us = pseudo_due_us(p, serve_now_us());
	if (p->due_us != MULTI_NEVER)
		rise(q, q->timed++, p);
}

/* --- in and out --- */

bool queue_join(struct multi *m, struct pseudo *p)
{
	struct queue *q = &m->queue;
	size_t room = q->room ? q->room * 2 : 8;
	struct pseudo **more;

	if (q->members == q->room) {
		more = realloc(q->heap, room * sizeof *more);
		if (!more)
			return false;
		q->heap = more;
		more = realloc(q->come, room * sizeof *more);
		if (!more)
			return false;
		q->come = more;
		q->room = room;
	}
	q->members++;
	p->number = ++q->last_number;
	return true;
}

/* There is room: no more than all members wait here, each once. */
static void look_at(struct queue *q, struct pseudo *p)
{
	if (p->comes)
		return;
	if (q->coming == q->room) {
		memmove(q->come, q->come + q->at, (q->coming - q->at) * sizeof *q->come);
		q->coming -= q->at;
		q->at = 0;
	}
	p->comes = true;
	q->come[q->coming++] = p;
}

static void take_note(void *ctx, struct bell_note *note)
{
	struct pseudo *p = (void *)((char *)note - offsetof(struct pseudo, note));

	look_at(ctx, p);
}

static void take_notes(struct multi *m)
{
	if (m->bell)
		bell_take(m->bell, take_note, &m->queue);
}

static void forget(struct queue *q, const struct pseudo *p)
{
	size_t i = q->at;

	while (q->come[i] != p)
		i++;
	q->coming--;
	memmove(q->come + i, q->come + i + 1, (q->coming - i) * sizeof *q->come);
}

void queue_leave(struct pseudo *p)
{
	struct queue *q = &p->multi->queue;

	take_notes(p->multi); /* it may lie there */
	take_out(q, p);
	if (p->comes)
		forget(q, p);
	q->ours -= p->counted;
	q->members--;
}

void queue_free(struct queue *q)
{
	free(q->heap);
	free(q->come);
	*q = (struct queue){0};
}

/* --- asked --- */

unsigned queue_ours(const struct multi *m)
{
	return m->queue.ours;
}

static int64_t nearest_of_all(const struct multi *m, int64_t now)
{
	int64_t due = MULTI_NEVER, one;

	for (const struct pseudo *p = m->first; p; p = p->next) {
		one = pseudo_due_us(p, now);
		due = one < due ? one : due;
	}
	return due;
}

int64_t queue_due_us(const struct multi *m, int64_t now)
{
	const struct queue *q = &m->queue;

	if (m->forked)
		return nearest_of_all(m, now);
	if (q->coming || (q->ours && m->bell && bell_has_notes(m->bell)))
		return now;
	return q->timed ? q->heap[0]->due_us : MULTI_NEVER;
}

/* --- one time around --- */

static int by_number(const void *a, const void *b)
{
	const struct pseudo *one = *(struct pseudo *const *)a, *other = *(struct pseudo *const *)b;

	return one->number < other->number ? -1 : one->number > other->number;
}

static void gather(struct multi *m, int64_t now)
{
	struct queue *q = &m->queue;

	take_notes(m);
	while (q->timed && q->heap[0]->due_us <= now) {
		struct pseudo *p = q->heap[0];

		take_out(q, p);
		look_at(q, p);
	}
	for (struct pseudo *p = m->forked ? m->first : NULL; p; p = p->next)
		look_at(q, p);
	if (q->coming > 1)
		qsort(q->come, q->coming, sizeof *q->come, by_number);
}

/* A callback may give up another one of them, and let one go on. */
void queue_step(struct multi *m)
{
	struct queue *q = &m->queue;
	int64_t now = serve_now_us();

	gather(m, now);
	while (q->at < q->coming) {
		struct pseudo *p = q->come[q->at++];

		p->comes = false;
		if (pseudo_due_us(p, now) == 0)
			pseudo_step(p);
		else
			queue_settle(p);
	}
	q->at = q->coming = 0;
}
