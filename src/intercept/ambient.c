/* See ambient.h. The rules are those of libcurl's detect_proxy and Curl_parsenetrc.
 *
 * A redirect may lead to the other scheme, which has a proxy variable of its own: both are
 * kept, for the courier to change between. */
#include "intercept/ambient.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "request/netrc.h"

static bool is_in_room(const struct ambient *a, const char *text)
{
	return text >= a->room && text < a->room + sizeof(a->room);
}

void ambient_free(struct ambient *a)
{
	for (size_t i = 0; i < a->count; i++)
		if (!is_in_room(a, a->extra[i].v.text))
			free(a->extra[i].v.text);
	free(a->user);
	free(a->password);
	free(a->proxy[0]);
	free(a->proxy[1]);
	free(a->said);
	memset(a, 0, offsetof(struct ambient, room));
}

static int add(struct ambient *a, CURLoption id, const char *text)
{
	size_t n = strlen(text) + 1;
	char *copy = a->room + a->used;

	if (n > sizeof(a->room) - a->used)
		copy = malloc(n);
	else
		a->used += n;
	if (!copy)
		return -1;
	memcpy(copy, text, n);
	a->extra[a->count++] =
	        (struct option){.id = id, .kind = OPTION_STRING, .v = {.text = copy}};
	return 0;
}

/* Empty variables count as not set, as in libcurl. */
static const char *env(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/* The first of the variables that is set, and its name. */
static const char *env_first(const char *const *names, const char **found)
{
	const char *value = NULL;

	for (*found = NULL; *names && !value; names++) {
		value = env(*names);
		*found = value ? *names : NULL;
	}
	return value;
}

/* HTTP_PROXY is what a CGI's client may have set by a header "Proxy:", and is never asked. */
static const char *proxy_for(bool secure, const char **name)
{
	static const char *const https[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
	                                    NULL};
	static const char *const http[] = {"http_proxy", "all_proxy", "ALL_PROXY", NULL};

	return env_first(secure ? https : http, name);
}

/* What libcurl says in its verbose text when it takes a proxy, or the hosts that need none, from
 * the environment. Where NOPROXY names hosts only libcurl knows whether it looked for a proxy. */
static int say_proxy(struct ambient *a, const struct options *o, const char *name,
                     const char *proxy)
{
	if (!options_long(o, CURLOPT_VERBOSE, 0))
		return 0;
	if (asprintf(&a->said, "Uses proxy env variable %s == '%s'\n", name, proxy) >= 0)
		return 0;
	a->said = NULL;
	return -1;
}

static bool same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static int read_proxy(struct ambient *a, const struct options *o, const struct request_target *t)
{
	bool secure = strcmp(t->scheme, "https") == 0;
	bool follows = options_long(o, CURLOPT_FOLLOWLOCATION, 0) != 0;
	static const char *const no_proxy[] = {"no_proxy", "NO_PROXY", NULL};
	const char *name, *from, *unused, *none = options_text(o, CURLOPT_NOPROXY);
	const char *proxy = proxy_for(secure, &from);
	const char *other = follows ? proxy_for(!secure, &unused) : proxy;

	if (!none) {
		none = env_first(no_proxy, &name);
		if (add(a, CURLOPT_NOPROXY, none ? none : "") != 0)
			return -1;
		if (none && say_proxy(a, o, name, none) != 0)
			return -1;
	}
	if (options_text(o, CURLOPT_PROXY) || options_text(o, CURLOPT_PRE_PROXY))
		return 0;
	if (!same(proxy, other)) {
		a->proxy[secure] = strdup(proxy ? proxy : "");
		a->proxy[!secure] = strdup(other ? other : "");
		if (!a->proxy[0] || !a->proxy[1])
			return -1;
	}
	if (proxy && (!none || !*none) && say_proxy(a, o, from, proxy) != 0)
		return -1;
	return add(a, CURLOPT_PROXY, proxy ? proxy : "");
}

/* False: there is no home. */
static bool home_netrc(char *out, size_t room)
{
	const char *home = env("HOME");
	struct passwd pw, *found = NULL;
	char space[1024];
	int n, saved = errno;

	if (!home && getpwuid_r(geteuid(), &pw, space, sizeof(space), &found) == 0 && found)
		home = found->pw_dir;
	errno = saved;
	n = home ? snprintf(out, room, "%s/.netrc", home) : -1;
	return n >= 0 && (size_t)n < room;
}

static int copy_text(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? -1 : 0;
}

/* A user name in the URL chooses among the file's entries; its password goes before the file's
 * unless the file is required. */
static int find_login(struct ambient *a, const struct request_target *t, long level,
                      const char *path)
{
	if (copy_text(&a->user, t->user) != 0)
		return -1;
	if (level != CURL_NETRC_REQUIRED && copy_text(&a->password, t->password) != 0)
		return -1;
	(void)netrc_find(path, t->host, &a->user, &a->password);
	return a->password ? 0 : copy_text(&a->password, t->password);
}

static int read_netrc(struct ambient *a, const struct options *o, const struct request_target *t)
{
	long level = options_long(o, CURLOPT_NETRC, CURL_NETRC_IGNORED);
	const char *path = options_text(o, CURLOPT_NETRC_FILE);
	char home[4096];

	if (level == CURL_NETRC_IGNORED)
		return 0;
	if (!path) {
		path = home_netrc(home, sizeof(home)) ? home : "/dev/null";
		if (add(a, CURLOPT_NETRC_FILE, path) != 0)
			return -1;
	}
	if (options_text(o, CURLOPT_USERPWD) || options_text(o, CURLOPT_USERNAME))
		return 0;
	return find_login(a, t, level, path);
}

int ambient_login(struct ambient *a, const struct options *o, const struct request_target *t)
{
	ambient_free(a);
	return read_netrc(a, o, t);
}

int ambient_proxies(struct ambient *a, const struct options *o, const struct request_target *t)
{
	if (a->has_proxies)
		return 0;
	a->has_proxies = true;
	return read_proxy(a, o, t);
}
