/* The player's clock: progress callbacks, deadlines and LOW_SPEED.
 *
 * libcurl calls the progress callback each time it looks at a transfer, and looks at least once a
 * second. Here it is called when a number it shows has changed, and once a second otherwise.
 * Deadlines are counted from the start of the transfer, in whole milliseconds, in the order libcurl
 * tests them: the whole time first, then progress and speed, the connection's time last. The speed
 * is measured as libcurl does it: over the last five seconds, sampled once a second of the clock,
 * and from one transfer of a handle to the next.
 *
 * Not promised: which of its two texts libcurl would have chosen for a TCP connection that does not
 * come up in CONNECTTIMEOUT (two of its timers race for it; the other text names host and port).
 * The times of a redirected transfer are counted from its start, not from its last hop. */
#include "player/inner.h"

enum { SECOND_US = 1000000, UNHURRIED_US = 60 * SECOND_US, CONNECT_DEFAULT_S = 300 };

static int64_t elapsed_ms(const struct player *p, int64_t now_us)
{
	return (now_us - p->started_us) / 1000;
}

static int call_progress(const struct player *p, curl_off_t down_total, curl_off_t up_total)
{
	const struct player_sink *s = &p->sink;
	if (s->xferinfo)
		return s->xferinfo(s->progress_data, down_total, p->body_seen, up_total,
		                   p->uploaded);
	return s->progress(s->progress_data, (double)down_total, (double)p->body_seen,
	                   (double)up_total, (double)p->uploaded);
}

CURLcode player_progress(struct player *p, bool last)
{
	int result = CURL_PROGRESSFUNC_CONTINUE;

	if (p->sink.no_progress || (p->sink.ticks_late && !p->connected))
		return p->code;
	p->ticked_down = p->body_seen;
	p->ticked_up = p->uploaded;
	curl_off_t up_total = p->sink.upload_size > 0 ? p->sink.upload_size : 0;
	/* The size counts from the end of the header block on, as libcurl shows it. */
	curl_off_t down_total = p->in_body && p->body_total > 0 ? p->body_total : 0;
	if (p->sink.xferinfo || p->sink.progress)
		result = call_progress(p, down_total, up_total);
	if (result == CURL_PROGRESSFUNC_CONTINUE)
		player_meter(p, last);
	if (result == 0 || result == CURL_PROGRESSFUNC_CONTINUE)
		return p->code;
	return player_fail(p, CURLE_ABORTED_BY_CALLBACK, "Callback aborted");
}

static bool progress_due(const struct player *p, int64_t now_us)
{
	return p->ticked_us == 0 || (!p->by_events && now_us - p->ticked_us >= SECOND_US) ||
	       p->ticked_down != p->body_seen || p->ticked_up != p->uploaded;
}

void player_speed_again(struct player *p)
{
	p->slow_since_us = 0;
}

static const struct player_pace *pace_of(const struct player *p)
{
	return p->sink.pace ? p->sink.pace : &p->pace;
}

curl_off_t player_speed(const struct player *p)
{
	return pace_of(p)->speed;
}

static curl_off_t measured(const struct player *p, int64_t now_us)
{
	int64_t from_us = p->started_us, span_ms;
	curl_off_t from = 0, to = p->body_seen + p->uploaded;

	if (p->rates > 1) {
		unsigned oldest = p->rates >= PLAYER_RATES ? p->rates % PLAYER_RATES : 0;

		from_us = p->rate[oldest].us;
		from = p->rate[oldest].bytes;
	}
	span_ms = (now_us - from_us) / 1000;
	return (to - from) * 1000 / (span_ms > 0 ? span_ms : 1);
}

void player_measure(struct player *p, int64_t now_us, bool last)
{
	struct player_pace *pace = p->sink.pace ? p->sink.pace : &p->pace;
	unsigned at = p->rates % PLAYER_RATES;

	if (!last && pace->second == now_us / SECOND_US)
		return;
	pace->second = now_us / SECOND_US;
	p->rate[at].us = now_us;
	p->rate[at].bytes = p->body_seen + p->uploaded;
	p->rates++;
	pace->speed = measured(p, now_us);
}

/* What was not shown until then is shown now. */
static void note_connection(struct player *p, const struct player_phase *phase)
{
	if (!phase->connected || p->connected)
		return;
	p->connected = true;
	if (p->sink.ticks_late)
		p->ticked_us = 0;
}

static CURLcode check_speed(struct player *p, int64_t now_us)
{
	const struct player_sink *s = &p->sink;
	if (p->paused || s->low_speed_time <= 0)
		return p->code;
	if (player_speed(p) >= s->low_speed_limit) {
		p->slow_since_us = 0;
		return p->code;
	}
	if (p->slow_since_us == 0) {
		p->slow_since_us = now_us;
		return p->code;
	}
	if (now_us - p->slow_since_us < (int64_t)s->low_speed_time * SECOND_US)
		return p->code;
	return player_fail(p, CURLE_OPERATION_TIMEDOUT,
	                   "Operation too slow. Less than %ld bytes/sec transferred the last %ld "
	                   "seconds",
	                   s->low_speed_limit, s->low_speed_time);
}

static CURLcode whole_time_over(struct player *p, const struct player_phase *phase, int64_t now_us)
{
	long long ms = elapsed_ms(p, now_us);
	if (!phase->resolved)
		return player_fail(p, CURLE_OPERATION_TIMEDOUT,
		                   "Resolving timed out after %lld milliseconds", ms);
	if (!phase->connected)
		return player_fail(p, CURLE_OPERATION_TIMEDOUT,
		                   "Connection timed out after %lld milliseconds", ms);
	if (p->body_total >= 0)
		return player_fail(p, CURLE_OPERATION_TIMEDOUT,
		                   "Operation timed out after %lld milliseconds with %lld out of "
		                   "%lld bytes received",
		                   ms, (long long)p->body_seen, (long long)p->body_total);
	return player_fail(p, CURLE_OPERATION_TIMEDOUT,
	                   "Operation timed out after %lld milliseconds with %lld bytes received",
	                   ms, (long long)p->body_seen);
}

static CURLcode connect_time_over(struct player *p, const struct player_phase *phase,
                                  int64_t now_us)
{
	long long ms = (now_us - p->connecting_us) / 1000;
	if (!phase->resolved)
		return player_fail(p, CURLE_OPERATION_TIMEDOUT,
		                   "Resolving timed out after %lld milliseconds", ms);
	if (phase->tcp)
		return player_fail(p, CURLE_OPERATION_TIMEDOUT, "SSL connection timeout");
	return player_fail(p, CURLE_OPERATION_TIMEDOUT, "Connection timeout after %lld ms", ms);
}

static int64_t connect_limit_us(const struct player *p)
{
	return p->sink.connect_timeout_us > 0 ? p->sink.connect_timeout_us
	                                      : (int64_t)CONNECT_DEFAULT_S * SECOND_US;
}

CURLcode player_tick(struct player *p, const struct player_phase *phase, int64_t now_us)
{
	if (p->code || p->ended)
		return p->code;
	p->uploaded = phase->uploaded;
	note_connection(p, phase);
	p->seen_us = now_us;
	int64_t limit = p->sink.timeout_us;
	if (limit > 0 && elapsed_ms(p, now_us) >= limit / 1000)
		return whole_time_over(p, phase, now_us);

	player_measure(p, now_us, false);
	if (progress_due(p, now_us)) {
		p->ticked_us = now_us;
		if (player_progress(p, false))
			return p->code;
	}
	if (phase->sent && check_speed(p, now_us))
		return p->code;
	if (phase->queued || p->queued)
		p->connecting_us = now_us;
	p->queued = phase->queued;
	if (!phase->connected && now_us - p->connecting_us >= connect_limit_us(p))
		return connect_time_over(p, phase, now_us);
	return p->code;
}

static int64_t sooner(int64_t patience, int64_t at_us, int64_t now_us)
{
	int64_t left = at_us > now_us ? at_us - now_us : 0;
	return left < patience ? left : patience;
}

int64_t player_patience(const struct player *p, const struct player_phase *phase, int64_t now_us)
{
	bool unhurried = p->by_events && p->sink.low_speed_time <= 0;
	int64_t patience = unhurried ? UNHURRIED_US : SECOND_US;
	if (p->code || p->ended)
		return 0;
	if (!p->sink.no_progress && !p->by_events)
		patience = sooner(patience, p->ticked_us ? p->ticked_us + SECOND_US : 0, now_us);
	if (p->sink.timeout_us > 0)
		patience = sooner(patience, p->started_us + p->sink.timeout_us, now_us);
	if (!phase->connected)
		patience = sooner(patience, p->connecting_us + connect_limit_us(p), now_us);
	return patience;
}
