/* Typed calls into one flavour: CURL_FN(fl, easy_init)() calls that libcurl's curl_easy_init.
 * The caller tests for null where the function is younger than libcurl 7.62. */
#ifndef SENDONCE_BASE_CURLAPI_H
#define SENDONCE_BASE_CURLAPI_H

#define CURL_DISABLE_TYPECHECK
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

#include "base/flavour.h"

#define CURL_FN(fl, name)  ((__typeof__(&curl_##name))(fl)->fn[FN_##name])
#define CURL_HAS(fl, name) ((fl)->fn[FN_##name] != 0)

#endif
