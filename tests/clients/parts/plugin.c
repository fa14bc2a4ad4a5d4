/* A library that writes: a plugin, an extension, a vendored client. */
#include "write.h"

int plugin_write(const char *who, const char *url, const char *what);
CURL *plugin_init(void);
CURLcode plugin_perform(CURL *curl);
void plugin_cleanup(CURL *curl);
void plugin_set(CURL *curl, const char *url);
void plugin_tell(CURL *curl, int code);

static char answer[201];

int plugin_write(const char *who, const char *url, const char *what)
{
	return write_one(who, url, what);
}

/* Compiled to jumps: libcurl returns to whoever called these, not into this library. */
CURL *plugin_init(void)
{
	return curl_easy_init();
}

CURLcode plugin_perform(CURL *curl)
{
	return curl_easy_perform(curl);
}

void plugin_cleanup(CURL *curl)
{
	curl_easy_cleanup(curl);
}

void plugin_set(CURL *curl, const char *url)
{
	answer[0] = 0;
	write_set(curl, url, "a=1", answer);
}

void plugin_tell(CURL *curl, int code)
{
	write_tell("tail", curl, code, answer);
}
