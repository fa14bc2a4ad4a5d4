/* A program without libcurl that loads what has it.
 *
 * usage: host local|global|deepbind|reload|dlsym|dlvsym|tail URL LIBRARY...
 *
 * LIBRARY is a plugin, but for dlsym and dlvsym, where it is a libcurl. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int write_fn(const char *who, const char *url, const char *what);

static void *need(void *found)
{
	if (!found) {
		printf("%s\n", dlerror());
		exit(70);
	}
	return found;
}

static int load_and_write(const char *name, const char *url, const char *library, int mode)
{
	void *plugin = need(dlopen(library, RTLD_NOW | mode));
	write_fn *write_it = (write_fn *)need(dlsym(plugin, "plugin_write"));
	return write_it(name, url, "a=1") || write_it(name, url, "a=1");
}

static int reload(const char *url, const char *library)
{
	static const char *const bodies[] = {"a=1", "a=2", "a=1"};
	int rc = 0;
	for (int i = 0; i < 3 && rc == 0; i++) {
		void *plugin = need(dlopen(library, RTLD_NOW | RTLD_LOCAL));
		write_fn *write_it = (write_fn *)need(dlsym(plugin, "plugin_write"));
		rc = write_it("reload", url, bodies[i]);
		dlclose(plugin);
	}
	return rc;
}

enum { URL = 10002, POSTFIELDS = 10015, INFO_STATUS = 0x200002 };

static int foreign(const char *url, const char *library, const char *version)
{
	void *lib = need(dlopen(library, RTLD_NOW | RTLD_LOCAL));
#define FIND(name) need(version ? dlvsym(lib, name, version) : dlsym(lib, name))
	void *(*init)(void) = (void *(*)(void))FIND("curl_easy_init");
	int (*setopt)(void *, int, ...) = (int (*)(void *, int, ...))FIND("curl_easy_setopt");
	int (*perform)(void *) = (int (*)(void *))FIND("curl_easy_perform");
	int (*getinfo)(void *, int, ...) = (int (*)(void *, int, ...))FIND("curl_easy_getinfo");
	void (*cleanup)(void *) = (void (*)(void *))FIND("curl_easy_cleanup");
	int code = 0;
	for (int i = 0; i < 2 && code == 0; i++) {
		long status = 0;
		void *curl = need(init());
		setopt(curl, URL, url);
		setopt(curl, POSTFIELDS, "a=1");
		printf("foreign body=");
		fflush(stdout);
		code = perform(curl);
		getinfo(curl, INFO_STATUS, &status);
		printf(" code=%d status=%ld\n", code, status);
		cleanup(curl);
	}
	return code;
}

/* The wrappers of the plugin jump into libcurl, so that it returns to us, who are not linked to it.
 */
static int tail(const char *url, const char *library)
{
	void *plugin = need(dlopen(library, RTLD_NOW | RTLD_LOCAL));
	void *(*init)(void) = (void *(*)(void))need(dlsym(plugin, "plugin_init"));
	int (*perform)(void *) = (int (*)(void *))need(dlsym(plugin, "plugin_perform"));
	void (*cleanup)(void *) = (void (*)(void *))need(dlsym(plugin, "plugin_cleanup"));
	void (*set)(void *, const char *) =
	        (void (*)(void *, const char *))need(dlsym(plugin, "plugin_set"));
	void (*tell)(void *, int) = (void (*)(void *, int))need(dlsym(plugin, "plugin_tell"));
	int code = 0;
	for (int i = 0; i < 2 && code == 0; i++) {
		void *curl = need(init());
		set(curl, url);
		code = perform(curl);
		tell(curl, code);
		cleanup(curl);
	}
	return code;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 64;
	const char *how = argv[1], *url = argv[2];
	int rc = 0;
	for (int i = 3; i < argc && rc == 0; i++) {
		if (strcmp(how, "local") == 0)
			rc = load_and_write(how, url, argv[i], RTLD_LOCAL);
		else if (strcmp(how, "global") == 0)
			rc = load_and_write(how, url, argv[i], RTLD_GLOBAL);
		else if (strcmp(how, "deepbind") == 0)
			rc = load_and_write(how, url, argv[i], RTLD_LOCAL | RTLD_DEEPBIND);
		else if (strcmp(how, "reload") == 0)
			rc = reload(url, argv[i]);
		else if (strcmp(how, "dlsym") == 0)
			rc = foreign(url, argv[i], NULL);
		else if (strcmp(how, "dlvsym") == 0)
			rc = foreign(url, argv[i], "CURL_OPENSSL_4");
		else if (strcmp(how, "tail") == 0)
			rc = tail(url, argv[i]);
		else
			rc = 64;
	}
	return rc;
}
