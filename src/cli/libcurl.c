/* See libcurl.h. Any of the names a libcurl has on a Debian or a Red Hat will do: what is asked of
 * it is in all of them since 7.62. */
#include "cli/libcurl.h"

#include <dlfcn.h>
#include <string.h>

#include "cli/cli.h"

static void *open_any(const char **name)
{
	static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4",
	                                    "libcurl-nss.so.4", "libcurl.so"};
	void *object = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !object; i++) {
		*name = names[i];
		object = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	}
	return object;
}

static void find_all(struct libcurl *c)
{
	static const char *const names[FN_COUNT] = {
#define LIBCURL_NAME(name) [FN_##name] = "curl_" #name,
	        CURL_HOOKED(LIBCURL_NAME) CURL_CALLED(LIBCURL_NAME)
#undef LIBCURL_NAME
	};

	for (int i = 0; i < FN_COUNT; i++) {
		void *at = dlsym(c->object, names[i]);

		memcpy(&c->flavour.fn[i], &at, sizeof(at));
	}
}

/* ISO C has no conversion from an object's address to a function's. */
static bool find_one(const struct libcurl *c, const char *name, void *to)
{
	void *at = dlsym(c->object, name);

	memcpy(to, &at, sizeof(at));
	return at != NULL;
}

static bool find_mime(struct libcurl *c)
{
	return find_one(c, "curl_mime_init", &c->mime_init) &&
	       find_one(c, "curl_mime_free", &c->mime_free) &&
	       find_one(c, "curl_mime_addpart", &c->mime_addpart) &&
	       find_one(c, "curl_mime_name", &c->mime_name) &&
	       find_one(c, "curl_mime_data", &c->mime_data) &&
	       find_one(c, "curl_mime_filedata", &c->mime_filedata) &&
	       find_one(c, "curl_mime_filename", &c->mime_filename) &&
	       find_one(c, "curl_mime_type", &c->mime_type);
}

int libcurl_open(const char *command, struct libcurl *out)
{
	memset(out, 0, sizeof(*out));
	out->object = open_any(&out->flavour.path);
	if (!out->object)
		return cli_fail(CLI_CANNOT, command,
		                "there is no libcurl on this system, and it is libcurl that reads "
		                "URLs: install libcurl4");
	find_all(out);
	if (!find_mime(out) || !CURL_HAS(&out->flavour, url))
		return cli_fail(CLI_CANNOT, command, "%s is older than 7.62", out->flavour.path);
	return 0;
}
