/* Requests no rule names, whose redirects may lead to one that is. */
#ifndef SENDONCE_INTERCEPT_REDIRECT_H
#define SENDONCE_INTERCEPT_REDIRECT_H

#include "intercept/shadow.h"

/* Whether there is anything to watch: redirects are followed, and no rule names the request. */
bool redirect_possible(const struct shadow *s);

struct redirect;
struct writing;

/* Watch the handle until redirect_end: a send that a redirect led to a listed target is stopped.
 * Null: no memory, or it cannot be watched. */
struct redirect *redirect_begin(struct shadow *s);
/* libcurl has performed it. Not null: the refusal of what was stopped. Frees. */
struct writing *redirect_end(struct redirect *w);
/* The same for a perform that is a part of `w`: true, and w goes on as the refusal. Frees. */
bool redirect_refuses(struct redirect *redirect, struct writing *w);
/* The program gave the handle up in the middle. */
void redirect_abandon(struct redirect *w);

/* The parts of it, for a perform that is watched for another reason too. */
struct redirect *redirect_new(struct shadow *s); /* null: no memory */
/* Of a chain: before each wire send. Not 0: it leads to a listed target. */
int redirect_pass(void *redirect, const char *url);
/* As redirect_end. */
struct writing *redirect_refusal(struct redirect *w);
void redirect_free(void *redirect);

#endif
