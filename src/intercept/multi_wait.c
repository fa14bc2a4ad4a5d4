/* The hooks by which a program's loop asks what to wait for, or has libcurl wait: libcurl's
 * descriptors and times, and ours among them. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "intercept/multi.h"
#include "intercept/multi_hooks.h"
#include "intercept/multi_loop.h"

#define CALLER() __builtin_extract_return_addr(__builtin_return_address(0))

enum { BLIND_MS = 10 }; /* where the bell cannot be watched */

CURLMcode hook_multi_fdset(CURLM *multi, fd_set *in, fd_set *out, fd_set *exc, int *max)
{
	struct multi *m;
	const struct flavour *fl = multi_flavour(multi, &m, CALLER());
	CURLMcode code;
	int fd;

	if (!fl)
		return CURLM_BAD_HANDLE;
	if (m && m->busy)
		return CURLM_RECURSIVE_API_CALL;
	code = CURL_FN(fl, multi_fdset)(multi, in, out, exc, max);
	fd = m ? loop_fd(m) : -1;
	if (code != CURLM_OK || fd < 0 || fd >= FD_SETSIZE)
		return code;
	if (loop_timeout_ms(m) == 0) /* for programs that never ask for the time */
		bell_ring(m->bell);
	FD_SET(fd, in);
	*max = fd > *max ? fd : *max;
	return code;
}

CURLMcode hook_multi_timeout(CURLM *multi, long *ms)
{
	struct multi *m;
	const struct flavour *fl = multi_flavour(multi, &m, CALLER());
	CURLMcode code;

	if (!fl)
		return CURLM_BAD_HANDLE;
	if (m && m->busy)
		return CURLM_RECURSIVE_API_CALL;
	code = CURL_FN(fl, multi_timeout)(multi, ms);
	if (code != CURLM_OK || !m)
		return code;
	*ms = loop_sooner_ms(*ms, loop_timeout_ms(m));
	if (loop_fd(m) >= FD_SETSIZE) /* select cannot look at it */
		*ms = loop_sooner_ms(*ms, BLIND_MS);
	return code;
}

typedef CURLMcode wait_fn(CURLM *multi, struct curl_waitfd fds[], unsigned count, int ms,
                          int *ready);

/* The program's descriptors and the bell's. */
static CURLMcode wait_with(struct multi *m, wait_fn *real, struct curl_waitfd *fds, unsigned count,
                           int ms, int *ready)
{
	struct curl_waitfd few[8], *all = few;
	CURLMcode code;

	if (count >= sizeof(few) / sizeof(*few))
		all = count < UINT_MAX ? malloc((count + (size_t)1) * sizeof(*all)) : NULL;
	if (!all)
		return CURLM_OUT_OF_MEMORY;
	if (count)
		memcpy(all, fds, count * sizeof(*fds));
	all[count] = (struct curl_waitfd){loop_fd(m), CURL_WAIT_POLLIN, 0};
	code = real(m->handle, all, count + 1, ms, ready);
	for (unsigned i = 0; i < count; i++)
		fds[i].revents = all[i].revents;
	if (all != few)
		free(all);
	return code;
}

static CURLMcode wait_for(struct multi *m, wait_fn *real, struct curl_waitfd *fds, unsigned count,
                          int ms, int *ready)
{
	long ours;

	if (m->busy)
		return CURLM_RECURSIVE_API_CALL;
	ours = loop_timeout_ms(m);
	if (ms >= 0 && ours >= 0 && ours < ms)
		ms = (int)ours;
	if (loop_fd(m) < 0 || ms < 0)
		return real(m->handle, fds, count, ms, ready);
	return wait_with(m, real, fds, count, ms, ready);
}

CURLMcode hook_multi_wait(CURLM *multi, struct curl_waitfd *fds, unsigned count, int ms, int *ready)
{
	struct multi *m;
	const struct flavour *fl = multi_flavour(multi, &m, CALLER());

	if (!fl)
		return CURLM_BAD_HANDLE;
	if (!m)
		return CURL_FN(fl, multi_wait)(multi, fds, count, ms, ready);
	return wait_for(m, CURL_FN(fl, multi_wait), fds, count, ms, ready);
}

CURLMcode hook_multi_poll(CURLM *multi, struct curl_waitfd *fds, unsigned count, int ms, int *ready)
{
	struct multi *m;
	const struct flavour *fl = multi_flavour(multi, &m, CALLER());

	if (!fl || !CURL_HAS(fl, multi_poll))
		return CURLM_BAD_HANDLE;
	if (!m)
		return CURL_FN(fl, multi_poll)(multi, fds, count, ms, ready);
	return wait_for(m, CURL_FN(fl, multi_poll), fds, count, ms, ready);
}

CURLMcode hook_multi_waitfds(CURLM *multi, struct curl_waitfd *fds, unsigned size, unsigned *count)
{
	struct multi *m;
	const struct flavour *fl = multi_flavour(multi, &m, CALLER());
	unsigned used = 0;
	CURLMcode code;
	int fd;

	if (!fl || !CURL_HAS(fl, multi_waitfds))
		return CURLM_BAD_HANDLE;
	if (m && m->busy)
		return CURLM_RECURSIVE_API_CALL;
	fd = m ? loop_fd(m) : -1;
	if (fd < 0 || (!fds && (size || !count)))
		return CURL_FN(fl, multi_waitfds)(multi, fds, size, count);
	code = CURL_FN(fl, multi_waitfds)(multi, fds, size, &used);
	if (code == CURLM_OK && fds && used < size)
		fds[used] = (struct curl_waitfd){fd, CURL_WAIT_POLLIN, 0};
	else if (code == CURLM_OK && fds)
		code = CURLM_OUT_OF_MEMORY;
	if (count)
		*count = used + 1;
	return code;
}
