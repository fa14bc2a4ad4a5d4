/* Functions of the multi interface that came later than the libcurl these tests may run with:
 * curl_multi_get_handles (8.4), curl_multi_waitfds (8.8), notifications (8.17). libcurl is a script
 * here that has them, or has not; hooks and loop are the real ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "intercept/multi_hooks.h"
#include "intercept/multi_loop.h"
#include "intercept/multi_notify.h"
#include "intercept/pseudo.h"

enum { OURS = 3, REAL = 2, NOTIFYFUNCTION = 20018, NOTIFYDATA = 10019, INFO_READ = 0, DONE = 1 };

static struct flavour flavour;
static CURLM *const handle = (CURLM *)&flavour;
static struct multi *multi;
static struct pseudo ours[OURS];
static struct shadow shadow[OURS];
static CURL *const real_handle[REAL] = {(CURL *)"one", (CURL *)"two"};

/* --- libcurl --- */

static int real_count, lists; /* that are not freed yet */
static unsigned real_needs;   /* descriptors */
static bool no_memory;
static multi_notify_fn *real_notify;
static unsigned real_enabled;

static CURL **fake_get_handles(CURLM *m)
{
	CURL **list = calloc((size_t)real_count + 1, sizeof(*list));

	assert_ptr_equal(m, handle);
	if (real_count)
		memcpy(list, real_handle, (size_t)real_count * sizeof(*list));
	lists++;
	return list;
}

static char *fake_escape(CURL *easy, const char *text, int n)
{
	char *copy = no_memory ? NULL : malloc((size_t)n + 1);

	assert_non_null(easy);
	if (copy) {
		memcpy(copy, text, (size_t)n);
		copy[n] = '\0';
		lists++;
	}
	return copy;
}

static void fake_free(void *p)
{
	lists -= p != NULL;
	free(p);
}

/* As lib/multi.c of 8.14 does it. */
static CURLMcode fake_waitfds(CURLM *m, struct curl_waitfd *fds, unsigned size, unsigned *count)
{
	assert_ptr_equal(m, handle);
	if (!fds && (size || !count))
		return CURLM_BAD_FUNCTION_ARGUMENT;
	for (unsigned i = 0; fds && i < size && i < real_needs; i++)
		fds[i] = (struct curl_waitfd){.fd = 100 + (int)i, .events = CURL_WAIT_POLLOUT};
	if (count)
		*count = real_needs;
	return fds && size < real_needs ? CURLM_OUT_OF_MEMORY : CURLM_OK;
}

static CURLMcode fake_setopt(CURLM *m, CURLMoption option, uintptr_t word)
{
	(void)m;
	if (option == (CURLMoption)NOTIFYFUNCTION)
		real_notify = (multi_notify_fn *)word;
	return CURLM_OK;
}

static CURLMcode fake_enable(CURLM *m, unsigned notification)
{
	(void)m;
	if (notification > DONE)
		return CURLM_UNKNOWN_OPTION;
	real_enabled |= 1u << notification;
	return CURLM_OK;
}

static CURLMcode fake_disable(CURLM *m, unsigned notification)
{
	(void)m;
	real_enabled &= ~(1u << notification);
	return CURLM_OK;
}

static CURLMsg *fake_read(CURLM *m, int *left)
{
	(void)m;
	*left = 0;
	return NULL;
}

static CURLMcode fake_timeout(CURLM *m, long *ms)
{
	(void)m;
	*ms = -1;
	return CURLM_OK;
}

static struct {
	CURLMsg msg;
	struct message message;
} ended[2];
static int ends_now;

/* Transfers end in it. */
static CURLMcode fake_perform(CURLM *m, int *running)
{
	(void)m;
	*running = 0;
	for (int i = 0; i < ends_now; i++) {
		ended[i].msg = (CURLMsg){.msg = CURLMSG_DONE, .easy_handle = real_handle[i]};
		message_add(&multi->messages, &ended[i].message, &ended[i].msg);
	}
	ends_now = 0;
	return CURLM_OK;
}

static void know(enum curl_fn name, void (*fn)(void))
{
	flavour.fn[name] = fn;
}

#define KNOW(name, fake) know(FN_##name, (void (*)(void))(fake))

static int start(void **state)
{
	(void)state;
	memset(&flavour, 0, sizeof(flavour));
	memset(ours, 0, sizeof(ours));
	memset(shadow, 0, sizeof(shadow));
	memset(ended, 0, sizeof(ended));
	real_count = lists = ends_now = 0;
	real_needs = real_enabled = 0;
	no_memory = false;
	real_notify = NULL;
	KNOW(multi_get_handles, fake_get_handles);
	KNOW(multi_waitfds, fake_waitfds);
	KNOW(multi_setopt, fake_setopt);
	KNOW(multi_info_read, fake_read);
	KNOW(multi_timeout, fake_timeout);
	KNOW(multi_perform, fake_perform);
	KNOW(multi_notify_enable, fake_enable);
	KNOW(multi_notify_disable, fake_disable);
	KNOW(easy_escape, fake_escape);
	KNOW(free, fake_free);
	multi = multi_get(handle, &flavour);
	return multi ? 0 : -1;
}

static int stop(void **state)
{
	(void)state;
	bell_unref(multi->bell);
	multi->bell = NULL;
	multi->first = multi->last = NULL;
	multi_drop(handle);
	assert_int_equal(lists, 0);
	return 0;
}

/* Transfers of ours, waiting for something far away. */
static void manage(int count)
{
	loop_manage(multi);
	multi->bell = bell_new();
	for (int i = 0; i < count; i++) {
		shadow[i].handle = (CURL *)&shadow[i];
		ours[i] = (struct pseudo){.multi = multi, .shadow = &shadow[i], .waits = true};
		ours[i].prev = i ? &ours[i - 1] : NULL;
		ours[i].next = i + 1 < count ? &ours[i + 1] : NULL;
	}
	multi->first = count ? &ours[0] : NULL;
	multi->last = count ? &ours[count - 1] : NULL;
	multi->queue.ours = (unsigned)count;
}

/* --- curl_multi_get_handles --- */

static void expect_handles(CURL *const *expected, size_t count)
{
	CURL **list = hook_multi_get_handles(handle);

	assert_non_null(list);
	for (size_t i = 0; i < count; i++)
		assert_ptr_equal(list[i], expected[i]);
	assert_null(list[count]);
	fake_free(list);
	assert_int_equal(lists, 0);
}

static void all_handles_are_listed(void **state)
{
	CURL *const all[] = {real_handle[0], real_handle[1], (CURL *)&shadow[0],
	                     (CURL *)&shadow[2]};

	(void)state;
	expect_handles(NULL, 0);
	real_count = REAL;
	expect_handles(all, REAL);
	manage(OURS);
	ours[1].inside = true; /* libcurl's list has it */
	expect_handles(all, 4);
	ours[0].over = true; /* as long as it is not removed */
	expect_handles(all, 4);
	real_count = 0;
	expect_handles(all + REAL, 2);
}

static void handles_without_memory_or_function(void **state)
{
	(void)state;
	manage(1);
	no_memory = true;
	assert_null(hook_multi_get_handles(handle));
	assert_int_equal(lists, 0);
	KNOW(multi_get_handles, NULL);
	assert_null(hook_multi_get_handles(handle));
}

/* --- curl_multi_waitfds --- */

static void descriptors_and_the_bell(void **state)
{
	static const struct {
		unsigned real, size;
		CURLMcode code;
		unsigned count, filled;
	} rows[] = {
	        {0, 1, CURLM_OK, 1, 1},
	        {2, 3, CURLM_OK, 3, 3},
	        {2, 4, CURLM_OK, 3, 3},
	        {2, 2, CURLM_OUT_OF_MEMORY, 3, 2},
	        {2, 1, CURLM_OUT_OF_MEMORY, 3, 1},
	};

	(void)state;
	manage(1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct curl_waitfd fds[4] = {{0}};
		unsigned count = 77, filled = 0;

		real_needs = rows[i].real;
		assert_int_equal(hook_multi_waitfds(handle, fds, rows[i].size, &count),
		                 rows[i].code);
		assert_int_equal(count, rows[i].count);
		while (filled < 4 && fds[filled].events)
			filled++;
		assert_int_equal(filled, rows[i].filled);
		if (rows[i].code == CURLM_OK) {
			assert_int_equal(fds[rows[i].real].fd, bell_fd(multi->bell));
			assert_int_equal(fds[rows[i].real].events, CURL_WAIT_POLLIN);
		}
		assert_int_equal(hook_multi_waitfds(handle, fds, rows[i].size, NULL), rows[i].code);
	}
}

static void descriptors_are_counted_alone(void **state)
{
	unsigned count = 0;

	(void)state;
	manage(1);
	real_needs = 2;
	assert_int_equal(hook_multi_waitfds(handle, NULL, 0, &count), CURLM_OK);
	assert_int_equal(count, 3);
	assert_int_equal(hook_multi_waitfds(handle, NULL, 0, NULL), CURLM_BAD_FUNCTION_ARGUMENT);
	assert_int_equal(hook_multi_waitfds(handle, NULL, 3, &count), CURLM_BAD_FUNCTION_ARGUMENT);
}

static void libcurls_descriptors_alone(void **state)
{
	struct curl_waitfd fds[2];
	unsigned count = 0;

	(void)state;
	real_needs = 2;
	assert_int_equal(hook_multi_waitfds(handle, fds, 2, &count), CURLM_OK);
	assert_int_equal(count, 2);
	manage(1);
	ours[0].over = true; /* nothing of ours is in flight */
	multi->queue.ours = 0;
	assert_int_equal(hook_multi_waitfds(handle, fds, 2, &count), CURLM_OK);
	assert_int_equal(count, 2);
	multi->busy = true;
	assert_int_equal(hook_multi_waitfds(handle, fds, 2, &count), CURLM_RECURSIVE_API_CALL);
	multi->busy = false;
	KNOW(multi_waitfds, NULL);
	assert_int_equal(hook_multi_waitfds(handle, fds, 2, &count), CURLM_BAD_HANDLE);
}

/* --- notifications --- */

static char told[200];
static int takes_at; /* the notification in which it reads its messages; -1: in none */

static void on_notify(CURLM *m, unsigned notification, CURL *easy, void *ctx)
{
	int running, left;
	char line[32];

	assert_ptr_equal(m, handle);
	assert_ptr_equal(ctx, told);
	snprintf(line, sizeof(line), "%u:%s ", notification, easy ? (const char *)easy : "-");
	strcat(told, line);
	assert_int_equal(hook_multi_perform(handle, &running), CURLM_RECURSIVE_API_CALL);
	assert_int_equal(hook_multi_cleanup(handle), CURLM_RECURSIVE_API_CALL);
	while ((int)notification == takes_at && hook_multi_info_read(handle, &left))
		strcat(told, "read ");
}

static void expect_told(int ends, const char *expected)
{
	int running;

	told[0] = '\0';
	ends_now = ends;
	assert_int_equal(hook_multi_perform(handle, &running), CURLM_OK);
	assert_string_equal(told, expected);
}

static void set(CURLMoption option, void *word)
{
	assert_int_equal(hook_multi_setopt(handle, option, (uintptr_t)word), CURLM_OK);
}

static void what_ends_is_told(void **state)
{
	int left;

	(void)state;
	takes_at = -1;
	set((CURLMoption)NOTIFYFUNCTION, (void *)on_notify);
	set((CURLMoption)NOTIFYDATA, told);
	assert_ptr_equal(real_notify, on_notify); /* libcurl's to call, as long as it is alone */
	manage(0);
	assert_ptr_not_equal(real_notify, on_notify);
	real_notify(handle, DONE, real_handle[0], told); /* it may be in the middle of it */
	expect_told(1, "");                              /* none is wanted */
	assert_int_equal(hook_multi_notify_enable(handle, INFO_READ), CURLM_OK);
	assert_int_equal(hook_multi_notify_enable(handle, DONE), CURLM_OK);
	assert_int_equal(hook_multi_notify_enable(handle, 9), CURLM_UNKNOWN_OPTION);
	assert_int_equal(real_enabled, 3);
	assert_non_null(hook_multi_info_read(handle, &left));
	expect_told(2, "1:one 0:- 1:two ");
	expect_told(0, ""); /* once */
	while (hook_multi_info_read(handle, &left))
		;
	assert_int_equal(hook_multi_notify_disable(handle, DONE), CURLM_OK);
	expect_told(1, "0:- ");
	set((CURLMoption)NOTIFYFUNCTION, NULL);
	while (hook_multi_info_read(handle, &left))
		;
	expect_told(1, "");
}

/* curl --parallel of 8.17 and later does nothing else. */
static void messages_are_read_where_they_are_told(void **state)
{
	(void)state;
	takes_at = INFO_READ;
	manage(0);
	set((CURLMoption)NOTIFYFUNCTION, (void *)on_notify);
	set((CURLMoption)NOTIFYDATA, told);
	assert_int_equal(hook_multi_notify_enable(handle, INFO_READ), CURLM_OK);
	expect_told(2, "0:- read read ");
	expect_told(1, "0:- read ");
	assert_null(real_notify); /* it was never libcurl's to call */
}

static void a_libcurl_without_notifications(void **state)
{
	(void)state;
	KNOW(multi_notify_enable, NULL);
	KNOW(multi_notify_disable, NULL);
	manage(0);
	assert_int_equal(hook_multi_notify_enable(handle, DONE), CURLM_BAD_HANDLE);
	assert_int_equal(hook_multi_notify_disable(handle, DONE), CURLM_BAD_HANDLE);
	set((CURLMoption)NOTIFYFUNCTION, (void *)on_notify); /* libcurl says what it thinks of it */
	assert_ptr_equal(real_notify, on_notify);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
	const struct CMUnitTest tests[] = {
	        TEST(all_handles_are_listed),
	        TEST(handles_without_memory_or_function),
	        TEST(descriptors_and_the_bell),
	        TEST(descriptors_are_counted_alone),
	        TEST(libcurls_descriptors_alone),
	        TEST(what_ends_is_told),
	        TEST(messages_are_read_where_they_are_told),
	        TEST(a_libcurl_without_notifications),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
