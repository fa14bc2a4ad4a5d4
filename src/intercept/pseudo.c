/* See pseudo.h. Nothing is decided, read or connected while the handle is added: as in libcurl, all
 * of it begins with the first call of the loop. What the write waits for is another thread's news
 * (the courier's, which rings the multi's bell), or time. */
#include "intercept/pseudo.h"

#include <stdlib.h>

#include "intercept/audit.h"
#include "intercept/fetch.h"
#include "intercept/redirect.h"
#include "intercept/replay.h"
#include "intercept/serve.h"
#include "intercept/shadow.h"
#include "intercept/write.h"
#include "intercept/writing.h"

/* How often a loop without a bell looks for news. */
enum { BLIND_US = 10000 };

/* --- the list --- */

static void link_in(struct pseudo *p)
{
	struct multi *m = p->multi;

	p->prev = m->last;
	if (m->last)
		m->last->next = p;
	else
		m->first = p;
	m->last = p;
	p->shadow->pseudo = p;
}

static void unlink_from(struct pseudo *p)
{
	struct multi *m = p->multi;

	if (p->prev)
		p->prev->next = p->next;
	else
		m->first = p->next;
	if (p->next)
		p->next->prev = p->prev;
	else
		m->last = p->prev;
	late_forget(p->shadow);
	p->shadow->pseudo = NULL;
}

/* --- listening --- */

static void stop_listening(struct pseudo *p)
{
	if (!p->heard)
		return;
	attempt_unlisten(p->heard, &p->listener);
	attempt_unref(p->heard);
	if (p->listener.bell)
		bell_unref(p->listener.bell);
	p->heard = NULL;
	p->listener = (struct listener){0};
}

static bool make_bell(struct multi *m)
{
	if (!m->bell && !m->forked)
		m->bell = bell_new();
	return m->bell != NULL;
}

/* A phase is looked at when a deadline has come, too; of itself it moves only these, and begins
 * CONNECTTIMEOUT where a write may have waited for its place. */
static bool wants_phases(const struct pseudo *p)
{
	const struct player_sink *sink = &p->w->serving.player.sink;

	return !sink->no_progress || sink->low_speed_time > 0 ||
	       (p->multi->bounds.owner && sink->connect_timeout_us > 0);
}

static void listen_to(struct pseudo *p, struct attempt *attempt)
{
	if (attempt != p->heard)
		stop_listening(p);
	if (!attempt || p->heard)
		return;
	if (!make_bell(p->multi)) { /* it may be driven all the same, if others listen */
		p->alone = true;
		return;
	}
	p->heard = attempt_ref(attempt);
	p->listener.bell = bell_ref(p->multi->bell);
	p->listener.note = &p->note;
	p->listener.phases = wants_phases(p);
	p->alone = !attempt_listen(attempt, &p->listener);
}

static void stop_watching(struct pseudo *p)
{
	if (p->watching)
		watch_remove(&p->watch);
	p->watching = false;
}

static void watch_for(struct pseudo *p, const struct wait *wait)
{
	p->watching = make_bell(p->multi) && watch_add(&p->watch, p->w->ledger, wait->record,
	                                               wait->word, p->multi->bell, &p->note);
	p->alone = !p->watching;
}

/* Whatever `w` waits for rings the multi's bell. */
static void await(struct pseudo *p)
{
	const struct wait *wait = &p->w->wait;

	p->waits = true;
	listen_to(p, wait->kind == WAIT_ATTEMPT ? wait->attempt : NULL);
	if (wait->kind == WAIT_RECORD)
		watch_for(p, wait);
	if (p->heard)
		attempt_played(p->heard);
}

/* --- one after the other --- */

static void end(struct pseudo *p, CURLcode code)
{
	stop_listening(p);
	p->w = NULL;
	p->over = true;
	p->native = p->waits = false;
	p->msg = (CURLMsg){
	        .msg = CURLMSG_DONE, .easy_handle = p->shadow->handle, .data = {.result = code}};
	message_add(&p->multi->messages, &p->message, &p->msg);
}

static void leave_libcurl(struct pseudo *p)
{
	if (p->inside)
		CURL_FN(p->multi->flavour, multi_remove_handle)
	(p->multi->handle, p->shadow->handle);
	p->inside = p->native = false;
}

static CURLMcode enter_libcurl(struct pseudo *p)
{
	CURLMcode code;

	leave_libcurl(p); /* from the time before */
	code = CURL_FN(p->multi->flavour, multi_add_handle)(p->multi->handle, p->shadow->handle);
	p->inside = p->native = code == CURLM_OK;
	return code;
}

/* Whatever cannot be driven from elsewhere is driven a turn from here. */
static void lend_hand(struct pseudo *p)
{
	if (p->alone && p->waits && p->w->wait.kind == WAIT_ATTEMPT)
		attempt_wait(p->w->wait.attempt, serve_now_us());
}

static void go_on(struct pseudo *p)
{
	struct writing *w = p->w;

	p->waits = p->poked = false;
	stop_watching(p);
	w->serving.player.by_events = p->multi->by_events;
	for (;;) {
		switch (write_step(w)) {
		case STEP_NATIVE:
			stop_listening(p);
			if (enter_libcurl(p) == CURLM_OK)
				return;
			w->native_code = CURLE_FAILED_INIT;
			continue;
		case STEP_WAIT:
			await(p);
			return;
		default:
			end(p, write_end(w));
			return;
		}
	}
}

/* The program's progress callback, which libcurl calls at once. */
static void look_around(struct pseudo *p)
{
	struct serving *v = &p->w->serving;
	int64_t patience_us;
	CURLcode code = serve_tick(v, false, &patience_us);

	if (code == CURLE_OK)
		return;
	p->w->code = player_end(&v->player, code, NULL);
	end(p, write_end(p->w));
}

/* What libcurl itself will perform begins when libcurl would have begun it: a program with
 * callbacks for sockets may wait for nothing but the one it is shown then (GStreamer). A body is
 * read before that; of others it is read a turn later, as natively. */
static bool is_native_soon(const struct pseudo *p)
{
	enum request_body kind = request_body_kind(&p->shadow->options);

	if (p->decision.in_place)
		return true;
	return p->decision.process->acting == MODE_INJECT &&
	       (kind == REQUEST_FIELDS || kind == REQUEST_NO_BODY ||
	        courier_refuses(&p->shadow->options));
}

static void begin(struct pseudo *p)
{
	const struct decision *d = &p->decision;

	if (d->way == WAY_STOP) {
		end(p, replay_stop_raw(p->shadow, d->process));
		return;
	}
	if (d->way == WAY_NO_MEMORY) {
		end(p, CURLE_OUT_OF_MEMORY);
		return;
	}
	if (d->way == WAY_POLICY)
		p->w = write_begin_policy(p->shadow, d->process);
	else if (d->way == WAY_REFUSE)
		p->w = write_begin_refusal(p->shadow, d->process, d->rule, d->reason);
	else
		p->w = write_begin(p->shadow, d->process, d->rule, d->in_place);
	(void)make_bell(p->multi);
	if (!p->w) {
		end(p, CURLE_OUT_OF_MEMORY);
		return;
	}
	p->w->looped = true;
	if (is_native_soon(p))
		go_on(p);
	else
		look_around(p);
}

/* As in libcurl, the first call begins and no more: whatever is at hand, the program has one time
 * around its loop before anything comes of it. */
void pseudo_step(struct pseudo *p)
{
	lend_hand(p);
	if (!p->w)
		begin(p);
	else
		go_on(p);
	queue_settle(p);
}

static void refuse_or_end(struct pseudo *p, struct writing *refusal, CURLcode code)
{
	if (!refusal) {
		end(p, code);
		return;
	}
	p->native = false;
	p->w = refusal;
	p->w->looped = true;
}

void pseudo_performed(struct pseudo *p, CURLcode code)
{
	struct audit *audit = p->audit;
	struct redirect *redirect = p->redirect;

	p->native = false;
	p->audit = NULL;
	p->redirect = NULL;
	if (audit)
		refuse_or_end(p, audit_end(audit, code), code);
	else if (redirect)
		refuse_or_end(p, redirect_end(redirect), code);
	else if (!p->w)
		end(p, code);
	else {
		p->w->native_code = code;
		go_on(p);
	}
	queue_settle(p);
}

/* --- in and out --- */

static struct pseudo *pseudo_new(struct multi *m, struct shadow *s, const struct decision *decision)
{
	struct pseudo *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->multi = m;
	p->shadow = s;
	p->decision = *decision;
	return p;
}

/* libcurl performs it, watched; what cannot be watched goes as it is. */
static CURLMcode add_native(struct pseudo *p)
{
	struct shadow *s = p->shadow;
	bool good = fetch_give_form(s);
	CURLMcode code;

	if (p->decision.way == WAY_AUDIT)
		p->audit = audit_begin(s, p->decision.process, p->decision.rule);
	if (!p->audit && redirect_possible(s))
		p->redirect = redirect_begin(s);
	shadow_begin(s, NULL);
	code = good ? enter_libcurl(p) : CURLM_INTERNAL_ERROR;
	if (code == CURLM_OK)
		return code;
	pseudo_remove(p);
	return code;
}

CURLMcode pseudo_add(struct multi *m, struct shadow *s, const struct decision *decision)
{
	struct pseudo *p = pseudo_new(m, s, decision);

	if (!p)
		return CURLM_OUT_OF_MEMORY;
	if (!queue_join(m, p)) {
		free(p);
		return CURLM_OUT_OF_MEMORY;
	}
	link_in(p);
	if (decision->way == WAY_AUDIT || decision->way == WAY_REDIRECT)
		return add_native(p);
	queue_settle(p);
	return CURLM_OK;
}

void pseudo_remove(struct pseudo *p)
{
	message_drop(&p->message);
	leave_libcurl(p);
	if (p->audit)
		audit_abandon(p->audit);
	if (p->redirect)
		redirect_abandon(p->redirect);
	if (p->w)
		write_abandon(p->w);
	stop_watching(p);
	stop_listening(p);
	queue_leave(p);
	unlink_from(p);
	free(p);
}

/* --- when --- */

static bool has_come(const struct pseudo *p)
{
	const struct wait *wait = &p->w->wait;

	if (wait->kind == WAIT_ATTEMPT)
		return attempt_news(wait->attempt) != wait->news;
	/* acquire: pairs with watch.c */
	return p->watching && atomic_load_explicit(&p->watch.rung, memory_order_acquire);
}

int64_t pseudo_due_us(const struct pseudo *p, int64_t now_us)
{
	const struct wait *wait;

	if (p->over || p->native)
		return MULTI_NEVER;
	if (!p->w || !p->waits || p->poked)
		return 0;
	wait = &p->w->wait;
	if (wait->until_us <= now_us || has_come(p))
		return 0;
	if (p->alone && wait->kind != WAIT_TIME && wait->until_us > now_us + BLIND_US)
		return now_us + BLIND_US;
	return wait->until_us;
}

bool pseudo_is_ours(const struct pseudo *p)
{
	return !p->over && !p->native;
}

bool pseudo_is_over(const struct pseudo *p)
{
	return p->over;
}

bool pseudo_is_silent(const struct pseudo *p)
{
	return !p->over || p->msg.data.result == CURLE_OK;
}

void pseudo_poke(struct pseudo *p)
{
	p->poked = true;
	queue_settle(p);
}
