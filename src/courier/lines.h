/* The program's header list as it goes out: with lines of ours, without some of its own. */
#ifndef SENDONCE_COURIER_LINES_H
#define SENDONCE_COURIER_LINES_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/curlapi.h"

enum { LINES_ADD = 2, LINES_LAST = 2, LINES_DROP = 6 };

/* All borrowed. */
struct header_edit {
	const char *add[LINES_ADD];   /* "Name: value"; null: none. The program's of that name go */
	const char *last[LINES_LAST]; /* the same, at the end and for other authorities too */
	const char *key_name;         /* not for other authorities; null: none */
	const char *drop[LINES_DROP]; /* names whose lines go; the first null ends them */
};

/* `headers` for where the request was meant to go, `bare` for other authorities; null: no line.
 * Both end with `tail`, the lines of `edit->last`. */
struct lines {
	struct curl_slist *headers, *bare, *tail;
	void *room; /* of all of them */
};

/* *out: zeroed, and the caller's to free. 0, or -1 out of memory. */
int lines_make(const struct curl_slist *own, const struct header_edit *edit, struct lines *out);
/* From now on both lists end before the tail. */
void lines_cut(struct lines *lines);
void lines_free(struct lines *lines);

/* Into `edit` what libcurl would write for a form of `size` bytes (-1: it does not know) and of
 * this type, beside the program's own lines. 0, or -1 out of memory; in any case the texts are
 * `f`'s to free when the lists were made. */
struct lines_form {
	struct buf length, type;
};
int lines_form(struct lines_form *f, const struct curl_slist *own, curl_off_t size,
               const char *type, struct header_edit *edit);
void lines_form_free(struct lines_form *f);

/* The program sends a line of that name itself. */
bool lines_have(const struct curl_slist *list, const char *name);

#endif
