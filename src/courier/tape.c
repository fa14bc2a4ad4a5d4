/* The tape: a list of pieces, written by whoever drives the courier and read by any number of
 * players.
 *
 * Pieces are not moved or changed once they are in the list, so only the links need the lock; after
 * the end nothing is added, and where nothing is freed either no reader takes it. A
 * cursor pins the piece it was given last. As long as the body fits `keep`, everything stays, for
 * late readers and the ledger; above that, pieces which every reader has passed are freed, and
 * where there is no reader at all body bytes are not even taken. Either way the tape has lost its
 * beginning then, and says so.
 *
 * The bound of 4 MiB follows the fastest reader: one that left by longjmp must not stop the others.
 * A slow one beside it may therefore hold more. */
#include "courier/tape.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "courier/fields.h"
#include "courier/inside.h"

enum { TAPE_UNPLAYED = 4 << 20, TAPE_ROOM = 640, HEAD_ROOM = 256 };

struct node {
	struct node *next;
	struct tape_piece piece;
	size_t bulk_before; /* bytes of body and debug pieces before this one */
	unsigned pins;
	char data[];
};

struct tape {
	atomic_uint refs;
	pthread_mutex_t lock;
	struct node *first, *last, *hidden; /* hidden: the first one readers may not see yet */
	bool held;
	char *whole; /* memory of all nodes of a tape that was filled at once; null: one each */
	size_t keep, body, bulk, played;
	unsigned readers, unstarted;
	bool lost; /* its beginning, or a part of the body, is not here any more */
	bool in_block;
	struct buf head; /* the last origin header block */
	struct info *info;
	struct tape_end end;
	atomic_bool over; /* `end` is there */
	/* Nodes of a short answer; taken by whoever fills the tape, given back with it. */
	size_t used;
	_Alignas(struct node) char room[TAPE_ROOM];
	char head_room[HEAD_ROOM]; /* of a short head */
};

struct tape *tape_new(size_t keep)
{
	struct tape *t = malloc(sizeof *t);

	if (!t)
		return NULL;
	memset(t, 0, offsetof(struct tape, room));
	if (pthread_mutex_init(&t->lock, NULL)) {
		free(t);
		return NULL;
	}
	atomic_init(&t->refs, 1);
	t->keep = keep;
	return t;
}

static struct node *tape_node(struct tape *t, size_t bytes)
{
	size_t size = (sizeof(struct node) + bytes + _Alignof(struct node) - 1) &
	              ~(_Alignof(struct node) - 1);
	char *at = t->room + t->used;

	if (bytes > TAPE_ROOM || size > TAPE_ROOM - t->used)
		return malloc(sizeof(struct node) + bytes);
	t->used += size;
	return (struct node *)(void *)at;
}

static void tape_node_free(const struct tape *t, struct node *n)
{
	if ((uintptr_t)n - (uintptr_t)t->room >= TAPE_ROOM)
		free(n);
}

struct tape *tape_ref(struct tape *t)
{
	/* relaxed: whoever passes the pointer on holds a reference already */
	atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
	return t;
}

void tape_unref(struct tape *t)
{
	/* acq_rel: every use by others happens before the memory is freed */
	if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1)
		return;
	while (t->first && !t->whole) {
		struct node *n = t->first;

		t->first = n->next;
		tape_node_free(t, n);
	}
	free(t->whole);
	buf_free(&t->head);
	info_free(t->info);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static bool tape_line_is_empty(const struct tape_piece *p)
{
	return (p->n == 2 && p->data[0] == '\r' && p->data[1] == '\n') ||
	       (p->n == 1 && p->data[0] == '\n');
}

/* Keeps the last block of the origin apart, since its pieces may be gone when it is asked for. A
 * trailer comes after the empty line and is no part of it. */
static void tape_note_header(struct tape *t, const struct tape_piece *p)
{
	if (p->connect)
		return;
	if (p->n >= 5 && memcmp(p->data, "HTTP/", 5) == 0) {
		buf_reset(&t->head);
		t->in_block = true;
	} else if (!t->head.n) {
		t->in_block = true; /* an HTTP200ALIASES status line */
	}
	if (!t->in_block)
		return;
	if (!t->head.data)
		t->head = buf_in(t->head_room, HEAD_ROOM);
	buf_add(&t->head, p->data, p->n);
	t->in_block = !tape_line_is_empty(p);
}

/* With nobody to read it, what is above `keep` is not taken; nor is what comes after an end that
 * was told without the driver (life.c). */
static bool tape_wants(struct tape *t, const struct tape_piece *p)
{
	if (t->end.ended)
		return false;
	if (p->kind == TAPE_HEADER || t->readers)
		return true;
	if (p->kind == TAPE_DEBUG || p->kind == TAPE_REQUEST)
		return t->bulk <= TAPE_UNPLAYED;
	if (!t->lost && p->n <= t->keep && t->body <= t->keep - p->n)
		return true;
	t->lost = true;
	return false;
}

int tape_add(struct tape *t, const struct tape_piece *piece)
{
	struct node *n = tape_node(t, piece->n + 1);

	if (!n)
		return -1;
	n->next = NULL;
	n->pins = 0;
	n->piece = *piece;
	n->piece.data = n->data;
	if (piece->n)
		memcpy(n->data, piece->data, piece->n);
	n->data[piece->n] = '\0'; /* as libcurl's own texts have, which debug callbacks print */
	pthread_mutex_lock(&t->lock);
	bool wanted = tape_wants(t, piece);
	if (piece->kind == TAPE_HEADER && wanted)
		tape_note_header(t, piece);
	n->bulk_before = t->bulk;
	if (wanted) {
		if (t->last)
			t->last->next = n;
		else
			t->first = n;
		t->last = n;
		if (t->held && !t->hidden)
			t->hidden = n;
		t->bulk += piece->kind == TAPE_HEADER ? 0 : piece->n;
	}
	if (!t->end.ended)
		t->body += piece->kind == TAPE_BODY ? piece->n : 0;
	pthread_mutex_unlock(&t->lock);
	if (!wanted)
		tape_node_free(t, n);
	return 0;
}

static size_t tape_count_lines(struct span head)
{
	size_t count = 0;

	while (fields_next(&head).n)
		count++;
	return count;
}

/* Nodes grow from the front of the memory, what they hold from `*at`, each with a NUL behind it as
 * in tape_add. Returns where the next node goes. */
static struct node *tape_place(struct tape *t, struct node *n, enum tape_kind kind,
                               struct span data, char **at)
{
	memcpy(*at, data.p, data.n);
	(*at)[data.n] = '\0';
	*n = (struct node){.piece = {.kind = kind, .data = *at, .n = data.n},
	                   .bulk_before = t->bulk};
	*at += data.n + 1;
	if (t->last)
		t->last->next = n;
	else
		t->first = n;
	t->last = n;
	return n + 1;
}

int tape_fill(struct tape *t, struct span head, struct span body)
{
	size_t count = tape_count_lines(head) + (body.n > 0);
	char *whole = malloc(count * (sizeof(struct node) + 1) + head.n + body.n);
	struct node *n = (struct node *)(void *)whole;
	struct span rest = head, line;
	char *at;

	if (!whole)
		return -1;
	at = whole + count * sizeof(struct node);
	pthread_mutex_lock(&t->lock);
	buf_add_span(&t->head, head);
	while ((line = fields_next(&rest)).n)
		n = tape_place(t, n, TAPE_HEADER, line, &at);
	if (body.n)
		tape_place(t, n, TAPE_BODY, body, &at);
	t->bulk = t->body = body.n;
	t->whole = whole;
	pthread_mutex_unlock(&t->lock);
	return 0;
}

void tape_hold(struct tape *t)
{
	pthread_mutex_lock(&t->lock);
	t->held = true;
	pthread_mutex_unlock(&t->lock);
}

void tape_show(struct tape *t)
{
	pthread_mutex_lock(&t->lock);
	t->hidden = NULL;
	pthread_mutex_unlock(&t->lock);
}

void tape_finish(struct tape *t, const struct tape_end *end)
{
	pthread_mutex_lock(&t->lock);
	t->hidden = NULL;
	if (!t->end.ended) {
		t->end = *end;
		t->end.ended = true;
		/* release: whoever sees it sees what came before the end */
		atomic_store_explicit(&t->over, true, memory_order_release);
	}
	pthread_mutex_unlock(&t->lock);
}

void tape_info(struct tape *t, struct info *info)
{
	pthread_mutex_lock(&t->lock);
	struct info *old = t->info;
	t->info = info;
	pthread_mutex_unlock(&t->lock);
	info_free(old);
}

bool tape_full(struct tape *t)
{
	pthread_mutex_lock(&t->lock);
	bool full = t->readers && t->bulk > t->played && t->bulk - t->played > TAPE_UNPLAYED;
	pthread_mutex_unlock(&t->lock);
	return full;
}

bool tape_attach(struct tape *t)
{
	pthread_mutex_lock(&t->lock);
	bool whole = !t->lost;
	if (whole) {
		t->readers++;
		t->unstarted++;
	}
	pthread_mutex_unlock(&t->lock);
	return whole;
}

void tape_detach(struct tape *t)
{
	pthread_mutex_lock(&t->lock);
	if (t->readers)
		t->readers--;
	if (t->unstarted > t->readers)
		t->unstarted = t->readers;
	if (!t->readers) /* cursors left behind hold nothing back any more */
		for (struct node *n = t->first; n; n = n->next)
			n->pins = 0;
	pthread_mutex_unlock(&t->lock);
}

/* Frees what every reader has passed, once the whole is too large to be kept anyway. */
static struct node *tape_take_played(struct tape *t)
{
	struct node *played = NULL;

	if (t->body <= t->keep || t->unstarted || t->whole)
		return NULL;
	while (t->first && t->first != t->last && !t->first->pins) {
		struct node *n = t->first;

		t->first = n->next;
		t->lost = true;
		n->next = played;
		played = n;
	}
	return played;
}

static void tape_give(struct tape_cursor *cursor, struct node *next, struct tape_piece *piece)
{
	cursor->at = next;
	cursor->body_bytes += next->piece.kind == TAPE_BODY ? next->piece.n : 0;
	*piece = next->piece;
}

/* The end is there and everything is kept, so that nothing changes any more: what most readers of
 * an answer find. */
static bool tape_is_still(struct tape *t)
{
	return tape_has_ended(t) && t->body <= t->keep;
}

static int tape_read_still(const struct tape *t, struct tape_cursor *cursor,
                           struct tape_piece *piece)
{
	struct node *at = cursor->at, *next = at ? at->next : t->first;

	if (!next || next == t->hidden)
		return 0;
	tape_give(cursor, next, piece);
	return 1;
}

int tape_read(struct tape *t, struct tape_cursor *cursor, struct tape_piece *piece)
{
	struct node *at = cursor->at, *played = NULL;

	if (tape_is_still(t))
		return tape_read_still(t, cursor, piece);
	pthread_mutex_lock(&t->lock);
	struct node *next = at ? at->next : t->first;
	if (next == t->hidden)
		next = NULL;
	if (next) {
		next->pins++;
		if (at && at->pins)
			at->pins--;
		if (!at && t->unstarted)
			t->unstarted--;
		size_t done =
		        next->bulk_before + (next->piece.kind == TAPE_HEADER ? 0 : next->piece.n);
		if (t->readers <= 1 || done > t->played)
			t->played = done;
		tape_give(cursor, next, piece);
		played = tape_take_played(t);
	}
	pthread_mutex_unlock(&t->lock);
	while (played) {
		struct node *n = played;

		played = n->next;
		tape_node_free(t, n);
	}
	return next != NULL;
}

bool tape_has_ended(struct tape *t)
{
	/* acquire: pairs with tape_finish */
	return atomic_load_explicit(&t->over, memory_order_acquire);
}

void tape_ended(struct tape *t, struct tape_end *out)
{
	/* the end is written once, before it is told */
	*out = tape_has_ended(t) ? t->end : (struct tape_end){0};
}

struct info *tape_info_ref(struct tape *t)
{
	pthread_mutex_lock(&t->lock);
	struct info *info = t->info ? info_ref(t->info) : NULL;
	pthread_mutex_unlock(&t->lock);
	return info;
}

struct info *tape_info_copy(struct tape *t)
{
	pthread_mutex_lock(&t->lock);
	struct info *copy = t->info ? info_copy(t->info) : NULL;
	pthread_mutex_unlock(&t->lock);
	return copy;
}

struct info *tape_info_take(struct tape *t)
{
	pthread_mutex_lock(&t->lock);
	struct info *info = t->info;
	t->info = NULL;
	pthread_mutex_unlock(&t->lock);
	return info;
}

/* Above `keep` readers may free pieces meanwhile, so that is copied. */
static void join_body(const struct tape *t, struct buf *spare, struct span *out)
{
	*out = (struct span){0};
	for (const struct node *n = t->first; n; n = n->next) {
		if (n->piece.kind != TAPE_BODY)
			continue;
		if (n->piece.n == t->body && t->body <= t->keep) {
			*out = (struct span){n->piece.data, n->piece.n};
			return;
		}
		buf_add(spare, n->piece.data, n->piece.n);
	}
	*out = span_buf(spare);
}

int tape_body(struct tape *t, size_t max, struct buf *spare, struct span *out)
{
	pthread_mutex_lock(&t->lock);
	bool whole = !t->lost && t->body <= max;
	if (whole)
		join_body(t, spare, out);
	pthread_mutex_unlock(&t->lock);
	return whole && !spare->failed ? 0 : -1;
}

struct span tape_head(struct tape *t)
{
	pthread_mutex_lock(&t->lock);
	struct span head = span_buf(&t->head);
	pthread_mutex_unlock(&t->lock);
	return head;
}

void tape_forked(struct tape *t)
{
	pthread_mutex_init(&t->lock, NULL);
}
