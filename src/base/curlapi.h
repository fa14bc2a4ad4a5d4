/* Typed calls into one flavour: CURL_FN(fl, easy_init)() calls that libcurl's curl_easy_init.
 * The caller tests for null where the function is younger than libcurl 7.62. */
#ifndef SENDONCE_BASE_CURLAPI_H
#define SENDONCE_BASE_CURLAPI_H

#define CURL_DISABLE_TYPECHECK
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

#include "base/flavour.h"

/* Younger than the headers we may be built with; curl.h knows them without a prototype of ours. */
#if LIBCURL_VERSION_NUM < 0x080400
CURL **curl_multi_get_handles(CURLM *multi);
#endif
#if LIBCURL_VERSION_NUM < 0x080800
CURLMcode curl_multi_waitfds(CURLM *multi, struct curl_waitfd *fds, unsigned int size,
                             unsigned int *count);
#endif

#if LIBCURL_VERSION_NUM < 0x081100
CURLMcode curl_multi_notify_enable(CURLM *multi, unsigned notification);
CURLMcode curl_multi_notify_disable(CURLM *multi, unsigned notification);
#endif

#define CURL_FN(fl, name)  ((__typeof__(&curl_##name))(fl)->fn[FN_##name])
#define CURL_HAS(fl, name) ((fl)->fn[FN_##name] != 0)

#endif
