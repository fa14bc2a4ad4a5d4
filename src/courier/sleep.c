/* How a driver sleeps: until something is ready, it is woken, or its time is over.
 *
 * A few transfers are waited for by libcurl itself, a crowd by what is known of its sockets
 * (ready.c), and at rest there is nothing but the pair that wakes. In a crowd news that comes all
 * the time is left to gather (crowd.c), first: whoever waits for the first of it and then for more
 * is woken twice. */
#include "courier/inside.h"

#include <poll.h>
#include <pthread.h>

enum { BLIND_POLL_MS = 50 };

/* A negative descriptor is passed over. */
static bool sleep_resting(int wake, int ms, bool *woken)
{
	struct pollfd own = {.fd = wake, .events = POLLIN};

	*woken = poll(&own, 1, ms) > 0;
	return *woken;
}

static bool sleep_few(struct courier *c, int wake, int ms, bool *woken)
{
	struct curl_waitfd own = {wake, CURL_WAIT_POLLIN, 0};
	int ready = 0;

	CURL_FN(c->fl, multi_wait)(c->multi, &own, wake >= 0, ms, &ready);
	if (wake < 0 && ready <= 0 && ms)
		poll(NULL, 0, 1); /* with nothing to wait for it does not wait */
	*woken = own.revents;
	return ready > 0;
}

static bool sleep_crowd(struct courier *c, int wake, int ms, bool *woken)
{
	int ready = ready_sleep(c, wake, ms, woken);

	if (ready < 0 && ms)
		poll(NULL, 0, 1);
	return ready > 0;
}

/* True when something happened. Where there is no descriptor to be woken by, sleeps are short. Only
 * asleep may the thread be cancelled (`cancel`: the program's own setting): what follows takes the
 * lock and reads, which is a place to be cancelled at. */
static bool sleep_once(struct courier *c, int wake, int ms, int cancel)
{
	bool woken = false, happened;
	int ours;

	if (wake < 0 && ms > BLIND_POLL_MS)
		ms = BLIND_POLL_MS;
	pthread_setcancelstate(cancel, &ours);
	if (!c->multi)
		happened = sleep_resting(wake, ms, &woken);
	else if (c->ready.on)
		happened = sleep_crowd(c, wake, ms, &woken);
	else
		happened = sleep_few(c, wake, ms, &woken);
	pthread_setcancelstate(ours, &ours);
	if (woken)
		courier_awake(c);
	return happened;
}

void courier_sleep(struct courier *c, int wake, int ms, bool stale, int cancel)
{
	bool gathered = c->pace.fresh && crowd_gather(c, ms);

	if (stale && ms > 1) {
		if (sleep_once(c, wake, 1, cancel))
			return;
		snapshots_after(c, true);
	}
	sleep_once(c, wake, ms, cancel);
	if (!gathered)
		(void)crowd_gather(c, ms);
}
