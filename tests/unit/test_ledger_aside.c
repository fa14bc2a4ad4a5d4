/* A ledger that is damaged is set aside, once, and those who have it mapped learn it.
 *
 * The source is included so that a file system without an exchange of names can be made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool no_exchange;

static long exchange(long number, int a, const char *from, int b, const char *to, int flags)
{
	if (no_exchange) {
		errno = EINVAL;
		return -1;
	}
	return syscall(number, a, from, b, to, flags);
}

#define syscall exchange
#include "../../src/ledger/swap.c"
#undef syscall

#include <dirent.h>
#include <stdlib.h>
#include <sys/wait.h>

static char folder[64], path[96], other[128];
static struct ledger_error error;

static struct ledger_options options(void)
{
	return (struct ledger_options){.path = path,
	                               .size = 256 * 1024,
	                               .max_response = 1024,
	                               .create = true,
	                               .set_aside = true};
}

static int try_open(void)
{
	struct ledger_options o = options();
	struct ledger *l = NULL;
	int rc = ledger_open(&o, &l, &error);

	ledger_close(l);
	return rc;
}

static int set_up(void **state)
{
	(void)state;
	no_exchange = false;
	strcpy(folder, "/tmp/sendonce-aside-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/ledger", folder);
	return try_open();
}

static int tear_down(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void overwrite(long at, const void *data, size_t n)
{
	int fd = open(path, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, data, n, at), n);
	close(fd);
}

/* How many names there are besides the ledger's own; the last one is in `other`. */
static int others(void)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.' || strcmp(e->d_name, "ledger") == 0)
			continue;
		snprintf(other, sizeof(other), "%s/%.60s", folder, e->d_name);
		n++;
	}
	closedir(d);
	return n;
}

static void says(const char *word)
{
	if (!strstr(error.text, word))
		fail_msg("\"%s\" does not say \"%s\"", error.text, word);
}

static void read_file(const char *name, char *out, size_t room)
{
	int fd = open(name, O_RDONLY);
	ssize_t n = read(fd, out, room - 1);

	close(fd);
	out[n > 0 ? n : 0] = '\0';
}

static void damage_secret(void)
{
	overwrite(offsetof(struct layout_fixed, secret), "damaged", 7);
}

static void a_damaged_one_gets_a_name_with_the_date(void **state)
{
	char note[1024];

	(void)state;
	damage_secret();
	assert_int_equal(try_open(), LEDGER_FOREIGN);
	says("set aside");
	says("sendonce ledger recover");
	assert_int_equal(others(), 1);
	assert_non_null(strstr(other, "/ledger.damaged-20"));
	read_file(path, note, sizeof(note));
	assert_non_null(strstr(note, other));
	assert_non_null(strstr(note, "its header is damaged"));
	/* and from then on it is refused, never made anew */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(try_open(), LEDGER_FOREIGN);
		says("set aside as");
		says(other);
	}
	assert_int_equal(others(), 1);
}

static void without_an_exchange_of_names_too(void **state)
{
	(void)state;
	no_exchange = true;
	a_damaged_one_gets_a_name_with_the_date(state);
}

static void a_foreign_file_keeps_its_bytes(void **state)
{
	char text[64];

	(void)state;
	overwrite(0, "SQLite format 3", 16);
	assert_int_equal(try_open(), LEDGER_FOREIGN);
	says("not a sendonce ledger");
	assert_int_equal(others(), 1);
	read_file(other, text, sizeof(text));
	assert_string_equal(text, "SQLite format 3");
}

static void one_that_was_cut(void **state)
{
	(void)state;
	assert_int_equal(truncate(path, 128 * 1024), 0);
	assert_int_equal(try_open(), LEDGER_FOREIGN);
	says("cut or grown");
	assert_int_equal(others(), 1);
}

static void who_only_looks_moves_nothing(void **state)
{
	struct ledger_options o = options();
	struct ledger *l;

	(void)state;
	damage_secret();
	o.set_aside = false;
	assert_int_equal(ledger_open(&o, &l, &error), LEDGER_FOREIGN);
	o.set_aside = o.read_only = true;
	assert_int_equal(ledger_open(&o, &l, &error), LEDGER_FOREIGN);
	says("recover");
	assert_int_equal(others(), 0);
}

static void another_version_is_not_damage(void **state)
{
	uint32_t word = LAYOUT_VERSION + 1;

	(void)state;
	overwrite(offsetof(struct layout_fixed, layout), &word, sizeof(word));
	assert_int_equal(try_open(), LEDGER_FOREIGN);
	says("another version");
	assert_int_equal(others(), 0);
}

static void while_somebody_else_is_at_it_nothing_is_done(void **state)
{
	int held = open(path, O_RDONLY);

	(void)state;
	damage_secret();
	/* as a second finder sees it while the first is at work */
	assert_int_equal(flock(held, LOCK_EX), 0);
	assert_int_equal(try_open(), LEDGER_FOREIGN);
	assert_int_equal(others(), 0);
	close(held);
	assert_int_equal(try_open(), LEDGER_FOREIGN);
	assert_int_equal(others(), 1);
}

static void many_find_it_at_once(void **state)
{
	int gate[2], status, bad = 0;
	char c;

	(void)state;
	damage_secret();
	assert_int_equal(pipe(gate), 0);
	for (int i = 0; i < 24; i++) {
		if (fork() != 0)
			continue;
		no_exchange = i % 2;
		close(gate[1]);
		if (read(gate[0], &c, 1) != 0)
			_exit(2);
		for (int k = 0; k < 20; k++) {
			int rc = try_open();

			/* CANNOT: it has two names for a moment, without the exchange */
			if (rc != LEDGER_FOREIGN && rc != LEDGER_CANNOT)
				_exit(1);
		}
		_exit(0);
	}
	close(gate[0]);
	close(gate[1]);
	while (wait(&status) > 0)
		bad += status != 0;
	assert_int_equal(bad, 0);
	assert_int_equal(others(), 1);
	assert_int_equal(try_open(), LEDGER_FOREIGN);
	says(other);
}

/* --- those who have it mapped --- */

static const uint8_t first[LEDGER_HASH] = {1}, second[LEDGER_HASH] = {2};

static int reserve(struct ledger *l, const uint8_t *hash, struct hold *hold)
{
	struct record_new rec = {.content = hash,
	                         .any_account = hash,
	                         .fingerprint = hash,
	                         .wire_body = hash,
	                         .generation = 1,
	                         .ttl_us = 1000000,
	                         .key = "k"};

	return ledger_reserve(l, &rec, NULL, clock_now(), hold);
}

static struct ledger *open_and_send(struct hold *hold)
{
	struct ledger_options o = options();
	struct ledger *l;

	assert_int_equal(ledger_open(&o, &l, &error), LEDGER_OK);
	assert_null(ledger_retired(l));
	assert_int_equal(reserve(l, first, hold), LEDGER_OK);
	assert_int_equal(ledger_gate(l, hold, clock_now()), LEDGER_OK);
	return l;
}

static void takes_nothing_new(struct ledger *l)
{
	struct hold hold;

	assert_non_null(ledger_retired(l));
	assert_int_equal(reserve(l, second, &hold), LEDGER_CANNOT);
}

static void a_mapped_one_ends_what_it_sent_and_takes_nothing_new(void **state)
{
	struct ledger_answer answer = {.status = 201, .blob = span_of("kept")};
	struct hold hold;
	struct ledger *l = open_and_send(&hold);

	(void)state;
	damage_secret();
	assert_int_equal(try_open(), LEDGER_FOREIGN);
	takes_nothing_new(l);
	assert_non_null(strstr(ledger_retired(l), "damaged"));
	assert_int_equal(ledger_done(l, &hold, &answer, clock_now()), LEDGER_OK);
	ledger_close(l);
}

static void one_that_was_overwritten_under_us(void **state)
{
	struct hold hold;
	struct ledger *l = open_and_send(&hold);

	(void)state;
	overwrite(0, "something else", 14);
	takes_nothing_new(l);
	ledger_close(l);
}

static void nothing_changes_in_one_that_was_replaced(void **state)
{
	struct record_view view;
	struct hold hold;
	struct ledger *l = open_and_send(&hold);

	(void)state;
	assert_int_equal(ledger_look(l, hold.id, clock_now(), &view), LEDGER_OK);
	retire_set(l, RETIRE_NEW, RETIRE_RESIZED);
	takes_nothing_new(l);
	assert_int_equal(ledger_unknown(l, &hold, false, NULL, clock_now()), LEDGER_OK);
	assert_int_equal(ledger_look(l, hold.id, clock_now(), &view), LEDGER_OK);
	assert_int_equal(ledger_take(l, &view, clock_now(), &hold), LEDGER_CANNOT);
	retire_set(l, RETIRE_ALL, RETIRE_RESIZED);
	assert_int_equal(ledger_resolve(l, &view, true, NULL, clock_now()), LEDGER_CANNOT);
	assert_int_equal(ledger_delivered(l, hold.id, 1, 7, clock_now()), LEDGER_CANNOT);
	assert_int_equal(ledger_forget(l, &view, clock_now()), LEDGER_CANNOT);
	retire_set(l, RETIRE_NOT, RETIRE_RESIZED);
	assert_null(ledger_retired(l));
	assert_int_equal(ledger_forget(l, &view, clock_now()), LEDGER_OK);
	ledger_close(l);
}

static void a_replacement_whose_maker_died_is_off(void **state)
{
	uint64_t word = retire_word(RETIRE_ALL, RETIRE_RESIZED);
	long at = offsetof(struct layout_header, retired);
	int held = open(path, O_RDONLY);

	(void)state;
	overwrite(at, &word, sizeof(word));
	assert_int_equal(flock(held, LOCK_EX), 0);
	assert_int_equal(try_open(), LEDGER_CANNOT);
	says("another size");
	close(held);
	assert_int_equal(try_open(), LEDGER_OK);
	word = retire_word(RETIRE_NEW, RETIRE_DAMAGED);
	overwrite(at, &word, sizeof(word));
	assert_int_equal(try_open(), LEDGER_CANNOT);
	says("recover");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(a_damaged_one_gets_a_name_with_the_date),
	        CASE(without_an_exchange_of_names_too),
	        CASE(a_foreign_file_keeps_its_bytes),
	        CASE(one_that_was_cut),
	        CASE(who_only_looks_moves_nothing),
	        CASE(another_version_is_not_damage),
	        CASE(while_somebody_else_is_at_it_nothing_is_done),
	        CASE(many_find_it_at_once),
	        CASE(a_mapped_one_ends_what_it_sent_and_takes_nothing_new),
	        CASE(one_that_was_overwritten_under_us),
	        CASE(nothing_changes_in_one_that_was_replaced),
	        CASE(a_replacement_whose_maker_died_is_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
