/* The curl_easy_getinfo values of one transfer, kept apart from the handle that made them.
 *
 * The courier takes a snapshot of its own handle at the gate, at the end of each header block, at
 * the end, and on request; the getinfo hook answers the program from it, during and after the
 * transfer. Strings, lists and certificates are deep copies that live until the next snapshot is
 * taken into the same place, or info_free: libcurl's own rule (valid until the next perform).
 */
#ifndef SENDONCE_PLAYER_INFO_H
#define SENDONCE_PLAYER_INFO_H

#include "base/curlapi.h"

struct info; /* opaque */

/* A snapshot as a handle that never connected would give it. Null: out of memory. */
struct info *info_new(void);
/* Take every value the flavour's getinfo knows from `handle`. Keeps old values where it fails. */
void info_capture(struct info *info, const struct flavour *fl, CURL *handle);
struct info *info_copy(const struct info *info);
void info_free(struct info *info);
/* One more to be freed; it must not be changed from then on. */
struct info *info_ref(struct info *info);
/* The values of `from`, which is given up. Texts and certificates that a program may have got from
 * `to` stay valid until info_free(to). */
void info_adopt(struct info *to, struct info *from);

/* Overrides, for answers that are played from a record or made up. */
void info_set_long(struct info *info, CURLINFO id, long value);
void info_set_off(struct info *info, CURLINFO id, curl_off_t value); /* also its double twin */
void info_set_text(struct info *info, CURLINFO id, const char *value);

/* Answer one getinfo call as libcurl would; CURLE_UNKNOWN_OPTION for what we do not keep (the hook
 * then asks the real handle: PRIVATE, COOKIELIST, ACTIVESOCKET, TLS_SSL_PTR are never kept). */
CURLcode info_get(const struct info *info, CURLINFO id, void *out);

long info_long(const struct info *info, CURLINFO id);
const char *info_text(const struct info *info, CURLINFO id); /* may be null */

/* The parts that a stored answer carries: RESPONSE_CODE, CONTENT_TYPE, EFFECTIVE_URL,
 * REDIRECT_COUNT, HTTP_VERSION, SCHEME, PRIMARY_IP/PORT, sizes and so on. Text form inside answer
 * blobs.
 * EFFECTIVE_URL is stored only when a redirect led there, and without user and password: when it is
 * empty after info_load, the caller sets the program's own. */
struct buf;
void info_store(const struct info *info, struct buf *out);
int info_load(struct info *info, const char *data, size_t n); /* 0, or -1 when malformed */

#endif
