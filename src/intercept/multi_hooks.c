/* See multi_hooks.h. A multi that holds nothing of ours is libcurl's, whole; a managed one goes
 * through multi_loop.c. What a callback may not call while its multi is at work says so, as libcurl
 * would: our transfers' callbacks run where libcurl does not know of it. */
#include "intercept/multi_hooks.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "intercept/fetch.h"
#include "intercept/multi.h"
#include "intercept/multi_loop.h"
#include "intercept/multi_notify.h"
#include "intercept/notice.h"
#include "intercept/process.h"
#include "intercept/pseudo.h"

#define CALLER() __builtin_extract_return_addr(__builtin_return_address(0))

CURLM *hook_multi_init(void)
{
	const struct flavour *fl = process_flavour(CALLER());
	CURLM *handle = fl ? CURL_FN(fl, multi_init)() : NULL;
	int saved = errno;

	if (handle)
		multi_new(handle, fl);
	errno = saved;
	return handle;
}

/* --- handles in and out --- */

static bool is_added(const struct shadow *s)
{
	return s->added_to && multi_lives(s->added_to, s->added_serial);
}

static void note_added(struct shadow *s, CURLM *handle)
{
	const struct multi *m = multi_find(handle);

	s->added_to = m ? handle : NULL;
	s->added_serial = m ? m->serial : 0;
	if (m)
		late_watch(s, m);
}

/* By libcurl alone. */
static CURLMcode add_plain(const struct flavour *fl, CURLM *multi, CURL *handle, struct shadow *s)
{
	struct multi *m = multi_find(multi);
	CURLMcode code, told;

	if (m && m->managed)
		m->busy = true;
	code = CURL_FN(fl, multi_add_handle)(multi, handle);
	if (m && m->managed)
		m->busy = false;
	if (code != CURLM_OK)
		return code;
	if (s) {
		message_drop(&s->message);
		note_added(s, multi);
	}
	told = m && m->managed ? loop_tell(m, false) : CURLM_OK;
	return told;
}

CURLMcode multi_add_ours(struct multi *m, struct shadow *s, const struct decision *d)
{
	CURLMcode code;

	loop_manage(m);
	m->busy = true;
	late_watch(s, m);
	code = pseudo_add(m, s, d);
	m->busy = false;
	return code == CURLM_OK ? loop_tell(m, false) : code;
}

static CURLMcode add(const struct flavour *fl, CURLM *multi, struct shadow *s, int saved)
{
	struct decision d = decide(s);
	struct multi *m;

	if (d.way != WAY_LIBCURL) {
		m = multi_get(multi, fl);
		errno = saved;
		return m ? multi_add_ours(m, s, &d) : CURLM_OUT_OF_MEMORY;
	}
	if (!fetch_give_form(s))
		return CURLM_INTERNAL_ERROR;
	shadow_begin(s, NULL);
	errno = saved;
	return add_plain(fl, multi, s->handle, s);
}

CURLMcode hook_multi_add_handle(CURLM *multi, CURL *handle)
{
	struct shadow *s = shadow_find(handle);
	struct multi *m;
	const struct flavour *fl = multi_flavour(multi, &m, CALLER());
	int saved = errno;

	if (s)
		fl = s->flavour;
	if (!fl)
		return CURLM_BAD_EASY_HANDLE;
	if (multi && s && (s->pseudo || s->playing))
		return CURLM_ADDED_ALREADY;
	if (m && m->busy)
		return CURLM_RECURSIVE_API_CALL;
	if (!multi || !s || s->chain || is_added(s))
		return add_plain(fl, multi, handle, s);
	notice_batch_end();
	return add(fl, multi, s, saved);
}

static CURLMcode remove_ours(CURLM *multi, struct pseudo *p)
{
	struct multi *m = p->multi;
	bool over = pseudo_is_over(p);
	CURLMcode code;
	int saved = errno;

	if (m->handle != multi)
		return multi ? CURLM_BAD_EASY_HANDLE : CURLM_BAD_HANDLE;
	if (m->busy)
		return CURLM_RECURSIVE_API_CALL;
	notice_batch_end();
	m->busy = true;
	pseudo_remove(p);
	m->busy = false;
	code = over ? CURLM_OK : loop_tell(m, false); /* nothing was to be waited for */
	errno = saved;
	return code;
}

CURLMcode hook_multi_remove_handle(CURLM *multi, CURL *handle)
{
	struct shadow *s = shadow_find(handle);
	struct multi *m;
	const struct flavour *fl = multi_flavour(multi, &m, CALLER());
	CURLMcode code;

	if (!fl)
		return CURLM_BAD_HANDLE;
	if (s && s->pseudo)
		return remove_ours(multi, s->pseudo);
	if (multi && s && s->playing) /* natively it is in a multi of easy_perform's own */
		return CURLM_BAD_EASY_HANDLE;
	if (multi && s && !is_added(s)) { /* libcurl knows, also in a callback */
		code = CURL_FN(fl, multi_remove_handle)(multi, handle);
		if (code == CURLM_OK)
			message_drop(&s->message);
		return code;
	}
	if (m && m->busy)
		return CURLM_RECURSIVE_API_CALL;
	if (m)
		m->busy = true;
	code = CURL_FN(fl, multi_remove_handle)(multi, handle);
	if (m)
		m->busy = false;
	if (code != CURLM_OK)
		return code;
	if (s) {
		s->added_to = NULL;
		late_forget(s);
		message_drop(&s->message);
	} else if (m) {
		message_drop_of(&m->messages, handle);
	}
	return m ? loop_tell(m, false) : code;
}

bool multi_handle_is_native(const struct shadow *s)
{
	return is_added(s) || (s->pseudo && s->pseudo->inside);
}

void multi_handle_dropped(struct shadow *s)
{
	struct pseudo *p = s->pseudo;
	struct multi *m = p ? p->multi : NULL;

	message_drop(&s->message);
	late_forget(s);
	s->added_to = NULL;
	if (!p)
		return;
	pseudo_remove(p);
	(void)loop_tell(m, false);
}

void multi_handle_resumed(struct shadow *s)
{
	if (!s->pseudo)
		return;
	pseudo_poke(s->pseudo);
	if (!s->pseudo->multi->busy)
		(void)loop_tell(s->pseudo->multi, false);
}

CURLMcode hook_multi_cleanup(CURLM *multi)
{
	struct multi *m;
	const struct flavour *fl = multi_flavour(multi, &m, CALLER());
	bool sent = m && m->bell;
	uint64_t owner = m ? m->serial : 0;
	CURLMcode code;

	if (!fl)
		return CURLM_BAD_HANDLE;
	if (m && (m->busy || m->notifying))
		return CURLM_RECURSIVE_API_CALL;
	notice_batch_end();
	while (m && m->last)
		pseudo_remove(m->last);
	if (m)
		(void)loop_tell(m, false);
	code = CURL_FN(fl, multi_cleanup)(multi);
	if (code != CURLM_OK)
		return code;
	multi_drop(multi);
	if (sent)
		courier_let_go(fl, owner);
	return code;
}

/* --- the loop --- */

/* As multi_flavour, for the calls that drive it. */
static const struct flavour *drive(CURLM *multi, struct multi **managed, const void *caller)
{
	struct multi *m = multi ? multi_find(multi) : NULL;
	int saved = errno;

	*managed = NULL;
	if (!m)
		return process_flavour(caller);
	notice_batch_end();
	if (!m->busy && !m->notifying)
		late_settle(m);
	errno = saved;
	*managed = m->managed ? m : NULL;
	return m->flavour;
}

CURLMcode hook_multi_perform(CURLM *multi, int *running)
{
	struct multi *m;
	const struct flavour *fl = drive(multi, &m, CALLER());
	CURLMcode code, told;

	if (!fl)
		return CURLM_BAD_HANDLE;
	if (!m)
		return CURL_FN(fl, multi_perform)(multi, running);
	if (m->busy || m->notifying)
		return CURLM_RECURSIVE_API_CALL;
	m->busy = true;
	m->by_events = false;
	loop_begin(m);
	code = CURL_FN(fl, multi_perform)(multi, running);
	loop_end(m, running);
	m->busy = false;
	notify_tell(m);
	told = loop_tell(m, false);
	return code == CURLM_OK ? told : code;
}

static CURLMcode finish_action(struct multi *m, CURLMcode code, int *running)
{
	CURLMcode told;

	loop_end(m, running);
	m->busy = false;
	notify_tell(m);
	told = loop_tell(m, true);
	return code == CURLM_OK ? told : code;
}

static void begin_action(struct multi *m, curl_socket_t fd)
{
	m->busy = m->by_events = true;
	if (fd == CURL_SOCKET_TIMEOUT)
		loop_timer_fired(m);
	loop_begin(m);
}

CURLMcode hook_multi_socket_action(CURLM *multi, curl_socket_t fd, int events, int *running)
{
	struct multi *m;
	const struct flavour *fl = drive(multi, &m, CALLER());

	if (!fl)
		return CURLM_BAD_HANDLE;
	if (!m)
		return CURL_FN(fl, multi_socket_action)(multi, fd, events, running);
	if (m->busy || m->notifying)
		return CURLM_RECURSIVE_API_CALL;
	begin_action(m, fd);
	return finish_action(m, CURL_FN(fl, multi_socket_action)(multi, fd, events, running),
	                     running);
}

CURLMcode hook_multi_socket(CURLM *multi, curl_socket_t fd, int *running)
{
	struct multi *m;
	const struct flavour *fl = drive(multi, &m, CALLER());

	if (!fl)
		return CURLM_BAD_HANDLE;
	if (!m)
		return CURL_FN(fl, multi_socket)(multi, fd, running);
	if (m->busy || m->notifying)
		return CURLM_RECURSIVE_API_CALL;
	begin_action(m, fd);
	return finish_action(m, CURL_FN(fl, multi_socket)(multi, fd, running), running);
}

CURLMcode hook_multi_socket_all(CURLM *multi, int *running)
{
	struct multi *m;
	const struct flavour *fl = drive(multi, &m, CALLER());

	if (!fl)
		return CURLM_BAD_HANDLE;
	if (!m)
		return CURL_FN(fl, multi_socket_all)(multi, running);
	if (m->busy || m->notifying)
		return CURLM_RECURSIVE_API_CALL;
	begin_action(m, CURL_SOCKET_BAD);
	return finish_action(m, CURL_FN(fl, multi_socket_all)(multi, running), running);
}

/* --- the rest --- */

/* With the program's own word, or, where its timer is ours to call, ours. */
static CURLMcode set_real(struct multi *m, const struct flavour *fl, CURLM *multi,
                          CURLMoption option, uintptr_t word)
{
	bool managed = m && m->managed;

	if (m && notify_keeps(m, option, word))
		return CURLM_OK;
	if (managed && option == CURLMOPT_TIMERDATA)
		return CURLM_OK;
	if (managed && option == CURLMOPT_TIMERFUNCTION) {
		m->managed = false; /* installed afresh */
		CURL_FN(fl, multi_setopt)(multi, option, NULL);
		m->timer = (curl_multi_timer_callback)word;
		loop_manage(m);
		return CURLM_OK;
	}
	return CURL_FN(fl, multi_setopt)(multi, option, word);
}

static void record_bounds(struct multi *m, CURLMoption option, long n)
{
	struct courier_bounds *b = &m->bounds;

	if (option == CURLMOPT_MAX_HOST_CONNECTIONS)
		b->host = n > 0 ? n : 0;
	else if (option == CURLMOPT_MAX_TOTAL_CONNECTIONS)
		b->total = n > 0 ? n : 0;
	else if (option == CURLMOPT_MAX_CONCURRENT_STREAMS)
		b->streams = n;
	else if (option == CURLMOPT_PIPELINING)
		b->apart = !(n & CURLPIPE_MULTIPLEX);
	b->owner = b->host || b->total || b->streams || b->apart ? m->serial : 0;
}

static void record(struct multi *m, CURLMoption option, uintptr_t word)
{
	record_bounds(m, option, (long)word);
	if (option == CURLMOPT_SOCKETFUNCTION)
		m->socket = (curl_socket_callback)word;
	else if (option == CURLMOPT_SOCKETDATA)
		m->socket_data = (void *)word;
	else if (option == CURLMOPT_TIMERFUNCTION)
		m->timer = (curl_multi_timer_callback)word;
	else if (option == CURLMOPT_TIMERDATA)
		m->timer_data = (void *)word;
	else
		notify_record(m, option, word);
}

CURLMcode hook_multi_setopt(CURLM *multi, CURLMoption option, uintptr_t word)
{
	struct multi *managed, *m;
	const struct flavour *fl = multi_flavour(multi, &managed, CALLER());
	CURLMcode code;

	if (!fl)
		return CURLM_BAD_HANDLE;
	if (managed && managed->busy)
		return CURLM_RECURSIVE_API_CALL;
	m = multi ? multi_get(multi, fl) : NULL;
	code = set_real(m, fl, multi, option, word);
	if (code == CURLM_OK && m)
		record(m, option, word);
	return code;
}

/* Also in a callback: SOCKETFUNCTION is where programs do it. */
CURLMcode hook_multi_assign(CURLM *multi, curl_socket_t fd, void *data)
{
	struct multi *m;
	const struct flavour *fl = multi_flavour(multi, &m, CALLER());

	if (!fl)
		return CURLM_BAD_HANDLE;
	if (!m || !m->bell || fd < 0 || fd != bell_fd(m->bell))
		return CURL_FN(fl, multi_assign)(multi, fd, data);
	m->assigned = data;
	return CURLM_OK;
}

CURLMsg *hook_multi_info_read(CURLM *multi, int *left)
{
	struct multi *m;
	const struct flavour *fl = multi_flavour(multi, &m, CALLER());

	if (!fl)
		return NULL;
	if (!m)
		return CURL_FN(fl, multi_info_read)(multi, left);
	*left = 0;
	return m->busy ? NULL : message_take(&m->messages, left);
}

/* Memory that the program may give to curl_free: libcurl's own, for an escaped text of that size.
 */
static CURL **room_for(const struct multi *m, size_t count)
{
	size_t bytes = (count + 1) * sizeof(CURL *);
	char *text = malloc(bytes + 1);
	CURL **list = NULL;

	if (!text || bytes > INT_MAX)
		goto cleanup;
	memset(text, 'a', bytes);
	list = (CURL **)(void *)CURL_FN(m->flavour, easy_escape)(m->first->shadow->handle, text,
	                                                         (int)bytes);
cleanup:
	free(text);
	return list;
}

/* Those that are not in libcurl's list. */
static size_t fill(const struct multi *m, CURL **list)
{
	size_t count = 0;

	for (const struct pseudo *p = m->first; p; p = p->next) {
		if (p->inside)
			continue;
		if (list)
			list[count] = p->shadow->handle;
		count++;
	}
	return count;
}

CURL **hook_multi_get_handles(CURLM *multi)
{
	struct multi *m;
	const struct flavour *fl = multi_flavour(multi, &m, CALLER());
	CURL **real, **all;
	size_t count = 0, ours = m ? fill(m, NULL) : 0;

	if (!fl || !CURL_HAS(fl, multi_get_handles))
		return NULL;
	real = CURL_FN(fl, multi_get_handles)(multi);
	if (!real || !ours)
		return real;
	while (real[count])
		count++;
	all = room_for(m, count + ours);
	if (all) {
		memcpy(all, real, count * sizeof(*all));
		all[count + fill(m, all + count)] = NULL;
	}
	CURL_FN(fl, free)(real);
	return all;
}
