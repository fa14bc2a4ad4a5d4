/* A body that was read from its callback, or rendered, and of which no byte left.
 *
 * libcurl reads nothing before it is connected, so a program whose request could not be sent need
 * not wind its stream back before it tries again; here the stream is at its end by then. */
#ifndef SENDONCE_INTERCEPT_UNSENT_H
#define SENDONCE_INTERCEPT_UNSENT_H

#include "intercept/shadow.h"

/* Kept for the handle's next call, which asks for it or forgets it. */
void unsent_keep_stream(struct shadow *s, struct payload *body);
/* `type` is taken over: the form's Content-Type; `size` as announced, -1: it was not. */
void unsent_keep_form(struct shadow *s, struct payload *body, curl_off_t size, char *type);
void unsent_forget(struct shadow *s);

/* The caller's, or null: there is none of this source. Forgets. */
struct payload *unsent_take_stream(struct shadow *s, const struct body_source *source);
/* False: there is none of the form that the handle has. True: it is put in place of what `out`
 * holds, and forgotten. */
bool unsent_take_form(struct shadow *s, struct captured *out);

#endif
