/* See curl_options.h. Those that shape the request have rows; those that only shape how it is sent
 * or shown are names in a list. What is in neither is not known, and explain says so. */
#include "cli/curl_options.h"

#include <stddef.h>
#include <string.h>

static const struct curl_row rows[] = {
        {'X', "request", CURL_METHOD, 0, 0},
        {'H', "header", CURL_HEADER, 0, 0},
        {'d', "data", CURL_DATA, 0, 0},
        {0, "data-ascii", CURL_DATA, 0, 0},
        {0, "data-raw", CURL_DATA_RAW, 0, 0},
        {0, "data-binary", CURL_DATA_BINARY, 0, 0},
        {0, "data-urlencode", CURL_DATA_URLENCODE, 0, 0},
        {0, "json", CURL_JSON, 0, 0},
        {'F', "form", CURL_FORM, 0, 0},
        {0, "form-string", CURL_FORM_STRING, 0, 0},
        {'T', "upload-file", CURL_UPLOAD, 0, 0},
        {0, "url", CURL_URL, 0, 0},
        {'G', "get", CURL_GET, 0, 0},
        {'I', "head", CURL_HEAD, 0, 0},
        {'b', "cookie", CURL_COOKIE, 0, 0},
        {0, "compressed", CURL_COMPRESSED, 0, 0},
        {'u', "user", CURL_TEXT, CURLOPT_USERPWD, 0},
        {0, "oauth2-bearer", CURL_TEXT, CURLOPT_XOAUTH2_BEARER, 0},
        {'A', "user-agent", CURL_TEXT, CURLOPT_USERAGENT, 0},
        {'e', "referer", CURL_TEXT, CURLOPT_REFERER, 0},
        {'E', "cert", CURL_TEXT, CURLOPT_SSLCERT, 0},
        {0, "netrc-file", CURL_TEXT, CURLOPT_NETRC_FILE, 0},
        {0, "unix-socket", CURL_TEXT, CURLOPT_UNIX_SOCKET_PATH, 0},
        {0, "abstract-unix-socket", CURL_TEXT, CURLOPT_ABSTRACT_UNIX_SOCKET, 0},
        {0, "request-target", CURL_TEXT, CURLOPT_REQUEST_TARGET, 0},
        {0, "proto-default", CURL_TEXT, CURLOPT_DEFAULT_PROTOCOL, 0},
        {'n', "netrc", CURL_FLAG, CURLOPT_NETRC, CURL_NETRC_REQUIRED},
        {0, "netrc-optional", CURL_FLAG, CURLOPT_NETRC, CURL_NETRC_OPTIONAL},
        {0, "digest", CURL_FLAG, CURLOPT_HTTPAUTH, (long)CURLAUTH_DIGEST},
        {0, "basic", CURL_FLAG, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC},
        {0, "path-as-is", CURL_FLAG, CURLOPT_PATH_AS_IS, 1},
};

/* Letters without and with a value, and names likewise, that change nothing of the request. */
static const char pass_letters[] = "sSvkLfijlNOJRg#046q";
static const char pass_value_letters[] = "omwxDcCyYzU";
static const char *const pass_names[] = {"silent",
                                         "show-error",
                                         "verbose",
                                         "insecure",
                                         "location",
                                         "location-trusted",
                                         "fail",
                                         "fail-with-body",
                                         "fail-early",
                                         "include",
                                         "progress-bar",
                                         "no-progress-meter",
                                         "no-buffer",
                                         "globoff",
                                         "remote-name",
                                         "remote-header-name",
                                         "remote-time",
                                         "http1.0",
                                         "http1.1",
                                         "http2",
                                         "http2-prior-knowledge",
                                         "http3",
                                         "tlsv1",
                                         "tlsv1.2",
                                         "tlsv1.3",
                                         "ipv4",
                                         "ipv6",
                                         "tcp-nodelay",
                                         "no-keepalive",
                                         "anyauth",
                                         "post301",
                                         "post302",
                                         "post303",
                                         "retry-connrefused",
                                         "retry-all-errors",
                                         "ssl-reqd",
                                         "tcp-fastopen",
                                         "disable",
                                         "raw",
                                         "styled-output",
                                         "create-dirs"};
static const char *const pass_value_names[] = {
        "output",      "max-time",    "write-out",         "proxy",
        "noproxy",     "dump-header", "cookie-jar",        "connect-timeout",
        "retry",       "retry-delay", "retry-max-time",    "cacert",
        "capath",      "key",         "key-type",          "cert-type",
        "pass",        "resolve",     "connect-to",        "interface",
        "max-redirs",  "limit-rate",  "expect100-timeout", "keepalive-time",
        "ciphers",     "tls-max",     "proxy-user",        "stderr",
        "trace",       "trace-ascii", "output-dir",        "dns-servers",
        "doh-url",     "local-port",  "max-filesize",      "proto",
        "proto-redir", "rate",        "speed-limit",       "speed-time"};

static bool is_in(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

#define IS_IN(names, name) is_in(names, sizeof(names) / sizeof(*names), name)

/* Null: unknown. */
const struct curl_row *curl_row_of_name(const char *name)
{
	static const struct curl_row pass = {0, "", CURL_PASS, 0, 0},
	                             pass_value = {0, "", CURL_PASS_VALUE, 0, 0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	if (IS_IN(pass_names, name))
		return &pass;
	if (strncmp(name, "no-", 3) == 0 && IS_IN(pass_names, name + 3))
		return &pass;
	return IS_IN(pass_value_names, name) ? &pass_value : NULL;
}

const struct curl_row *curl_row_of_letter(char letter)
{
	static const struct curl_row pass = {0, "", CURL_PASS, 0, 0},
	                             pass_value = {0, "", CURL_PASS_VALUE, 0, 0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].letter == letter)
			return &rows[i];
	if (strchr(pass_letters, letter))
		return &pass;
	return strchr(pass_value_letters, letter) ? &pass_value : NULL;
}

bool curl_row_has_value(const struct curl_row *row)
{
	return row->kind != CURL_PASS && row->kind != CURL_GET && row->kind != CURL_HEAD &&
	       row->kind != CURL_FLAG && row->kind != CURL_COMPRESSED;
}
