/* Asking again in place: an answer that says "in progress" is not shown to the program as long as
 * the provider knows the key. libcurl performs its handle once more after a pause, as the courier
 * does with a handle of its own.
 *
 * From the status line on such an answer goes onto the tape alone. Between two performs nothing is
 * on the wire: the lease is renewed, progress and deadlines go on, and what ends the call then
 * leaves the record in doubt. If the provider would not know the key any more, the tape is played.
 * The time of all performs together is the program's TIMEOUT.
 *
 * Not promised: that the program's verbose text, or a callback for sockets, does not show how often
 * was asked. An answer too large to be kept is cut off, and never shown. */
#include "base/bytes.h"
#include "intercept/inplaced.h"

#include <stdio.h>

enum { KEPT_MAX = 1 << 20 };

/* --- what is kept --- */

static bool begins(const struct inplace *p, const char *data, size_t n, bool line)
{
	const struct passes *passes = &p->passes;
	bool in_head = line || passes->in_block || !passes->block_done;

	return in_head && !passes->opening && span_starts((struct span){data, n}, "HTTP/") &&
	       passes_status(data, n) >= 200;
}

/* On a tape of its own: what came before it was given to the program. */
static void keep_from_here(struct inplace *p)
{
	struct tape *tape = tape_new(p->send->look);

	if (!tape)
		return;
	tape_unref(p->tape);
	p->tape = tape;
	tape_attach(tape);
	p->kept = 0;
	p->keeping = true;
}

enum chain_keep reask_keeps(void *ctx, const char *data, size_t n, bool line)
{
	struct inplace *p = ctx;

	if (!p->keeping && begins(p, data, n, line) &&
	    send_calls.again(p->send, passes_status(data, n)))
		keep_from_here(p);
	if (!p->keeping)
		return CHAIN_GIVE;
	p->kept += n;
	p->cut = p->kept > KEPT_MAX;
	return p->cut ? CHAIN_CUT : CHAIN_KEEP;
}

bool reask_is_due(struct inplace *p, CURLcode code)
{
	bool whole = code == CURLE_OK || code == CURLE_HTTP_RETURNED_ERROR || p->cut;

	if (!p->keeping || !whole || p->chain.lost || inplace_in_child(p) ||
	    !send_calls.again(p->send, p->passes.status))
		return false;
	p->due_us = serve_now_us() +
	            courier_again_pause(p->shadow->flavour, p->shadow->handle, p->asked_again);
	return true;
}

/* --- once more --- */

/* What is left of the program's time. TIMEOUT and TIMEOUT_MS share one place. */
static CURLcode limit_time(struct inplace *p)
{
	const struct player *player = &p->w->serving.player;
	int64_t left_us = player->started_us + player->sink.timeout_us - serve_now_us();
	CURLcode code;

	if (player->sink.timeout_us <= 0)
		return CURLE_OK;
	code = chain_override(&p->chain, CURLOPT_TIMEOUT, 0);
	if (code != CURLE_OK)
		return code;
	return chain_override(&p->chain, CURLOPT_TIMEOUT_MS,
	                      left_us > 1000 ? (uintptr_t)(left_us / 1000) : 1);
}

static void begin_anew(struct inplace *p)
{
	char *text = options_pointer(&p->shadow->options, CURLOPT_ERRORBUFFER);

	if (text) /* FAILONERROR left it there */
		*text = '\0';
	p->keeping = p->cut = p->unsent = false;
	p->bytes = 0;
	p->asked_again++;
	p->lend.reader.at = 0;
	p->passes.answered = true;
	p->shadow->playing = NULL;
}

static enum step ask(struct inplace *p)
{
	struct writing *w = p->w;

	begin_anew(p);
	w->stage = inplace_performed;
	w->native_code = limit_time(p);
	if (w->native_code != CURLE_OK)
		return STEP_AGAIN;
	w->native_code = CURLE_ABORTED_BY_CALLBACK;
	return inplace_pass_before(p) == 0 ? STEP_NATIVE : STEP_AGAIN;
}

/* --- the pause before it --- */

void reask_give_up(struct inplace *p)
{
	struct tape_end end;

	inplace_describe_end(p, CURLE_OK, &end);
	inplace_unchain(p);
	inplace_tell_end(p, &end);
}

static enum step given_up(struct inplace *p, CURLcode code)
{
	reask_give_up(p);
	p->w->code = player_end(&p->w->serving.player, code, NULL);
	return inplace_over(p, 0);
}

static enum step in_child(struct inplace *p)
{
	inplace_unchain(p);
	p->w->code = CURLE_ABORTED_BY_CALLBACK;
	return inplace_over(p, 0);
}

enum step reask_wait(struct writing *w)
{
	struct inplace *p = w->inplace;
	int64_t patience_us = 0, until_us = p->due_us, now_us;
	CURLcode code;

	if (inplace_in_child(p))
		return in_child(p);
	w->shadow->playing = &w->serving.playing;
	code = serve_tick(&w->serving, true, &patience_us);
	if (code != CURLE_OK)
		return given_up(p, code);
	inplace_tick(p);
	now_us = serve_now_us();
	if (now_us >= p->due_us && !w->serving.player.paused)
		return ask(p);
	if (until_us > p->renew_us)
		until_us = p->renew_us;
	if (until_us > now_us + patience_us || w->serving.player.paused)
		until_us = now_us + patience_us;
	return write_wait(w, (struct wait){.kind = WAIT_TIME, .until_us = until_us});
}

/* --- shown after all --- */

static enum step shown(struct writing *w)
{
	w->serving.playing.left = NULL;
	w->code = w->how == SERVE_ENDED ? serve_end(&w->serving) : w->serving.code;
	return inplace_over(w->inplace, w->serving.player.body_seen);
}

/* A callback jumped out of the playing, and the handle is given up. */
static void jumped_out(void *ctx)
{
	struct writing *w = ctx;

	w->code = CURLE_ABORTED_BY_CALLBACK;
	inplace_over(w->inplace, w->serving.player.body_seen);
}

enum step reask_show(struct inplace *p, CURLcode code)
{
	struct writing *w = p->w;
	struct playing *playing = &w->serving.playing;
	struct tape_end end;
	enum step step;

	inplace_describe_end(p, code, &end);
	if (code == CURLE_HTTP_RETURNED_ERROR)
		p->send->max_response = 0;
	if (p->cut) {
		end.code = CURLE_RECV_ERROR;
		snprintf(end.text, sizeof(end.text),
		         "sendonce: the provider says that the write is in progress, in an answer "
		         "too large to be kept");
	}
	inplace_tell_end(p, &end);
	w->shadow->playing = playing;
	playing->ctx = w;
	playing->left = w->looped ? NULL : jumped_out;
	step = write_play(w, p->tape, NULL, shown);
	w->serving.made = false; /* its lines for VERBOSE were shown as they came */
	return step;
}
