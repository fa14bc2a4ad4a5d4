/* The intercepted functions of libcurl, and the door through which the preload finds them.
 *
 * Three names per hook: the exported one (a stub of the preload that jumps here with the program's
 * own arguments and return address), hook_* here, and the real one, called through the flavour that
 * made the handle. A hook decides who answers; it does not do the work. Variadic functions are
 * taken as three words, which is what both 64-bit ABIs pass. errno is the program's: what we do in
 * between does not show. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/corelink.h"
#include "base/curlapi.h"
#include "intercept/audit.h"
#include "intercept/chain.h"
#include "intercept/decide.h"
#include "intercept/fetch.h"
#include "intercept/gather.h"
#include "intercept/multi_hooks.h"
#include "intercept/multi_notify.h"
#include "intercept/names.h"
#include "intercept/notice.h"
#include "intercept/process.h"
#include "intercept/pseudo.h"
#include "intercept/redirect.h"
#include "intercept/replay.h"
#include "intercept/serve.h"
#include "intercept/shadow.h"
#include "intercept/versions.h"
#include "intercept/write.h"
#include "request/release.h"

#define CALLER() __builtin_extract_return_addr(__builtin_return_address(0))

typedef void generic_fn(void);

/* The flavour of a handle: of its shadow, or, where it was made without us, by who calls. */
static const struct flavour *flavour_of(CURL *handle, struct shadow **shadow, const void *caller)
{
	*shadow = shadow_find(handle);
	return *shadow ? (*shadow)->flavour : process_flavour(caller);
}

static CURL *hook_easy_init(void)
{
	const struct flavour *fl = process_flavour(CALLER());
	CURL *handle = fl ? CURL_FN(fl, easy_init)() : NULL;
	int saved = errno;

	if (handle)
		shadow_new(handle, fl);
	errno = saved;
	return handle;
}

static void hook_easy_cleanup(CURL *handle)
{
	struct shadow *s;
	const struct flavour *fl = flavour_of(handle, &s, CALLER());

	int saved = errno;

	notice_batch_end();
	if (s)
		multi_handle_dropped(s);
	if (s && s->chain)
		chain_dropped(s->chain);
	if (s) {
		shadow_left(s);
		shadow_drop(handle);
	}
	errno = saved;
	if (fl)
		CURL_FN(fl, easy_cleanup)(handle);
}

static void hook_easy_reset(CURL *handle)
{
	struct shadow *s;
	const struct flavour *fl = flavour_of(handle, &s, CALLER());

	if (fl)
		CURL_FN(fl, easy_reset)(handle);
	int saved = errno;

	notice_batch_end();
	if (s && s->chain)
		chain_was_reset(s->chain);
	if (s) {
		shadow_left(s);
		shadow_reset(s);
	}
	errno = saved;
}

/* It can be taken off the handle for a moment: libcurl is not sending it. */
static bool form_is_at_rest(const struct shadow *s)
{
	return s->capture.mime || s->capture.copied ||
	       (!s->native && !multi_handle_is_native(s) &&
	        options_pointer(&s->options, CURLOPT_MIMEPOST));
}

static CURL *hook_easy_duphandle(CURL *handle)
{
	struct shadow *s, *made;
	const struct flavour *fl = flavour_of(handle, &s, CALLER());
	struct capture form = {0};
	CURL *copy;
	int saved = errno;

	if (s && form_is_at_rest(s) && process_get()->state == PROCESS_ON)
		capture_copy(&form, &s->capture, fl, handle, &s->options);
	if (s && s->capture.mime)
		capture_give_back(&s->capture, fl, handle, &s->options);
	if (s)
		capture_note_copy(&form, &s->capture);
	errno = saved;
	copy = fl ? CURL_FN(fl, easy_duphandle)(handle) : NULL;
	saved = errno;
	if (copy && s && s->chain)
		chain_give_copy(s->chain, copy);
	made = copy ? shadow_new(copy, fl) : NULL;
	if (made && s)
		shadow_copy(made, s, &form);
	else
		capture_drop(&form, fl);
	errno = saved;
	return copy;
}

/* A form that is being rendered on a handle of ours stays there when it is set again. */
static uintptr_t form_for_libcurl(struct shadow *s, uintptr_t word)
{
	curl_mime *mime = (curl_mime *)word;

	s->foreign_form = false;
	if (capture_keeps(&s->capture, s->flavour, mime))
		return 0;
	if (mime != options_pointer(&s->options, CURLOPT_MIMEPOST))
		s->capture.used = s->capture.stuck = false;
	return word;
}

/* Callbacks, their data, limits: libcurl reads each where it uses it, so that what is set while a
 * transfer is under way counts from then on. A header callback that chooses who gets the body by
 * its type is how programs use that. */
static void note_option(struct shadow *s, CURLoption option, uintptr_t word)
{
	options_set(&s->options, option, word);
	if (s->playing)
		gather_sink_again(s, &s->playing->player->sink);
	if (option != CURLOPT_MIMEPOST)
		return;
	s->capture.lost = false;
	atomic_store_explicit(&s->form, (curl_mime *)word, memory_order_relaxed);
}

static CURLcode hook_easy_setopt(CURL *handle, CURLoption option, uintptr_t word)
{
	struct shadow *s;
	const struct flavour *fl = flavour_of(handle, &s, CALLER());
	uintptr_t real = word;
	CURLcode code;
	int saved;

	if (!fl)
		return CURLE_FAILED_INIT;
	if (s && option == CURLOPT_MIMEPOST)
		real = form_for_libcurl(s, word);
	code = s && s->chain && chain_keeps(s->chain, option)
	               ? CURLE_OK
	               : CURL_FN(fl, easy_setopt)(handle, option, real);
	saved = errno;
	if (code == CURLE_OK && s) {
		note_option(s, option, word);
		late_note(s);
	}
	errno = saved;
	return code;
}

/* A part that gives no bytes has nothing to free, whatever it was given for that. */
static CURLcode hook_mime_data_cb(curl_mimepart *part, curl_off_t size, curl_read_callback read,
                                  curl_seek_callback seek, curl_free_callback free, void *arg)
{
	const struct flavour *fl = process_flavour(CALLER());
	int saved = errno;

	if (!fl || !CURL_HAS(fl, mime_data_cb))
		return CURLE_FAILED_INIT;
	if (part && read && free && process_get()->state == PROCESS_ON)
		free = release_stand_in(free);
	errno = saved;
	return CURL_FN(fl, mime_data_cb)(part, size, read, seek, free, arg);
}

static void hook_mime_free(curl_mime *form)
{
	const struct flavour *fl = form ? shadow_form_freed(form) : NULL;

	if (!fl)
		fl = process_flavour(CALLER());
	if (fl && CURL_HAS(fl, mime_free))
		CURL_FN(fl, mime_free)(form);
}

/* Performed by libcurl on the program's own handle. */
static CURLcode natively(struct shadow *s)
{
	shadow_begin(s, NULL);
	if (!fetch_give_form(s))
		return CURLE_SEND_FAIL_REWIND;
	return shadow_perform(s);
}

static CURLcode watched(struct shadow *s)
{
	struct redirect *redirect = redirect_begin(s);
	CURLcode code = natively(s);
	struct writing *refusal = redirect ? redirect_end(redirect) : NULL;

	return refusal ? write_through(refusal) : code;
}

static CURLcode audited(struct shadow *s, const struct decision *d)
{
	struct audit *audit = audit_begin(s, d->process, d->rule);
	struct writing *refusal;
	CURLcode code;

	if (!audit)
		return redirect_possible(s) ? watched(s) : natively(s);
	code = shadow_perform(s);
	refusal = audit_end(audit, code);
	return refusal ? write_through(refusal) : code;
}

static CURLcode perform(struct shadow *s, int saved)
{
	struct decision d = decide(s);
	CURLcode code;

	errno = saved;
	switch (d.way) {
	case WAY_WRITE:
		code = write_through(write_begin(s, d.process, d.rule, d.in_place));
		break;
	case WAY_REFUSE:
		code = write_through(write_begin_refusal(s, d.process, d.rule, d.reason));
		break;
	case WAY_POLICY:
		code = write_through(write_begin_policy(s, d.process));
		break;
	case WAY_STOP:
		code = replay_stop_raw(s, d.process);
		break;
	case WAY_NO_MEMORY:
		code = CURLE_OUT_OF_MEMORY;
		break;
	case WAY_AUDIT:
		return audited(s, &d);
	case WAY_REDIRECT:
		return watched(s);
	default:
		return natively(s);
	}
	errno = saved;
	return code;
}

/* What an error of the transfer itself left in the buffer stays. */
static void say_used(struct shadow *s)
{
	struct player voice = {0};
	struct player *p = s->playing ? s->playing->player : &voice;

	voice.sink.error_buffer = options_pointer(&s->options, CURLOPT_ERRORBUFFER);
	if (s->playing || pseudo_is_silent(s->pseudo))
		player_error(p, "easy handle already used in multi handle");
}

static CURLcode hook_easy_perform(CURL *handle)
{
	struct shadow *s;
	const struct flavour *fl = flavour_of(handle, &s, CALLER());
	int saved = errno;

	if (!fl)
		return CURLE_FAILED_INIT;
	if (s && (s->playing || s->pseudo)) { /* as libcurl: not in a multi, nor in a callback */
		say_used(s);
		return CURLE_FAILED_INIT;
	}
	if (!s || s->chain) /* with one, libcurl itself says no */
		return CURL_FN(fl, easy_perform)(handle);
	notice_batch_end();
	return perform(s, saved);
}

/* During a transfer the answer as far as it was given; afterwards what the last tape ended with. */
static struct info *current_info(struct shadow *s)
{
	struct playing *p = s->playing;
	struct info *info;

	if (!p)
		return s->info;
	if (p->attempt)
		attempt_look(p->attempt);
	info = p->tape ? tape_info_copy(p->tape) : NULL;
	if (!info)
		info = serve_early_info(s);
	if (info) {
		moment_show(&p->moment, p->player, info);
		serve_time(p->player, info);
	}
	serve_keep(s, info);
	return s->info;
}

static CURLcode hook_easy_getinfo(CURL *handle, CURLINFO id, uintptr_t word)
{
	struct shadow *s;
	const struct flavour *fl = flavour_of(handle, &s, CALLER());
	CURLcode code = CURLE_UNKNOWN_OPTION;
	int saved = errno;

	if (!fl)
		return CURLE_FAILED_INIT;
	if (s && (s->played || s->playing)) {
		struct info *info = current_info(s);
		if (info)
			code = info_get(info, id, (void *)word);
		errno = saved;
	}
	if (code != CURLE_UNKNOWN_OPTION)
		return code;
	return CURL_FN(fl, easy_getinfo)(handle, id, word);
}

static CURLcode pause_played(struct shadow *s, int bits)
{
	struct playing *p = s->playing;
	CURLcode code;

	p->resumed += !(bits & CURLPAUSE_SEND);
	code = player_pause(p->player, bits);
	if (!(bits & CURLPAUSE_RECV) || !(bits & CURLPAUSE_SEND))
		multi_handle_resumed(s);
	return code;
}

static CURLcode hook_easy_pause(CURL *handle, int bits)
{
	struct shadow *s;
	const struct flavour *fl = flavour_of(handle, &s, CALLER());

	if (s && s->playing)
		return pause_played(s, bits);
	return fl ? CURL_FN(fl, easy_pause)(handle, bits) : CURLE_FAILED_INIT;
}

static CURLHcode hook_easy_header(CURL *handle, const char *name, size_t index, unsigned origin,
                                  int request, struct curl_header **out)
{
	struct shadow *s;
	const struct flavour *fl = flavour_of(handle, &s, CALLER());

	if (s && (s->played || s->playing) && s->headers)
		return headers_get(s->headers, name, index, origin, request, out);
	if (!fl || !CURL_HAS(fl, easy_header))
		return CURLHE_NOT_BUILT_IN;
	return CURL_FN(fl, easy_header)(handle, name, index, origin, request, out);
}

static struct curl_header *hook_easy_nextheader(CURL *handle, unsigned origin, int request,
                                                struct curl_header *previous)
{
	struct shadow *s;
	const struct flavour *fl = flavour_of(handle, &s, CALLER());

	if (s && (s->played || s->playing) && s->headers)
		return headers_next(s->headers, origin, request, previous);
	if (!fl || !CURL_HAS(fl, easy_nextheader))
		return NULL;
	return CURL_FN(fl, easy_nextheader)(handle, origin, request, previous);
}

/* Raw bytes over a CONNECT_ONLY connection: what they are cannot be known, so the first ones are
 * reported. */
static void report_raw(struct shadow *s)
{
	const struct process *process = process_get();
	struct event event;

	if (s->raw_reported || process->state != PROCESS_ON ||
	    request_target_update(&s->target, s->flavour, &s->options) != 0 || !s->target.valid)
		return;
	s->raw_reported = true;
	event = notice_event(process, "unprotected");
	event.host = s->target.host;
	event.reason = "CONNECT_ONLY and curl_easy_send";
	notice_send(process, &event);
	if (process_ledger_opened())
		ledger_count(process_ledger_opened(), COUNT_unprotected);
}

static CURLcode hook_easy_send(CURL *handle, const void *data, size_t n, size_t *sent)
{
	struct shadow *s;
	const struct flavour *fl = flavour_of(handle, &s, CALLER());
	int saved = errno;

	if (s && s->playing)
		return CURLE_RECURSIVE_API_CALL;
	notice_batch_end();
	if (s)
		report_raw(s);
	errno = saved;
	return fl ? CURL_FN(fl, easy_send)(handle, data, n, sent) : CURLE_FAILED_INIT;
}

static CURLcode hook_easy_recv(CURL *handle, void *data, size_t n, size_t *got)
{
	struct shadow *s;
	const struct flavour *fl = flavour_of(handle, &s, CALLER());

	if (s && s->playing)
		return CURLE_RECURSIVE_API_CALL;
	return fl ? CURL_FN(fl, easy_recv)(handle, data, n, got) : CURLE_FAILED_INIT;
}

static CURLcode hook_easy_upkeep(CURL *handle)
{
	struct shadow *s;
	const struct flavour *fl = flavour_of(handle, &s, CALLER());

	if (s && s->playing && versions_refuse_upkeep(fl))
		return CURLE_RECURSIVE_API_CALL;
	return fl && CURL_HAS(fl, easy_upkeep) ? CURL_FN(fl, easy_upkeep)(handle)
	                                       : CURLE_FAILED_INIT;
}

__attribute__((visibility("default"))) int sendonce_core_start(const struct preload_api *preload,
                                                               struct core_api *core)
{
	if (preload->abi != CORELINK_ABI)
		return -1;
	process_link(preload);
	core->abi = CORELINK_ABI;
#define CORE_HOOK(name) core->hook[FN_##name] = (generic_fn *)hook_##name;
	CURL_HOOKED(CORE_HOOK)
#undef CORE_HOOK
	core->call[CALL_scope_set] = names_set_scope;
	core->call[CALL_run_set] = names_set_run;
	core->call[CALL_step_push] = names_push_step;
	core->call[CALL_step_pop] = names_pop_step;
	return 0;
}
