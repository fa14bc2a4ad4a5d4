/* The cases of diff.c that are one option, or a few: what a program can set on a handle of HTTP. */
#ifndef SENDONCE_TESTS_DIFF_OPTIONS_H
#define SENDONCE_TESTS_DIFF_OPTIONS_H

#include <curl/curl.h>

/* $NAME in a text is taken from the environment. */
static const struct simple {
	const char *name;
	CURLoption option;
	long number;
	const char *text; /* null: the number */
} simple_cases[] = {
        {"cainfo", CURLOPT_CAINFO, 0, "$CA"},
        {"no-cainfo", CURLOPT_CAINFO, 0, "/dev/null"},
        {"no-verify", CURLOPT_SSL_VERIFYPEER, 0, NULL},
        {"proxy", CURLOPT_PROXY, 0, "$PROXY"},
        {"postredir", CURLOPT_POSTREDIR, CURL_REDIR_POST_ALL, NULL},
        {"maxredirs", CURLOPT_MAXREDIRS, 1, NULL},
        {"autoreferer", CURLOPT_AUTOREFERER, 1, NULL},
        {"unix-socket", CURLOPT_UNIX_SOCKET_PATH, 0, "$SOCKET"},
        {"interface", CURLOPT_INTERFACE, 0, "host!127.0.0.1"},
        {"interface-none", CURLOPT_INTERFACE, 0, "if!nosuch0"},
        {"range", CURLOPT_RANGE, 0, "2-5"},
        {"referer", CURLOPT_REFERER, 0, "http://r.example/"},
        {"useragent", CURLOPT_USERAGENT, 0, "agent/1"},
        {"transfer-encoding", CURLOPT_TRANSFER_ENCODING, 1, NULL},
        {"ignore-length", CURLOPT_IGNORE_CONTENT_LENGTH, 1, NULL},
        {"buffersize", CURLOPT_BUFFERSIZE, 1024, NULL},
        {"nodelay", CURLOPT_TCP_NODELAY, 0, NULL},
        {"keepalive", CURLOPT_TCP_KEEPALIVE, 1, NULL},
        {"delete", CURLOPT_CUSTOMREQUEST, 0, "DELETE"},
        {"patch", CURLOPT_CUSTOMREQUEST, 0, "PATCH"},
        {"empty", CURLOPT_POSTFIELDS, 0, ""},
        {"size-zero", CURLOPT_POSTFIELDSIZE, 0, NULL},
        {"size-short", CURLOPT_POSTFIELDSIZE, 4, NULL},
        {"http10", CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_0, NULL},
        {"target", CURLOPT_REQUEST_TARGET, 0, "$TARGET"},
        {"path-as-is", CURLOPT_PATH_AS_IS, 1, NULL},
        {"fresh", CURLOPT_FRESH_CONNECT, 1, NULL},
        {"forbid-reuse", CURLOPT_FORBID_REUSE, 1, NULL},
        {"bearer", CURLOPT_XOAUTH2_BEARER, 0, "token"},
        {"port", CURLOPT_PORT, 1, NULL},
        {"filetime", CURLOPT_FILETIME, 1, NULL},
        {"protocols", CURLOPT_PROTOCOLS_STR, 0, "https"},
        {"http-only", CURLOPT_PROTOCOLS_STR, 0, "http"},
        {"raw", CURLOPT_HTTP_TRANSFER_DECODING, 0, NULL},
        {"undecoded", CURLOPT_HTTP_CONTENT_DECODING, 0, NULL},
        {"ipv6", CURLOPT_IPRESOLVE, CURL_IPRESOLVE_V6, NULL},
        {"keep-sending", CURLOPT_KEEP_SENDING_ON_ERROR, 1, NULL},
        {"http09", CURLOPT_HTTP09_ALLOWED, 1, NULL},
        {"cookie-text", CURLOPT_COOKIE, 0, "a=b"},
        {"cookie-engine", CURLOPT_COOKIEFILE, 0, ""},
        {"connect-timeout", CURLOPT_CONNECTTIMEOUT_MS, 300, NULL},
        {"speed", CURLOPT_MAX_SEND_SPEED_LARGE, 1000000, NULL},
        {"resume", CURLOPT_RESUME_FROM, 3, NULL},
};

#endif
