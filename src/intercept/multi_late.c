/* See multi_late.h. Nothing is done when the option is set: programs set several, and none of their
 * callbacks is to run there. A handle is taken off the list by whoever takes it out of the multi:
 * another thread may use it from then on, or have a new one at its address. */
#include "intercept/multi_late.h"

#include <stddef.h>

#include "intercept/decide.h"
#include "intercept/multi.h"
#include "intercept/multi_hooks.h"
#include "intercept/pseudo.h"
#include "intercept/shadow.h"

/* --- the list --- */

static void make_empty(struct late *head)
{
	head->next = head->prev = head;
}

static void put_last(struct late *head, struct late *one)
{
	if (!head->next)
		make_empty(head);
	one->next = head;
	one->prev = head->prev;
	head->prev->next = one;
	head->prev = one;
}

static void take_out(struct late *one)
{
	one->next->prev = one->prev;
	one->prev->next = one->next;
	*one = (struct late){0};
}

/* All of `from` is `to`'s then. */
static void take_over(struct late *to, struct late *from)
{
	make_empty(to);
	if (!from->next || from->next == from)
		return;
	*to = *from;
	to->next->prev = to->prev->next = to;
	make_empty(from);
}

/* --- handles --- */

void late_watch(struct shadow *s, const struct multi *m)
{
	s->added_round = m->round;
}

/* Where it is, if libcurl alone or its redirects are what it was added for. */
static struct multi *where(const struct shadow *s)
{
	struct multi *m;

	if (s->pseudo)
		return s->pseudo->decision.way == WAY_REDIRECT ? s->pseudo->multi : NULL;
	m = s->added_to ? multi_find(s->added_to) : NULL;
	return m && m->serial == s->added_serial ? m : NULL;
}

void late_note(struct shadow *s)
{
	struct multi *m;

	if (s->late.next)
		return;
	m = where(s);
	if (m && m->round == s->added_round)
		put_last(&m->late, &s->late);
}

void late_forget(struct shadow *s)
{
	if (s->late.next)
		take_out(&s->late);
}

/* --- once more --- */

static CURLcode as_of_transfer(CURLMcode code)
{
	if (code == CURLM_OUT_OF_MEMORY)
		return CURLE_OUT_OF_MEMORY;
	/* what it has to send was sent once */
	return code == CURLM_INTERNAL_ERROR ? CURLE_SEND_FAIL_REWIND : CURLE_FAILED_INIT;
}

static void end(struct multi *m, struct shadow *s, CURLcode code)
{
	s->lost =
	        (CURLMsg){.msg = CURLMSG_DONE, .easy_handle = s->handle, .data = {.result = code}};
	message_add(&m->messages, &s->message, &s->lost);
}

static void settle(struct multi *m, struct shadow *s)
{
	struct decision d;
	CURLMcode code;

	if (where(s) != m)
		return;
	d = decide(s);
	if (d.way == WAY_LIBCURL || (s->pseudo && d.way == WAY_REDIRECT))
		return;
	if (s->pseudo)
		pseudo_remove(s->pseudo);
	else if (CURL_FN(m->flavour, multi_remove_handle)(m->handle, s->handle) != CURLM_OK)
		return;
	s->added_to = NULL;
	code = multi_add_ours(m, s, &d);
	if (!s->pseudo)
		end(m, s, as_of_transfer(code));
}

void late_settle(struct multi *m)
{
	struct late noted;

	m->round++;
	if (!m->late.next || m->late.next == &m->late)
		return;
	take_over(&noted, &m->late);
	while (noted.next != &noted) {
		char *at = (char *)noted.next - offsetof(struct shadow, late);

		take_out(noted.next);
		settle(m, (struct shadow *)(void *)at);
	}
}

void late_free(struct multi *m)
{
	while (m->late.next && m->late.next != &m->late)
		take_out(m->late.next);
}
