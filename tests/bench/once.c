/* A program that writes and ends: one handle, the same POST COUNT times.
 *
 *   once URL COUNT    exit 0 when each got a 2xx answer */
#include <curl/curl.h>
#include <stdlib.h>

static size_t swallow(char *data, size_t size, size_t n, void *ctx)
{
	(void)data, (void)ctx;
	return size * n;
}

int main(int argc, char **argv)
{
	long status = 0, count = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
	CURL *h = curl_easy_init();
	CURLcode code = CURLE_OK;

	curl_easy_setopt(h, CURLOPT_URL, argc > 1 ? argv[1] : "");
	curl_easy_setopt(h, CURLOPT_POSTFIELDS, "{\"amount\":5}");
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, swallow);
	for (long i = 0; i < count && code == CURLE_OK; i++) {
		code = curl_easy_perform(h);
		curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &status);
		if (status / 100 != 2)
			return 1;
	}
	curl_easy_cleanup(h);
	return code == CURLE_OK ? 0 : 1;
}
