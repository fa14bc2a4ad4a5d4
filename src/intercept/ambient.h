/* What libcurl takes from around the process when it connects: proxies of the environment, and the
 * user's .netrc. Read on the program's thread, because the courier may connect on another while
 * the program changes its environment. */
#ifndef SENDONCE_INTERCEPT_AMBIENT_H
#define SENDONCE_INTERCEPT_AMBIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/options.h"
#include "request/request.h"

enum { AMBIENT_OPTIONS = 3 };

/* All zero is empty. */
struct ambient {
	struct option extra[AMBIENT_OPTIONS]; /* what the courier is told instead */
	size_t count;
	bool has_proxies;
	size_t used;           /* of `room` */
	char *proxy[2];        /* of http and https, "" for none; null: the same, or never needed */
	char *said;            /* about the proxy, in verbose text; null: nothing */
	char *user, *password; /* .netrc's for this host; null: none, or the program has its own */
	char room[96];         /* of short texts of `extra` */
};

/* 0, or -1 out of memory. The login is part of the identity and comes first: it forgets what was
 * read for the request before. The proxies are for who connects, and read once a request. */
int ambient_login(struct ambient *a, const struct options *o, const struct request_target *t);
int ambient_proxies(struct ambient *a, const struct options *o, const struct request_target *t);
void ambient_free(struct ambient *a);

#endif
