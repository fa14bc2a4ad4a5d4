/* The shadow: what we know of each easy handle of the program.
 *
 * Looked up by pointer; the shadow itself is used without a lock, as libcurl lets only one thread
 * use a handle at a time. It lives until the handle is cleaned up. */
#ifndef SENDONCE_INTERCEPT_SHADOW_H
#define SENDONCE_INTERCEPT_SHADOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/curlapi.h"
#include "base/options.h"
#include "courier/courier.h"
#include "courier/tape.h"
#include "intercept/ambient.h"
#include "intercept/message.h"
#include "intercept/moment.h"
#include "intercept/multi_late.h"
#include "player/headers.h"
#include "player/info.h"
#include "player/player.h"
#include "policy/policy.h"
#include "request/body.h"
#include "request/capture.h"
#include "request/request.h"

#include <uthash.h>

/* A transfer that is being played to the program right now, on its own thread. */
struct playing {
	struct moment moment; /* how far the program is */
	struct player *player;
	struct tape *tape;       /* null until there is one */
	struct attempt *attempt; /* that fills it; null: it is whole */
	unsigned resumed;        /* how often the program has let its sending go on */
	/* What is to be done when the program has jumped out of the call and gives the handle up;
	 * null: nothing. */
	void (*left)(void *ctx);
	void *ctx;
};

/* Which rule names the target, for one method: asked of the policy once a URL, not at each request.
 */
struct ruled {
	unsigned made; /* of the target; 0: not asked */
	char method[16];
	const struct rule *rule;
};

/* A body of which nothing left: see unsent.h. */
struct unsent {
	struct payload *payload; /* null: none */
	curl_read_callback read;
	void *data;
	curl_off_t size;
	char *type; /* of a form; null: no form */
};

struct shadow {
	CURL *handle; /* the key */
	const struct flavour *flavour;
	struct options options;
	struct request_target target;
	struct ruled ruled;
	struct ambient ambient; /* as it was when the last write began */
	struct capture capture; /* of its forms */
	struct unsent unsent;
	/* MIMEPOST as it is set. Any thread compares it when a form is freed; it publishes nothing.
	 */
	_Atomic(curl_mime *) form;
	bool foreign_form; /* MIMEPOST is libcurl's own copy of another handle's */
	bool native;       /* libcurl performs it in curl_easy_perform */
	struct courier_stay stay;
	bool raw_reported; /* an event told of curl_easy_send */

	/* The last transfer, if we played it: what getinfo and the header functions answer from. */
	bool played;
	struct info *info;
	struct headers *headers;
	struct playing *playing; /* null between transfers */
	struct chain *chain;     /* our callbacks are on the handle: chain.h */

	struct pseudo *pseudo; /* in a program's multi, and not libcurl's alone: pseudo.h */
	/* The multi that libcurl has it in, by the program's own call. Both may be long gone. */
	CURLM *added_to;
	uint64_t added_serial;
	unsigned added_round; /* of that multi, then: multi_late.h */
	struct late late;
	struct message message; /* libcurl's about it */
	CURLMsg lost;           /* and ours, where it could not be put in again */
	struct player_pace pace;
	UT_hash_handle hh;
};

/* A new shadow for a handle libcurl just made; wipes a stale one at the same address. Null: no
 * memory. */
struct shadow *shadow_new(CURL *handle, const struct flavour *flavour);
/* Null: not made through us. For most handles without a lock. */
struct shadow *shadow_find(CURL *handle);
void shadow_drop(CURL *handle);
/* A form that was set on a handle is being freed by its program, which libcurl lets it do: the
 * handle has none from then on. The libcurl it belongs to; null: no handle has it. */
const struct flavour *shadow_form_freed(curl_mime *form);
/* After curl_easy_duphandle. Takes `form`, as capture_copy left it. */
void shadow_copy(struct shadow *to, const struct shadow *from, const struct capture *form);
/* Its form is libcurl's own copy, and nothing here can render it. */
bool shadow_lacks_form(const struct shadow *s);
/* The real curl_easy_perform. */
CURLcode shadow_perform(struct shadow *s);
/* As curl_easy_reset leaves a handle. */
void shadow_reset(struct shadow *s);
/* Forget the last transfer: a new one starts. */
void shadow_begin(struct shadow *s, struct playing *playing);
/* The handle is cleaned up or reset: a call that a callback jumped out of is over. */
void shadow_left(struct shadow *s);

void shadow_fork_prepare(void);
void shadow_fork_done(void);

#endif
