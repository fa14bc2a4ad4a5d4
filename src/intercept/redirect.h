/* Requests no rule names, whose redirects may lead to one that is. */
#ifndef SENDONCE_INTERCEPT_REDIRECT_H
#define SENDONCE_INTERCEPT_REDIRECT_H

#include "intercept/shadow.h"

/* Whether there is anything to watch: redirects are followed, and no rule names the request. */
bool redirect_possible(const struct shadow *s);
/* Perform by libcurl; a send that a redirect led to a listed target is stopped, and refused. */
CURLcode redirect_perform(struct shadow *s);

/* The parts of it, for a perform that is watched for another reason too. */
struct redirect;
struct redirect *redirect_new(struct shadow *s); /* null: no memory */
/* Of a chain: before each wire send. Not 0: it leads to a listed target. */
int redirect_pass(void *redirect, const char *url);
/* After the perform: the program's code, once it has been refused where it has to be. Frees. */
CURLcode redirect_end(struct redirect *w, CURLcode code);
void redirect_free(void *redirect);

#endif
