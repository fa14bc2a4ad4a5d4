/* Another file for a ledger: of another size, or made of what a damaged one still says.
 *
 * The measure of a recovery: whatever page was lost, every write of before is found as it was, or
 * as a doubt, or its operation is said to have lost records. None is ever simply not there. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ledger/internal.h"
#include "ledger/rebuild.h"

enum { RECORDS = 24, SIZE = 256 * 1024 };

static char folder[64], path[96], copy[96];
static struct ledger_error error;
static struct rebuild_report report;

static struct ledger_options options(int64_t size)
{
	return (struct ledger_options){.path = path,
	                               .size = size,
	                               .max_response = 4096,
	                               .create = true,
	                               .set_aside = true};
}

static struct ledger *open_it(void)
{
	struct ledger_options o = options(SIZE);
	struct ledger *l = NULL;

	return ledger_open(&o, &l, &error) == LEDGER_OK ? l : NULL;
}

/* --- records: number n is of operation op.(n % 3) and in a state that follows from n --- */

static void hash_of(unsigned n, uint8_t out[LEDGER_HASH])
{
	memset(out, 0, LEDGER_HASH);
	memcpy(out, &n, sizeof(n));
	out[31] = 0x5a;
}

static const char *operation_of(unsigned n)
{
	static const char *const names[] = {"orders.create", "payments.create", "mail.send"};

	return names[n % 3];
}

static enum record_state state_of(unsigned n)
{
	return n % 4 == 0 ? REC_UNKNOWN : n % 4 == 1 ? REC_FREED : REC_DONE;
}

static bool make(struct ledger *l, unsigned n, struct hold *hold)
{
	uint8_t hash[LEDGER_HASH];
	char key[32];
	struct record_new rec = {.content = hash,
	                         .any_account = hash,
	                         .place = hash,
	                         .fingerprint = hash,
	                         .wire_body = hash,
	                         .settings = 5,
	                         .operation = operation_of(n),
	                         .key = key,
	                         .generation = 1 + n,
	                         .ttl_us = INT64_C(86400000000),
	                         .tombstone_us = INT64_C(86400000000),
	                         .run = 100 + n};

	hash_of(n, hash);
	snprintf(key, sizeof(key), "key-%u", n);
	return ledger_reserve(l, &rec, NULL, clock_now(), hold) == LEDGER_OK;
}

static bool make_one(struct ledger *l, unsigned n)
{
	struct ledger_answer answer = {.status = 201,
	                               .blob = span_of("an answer that is kept with its record")};
	uint8_t own_key[LEDGER_HASH];
	struct hold hold;

	hash_of(n + 1000, own_key);
	if (!make(l, n, &hold) || ledger_gate(l, &hold, clock_now()) != LEDGER_OK ||
	    ledger_bind_key(l, hold.id, own_key) != LEDGER_OK)
		return false;
	switch (state_of(n)) {
	case REC_UNKNOWN:
		return ledger_unknown(l, &hold, false, NULL, clock_now()) == LEDGER_OK;
	case REC_FREED:
		return ledger_freed(l, &hold, FREED_STORED, NULL, clock_now()) == LEDGER_OK;
	default:
		return ledger_done(l, &hold, &answer, clock_now()) == LEDGER_OK &&
		       ledger_delivered(l, hold.id, 1 + n, 100 + n, clock_now()) == LEDGER_OK;
	}
}

static int set_up(void **state)
{
	struct ledger *l;

	(void)state;
	strcpy(folder, "/tmp/sendonce-rebuild-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/ledger", folder);
	snprintf(copy, sizeof(copy), "%s/copy", folder);
	l = open_it();
	for (unsigned n = 0; l && n < RECORDS; n++) {
		if (!make_one(l, n))
			return 1;
	}
	ledger_close(l);
	return l ? 0 : 1;
}

static int tear_down(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static int files(void)
{
	DIR *d = opendir(folder);
	int n = -2;

	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

static void says(const char *word)
{
	if (!strstr(error.text, word))
		fail_msg("\"%s\" does not say \"%s\"", error.text, word);
}

/* What `l` knows of number n: its state, REC_SENT standing for "in doubt"; REC_NONE: nothing. */
static enum record_state known(struct ledger *l, unsigned n, struct record_view *view)
{
	uint8_t hash[LEDGER_HASH];
	struct ledger_ids ids = {.content = hash};

	hash_of(n, hash);
	if (ledger_find(l, &ids, clock_now(), view) != LEDGER_OK)
		return REC_NONE;
	return view->state == REC_UNKNOWN ? REC_SENT : view->state;
}

static void all_as_it_was(struct ledger *l)
{
	struct record_view view;
	uint8_t own_key[LEDGER_HASH];
	struct ledger_ids ids = {.content = own_key, .own_key = own_key};
	struct buf blob = {0};
	char key[32];
	long status;

	for (unsigned n = 0; n < RECORDS; n++) {
		enum record_state want = state_of(n) == REC_UNKNOWN ? REC_SENT : state_of(n);

		assert_int_equal(known(l, n, &view), want);
		assert_int_equal(view.generation, 1 + n);
		assert_string_equal(view.operation, operation_of(n));
		snprintf(key, sizeof(key), "key-%u", n);
		assert_string_equal(view.key, key);
		assert_true(view.run_count == 1 && view.runs[0].run == 100 + n);
		if (want == REC_DONE) {
			assert_int_equal(ledger_answer(l, &view, &blob, &status), LEDGER_OK);
			assert_int_equal(status, 201);
		}
		hash_of(n + 1000, own_key);
		assert_int_equal(ledger_find(l, &ids, clock_now(), &view), LEDGER_OK);
		assert_int_equal(view.hit, HIT_OWN_KEY);
	}
	buf_free(&blob);
	assert_int_equal(ledger_verify(l, NULL, NULL), 0);
}

/* --- resize --- */

static void another_size_has_the_same_records(void **state)
{
	static const int64_t sizes[] = {1 << 20, 4 << 20, SIZE};
	uint8_t secret[LEDGER_SECRET];
	struct ledger *l = open_it();
	struct stat st;

	(void)state;
	memcpy(secret, ledger_secret(l), sizeof(secret));
	ledger_count(l, COUNT_replayed);
	ledger_close(l);
	for (size_t i = 0; i < 3; i++) {
		struct ledger_options o = options(sizes[i]);

		assert_int_equal(ledger_resize(&o, &report, &error), LEDGER_OK);
		assert_int_equal(report.records, RECORDS);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_size, sizes[i]);
		assert_int_equal(st.st_mode & 0777, 0600);
		assert_int_equal(access(report.old, F_OK), 0);
		l = open_it();
		all_as_it_was(l);
		assert_memory_equal(secret, ledger_secret(l), sizeof(secret));
		assert_true(ledger_counter(l, COUNT_replayed) == 1);
		ledger_close(l);
	}
	assert_int_equal(files(), 4);
}

static void too_small_changes_nothing(void **state)
{
	struct ledger_options big = options(8 << 20), small = options(SIZE);
	struct ledger *l;
	unsigned n;

	(void)state;
	assert_int_equal(ledger_resize(&big, &report, &error), LEDGER_OK);
	l = open_it();
	for (n = RECORDS; n < 600; n++)
		assert_true(make_one(l, n));
	assert_int_equal(ledger_resize(&small, &report, &error), LEDGER_FULL);
	says("do not fit");
	assert_null(ledger_retired(l));
	assert_true(make_one(l, n));
	ledger_close(l);
	small.size = 4096;
	assert_int_equal(ledger_resize(&small, &report, &error), LEDGER_CANNOT);
	says("256KiB");
	assert_int_equal(files(), 2);
	l = open_it();
	all_as_it_was(l);
	ledger_close(l);
}

static void not_while_somebody_sends(void **state)
{
	struct ledger_options o = options(1 << 20);
	struct ledger *l = open_it();
	struct hold hold;

	(void)state;
	assert_true(make(l, 500, &hold));
	assert_int_equal(ledger_resize(&o, &report, &error), LEDGER_CANNOT);
	says("is sending mail.send");
	assert_int_equal(ledger_gate(l, &hold, clock_now()), LEDGER_OK);
	assert_int_equal(ledger_resize(&o, &report, &error), LEDGER_CANNOT);
	assert_int_equal(files(), 1);
	assert_int_equal(ledger_done(l, &hold, NULL, clock_now()), LEDGER_OK);
	assert_int_equal(ledger_resize(&o, &report, &error), LEDGER_OK);
	ledger_close(l);
}

/* Who has the old one mapped writes nothing there that nobody would look for. */
static void the_old_mapping_is_retired(void **state)
{
	struct ledger_options o = options(1 << 20);
	struct ledger *l = open_it(), *now;
	struct record_view view;
	struct hold hold;

	(void)state;
	assert_int_equal(ledger_resize(&o, &report, &error), LEDGER_OK);
	assert_non_null(strstr(ledger_retired(l), "another size"));
	assert_false(make(l, 500, &hold));
	assert_int_equal(known(l, 0, &view), REC_SENT);
	assert_int_equal(ledger_resolve(l, &view, true, NULL, clock_now()), LEDGER_CANNOT);
	now = open_it();
	assert_true(make(now, 500, &hold));
	ledger_close(now);
	ledger_close(l);
	/* under its new name it can be looked at, and nothing else */
	o.path = report.old;
	assert_int_equal(ledger_open(&o, &l, &error), LEDGER_CANNOT);
	says("another size");
	o.read_only = true;
	assert_int_equal(ledger_open(&o, &l, &error), LEDGER_OK);
	assert_int_equal(known(l, 0, &view), REC_SENT);
	ledger_close(l);
}

enum { WRITERS = 3, WRITES = 12, PATIENCE = 5000 };

/* Each write until the ledger took it, as a program that is started anew. */
static int write_all(unsigned who)
{
	for (unsigned k = 0, tries = 0; k < WRITES && tries < PATIENCE; tries++) {
		struct ledger *l = open_it();

		k += l && make_one(l, who * 1000 + k);
		ledger_close(l);
		usleep(tries % 7 * 300);
		if (k == WRITES)
			return 0;
	}
	return 1;
}

/* Programs write all the time while it is resized again and again: no write is lost or doubled. */
static void writers_meanwhile(void **state)
{
	unsigned resized = 0, left = WRITERS;
	struct record_view view;
	struct ledger *l;
	int status;

	(void)state;
	for (unsigned who = 1; who <= WRITERS; who++) {
		if (fork() == 0)
			_exit(write_all(who));
	}
	for (unsigned i = 0; left; i++) {
		struct ledger_options o = options(i % 2 ? 2 << 20 : 1 << 20);

		resized += ledger_resize(&o, &report, &error) == LEDGER_OK;
		while (waitpid(-1, &status, WNOHANG) > 0) {
			assert_int_equal(status, 0);
			left--;
		}
		usleep(3000);
	}
	assert_true(resized > 0);
	l = open_it();
	assert_non_null(l);
	for (unsigned n = 0; n < WRITERS * WRITES; n++)
		assert_int_not_equal(known(l, (1 + n / WRITES) * 1000 + n % WRITES, &view),
		                     REC_NONE);
	assert_int_equal(ledger_verify(l, NULL, NULL), 0);
	ledger_close(l);
}

/* Killed anywhere: the ledger at the path is a whole one, the old or the new. */
static void killed_anywhere(void **state)
{
	int status;

	(void)state;
	for (int us = 0; us < 6000; us += 150) {
		struct ledger_options o = options(us / 150 % 2 ? SIZE : 1 << 20);
		pid_t pid = fork();

		if (pid == 0) {
			ledger_resize(&o, &report, &error);
			_exit(0);
		}
		usleep((useconds_t)us);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		struct ledger *l = open_it();
		if (!l)
			fail_msg("after %d us: %s", us, error.text);
		all_as_it_was(l);
		assert_null(ledger_retired(l));
		ledger_close(l);
	}
}

/* --- recover --- */

static void copy_file(const char *from, const char *to)
{
	char bytes[4096];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ssize_t n;

	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(out, bytes, (size_t)n), n);
	close(in);
	close(out);
}

static void overwrite(long at, const void *data, size_t n)
{
	int fd = open(path, O_WRONLY);

	assert_int_equal(pwrite(fd, data, n, at), n);
	close(fd);
}

static int recover(void)
{
	struct ledger_options o = options(SIZE);

	return ledger_recover(&o, &report, &error);
}

static void a_sound_one_is_left_alone(void **state)
{
	(void)state;
	assert_int_equal(recover(), LEDGER_NONE);
	assert_int_equal(files(), 1);
}

/* Every write of before is there, is a doubt, or is said to be lost. */
static unsigned nothing_forgotten(struct ledger *l, long page)
{
	struct record_view view, lost;
	unsigned missing = 0;

	for (unsigned n = 0; n < RECORDS; n++) {
		enum record_state is = known(l, n, &view);

		if (is == REC_NONE) {
			missing++;
			if (ledger_find_lost(l, operation_of(n), &lost) != LEDGER_OK)
				fail_msg("page %ld: record %u is forgotten", page, n);
			assert_int_equal(lost.hit, HIT_LOST);
			continue;
		}
		if (is != REC_SENT && is != state_of(n))
			fail_msg("page %ld: record %u is %d", page, n, (int)is);
		if (view.generation < 1 + n)
			fail_msg("page %ld: record %u is of an earlier generation", page, n);
	}
	assert_int_equal(ledger_verify(l, NULL, NULL), 0);
	return missing;
}

static unsigned damage_page(long page, size_t n, int fill)
{
	char bytes[4096];
	struct ledger *l;
	unsigned missing;
	int rc;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(fill ? rand() : 0);
	unlink(path);
	copy_file(copy, path);
	overwrite(page, bytes, n);
	rc = recover();
	/* NONE: nothing was there; then all of it must be there */
	if (rc != LEDGER_OK && rc != LEDGER_NONE)
		fail_msg("page %ld: %s", page, error.text);
	l = open_it();
	if (!l)
		fail_msg("page %ld: %s", page, error.text);
	missing = nothing_forgotten(l, page);
	ledger_close(l);
	if (rc == LEDGER_OK)
		unlink(report.old);
	else
		assert_int_equal(missing, 0);
	return missing;
}

static void whatever_page_is_lost(void **state)
{
	unsigned missing = 0;

	(void)state;
	rename(path, copy);
	srand(7);
	for (long page = 0; page < SIZE; page += 4096)
		for (int fill = 0; fill < 2; fill++)
			missing += damage_page(page, 4096, fill);
	for (long sector = 0; sector < 8192; sector += 512)
		missing += damage_page(sector, 512, 1);
	assert_true(missing > RECORDS); /* the test does lose something */
}

static void one_that_was_cut(void **state)
{
	(void)state;
	rename(path, copy);
	for (long size = 0; size < SIZE; size += 4096 * 3 + 512) {
		struct ledger *l;

		unlink(path);
		copy_file(copy, path);
		assert_int_equal(truncate(path, size), 0);
		assert_int_equal(recover(), LEDGER_OK);
		l = open_it();
		assert_non_null(l);
		nothing_forgotten(l, size);
		ledger_close(l);
		unlink(report.old);
	}
}

static void a_bit_in_the_header_loses_nothing(void **state)
{
	struct ledger *l;
	uint8_t secret[LEDGER_SECRET];

	(void)state;
	l = open_it();
	memcpy(secret, ledger_secret(l), sizeof(secret));
	ledger_close(l);
	overwrite(offsetof(struct layout_fixed, secret), "x", 1);
	assert_null(open_it()); /* and it is set aside */
	assert_null(open_it());
	assert_int_equal(recover(), LEDGER_OK);
	assert_non_null(strstr(report.old, ".damaged-"));
	assert_false(report.lost);
	assert_false(report.secret_lost);
	l = open_it();
	assert_non_null(l);
	all_as_it_was(l);
	assert_memory_equal(secret, ledger_secret(l), sizeof(secret));
	ledger_close(l);
	assert_int_equal(files(), 2);
}

static void of_a_foreign_file_nothing_is_known(void **state)
{
	struct ledger *l;
	struct record_view lost;
	FILE *f;

	(void)state;
	unlink(path);
	f = fopen(path, "w");
	assert_non_null(f);
	for (int i = 0; i < 3000; i++)
		fputs("something else\n", f);
	fclose(f);
	chmod(path, 0600);
	assert_int_equal(recover(), LEDGER_OK);
	assert_true(report.secret_lost && report.lost);
	assert_int_equal(report.records, 0);
	l = open_it();
	assert_int_equal(ledger_find_lost(l, "anything", &lost), LEDGER_OK);
	ledger_close(l);
}

/* Only what was in use then is in doubt; and only until somebody says so. */
static void what_was_lost_is_in_doubt_until_it_is_settled(void **state)
{
	struct record_view lost;
	struct ledger_lost what;
	struct ledger *l = open_it();
	char zeroes[4096] = {0};
	long at = (long)l->fixed.records_at;

	(void)state;
	ledger_close(l);
	overwrite(at, zeroes, sizeof(zeroes));
	assert_int_equal(recover(), LEDGER_OK);
	assert_true(report.lost && report.unreadable >= 2);
	l = open_it();
	assert_true(ledger_lost(l, &what));
	assert_false(what.every);
	assert_true(what.from_us < what.until.wall_us);
	for (unsigned n = 0; n < 3; n++)
		assert_int_equal(ledger_find_lost(l, operation_of(n), &lost), LEDGER_OK);
	assert_int_equal(ledger_find_lost(l, "never.used", &lost), LEDGER_NONE);
	/* it stays through a resize */
	ledger_close(l);
	struct ledger_options o = options(1 << 20);
	assert_int_equal(ledger_resize(&o, &report, &error), LEDGER_OK);
	l = open_it();
	assert_int_equal(ledger_find_lost(l, operation_of(0), &lost), LEDGER_OK);
	assert_int_equal(ledger_settle_lost(l), LEDGER_OK);
	assert_int_equal(ledger_find_lost(l, operation_of(0), &lost), LEDGER_NONE);
	ledger_close(l);
}

/* What others own while it is recovered: nobody there goes on with it. */
static void who_has_it_mapped_sends_nothing_more(void **state)
{
	struct ledger *l = open_it(), *now;
	struct record_view view;
	struct hold hold, other;

	(void)state;
	assert_true(make(l, 500, &hold));
	assert_true(make(l, 501, &other));
	assert_int_equal(ledger_gate(l, &other, clock_now()), LEDGER_OK);
	overwrite(offsetof(struct layout_fixed, secret), "x", 1);
	assert_int_equal(recover(), LEDGER_OK);
	assert_int_equal(ledger_gate(l, &hold, clock_now()), LEDGER_CANNOT);
	assert_int_equal(ledger_done(l, &other, NULL, clock_now()), LEDGER_CANNOT);
	assert_non_null(strstr(ledger_retired(l), "recover"));
	now = open_it();
	assert_int_equal(known(now, 500, &view), REC_SENT);
	assert_int_equal(known(now, 501, &view), REC_SENT);
	ledger_close(now);
	ledger_close(l);
}

static void the_one_set_aside_must_be_there(void **state)
{
	char name[128] = "", command[256];
	FILE *f;

	(void)state;
	overwrite(offsetof(struct layout_fixed, secret), "x", 1);
	assert_null(open_it());
	snprintf(command, sizeof(command), "ls %s/ledger.damaged-*", folder);
	f = popen(command, "r");
	assert_non_null(fgets(name, sizeof(name), f));
	pclose(f);
	name[strcspn(name, "\n")] = '\0';
	assert_int_equal(rename(name, copy), 0);
	assert_int_equal(recover(), LEDGER_CANNOT);
	says("put it back");
	assert_null(open_it());
	assert_int_equal(rename(copy, name), 0);
	assert_int_equal(recover(), LEDGER_OK);
	assert_string_equal(report.old, name);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(another_size_has_the_same_records),
	        CASE(too_small_changes_nothing),
	        CASE(not_while_somebody_sends),
	        CASE(the_old_mapping_is_retired),
	        CASE(writers_meanwhile),
	        CASE(killed_anywhere),
	        CASE(a_sound_one_is_left_alone),
	        CASE(whatever_page_is_lost),
	        CASE(one_that_was_cut),
	        CASE(a_bit_in_the_header_loses_nothing),
	        CASE(of_a_foreign_file_nothing_is_known),
	        CASE(what_was_lost_is_in_doubt_until_it_is_settled),
	        CASE(who_has_it_mapped_sends_nothing_more),
	        CASE(the_one_set_aside_must_be_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
