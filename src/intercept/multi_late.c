/* See multi_late.h. Nothing is done when the option is set: programs set several, and none of their
 * callbacks is to run there. The handles are noted by pointer and looked up again, since they may
 * be gone by then. */
#include "intercept/multi_late.h"

#include <stdlib.h>

#include "intercept/decide.h"
#include "intercept/multi_hooks.h"
#include "intercept/pseudo.h"

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

CURLcode late_note(const struct shadow *s)
{
	struct multi *m = where(s);
	CURL **more;

	if (!m || m->round != s->added_round)
		return CURLE_OK;
	if (m->late_count && m->late[m->late_count - 1] == s->handle)
		return CURLE_OK;
	more = realloc(m->late, (m->late_count + 1) * sizeof(*more));
	if (!more)
		return CURLE_OUT_OF_MEMORY;
	m->late = more;
	m->late[m->late_count++] = s->handle;
	return CURLE_OK;
}

static void settle(struct multi *m, struct shadow *s)
{
	struct decision d;

	if (!s || where(s) != m)
		return;
	d = decide(s);
	if (d.way == WAY_LIBCURL || (s->pseudo && d.way == WAY_REDIRECT))
		return;
	if (s->pseudo)
		pseudo_remove(s->pseudo);
	else if (CURL_FN(m->flavour, multi_remove_handle)(m->handle, s->handle) != CURLM_OK)
		return;
	s->added_to = NULL;
	(void)multi_add_ours(m, s, &d);
}

void late_settle(struct multi *m)
{
	CURL **list = m->late;
	size_t count = m->late_count;

	m->round++;
	m->late = NULL;
	m->late_count = 0;
	for (size_t i = 0; i < count; i++)
		settle(m, shadow_find(list[i]));
	free(list);
}

void late_free(struct multi *m)
{
	free(m->late);
	m->late = NULL;
	m->late_count = 0;
}
