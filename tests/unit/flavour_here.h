/* The system's libcurl as a flavour: every function by its name. Opened, since a test that calls no
 * curl function itself is not linked to it (--as-needed). */
#ifndef SENDONCE_TESTS_FLAVOUR_HERE_H
#define SENDONCE_TESTS_FLAVOUR_HERE_H

#include <dlfcn.h>
#include <string.h>

#include "base/flavour.h"

static inline const struct flavour *flavour_here(void)
{
	static struct flavour here;
	static const char *const names[FN_COUNT] = {
#define HERE_NAME(name) [FN_##name] = "curl_" #name,
	        CURL_HOOKED(HERE_NAME) CURL_CALLED(HERE_NAME)
#undef HERE_NAME
	};

	if (here.fn[FN_easy_init])
		return &here;
	void *lib = dlopen("libcurl.so.4", RTLD_NOW | RTLD_GLOBAL);
	for (int i = 0; lib && i < FN_COUNT; i++) {
		void *at = dlsym(lib, names[i]);

		memcpy(&here.fn[i], &at, sizeof at);
	}
	here.path = "libcurl.so.4";
	return &here;
}

#endif
