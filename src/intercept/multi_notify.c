/* See multi_notify.h. Which notifications are wanted is told to libcurl as well, so that it says
 * what it does not know.
 *
 * Not promised: the handle that comes with NOTIFY_INFO_READ, which is one of libcurl's own; here it
 * is null. */
#include "intercept/multi_notify.h"

#include "intercept/multi_hooks.h"

#define CALLER() __builtin_extract_return_addr(__builtin_return_address(0))

/* multi.h of 8.17. */
enum { NOTIFYFUNCTION = 20018, NOTIFYDATA = 10019, NOTIFY_INFO_READ = 0, NOTIFY_EASY_DONE = 1 };

static bool is_wanted(const struct multi *m, unsigned notification)
{
	return m->notify && (m->notify_wanted & 1u << notification);
}

void notify_record(struct multi *m, CURLMoption option, uintptr_t word)
{
	if (option == (CURLMoption)NOTIFYFUNCTION)
		m->notify = (multi_notify_fn *)word;
	else if (option == (CURLMoption)NOTIFYDATA)
		m->notify_data = (void *)word;
}

bool notify_keeps(struct multi *m, CURLMoption option, uintptr_t word)
{
	if (!m->managed || !CURL_HAS(m->flavour, multi_notify_enable) ||
	    (option != (CURLMoption)NOTIFYFUNCTION && option != (CURLMoption)NOTIFYDATA))
		return false;
	notify_record(m, option, word);
	return true;
}

static void on_nothing(CURLM *multi, unsigned notification, CURL *easy, void *ctx)
{
	(void)multi, (void)notification, (void)easy, (void)ctx;
}

/* libcurl may be in the middle of calling, and must not find that there is nothing to call. What it
 * would have gone on to tell is told by us: of a message that has not been read perhaps twice. */
void notify_manage(struct multi *m)
{
	if (m->notify)
		CURL_FN(m->flavour, multi_setopt)
	(m->handle, (CURLMoption)NOTIFYFUNCTION, on_nothing);
}

void notify_tell(struct multi *m)
{
	struct message *next;
	bool arrived;

	if (m->notifying)
		return;
	m->notifying = true;
	while ((next = message_untold(&m->messages, &arrived))) {
		if (is_wanted(m, NOTIFY_EASY_DONE))
			m->notify(m->handle, NOTIFY_EASY_DONE, next->msg->easy_handle,
			          m->notify_data);
		if (arrived && is_wanted(m, NOTIFY_INFO_READ))
			m->notify(m->handle, NOTIFY_INFO_READ, NULL, m->notify_data);
	}
	m->notifying = false;
}

CURLMcode hook_multi_notify_enable(CURLM *multi, unsigned notification)
{
	struct multi *m;
	const struct flavour *fl = multi_flavour(multi, &m, CALLER());
	CURLMcode code;

	if (!fl || !CURL_HAS(fl, multi_notify_enable))
		return CURLM_BAD_HANDLE;
	code = CURL_FN(fl, multi_notify_enable)(multi, notification);
	m = code == CURLM_OK ? multi_get(multi, fl) : NULL;
	if (m && notification <= NOTIFY_EASY_DONE)
		m->notify_wanted |= 1u << notification;
	return code;
}

CURLMcode hook_multi_notify_disable(CURLM *multi, unsigned notification)
{
	struct multi *m;
	const struct flavour *fl = multi_flavour(multi, &m, CALLER());
	CURLMcode code;

	if (!fl || !CURL_HAS(fl, multi_notify_disable))
		return CURLM_BAD_HANDLE;
	code = CURL_FN(fl, multi_notify_disable)(multi, notification);
	m = code == CURLM_OK ? multi_get(multi, fl) : NULL;
	if (m && notification <= NOTIFY_EASY_DONE)
		m->notify_wanted &= ~(1u << notification);
	return code;
}
