/* Draining a body from a read callback: what is read, with how much room, and how it ends. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "request/body.h"
#include "request/request.h"

enum { LIMIT = 64 << 20, STEPS = 8 };

/* What the callback returns, call by call; bytes are `x`. */
struct script {
	size_t step[STEPS + 1];
	unsigned calls, watched, paused, resume_after;
	bool stop;
	size_t room;
};

static size_t on_read(char *out, size_t size, size_t n, void *ctx)
{
	struct script *s = ctx;
	size_t give = s->step[s->calls++];

	s->room = size * n;
	if (give <= size * n)
		memset(out, 'x', give);
	return give;
}

static bool on_watch(void *ctx, bool paused, bool *resume)
{
	struct script *s = ctx;

	s->watched++;
	s->paused += paused;
	*resume = s->paused > s->resume_after;
	return !s->stop;
}

/* Read on as a blocking perform does. False: the watch stopped it. */
static bool drain(const struct body_source *source, size_t limit, struct script *s,
                  struct payload *into, enum body_drained *result)
{
	for (;;) {
		bool resume = false;

		*result = body_read(source, limit, into);
		if (*result != BODY_MORE && *result != BODY_PAUSED)
			return true;
		while (!resume) {
			if (!on_watch(s, *result == BODY_PAUSED, &resume))
				return false;
			resume = resume || *result == BODY_MORE;
		}
	}
}

struct row {
	const char *name;
	curl_off_t size;
	bool to_the_end;
	size_t step[STEPS + 1];
	size_t limit;
	enum body_drained result;
	size_t bytes;
	unsigned calls;
};

static const struct row rows[] = {
        {"whole", 5, false, {5}, LIMIT, BODY_DRAINED, 5, 1},
        {"in two", 5, false, {2, 3}, LIMIT, BODY_DRAINED, 5, 2},
        {"short", 5, false, {2, 0}, LIMIT, BODY_DRAINED, 2, 2},
        {"nothing at all", 5, false, {0}, LIMIT, BODY_DRAINED, 0, 1},
        {"not asked for nothing", 0, false, {9}, LIMIT, BODY_DRAINED, 0, 0},
        {"more than announced", 5, false, {8}, LIMIT, BODY_DRAINED, 5, 1},
        {"not announced", -1, true, {4, 4, 1, 0}, LIMIT, BODY_DRAINED, 9, 4},
        {"announced, but in chunks", 4, true, {4, 4, 0}, LIMIT, BODY_DRAINED, 8, 3},
        {"abort at once", 5, false, {CURL_READFUNC_ABORT}, LIMIT, BODY_ABORTED, 0, 1},
        {"abort later", -1, true, {3, CURL_READFUNC_ABORT}, LIMIT, BODY_ABORTED, 3, 2},
        {"funny", 5, false, {101}, LIMIT, BODY_FUNNY, 0, 1},
        {"pause", 5, false, {2, CURL_READFUNC_PAUSE, 3}, LIMIT, BODY_DRAINED, 5, 3},
        {"exactly the limit", -1, true, {4, 4, 0}, 8, BODY_DRAINED, 8, 3},
        {"over the limit", -1, true, {4, 5, 4}, 8, BODY_OVERSIZE, 9, 2},
};

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *r = &rows[i];
		struct script s = {.resume_after = 2};
		struct body_source source = {on_read, &s, r->size, 100, r->to_the_end};
		struct payload *p = payload_new();
		enum body_drained result;

		memcpy(s.step, r->step, sizeof(s.step));
		print_message("%s\n", r->name);
		assert_true(drain(&source, r->limit, &s, p, &result));
		assert_int_equal(result, r->result);
		assert_int_equal(payload_size(p), r->bytes);
		assert_int_equal(s.calls, r->calls);
		assert_true(!s.calls || s.room == 100);
		assert_int_equal(s.paused, strcmp(r->name, "pause") == 0 ? 3 : 0);
		payload_unref(p);
	}
}

/* It can be left between two reads and within a pause. */
static void test_stop(void **state)
{
	static const size_t second[] = {1, CURL_READFUNC_PAUSE};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct script s = {.stop = true, .step = {second[i], 1}, .resume_after = 99};
		struct body_source source = {on_read, &s, 2, 100, false};
		struct payload *p = payload_new();
		enum body_drained result;

		assert_false(drain(&source, LIMIT, &s, p, &result));
		assert_int_equal(s.calls, 1);
		payload_unref(p);
	}
}

static void set(struct options *o, CURLoption id, uintptr_t word)
{
	assert_int_equal(options_set(o, id, word), 0);
}

static void test_source(void **state)
{
	struct options o;
	struct body_source s;
	struct curl_slist chunked = {(char *)"transfer-encoding: Chunked", NULL};

	(void)state;
	options_init(&o);
	set(&o, CURLOPT_POST, 1);
	s = body_source_of(&o);
	assert_ptr_equal(s.read, (curl_read_callback)fread);
	assert_ptr_equal(s.data, stdin);
	assert_int_equal(s.size, -1);
	assert_true(s.to_the_end);
	assert_int_equal(s.room, 65536 - 12);
	set(&o, CURLOPT_POSTFIELDSIZE, 7);
	set(&o, CURLOPT_READFUNCTION, (uintptr_t)on_read);
	set(&o, CURLOPT_READDATA, 0);
	s = body_source_of(&o);
	assert_ptr_equal(s.read, on_read);
	assert_null(s.data);
	assert_int_equal(s.size, 7);
	assert_false(s.to_the_end);
	assert_int_equal(s.room, 65536);
	set(&o, CURLOPT_HTTPHEADER, (uintptr_t)&chunked);
	s = body_source_of(&o);
	assert_int_equal(s.size, 7);
	assert_true(s.to_the_end);
	set(&o, CURLOPT_HTTPHEADER, 0);
	set(&o, CURLOPT_UPLOAD, 1);
	assert_int_equal(body_source_of(&o).size, -1);
	set(&o, CURLOPT_INFILESIZE_LARGE, 9);
	set(&o, CURLOPT_INFILESIZE, 8);
	set(&o, CURLOPT_UPLOAD_BUFFERSIZE, 1);
	s = body_source_of(&o);
	assert_int_equal(s.size, 8);
	assert_int_equal(s.room, 16384);
	options_free(&o);
}

static void test_pieces(void **state)
{
	struct payload *p = payload_new();

	(void)state;
	assert_int_equal(payload_add(p, "abc", 3), 0);
	assert_int_equal(payload_add(p, "", 0), 0);
	assert_int_equal(payload_add(p, "d", 1), 0);
	assert_int_equal(payload_seal(p), 0);
	assert_true(span_is(payload_bytes(p), "abcd"));
	assert_int_equal(payload_piece(p, 0), 3);
	assert_int_equal(payload_piece(p, 2), 1);
	assert_int_equal(payload_piece(p, 3), 1);
	assert_int_equal(payload_piece(p, 4), 0);
	payload_unref(p);
}

static int count_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 64; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void fill(struct payload *p, size_t n)
{
	char block[4096];

	for (size_t at = 0; at < n; at += sizeof(block)) {
		memset(block, (int)('a' + at / sizeof(block) % 26), sizeof(block));
		assert_int_equal(payload_add(p, block, sizeof(block)), 0);
	}
}

static void check(struct payload *p, size_t n)
{
	struct span all = payload_bytes(p);

	assert_int_equal(all.n, n);
	for (size_t at = 0; at < n; at += 4096)
		assert_int_equal(all.p[at], 'a' + at / 4096 % 26);
}

/* A large body lies in a file without a name, whose descriptor is not kept; where there can be no
 * file, in memory. */
static void test_large(void **state)
{
	static const char *const folders[] = {"/tmp", "/nonexistent", "relative", NULL};
	enum { SIZE = 3 << 20 };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		int before = count_descriptors();
		struct payload *p = payload_new(), *same;

		folders[i] ? setenv("TMPDIR", folders[i], 1) : unsetenv("TMPDIR");
		fill(p, SIZE);
		assert_int_equal(count_descriptors(), before + 1);
		assert_int_equal(payload_seal(p), 0);
		assert_int_equal(count_descriptors(), before);
		check(p, SIZE);
		same = payload_ref(p);
		payload_unref(p);
		check(same, SIZE);
		payload_unref(same);
	}
}

static void test_no_file(void **state)
{
	enum { SIZE = 3 << 20 };
	struct rlimit was, limit;
	int before = count_descriptors();
	struct payload *p = payload_new();

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	limit = was;
	limit.rlim_cur = 2 << 20;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	fill(p, SIZE);
	assert_int_equal(count_descriptors(), before);
	assert_int_equal(payload_seal(p), 0);
	check(p, SIZE);
	payload_unref(p);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
}

/* Our file is never somebody's stdin. */
static void test_above_stdio(void **state)
{
	int keep = dup(0);
	struct payload *p = payload_new();

	(void)state;
	close(0);
	fill(p, 2 << 20);
	assert_int_equal(fcntl(0, F_GETFD), -1);
	payload_unref(p);
	assert_int_equal(dup2(keep, 0), 0);
	close(keep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_table),       cmocka_unit_test(test_stop),
	        cmocka_unit_test(test_source),      cmocka_unit_test(test_pieces),
	        cmocka_unit_test(test_large),       cmocka_unit_test(test_no_file),
	        cmocka_unit_test(test_above_stdio),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
