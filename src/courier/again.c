/* Asking again: an answer that says "still in progress" is not shown while somebody waits for a
 * better one; the same request, with the same key, is sent once more after a pause.
 *
 * Whether an answer is one of those is the plan's to say, at its status line. What comes from there
 * on goes onto a tape of its own. When the transfer has ended the attempt is queued anew with a
 * time before which it must not go; if by then nobody waits, or the provider would not remember the
 * key, the answer that was held back is the answer. One that grows large is shown as it comes. */
#include "courier/inside.h"

enum {
	HELD_MAX = 256 << 10,
	FIRST_PAUSE_US = 250000,
	PAUSE_MAX_US = 5000000,
	RETRY_AFTER_MAX_S = 60
};

/* Onto the tape that readers see. */
static void again_show(struct attempt *a)
{
	struct tape_cursor cursor = {0};
	struct tape_piece piece;

	while (tape_read(a->held, &cursor, &piece) == 1)
		if (tape_add(a->tape, &piece) != 0)
			break;
}

void again_flush(struct attempt *a)
{
	if (!a->held)
		return;
	again_show(a);
	again_drop(a);
	attempt_tell(a, 0);
}

void again_drop(struct attempt *a)
{
	tape_unref(a->held);
	a->held = NULL;
	a->held_bytes = 0;
}

static bool begins(const struct attempt *a, const struct tape_piece *p)
{
	return p->kind == TAPE_HEADER && !a->passes.opening && p->n > 5 &&
	       span_starts((struct span){p->data, p->n}, "HTTP/") && a->passes.block_status >= 200;
}

bool again_holds(struct attempt *a, const struct tape_piece *piece)
{
	if (begins(a, piece)) {
		again_flush(a);
		if (a->calls.again && a->calls.again(a->ctx, a->passes.block_status))
			a->held = tape_new(HELD_MAX);
	}
	if (!a->held)
		return false;
	a->held_bytes += piece->n;
	if (a->held_bytes <= HELD_MAX && tape_add(a->held, piece) == 0)
		return true;
	again_flush(a);
	return false;
}

bool again_is_awaited(const struct courier *c, const struct attempt *a)
{
	return !c->exit_us && !a->cancel && (a->waiting || a->listeners || !a->orphan);
}

int64_t courier_again_pause(const struct flavour *fl, CURL *easy, unsigned asked)
{
	int64_t pause = FIRST_PAUSE_US;
	curl_off_t seconds = 0;

	for (unsigned i = 0; i < asked && pause < PAUSE_MAX_US; i++)
		pause *= 2;
	if (pause > PAUSE_MAX_US)
		pause = PAUSE_MAX_US;
	CURL_FN(fl, easy_getinfo)(easy, CURLINFO_RETRY_AFTER, &seconds);
	if (seconds > RETRY_AFTER_MAX_S)
		seconds = RETRY_AFTER_MAX_S;
	return seconds > 0 ? (int64_t)seconds * 1000000 : pause;
}

bool again_later(struct courier *c, struct attempt *a, CURLcode code)
{
	bool awaited;
	int64_t due;

	if (code != CURLE_OK || !a->held || !a->calls.again(a->ctx, a->passes.status))
		return false;
	due = courier_now() + courier_again_pause(c->fl, a->easy, a->asked_again);
	CURL_FN(c->fl, multi_remove_handle)(c->multi, a->easy);
	crowd_connected(a);
	pthread_mutex_lock(&c->lock);
	awaited = again_is_awaited(c, a);
	a->again_us = due;
	c->due_us = due < c->due_us ? due : c->due_us;
	a->state = ATTEMPT_QUEUED;
	if (!awaited)
		c->asked = true; /* the next turn ends it */
	pthread_mutex_unlock(&c->lock);
	a->asked_again++;
	return true;
}

void again_begin(struct attempt *a)
{
	if (!a->again_us)
		return;
	again_drop(a);
	a->again_us = 0;
	a->read_at = 0;
	a->passes.answered = true;
}
