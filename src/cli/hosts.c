/* See hosts.h. Where a distribution puts the modules that use libcurl, as globs. A name ends at a
 * version: php8.2, python3.11 and lua5.4 are php, python3 and lua. */
#include "cli/hosts.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *program;
	const char *module[4];
} hosts[] = {
        {"php", {"/usr/lib/php/*/curl.so", "/usr/local/lib/php/extensions/*/curl.so"}},
        {"php-fpm", {"/usr/lib/php/*/curl.so", "/usr/local/lib/php/extensions/*/curl.so"}},
        {"php-cgi", {"/usr/lib/php/*/curl.so"}},
        {"python",
         {"/usr/lib/python3/dist-packages/pycurl*.so",
          "/usr/local/lib/python3*/dist-packages/pycurl*.so",
          "/usr/local/lib/python3*/site-packages/pycurl*.so"}},
        {"ruby",
         {"/usr/share/rubygems-integration/all/gems/ethon-*/lib/ethon.rb",
          "/var/lib/gems/*/gems/ethon-*/lib/ethon.rb", "/var/lib/gems/*/gems/curb-*/lib/*.so",
          "/usr/lib/*/ruby/vendor_ruby/*/curb_core.so"}},
        {"perl",
         {"/usr/lib/*/perl5/*/auto/WWW/Curl/Curl.so", "/usr/lib/*/perl5/*/auto/Net/Curl/Curl.so",
          "/usr/local/lib/*/perl/*/auto/*/Curl/Curl.so"}},
        {"R", {"/usr/lib/R/*library/*/libs/*url.so", "/usr/local/lib/R/*library/*/libs/*url.so"}},
        {"lua", {"/usr/lib/*/lua/*/lcurl.so", "/usr/lib/*/lua/*/cURL*.so"}},
        {"tclsh", {"/usr/lib/tcltk/*/TclCurl*/libTclCurl*.so"}},
        {"node", {"/usr/share/nodejs/node-libcurl", "/usr/lib/node_modules/node-libcurl"}},
        {"collectd", {"/usr/lib/collectd/write_http.so"}},
        {"syslog-ng", {"/usr/lib/syslog-ng/*/libhttp.so"}},
        {"rsyslogd", {"/usr/lib/*/rsyslog/omhttp.so", "/usr/lib/*/rsyslog/omelasticsearch.so"}},
};

static const struct {
	const char *program, *helper;
} helpers[] = {
        {"git", "/usr/lib/git-core/git-remote-http"},
        {"git", "/usr/libexec/git-core/git-remote-http"},
};

static bool is_program(const char *name, const char *program)
{
	size_t n = strlen(program);

	return strncmp(name, program, n) == 0 &&
	       strspn(name + n, "0123456789.-") == strlen(name + n);
}

static const char *find(const char *pattern)
{
	static char found[PATH_MAX];
	glob_t g;
	bool any = glob(pattern, 0, NULL, &g) == 0 && g.gl_pathc > 0;

	if (any)
		snprintf(found, sizeof(found), "%s", g.gl_pathv[0]);
	globfree(&g);
	return any ? found : NULL;
}

const char *hosts_module(const char *name)
{
	const char *found = NULL;

	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts) && !found; i++)
		for (size_t k = 0; is_program(name, hosts[i].program) && k < 4 && !found; k++)
			found = hosts[i].module[k] ? find(hosts[i].module[k]) : NULL;
	return found;
}

bool hosts_known(const char *name)
{
	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++)
		if (is_program(name, hosts[i].program))
			return true;
	return false;
}

const char *hosts_helper(const char *name)
{
	for (size_t i = 0; i < sizeof(helpers) / sizeof(*helpers); i++)
		if (strcmp(name, helpers[i].program) == 0 && access(helpers[i].helper, X_OK) == 0)
			return helpers[i].helper;
	return NULL;
}
