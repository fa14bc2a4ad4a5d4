/* A name whose look-up takes as long as the test wants: libcurl's calls of getaddrinfo come here.
 */
#ifndef SENDONCE_TESTS_SLOW_NAME_H
#define SENDONCE_TESTS_SLOW_NAME_H

#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>

#include "unit/courier_server.h"

enum { SLOW_MS = 1500 }; /* at most */

static const char slow_name[] = "slow.invalid";
static atomic_bool slow_go;
static atomic_int slow_count; /* look-ups that have begun */

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **out)
{
	__typeof__(&getaddrinfo) real = (__typeof__(&getaddrinfo))dlsym(RTLD_NEXT, "getaddrinfo");

	if (!node || strcmp(node, slow_name) != 0)
		return real(node, service, hints, out);
	atomic_fetch_add(&slow_count, 1);
	for (int64_t end = now_us() + SLOW_MS * 1000; !atomic_load(&slow_go) && now_us() < end;)
		sleep_ms(1);
	return real("127.0.0.1", service, hints, out);
}

#endif
