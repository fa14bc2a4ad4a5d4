/* See serve.h. No lock and no leadership is held while the player runs the program's callbacks:
 * what they do (longjmp, another transfer, fork) finds nothing of ours in the way. */
#include "intercept/serve.h"

#include <time.h>

#include "intercept/gather.h"
#include "intercept/versions.h"

int64_t serve_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

void serve_start(struct serving *v, struct shadow *s)
{
	struct player_sink sink;

	*v = (struct serving){.shadow = s};
	gather_sink(s, &sink);
	if (sink.low_speed_time <= 0 || !versions_measure_anew(s->flavour))
		sink.pace = &s->pace;
	player_start(&v->player, &sink, serve_now_us());
	v->playing.player = &v->player;
	shadow_begin(s, &v->playing);
	s->headers = headers_new();
}

void serve_time(const struct player *player, struct info *info)
{
	if (info)
		info_set_off(info, CURLINFO_TOTAL_TIME_T, serve_now_us() - player->started_us);
}

struct info *serve_early_info(const struct shadow *s)
{
	const char *url = options_text(&s->options, CURLOPT_URL);
	struct info *info = info_new();

	if (!info)
		return NULL;
	if (url)
		info_set_text(info, CURLINFO_EFFECTIVE_URL, url);
	info_set_text(info, CURLINFO_EFFECTIVE_METHOD, request_method(&s->options));
	return info;
}

void serve_keep(struct shadow *s, struct info *info)
{
	if (s->info && info)
		info_adopt(s->info, info);
	else if (info)
		s->info = info;
}

void serve_stop(struct serving *v)
{
	struct shadow *s = v->shadow;

	s->playing = NULL;
	s->played = true;
	if (!s->info)
		s->info = serve_early_info(s);
	serve_time(v->playing.player, s->info);
	player_stop(&v->player);
	moment_free(&v->playing.moment);
}

static void keep_header(struct shadow *s, const struct tape_piece *piece)
{
	if (s->headers)
		headers_add(s->headers, piece->data, piece->n, piece->connect ? CURLH_CONNECT : 0,
		            (int)piece->request);
}

/* Some programs read the answer from nowhere else. */
static void show(struct serving *v, curl_infotype type, const struct tape_piece *piece)
{
	if (v->made)
		(void)player_debug(&v->player, type, piece->data, piece->n);
}

static CURLcode feed_piece(struct serving *v, const struct tape_piece *piece)
{
	switch (piece->kind) {
	case TAPE_HEADER:
		v->fed = v->fed || !piece->connect;
		keep_header(v->shadow, piece);
		show(v, CURLINFO_HEADER_IN, piece);
		return piece->connect ? player_connect_header(&v->player, piece->data, piece->n)
		                      : player_header(&v->player, piece->data, piece->n);
	case TAPE_BODY:
		v->fed = true;
		show(v, CURLINFO_DATA_IN, piece);
		return player_body(&v->player, piece->data, piece->n);
	case TAPE_REQUEST:
		break;
	case TAPE_DEBUG:
		return player_debug(&v->player, (curl_infotype)piece->debug, piece->data, piece->n);
	}
	return CURLE_OK;
}

static CURLcode feed_counted(struct serving *v, const struct tape_piece *piece)
{
	CURLcode code;

	moment_begin(&v->playing.moment, &v->player, piece);
	code = feed_piece(v, piece);
	moment_end(&v->playing.moment, &v->player, piece);
	return code;
}

/* Everything that is there and that the program takes. */
static CURLcode feed(struct serving *v)
{
	struct tape_piece piece;
	CURLcode code = CURLE_OK;

	while (code == CURLE_OK && !v->player.paused && tape_read(v->tape, &v->cursor, &piece) == 1)
		code = feed_counted(v, &piece);
	return code;
}

static CURLcode tick(struct serving *v, const struct attempt_phase *now, int64_t *patience_us)
{
	struct player_phase phase = {
	        .resolved = now->resolved,
	        .connected = now->connected,
	        .sent = now->gated,
	        .queued = now->queued,
	        .uploaded = now->uploaded,
	};
	CURLcode code = player_tick(&v->player, &phase, serve_now_us());

	*patience_us = player_patience(&v->player, &phase, serve_now_us());
	return code;
}

CURLcode serve_tick(struct serving *v, bool gated, int64_t *patience_us)
{
	struct attempt_phase phase = {.resolved = true, .connected = gated, .gated = gated};

	return tick(v, &phase, patience_us);
}

/* A program whose loop comes back after its deadline is told of that, as libcurl does it, and not
 * of the answer that came meanwhile. */
static bool is_late(const struct serving *v)
{
	int64_t limit = v->player.sink.timeout_us;

	return limit > 0 && serve_now_us() - v->player.started_us >= limit;
}

/* Until nothing more can be done now. The end is looked at before the feeding: nothing can come
 * after it. */
static enum serve_how run(struct serving *v, int64_t *patience_us)
{
	struct attempt_phase phase = {
	        .resolved = true, .connected = true, .gated = true, .ended = true};

	for (;;) {
		v->news = v->attempt ? attempt_news(v->attempt) : 0;
		tape_ended(v->tape, &v->end);
		v->code = is_late(v) ? CURLE_OK : feed(v);
		if (v->code != CURLE_OK)
			return SERVE_EARLY;
		if (v->end.ended && !v->player.paused && !is_late(v))
			return SERVE_ENDED;
		if (v->attempt)
			attempt_phase(v->attempt, &phase);
		v->code = tick(v, &phase, patience_us);
		if (v->code != CURLE_OK)
			return SERVE_EARLY;
		if (!v->end.ended || v->player.paused)
			return SERVE_WAITS;
	}
}

/* The courier may be further than the program ever got. */
static void show_partial(struct serving *v, CURLcode code, struct info *info)
{
	moment_show(&v->playing.moment, &v->player, info);
	info_set_off(info, CURLINFO_SIZE_DOWNLOAD_T, v->player.body_seen);
	/* libcurl stops before it takes the size over */
	if (code == CURLE_FILESIZE_EXCEEDED ||
	    (code == CURLE_HTTP_RETURNED_ERROR && v->player.sink.counts_late))
		info_set_off(info, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, -1);
}

/* The last look at the transfer may be older than its end, and a replay has sent nothing. */
static void show_sent(struct serving *v, const struct info *info)
{
	curl_off_t sent;

	if (info && info_get(info, CURLINFO_SIZE_UPLOAD_T, &sent) == CURLE_OK)
		v->player.uploaded = sent;
}

void serve_begin(struct serving *v, struct tape *tape, struct attempt *attempt)
{
	v->tape = v->playing.tape = tape_ref(tape);
	v->attempt = v->playing.attempt = attempt;
	v->cursor = (struct tape_cursor){0};
	v->made = !attempt;
}

/* A tape without an attempt was made for this call alone. */
static void give_up(struct serving *v, bool early)
{
	struct tape *tape = v->tape;
	struct info *info;

	if (early && v->attempt)
		attempt_look(v->attempt);
	tape_detach(tape);
	info = v->attempt ? tape_info_copy(tape) : tape_info_take(tape);
	v->tape = v->playing.tape = NULL;
	v->attempt = v->playing.attempt = NULL;
	if (!info && early)
		info = serve_early_info(v->shadow);
	if (info && early)
		show_partial(v, v->code, info);
	else
		show_sent(v, info);
	serve_keep(v->shadow, info);
	tape_unref(tape);
}

enum serve_how serve_step(struct serving *v, int64_t *patience_us)
{
	enum serve_how how = run(v, patience_us);

	if (how == SERVE_WAITS)
		return how;
	v->player.seen_us = serve_now_us(); /* the last tick may be long ago */
	if (how == SERVE_EARLY)
		player_end(&v->player, v->code, NULL); /* libcurl shows its progress once more */
	give_up(v, how == SERVE_EARLY);
	return how;
}

void serve_drop(struct serving *v)
{
	if (v->tape)
		give_up(v, true);
}

CURLcode serve_end(struct serving *v)
{
	if (v->end.code == CURLE_TOO_MANY_REDIRECTS && v->shadow->headers)
		headers_next_request(v->shadow->headers);
	return player_end(&v->player, v->end.code, v->end.text);
}
