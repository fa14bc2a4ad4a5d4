/* See multi_loop.h.
 *
 * Times: libcurl's own and the nearest of ours are told as one. Its timer is one-shot, so what it
 * last said counts until it has fired. TIMERFUNCTION is called only where the value has changed: a
 * spare call would arm a timer again that the program is about to read.
 *
 * Sockets: the bell is shown by SOCKETFUNCTION from within socket_action only, as libcurl shows its
 * own, and taken away when nothing is in flight: an event loop counts what it watches. */
#include "intercept/multi_loop.h"

#include <stdlib.h>

#include "intercept/multi_notify.h"
#include "intercept/notice.h"
#include "intercept/pseudo.h"
#include "intercept/serve.h"
#include "intercept/shadow.h"

/* --- libcurl's timer --- */

static int on_timer(CURLM *multi, long ms, void *ctx)
{
	struct multi *m = ctx;

	(void)multi;
	m->native_due_us = ms < 0 ? MULTI_NEVER : serve_now_us() + ms * INT64_C(1000);
	/* inside of a call of ours the program is told at its end */
	return m->busy || loop_tell(m, false) == CURLM_OK ? 0 : -1;
}

static void take_timer(struct multi *m)
{
	__typeof__(&curl_multi_setopt) set = CURL_FN(m->flavour, multi_setopt);
	long ms = -1;

	if (!m->timer)
		return;
	if (CURL_FN(m->flavour, multi_timeout)(m->handle, &ms) == CURLM_OK && ms >= 0)
		m->native_due_us = serve_now_us() + ms * INT64_C(1000);
	set(m->handle, CURLMOPT_TIMERFUNCTION, on_timer);
	set(m->handle, CURLMOPT_TIMERDATA, m);
}

void loop_timer_fired(struct multi *m)
{
	m->native_due_us = m->told_due_us = MULTI_NEVER;
}

/* --- times --- */

/* Up: who is called a moment too early has nothing to do and comes again. */
static long ms_until(int64_t due, int64_t now)
{
	return due <= now ? 0 : (long)((due - now + 999) / 1000);
}

long loop_timeout_ms(struct multi *m)
{
	int64_t now = serve_now_us(), due = queue_due_us(m, now);

	return due == MULTI_NEVER ? -1 : ms_until(due, now);
}

long loop_sooner_ms(long one, long other)
{
	if (one < 0 || other < 0)
		return one < 0 ? other : one;
	return one < other ? one : other;
}

static CURLMcode said(struct multi *m, int answer)
{
	if (answer != -1)
		return CURLM_OK;
	m->dead = true;
	return CURLM_ABORTED_BY_CALLBACK;
}

/* What has passed is as good as 0. */
static bool is_same(int64_t told, int64_t due, int64_t now)
{
	if (told <= now || due <= now)
		return told <= now && due <= now;
	return told / 1000 == due / 1000;
}

static CURLMcode tell_timer(struct multi *m)
{
	int64_t now = serve_now_us(), due = queue_due_us(m, now);

	if (!m->timer || m->dead)
		return CURLM_OK;
	if (m->native_due_us < due)
		due = m->native_due_us;
	if (is_same(m->told_due_us, due, now))
		return CURLM_OK;
	m->told_due_us = due;
	return said(m, m->timer(m->handle, due == MULTI_NEVER ? -1 : ms_until(due, now),
	                        m->timer_data));
}

/* --- sockets --- */

static const struct pseudo *first_ours(const struct multi *m)
{
	const struct pseudo *p = m->first;

	while (p && !pseudo_is_ours(p))
		p = p->next;
	return p;
}

int loop_fd(struct multi *m)
{
	return m->bell && queue_ours(m) ? bell_fd(m->bell) : -1;
}

static CURLMcode show(struct multi *m, const struct pseudo *p)
{
	m->shown = true;
	m->shown_for = p->shadow->handle;
	return said(m, m->socket(m->shown_for, bell_fd(m->bell), CURL_POLL_IN, m->socket_data,
	                         m->assigned));
}

static CURLMcode hide(struct multi *m)
{
	void *assigned = m->assigned;

	m->shown = false;
	m->assigned = NULL;
	if (!m->socket)
		return CURLM_OK;
	return said(m, m->socket(m->shown_for, bell_fd(m->bell), CURL_POLL_REMOVE, m->socket_data,
	                         assigned));
}

static CURLMcode tell_sockets(struct multi *m, bool may_show)
{
	bool any = queue_ours(m) > 0;

	if (m->dead || !m->bell)
		return CURLM_OK;
	if (m->shown && !any)
		return hide(m);
	if (!m->shown && any && m->socket && may_show && bell_fd(m->bell) >= 0)
		return show(m, first_ours(m));
	return CURLM_OK;
}

CURLMcode loop_tell(struct multi *m, bool sockets)
{
	bool busy = m->busy;
	CURLMcode code;

	m->busy = true;
	code = tell_sockets(m, sockets);
	if (code == CURLM_OK)
		code = tell_timer(m);
	m->busy = busy;
	return code;
}

/* --- one time around --- */

void loop_begin(struct multi *m)
{
	if (m->bell && !m->forked)
		bell_clear(m->bell);
	courier_batch_begin();
	notice_batch_begin();
	queue_step(m);
	courier_batch_end();
	notice_batch_end();
}

/* A handle that has no shadow: libcurl made it (a server's push), or there was no memory. */
static void queue_stranger(struct multi *m, CURLMsg *msg)
{
	struct message *node = calloc(1, sizeof(*node));

	if (!node)
		return;
	node->stranger = true;
	message_add(&m->messages, node, msg);
}

static void take_over(struct multi *m, CURLMsg *msg)
{
	struct shadow *s = shadow_find(msg->easy_handle);

	if (!s)
		queue_stranger(m, msg);
	else if (msg->msg == CURLMSG_DONE && s->pseudo && s->pseudo->native)
		pseudo_performed(s->pseudo, msg->data.result);
	else
		message_add(&m->messages, &s->message, msg);
}

static void take_messages(struct multi *m)
{
	CURLMsg *msg;
	int left;

	while ((msg = CURL_FN(m->flavour, multi_info_read)(m->handle, &left)))
		take_over(m, msg);
}

void loop_manage(struct multi *m)
{
	if (m->managed)
		return;
	take_timer(m);
	take_messages(m); /* that the program has not read yet */
	notify_manage(m);
	m->managed = true;
}

void loop_end(struct multi *m, int *running)
{
	take_messages(m);
	*running += (int)queue_ours(m);
}
