/* One write as every part of the loading tests makes it, and the line that tells of it. */
#ifndef SENDONCE_TESTS_WRITE_H
#define SENDONCE_TESTS_WRITE_H

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

static size_t write_keep(char *data, size_t size, size_t n, void *ctx)
{
	char *text = ctx;
	size_t have = strlen(text), room = 200 - have;
	size_t take = size * n < room ? size * n : room;
	memcpy(text + have, data, take);
	text[have + take] = 0;
	return size * n;
}

static void write_tell(const char *who, CURL *curl, int code, const char *body)
{
	long status = 0;
	struct curl_tlssessioninfo *tls = NULL; /* tells which libcurl the handle belongs to */
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(curl, CURLINFO_TLS_SSL_PTR, &tls);
	printf("%s tls=%d code=%d status=%ld body=%s\n", who, tls ? (int)tls->backend : -1, code,
	       status, body);
	fflush(stdout);
}

static void write_set(CURL *curl, const char *url, const char *what, char *body)
{
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_COPYPOSTFIELDS, what);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, 20L);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, write_keep);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
}

static int write_one(const char *who, const char *url, const char *what)
{
	char body[201] = "";
	CURL *curl = curl_easy_init();
	if (!curl) {
		printf("%s no handle\n", who);
		return 70;
	}
	write_set(curl, url, what, body);
	int code = curl_easy_perform(curl);
	write_tell(who, curl, code, body);
	curl_easy_cleanup(curl);
	return code;
}

#endif
