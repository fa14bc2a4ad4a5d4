/* Hostile bytes: bits of a small ledger are flipped, its areas overwritten; finding, changing and
 * verifying must neither crash nor hang, and no write that was in doubt or done may look new. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ledger/internal.h"

enum { WRITES = 12, SIZE = 256 * 1024 };

static char folder[] = "/tmp/sendonce-flip-XXXXXX";
static char path[64];
static unsigned char *good; /* the file as it should be */
static int64_t slowest_us;

static void hashes(uint8_t content[LEDGER_HASH], uint8_t any[LEDGER_HASH], unsigned n)
{
	memset(content, 0x11, LEDGER_HASH);
	memset(any, 0x22, LEDGER_HASH);
	memcpy(content, &n, sizeof(n));
	memcpy(any, &n, sizeof(n));
}

static struct record_new write_new(const uint8_t *content, const uint8_t *any)
{
	return (struct record_new){.content = content,
	                           .any_account = any,
	                           .own_key = any,
	                           .place = any,
	                           .fingerprint = content,
	                           .wire_body = content,
	                           .settings = 1,
	                           .operation = "op",
	                           .key = "key",
	                           .generation = 1,
	                           .ttl_us = 3600000000,
	                           .tombstone_us = 3600000000};
}

static struct ledger *open_ledger(void)
{
	struct ledger_options o = {
	        .path = path, .size = SIZE, .max_response = 4096, .create = true};
	struct ledger_error error;
	struct ledger *l;

	return ledger_open(&o, &l, &error) == LEDGER_OK ? l : NULL;
}

/* Beside its record, or too large for it. */
static struct span answer_of(unsigned n)
{
	static char large[1500];

	memset(large, 'a', sizeof(large));
	return n % 2 ? (struct span){large, sizeof(large)} : span_of("the answer of this write");
}

/* Writes 0-3 done, 4-7 sent, 8-11 unknown. */
static void fill(struct ledger *l)
{
	uint8_t content[LEDGER_HASH], any[LEDGER_HASH];
	struct ledger_answer answer = {.status = 201};
	struct record_new rec;
	struct hold hold;

	for (unsigned n = 0; n < WRITES; n++) {
		hashes(content, any, n);
		rec = write_new(content, any);
		assert_int_equal(ledger_reserve(l, &rec, NULL, clock_now(), &hold), LEDGER_OK);
		assert_int_equal(ledger_gate(l, &hold, clock_now()), LEDGER_OK);
		answer.blob = answer_of(n);
		if (n < 4)
			ledger_done(l, &hold, &answer, clock_now());
		else if (n >= 8)
			ledger_unknown(l, &hold, false, NULL, clock_now());
	}
}

static void restore(void)
{
	int fd = open(path, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, good, SIZE, 0), SIZE);
	close(fd);
}

static int visit(void *ctx, const struct record_view *view)
{
	*(uint64_t *)ctx += view->id;
	return 0;
}

/* Everything a host or a person does with a ledger. Counts writes that look as if never made. */
static unsigned use(struct ledger *l)
{
	uint8_t content[LEDGER_HASH], any[LEDGER_HASH];
	struct record_view view;
	struct record_new rec;
	struct buf blob = {0};
	struct hold hold;
	unsigned missing = 0;
	uint64_t total = 0;
	long status;

	for (unsigned n = 0; n < WRITES; n++) {
		hashes(content, any, n);
		struct ledger_ids ids = {content, any, NULL, any, 1, "op"};
		if (ledger_find(l, &ids, clock_now(), &view) != LEDGER_OK) {
			missing++;
			continue;
		}
		if (view.hit != HIT_CONTENT || view.state < REC_SENT || view.state > REC_DONE)
			missing++;
		if (n >= 4 && view.state == REC_DONE)
			missing++;
		buf_reset(&blob);
		if (ledger_answer(l, &view, &blob, &status) == LEDGER_OK &&
		    !span_equal(span_buf(&blob), answer_of(n)))
			missing++;
		ledger_asked(l, view.id, view.generation, 5, clock_now());
		ids.own_key = any;
		ledger_find(l, &ids, clock_now(), &view);
	}
	buf_free(&blob);
	hashes(content, any, 1000);
	rec = write_new(content, any);
	if (ledger_reserve(l, &rec, NULL, clock_now(), &hold) == LEDGER_OK)
		ledger_withdraw(l, &hold, clock_now());
	ledger_each(l, clock_now(), visit, &total);
	ledger_has_run(l, 5);
	return missing;
}

/* The number of writes that look new although the flip hit neither index nor header. */
static unsigned try_flipped(uint64_t at, unsigned char mask)
{
	struct ledger *l;
	unsigned missing;
	int64_t start;

	restore();
	l = open_ledger();
	assert_non_null(l);
	l->base[at] = (char)(l->base[at] ^ (char)mask);
	start = clock_boot_us();
	ledger_verify(l, NULL, NULL);
	missing = use(l);
	ledger_verify(l, NULL, NULL);
	if (clock_boot_us() - start > slowest_us)
		slowest_us = clock_boot_us() - start;
	ledger_close(l);
	return missing;
}

static void flips_in_records_never_make_a_write_new(void **state)
{
	struct ledger *l = open_ledger();
	uint64_t from = l->fixed.records_at, size = sizeof(struct layout_record);
	unsigned missing = 0;

	(void)state;
	ledger_close(l);
	/* One record of each state: every bit of the words and hashes in front, some of the banks.
	 */
	for (uint64_t n = 1; n < WRITES; n += 4) {
		for (uint64_t bit = 0; bit < UINT64_C(128) * 8; bit++)
			missing += try_flipped(from + n * size + bit / 8,
			                       (unsigned char)(1u << bit % 8));
		for (uint64_t at = 128; at < size; at += 7)
			missing += try_flipped(from + n * size + at, (unsigned char)(1u << at % 8));
	}
	assert_int_equal(missing, 0);
}

static void flips_elsewhere_never_crash(void **state)
{
	struct ledger *l = open_ledger();
	uint64_t heap = l->fixed.heap_at, index = l->fixed.index_at, keys = l->fixed.keys_at;

	(void)state;
	ledger_close(l);
	for (uint64_t at = 256; at < 600; at += 3)
		try_flipped(at, (unsigned char)(1u << at % 8));
	for (uint64_t at = heap; at < heap + 3 * 1600; at += 11)
		assert_int_equal(try_flipped(at, (unsigned char)(1u << at % 8)), 0);
	for (uint64_t at = index; at < index + 8192; at += 13)
		try_flipped(at, (unsigned char)(1u << at % 8));
	for (uint64_t at = keys; at < keys + 64 * WRITES; at += 3)
		assert_int_equal(try_flipped(at, (unsigned char)(1u << at % 8)), 0);
	for (uint64_t at = LAYOUT_HEADER; at < LAYOUT_HEADER + LAYOUT_OWNERS * 64; at += 997)
		assert_int_equal(try_flipped(at, (unsigned char)(1u << at % 8)), 0);
}

static void whole_areas_overwritten(void **state)
{
	static const unsigned char fill_with[] = {0x00, 0xff, 0x7f, 0x01};
	uint64_t from[8];
	struct ledger *l = open_ledger();

	(void)state;
	from[0] = 256;
	from[1] = l->fixed.owners_at;
	from[2] = l->fixed.groups_at;
	from[3] = l->fixed.index_at;
	from[4] = l->fixed.keys_at;
	from[5] = l->fixed.records_at;
	from[6] = l->fixed.heap_at;
	from[7] = SIZE;
	ledger_close(l);
	for (unsigned area = 0; area < 7; area++) {
		for (unsigned i = 0; i < 4; i++) {
			restore();
			l = open_ledger();
			memset(l->base + from[area], fill_with[i], from[area + 1] - from[area]);
			ledger_verify(l, NULL, NULL);
			use(l);
			ledger_close(l);
		}
	}
}

static void random_bytes_everywhere(void **state)
{
	uint64_t seed = 88172645463325252u;
	struct ledger *l;

	(void)state;
	for (unsigned round = 0; round < 60; round++) {
		restore();
		l = open_ledger();
		for (unsigned i = 0; i < 300; i++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			l->base[256 + seed % (SIZE - 256)] = (char)(seed >> 40);
		}
		ledger_verify(l, NULL, NULL);
		use(l);
		ledger_close(l);
	}
}

static void verify_names_what_it_finds(void **state)
{
	struct ledger *l;
	struct layout_record *rec;

	(void)state;
	restore();
	l = open_ledger();
	assert_int_equal(ledger_verify(l, NULL, NULL), 0);
	rec = record_at(l, 2);
	((char *)rec->content)[3] ^= 4;
	assert_true(ledger_verify(l, NULL, NULL) > 0);
	((char *)rec->content)[3] ^= 4;
	assert_int_equal(ledger_verify(l, NULL, NULL), 0);
	((char *)&rec->bank[word_read(rec->word).bank])[100] ^= 1;
	assert_int_equal(ledger_verify(l, NULL, NULL), 1);
	ledger_close(l);
}

static void damage_becomes_a_doubt_that_can_be_resolved(void **state)
{
	struct ledger *l;
	struct record_view view;
	uint8_t content[LEDGER_HASH], any[LEDGER_HASH];
	struct ledger_ids ids = {content, any, NULL, any, 1, "op"};

	(void)state;
	restore();
	l = open_ledger();
	hashes(content, any, 1);
	assert_int_equal(ledger_find(l, &ids, clock_now(), &view), LEDGER_OK);
	assert_int_equal(view.state, REC_DONE);
	((char *)&record_at(l, 1)->bank[word_read(view.word).bank])[16] ^= 1;
	assert_int_equal(ledger_find(l, &ids, clock_now(), &view), LEDGER_OK);
	assert_int_equal(view.state, REC_UNKNOWN);
	assert_true(view.in_doubt && view.ever_sent && !view.answer_kept);
	assert_int_equal(ledger_resolve(l, &view, true, NULL, clock_now()), LEDGER_OK);
	assert_int_equal(ledger_find(l, &ids, clock_now(), &view), LEDGER_OK);
	assert_int_equal(view.state, REC_DONE);
	ledger_close(l);
}

static int set_up(void **state)
{
	struct ledger *l;
	int fd;

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/ledger", folder);
	l = open_ledger();
	good = malloc(SIZE);
	if (!l || !good)
		return -1;
	fill(l);
	ledger_close(l);
	fd = open(path, O_RDONLY);
	if (read(fd, good, SIZE) != SIZE)
		return -1;
	return close(fd);
}

static int tear_down(void **state)
{
	(void)state;
	free(good);
	unlink(path);
	rmdir(folder);
	if (slowest_us > 2000000) {
		fprintf(stderr, "slowest: %lld us\n", (long long)slowest_us);
		return -1;
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(flips_in_records_never_make_a_write_new),
	        cmocka_unit_test(flips_elsewhere_never_crash),
	        cmocka_unit_test(whole_areas_overwritten),
	        cmocka_unit_test(random_bytes_everywhere),
	        cmocka_unit_test(verify_names_what_it_finds),
	        cmocka_unit_test(damage_becomes_a_doubt_that_can_be_resolved),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
