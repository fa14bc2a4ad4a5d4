/* Copies of the program's forms that are only ours, and how they end without the program hearing of
 * it.
 *
 * A part that reads by a callback may come with a function that frees what it reads from (the
 * freefunc of curl_mime_data_cb). libcurl calls it once for the part and once for each copy of it,
 * and programs count. So libcurl gets a function of ours in its place, which calls the program's
 * unless what ends is a copy of ours.
 */
#ifndef SENDONCE_REQUEST_RELEASE_H
#define SENDONCE_REQUEST_RELEASE_H

#include <stdbool.h>

#include "base/curlapi.h"
#include "base/flavour.h"

enum { RELEASE_FUNCTIONS = 64 };

/* What libcurl is given for the program's `function`, which is not null: the same one each time.
 * `function` itself where RELEASE_FUNCTIONS others are known. Any thread, without a lock. */
curl_free_callback release_stand_in(curl_free_callback function);

/* A copy of a form can end unheard. False for good once a function had to be given to libcurl
 * itself: in which forms it is, nobody knows. */
bool release_is_unheard(void);

/* curl_easy_duphandle of a handle of ours. Null: no memory. */
CURL *release_copy(const struct flavour *fl, CURL *easy);

/* Take the form off a handle of ours. A copy ends with it, which is heard if `heard`; one of the
 * program's own, which is only attached there, is left as it is. */
void release_form(const struct flavour *fl, CURL *easy, bool heard);

#endif
