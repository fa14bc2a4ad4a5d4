/* The program's header list as it goes out: with lines of ours, without some of its own. */
#ifndef SENDONCE_COURIER_LINES_H
#define SENDONCE_COURIER_LINES_H

#include <stdbool.h>

#include "base/curlapi.h"

enum { LINES_ADD = 2, LINES_DROP = 6 };

/* All borrowed. */
struct header_edit {
	const char *add[LINES_ADD];   /* "Name: value"; null: none. The program's of that name go */
	const char *key_name;         /* not for other authorities; null: none */
	const char *drop[LINES_DROP]; /* names whose lines go; the first null ends them */
};

/* *headers for where the request was meant to go and, when `bare` is not null, *bare for other
 * authorities. Both are null before and the caller's to free in any case. 0, or -1 out of memory.
 */
int lines_make(const struct flavour *fl, const struct curl_slist *own,
               const struct header_edit *edit, struct curl_slist **headers,
               struct curl_slist **bare);

/* The program sends a line of that name itself. */
bool lines_have(const struct curl_slist *list, const char *name);

#endif
