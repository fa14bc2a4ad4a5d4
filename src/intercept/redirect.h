/* Requests no rule names, whose redirects may lead to one that is. */
#ifndef SENDONCE_INTERCEPT_REDIRECT_H
#define SENDONCE_INTERCEPT_REDIRECT_H

#include "intercept/shadow.h"

/* Whether there is anything to watch: redirects are followed, and no rule names the request. */
bool redirect_possible(const struct shadow *s);
/* Perform by libcurl; a send that a redirect led to a listed target is stopped, and refused. */
CURLcode redirect_perform(struct shadow *s);

#endif
