/* See replay.h. An HTTP request is refused with an answer, anything else with a CURLcode, before a
 * name is looked up or a connection made. What can change something elsewhere without HTTP: an
 * upload, a command list (QUOTE and its like), a command of the program's own, a post. The rest of
 * it is reading, as a GET is. */
#include "intercept/replay.h"

#include "intercept/gather.h"
#include "intercept/notice.h"
#include "intercept/write.h"

static bool replays(const struct process *process)
{
	return process->state == PROCESS_ON && process->acting == MODE_REPLAY;
}

bool replay_is_raw(const struct shadow *s)
{
	return !s->target.valid || options_long(&s->options, CURLOPT_CONNECT_ONLY, 0);
}

static bool raw_writes(const struct shadow *s)
{
	static const CURLoption commands[] = {CURLOPT_QUOTE, CURLOPT_PREQUOTE, CURLOPT_POSTQUOTE,
	                                      CURLOPT_MAIL_RCPT};
	const struct options *o = &s->options;

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (options_pointer(o, commands[i]))
			return true;
	}
	return o->upload || options_text(o, CURLOPT_CUSTOMREQUEST) ||
	       options_long(o, CURLOPT_CONNECT_ONLY, 0) ||
	       (o->kind != HTTP_GET && o->kind != HTTP_HEAD);
}

static bool writes(const struct shadow *s)
{
	return replay_is_raw(s) ? raw_writes(s) : !request_is_read(request_method(&s->options));
}

bool replay_would_stop(const struct shadow *s, const struct process *process)
{
	return replays(process) && (writes(s) || process->policy->replay_reads == READS_REFUSE);
}

CURLcode replay_stop_raw(struct shadow *s, const struct process *process)
{
	struct event event = notice_event(process, "refusal");
	struct player player = {0};

	shadow_begin(s, NULL);
	gather_sink(s, &player.sink);
	player_error(&player, "sendonce: mode replay, nothing is sent");
	event.host = s->target.host;
	event.verdict = "refuse";
	event.reason = "replay-miss";
	event.curlcode = CURLE_COULDNT_CONNECT;
	notice_send(process, &event);
	return CURLE_COULDNT_CONNECT;
}

enum verdict_reason replay_reason(const struct shadow *s)
{
	return writes(s) ? REASON_UNLISTED : REASON_REPLAY_MISS;
}
