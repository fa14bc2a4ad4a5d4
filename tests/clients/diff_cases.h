/* The cases of diff.c that need more than one option or a callback. Part of that file: it uses what
 * stands before its inclusion there. */
#ifndef SENDONCE_TESTS_DIFF_CASES_H
#define SENDONCE_TESTS_DIFF_CASES_H

/* --- the cases: what each sets besides the plain write --- */

static void set_plain(struct seen *s)
{
	(void)s;
}

static void set_header(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_HEADER, 1L);
	curl_easy_setopt(s->curl, CURLOPT_HEADERFUNCTION, NULL);
	curl_easy_setopt(s->curl, CURLOPT_HEADERDATA, NULL);
}

static void set_fail(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_FAILONERROR, 1L);
}

static void set_timeout(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_TIMEOUT_MS, 500L);
}

static void set_timeout_seconds(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_TIMEOUT, 1L);
}

static void set_low_speed(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_LOW_SPEED_LIMIT, 1000L);
	curl_easy_setopt(s->curl, CURLOPT_LOW_SPEED_TIME, 1L);
}

static void set_progress_abort(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(s->curl, CURLOPT_XFERINFOFUNCTION, on_progress_abort);
	curl_easy_setopt(s->curl, CURLOPT_XFERINFODATA, s);
}

static void set_write_abort(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, on_body_refuse);
}

static void set_pause(struct seen *s)
{
	s->pause_next = true;
	curl_easy_setopt(s->curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(s->curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(s->curl, CURLOPT_XFERINFODATA, s);
}

/* The default write function, to a FILE of the program's and to stdout. */
static void set_file(struct seen *s)
{
	s->file = tmpfile();
	curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, NULL);
	curl_easy_setopt(s->curl, CURLOPT_WRITEDATA, s->file);
}

static void set_stdout(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, NULL);
	curl_easy_setopt(s->curl, CURLOPT_WRITEDATA, stdout);
}

/* Functions of the program's own and no data for them: libcurl passes stdout and stdin. */
static size_t on_stdout(char *data, size_t size, size_t n, void *file)
{
	printf("write to stdout %d\n", file == stdout);
	return file ? fwrite(data, size, n, file) : 0;
}

static size_t on_stdin(char *data, size_t size, size_t n, void *file)
{
	static bool given;

	printf("read from stdin %d\n", file == stdin);
	given = !given;
	if (!given || size * n < 3)
		return 0;
	memcpy(data, "abc", 3);
	return 3;
}

static void set_no_data(struct seen *s)
{
	curl_easy_reset(s->curl);
	curl_easy_setopt(s->curl, CURLOPT_URL, url);
	curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, on_stdout);
	curl_easy_setopt(s->curl, CURLOPT_READFUNCTION, on_stdin);
	curl_easy_setopt(s->curl, CURLOPT_POST, 1L);
	curl_easy_setopt(s->curl, CURLOPT_POSTFIELDSIZE, 3L);
}

/* Without a header function the write function gets the lines: here the default one. */
static void set_header_file(struct seen *s)
{
	set_file(s);
	curl_easy_setopt(s->curl, CURLOPT_HEADERFUNCTION, NULL);
	curl_easy_setopt(s->curl, CURLOPT_HEADERDATA, s->file);
}

static void set_no_error_buffer(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_ERRORBUFFER, NULL);
}

static void set_max_filesize(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_MAXFILESIZE, 10L);
}

static void set_follow(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_FOLLOWLOCATION, 1L);
}

static void set_basic(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_USERPWD, "u:p");
}

static void set_digest(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_USERPWD, "u:p");
	curl_easy_setopt(s->curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_DIGEST);
}

static void set_encoding(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_ACCEPT_ENCODING, "");
}

static void set_put(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_CUSTOMREQUEST, "PUT");
}

static void set_pause_header(struct seen *s)
{
	set_pause(s);
	s->pause_next = false;
	s->pause_header = true;
}

static void set_nested(struct seen *s)
{
	s->nested = true;
}

static void set_again(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_COOKIEFILE, "");
	s->again = true;
}

static void set_digest_again(struct seen *s)
{
	set_digest(s);
	s->again = true;
}

/* The first answer offers what the second request uses. */
static void set_digest_then(struct seen *s)
{
	set_digest(s);
	curl_easy_setopt(s->curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
	s->again = true;
	s->auth_then = CURLAUTH_DIGEST;
}

static void set_headers(struct seen *s)
{
	static const char *const lines[] = {"Accept:", "Content-Type: text/x", "X-Empty;",
	                                    "Host: other.example", "X-A: 1"};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		s->list = curl_slist_append(s->list, lines[i]);
	curl_easy_setopt(s->curl, CURLOPT_HTTPHEADER, s->list);
}

static void set_parts(struct seen *s)
{
	s->parts = curl_url();
	curl_url_set(s->parts, CURLUPART_URL, url, 0);
	curl_easy_setopt(s->curl, CURLOPT_CURLU, s->parts);
}

static void set_parts_space(struct seen *s)
{
	char *path, text[200];

	set_parts(s);
	curl_url_get(s->parts, CURLUPART_PATH, &path, 0);
	snprintf(text, sizeof(text), "%s/a b", path);
	curl_url_set(s->parts, CURLUPART_PATH, text, 0);
	curl_free(path);
}

static void set_resolve(struct seen *s)
{
	s->list = curl_slist_append(NULL, getenv("RESOLVE"));
	curl_easy_setopt(s->curl, CURLOPT_RESOLVE, s->list);
}

static void set_connect_to(struct seen *s)
{
	s->list = curl_slist_append(NULL, getenv("CONNECT_TO"));
	curl_easy_setopt(s->curl, CURLOPT_CONNECT_TO, s->list);
}

static void set_aliases(struct seen *s)
{
	s->list = curl_slist_append(NULL, "ICY");
	curl_easy_setopt(s->curl, CURLOPT_HTTP200ALIASES, s->list);
}

static void set_time_condition(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_TIMECONDITION, (long)CURL_TIMECOND_IFMODSINCE);
	curl_easy_setopt(s->curl, CURLOPT_TIMEVALUE, 1000000000L);
}

static void set_nobody_custom(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_NOBODY, 1L);
	curl_easy_setopt(s->curl, CURLOPT_CUSTOMREQUEST, "DELETE");
}

static void set_expect(struct seen *s)
{
	static char big[1100000];
	memset(big, 'x', sizeof(big) - 1);
	curl_easy_setopt(s->curl, CURLOPT_POSTFIELDS, big);
	curl_easy_setopt(s->curl, CURLOPT_EXPECT_100_TIMEOUT_MS, 300L);
}

/* Its answer's code so far is what libs3 goes by. */
static size_t on_read(char *to, size_t size, size_t n, void *ctx)
{
	struct seen *s = ctx;
	bool first = s->read_code < 0;
	(void)size, (void)n;
	curl_easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &s->read_code);
	if (first)
		memcpy(to, "12345", 5);
	return first ? 5 : 0;
}

static void set_read(struct seen *s, CURLoption kind, long size)
{
	curl_easy_setopt(s->curl, CURLOPT_POSTFIELDS, NULL);
	curl_easy_setopt(s->curl, kind, 1L);
	curl_easy_setopt(s->curl, CURLOPT_READFUNCTION, on_read);
	curl_easy_setopt(s->curl, CURLOPT_READDATA, s);
	curl_easy_setopt(s->curl, kind == CURLOPT_POST ? CURLOPT_POSTFIELDSIZE : CURLOPT_INFILESIZE,
	                 size);
}

static void set_read_put(struct seen *s)
{
	set_read(s, CURLOPT_UPLOAD, 5);
}

static void set_read_put_chunked(struct seen *s)
{
	set_read(s, CURLOPT_UPLOAD, -1);
}

static void set_read_put_at_once(struct seen *s)
{
	set_read(s, CURLOPT_UPLOAD, 5);
	s->list = curl_slist_append(NULL, "Expect:");
	curl_easy_setopt(s->curl, CURLOPT_HTTPHEADER, s->list);
}

static void set_read_put_old(struct seen *s)
{
	set_read(s, CURLOPT_UPLOAD, 5);
	curl_easy_setopt(s->curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_0);
}

static void set_read_post(struct seen *s)
{
	set_read(s, CURLOPT_POST, 5);
}

static void set_read_post_chunked(struct seen *s)
{
	set_read(s, CURLOPT_POST, -1);
}

static void set_read_post_asked(struct seen *s)
{
	set_read(s, CURLOPT_POST, 5);
	s->list = curl_slist_append(NULL, "expect: 100-Continue");
	curl_easy_setopt(s->curl, CURLOPT_HTTPHEADER, s->list);
}

static void set_connect(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_PROXY, getenv("PROXY"));
	curl_easy_setopt(s->curl, CURLOPT_HTTPPROXYTUNNEL, 1L);
}

static void set_nul_bytes(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_POSTFIELDSIZE, 5L);
	curl_easy_setopt(s->curl, CURLOPT_COPYPOSTFIELDS, "a\0b\0c");
}

/* --- what a handle says while it transfers --- */

static void print_now(CURL *curl, const char *where)
{
	long status = 0, size = 0, redirects = 0;
	curl_off_t down = 0, length = 0;
	char *effective = NULL, *type = NULL, *method = NULL;
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(curl, CURLINFO_HEADER_SIZE, &size);
	curl_easy_getinfo(curl, CURLINFO_REDIRECT_COUNT, &redirects);
	curl_easy_getinfo(curl, CURLINFO_SIZE_DOWNLOAD_T, &down);
	curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	curl_easy_getinfo(curl, CURLINFO_EFFECTIVE_URL, &effective);
	curl_easy_getinfo(curl, CURLINFO_EFFECTIVE_METHOD, &method);
	curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type);
	printf("now %s %ld %ld %ld %d %d %s %s %s\n", where, status, size, redirects, (int)down,
	       (int)length, effective, method, type ? type : "(null)");
}

static size_t on_header_info(char *data, size_t size, size_t n, void *ctx)
{
	struct seen *s = ctx;
	struct curl_header *h = NULL;
	size_t took = on_header(data, size, n, ctx);
	print_now(s->curl, "header");
	printf("now api %d\n",
	       (int)curl_easy_header(s->curl, "Content-Type", 0, CURLH_HEADER, -1, &h));
	return took;
}

static size_t on_body_info(char *data, size_t size, size_t n, void *ctx)
{
	struct seen *s = ctx;
	print_now(s->curl, "body");
	return on_body(data, size, n, ctx);
}

static void set_info(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_HEADERFUNCTION, on_header_info);
	curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, on_body_info);
	curl_easy_setopt(s->curl, CURLOPT_FOLLOWLOCATION, 1L);
}

static int on_debug(CURL *curl, curl_infotype type, char *data, size_t n, void *ctx)
{
	static const char *const names[] = {"text",     "in",     "out",    "data-in",
	                                    "data-out", "ssl-in", "ssl-out"};
	struct seen *s = ctx;
	if (curl != s->curl)
		puts("another handle");
	if (type == CURLINFO_DATA_IN || type == CURLINFO_DATA_OUT)
		printf("debug %s %zu\n", names[type], n);
	else if (type <= CURLINFO_HEADER_OUT)
		printf("debug %s %.*s\n", names[type], (int)n, data);
	return 0;
}

static void set_debug(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_VERBOSE, 1L);
	curl_easy_setopt(s->curl, CURLOPT_DEBUGFUNCTION, on_debug);
	curl_easy_setopt(s->curl, CURLOPT_DEBUGDATA, s);
	curl_easy_setopt(s->curl, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(s->curl, CURLOPT_SSL_VERIFYPEER, 0L);
}

static void set_verbose(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_VERBOSE, 1L);
	curl_easy_setopt(s->curl, CURLOPT_STDERR, stdout);
}

static const struct peculiarity {
	const char *name;
	void (*set)(struct seen *s);
} cases[] = {
        {"plain", set_plain},
        {"header", set_header},
        {"fail", set_fail},
        {"timeout", set_timeout},
        {"timeout-seconds", set_timeout_seconds},
        {"low-speed", set_low_speed},
        {"progress-abort", set_progress_abort},
        {"write-abort", set_write_abort},
        {"pause", set_pause},
        {"file", set_file},
        {"stdout", set_stdout},
        {"no-data", set_no_data},
        {"header-file", set_header_file},
        {"no-error-buffer", set_no_error_buffer},
        {"max-filesize", set_max_filesize},
        {"follow", set_follow},
        {"basic", set_basic},
        {"digest", set_digest},
        {"encoding", set_encoding},
        {"put", set_put},
        {"reset", set_plain},
        {"duphandle", set_header},
        {"pause-header", set_pause_header},
        {"nested", set_nested},
        {"again", set_again},
        {"digest-again", set_digest_again},
        {"digest-then", set_digest_then},
        {"headers", set_headers},
        {"curlu", set_parts},
        {"curlu-space", set_parts_space},
        {"resolve", set_resolve},
        {"connect-to", set_connect_to},
        {"aliases", set_aliases},
        {"time-condition", set_time_condition},
        {"nobody-custom", set_nobody_custom},
        {"expect", set_expect},
        {"read-put", set_read_put},
        {"read-put-chunked", set_read_put_chunked},
        {"read-put-at-once", set_read_put_at_once},
        {"read-put-old", set_read_put_old},
        {"read-post", set_read_post},
        {"read-post-chunked", set_read_post_chunked},
        {"read-post-asked", set_read_post_asked},
        {"connect", set_connect},
        {"nul-bytes", set_nul_bytes},
        {"info", set_info},
        {"debug", set_debug},
        {"verbose", set_verbose},
};

#endif
