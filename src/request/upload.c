/* UPLOAD, and another kind of request set after it: which of the two is it?
 *
 * To libcurl before 8.1 UPLOAD was a switch of its own, which only some options switched off again:
 * with POSTFIELDS after it the request was a PUT all the same (CVE-2023-28322). From 8.1 on, and
 * where a distributor has mended an earlier one, the last one set counts. The version does not
 * tell, so libcurl is asked: it sends such a request to a listener of this process, once for each
 * libcurl, and only where a program has set both.
 *
 * Not promised: what body an unmended libcurl would send. Such a request is not protected. */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "request/listener.h"
#include "request/request.h"

enum { FLAVOURS = 16, TURNS = 64, WORD = 4 };
enum answer { IS_SWITCH, IS_KIND, NO_ANSWER };

struct asking {
	const struct flavour *fl;
	CURL *easy;
	CURLM *multi;
	struct listener listener;
	char word[WORD];
	size_t n;
};

/* The address of a flavour, and in its lowest bit whether UPLOAD is a kind; 0: free. Filled from
 * the front, and nothing else hangs on them: relaxed. */
static _Atomic(uintptr_t) known[FLAVOURS];

static enum answer look_up(const struct flavour *fl)
{
	for (size_t i = 0; i < FLAVOURS; i++) {
		uintptr_t word = atomic_load_explicit(&known[i], memory_order_relaxed);

		if (!word)
			break;
		if ((word & ~(uintptr_t)1) == (uintptr_t)fl)
			return word & 1 ? IS_KIND : IS_SWITCH;
	}
	return NO_ANSWER;
}

static void note(const struct flavour *fl, enum answer answer)
{
	uintptr_t word = (uintptr_t)fl | (answer == IS_KIND);

	for (size_t i = 0; i < FLAVOURS; i++) {
		uintptr_t free = 0;

		if (atomic_compare_exchange_strong_explicit(
		            &known[i], &free, word, memory_order_relaxed, memory_order_relaxed))
			return;
	}
}

static size_t nothing(char *data, size_t size, size_t n, void *ctx)
{
	(void)data, (void)size, (void)n, (void)ctx;
	return 0;
}

static bool set_up(struct asking *a)
{
	__typeof__(&curl_easy_setopt) set = CURL_FN(a->fl, easy_setopt);
	int bad = 0;

	bad |= (int)set(a->easy, CURLOPT_URL, "http://localhost/");
	bad |= (int)set(a->easy, CURLOPT_ABSTRACT_UNIX_SOCKET, a->listener.name);
	bad |= (int)set(a->easy, CURLOPT_PROXY, "") | (int)set(a->easy, CURLOPT_NOSIGNAL, 1L);
	bad |= (int)set(a->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	bad |= (int)set(a->easy, CURLOPT_OPENSOCKETFUNCTION, listener_socket);
	bad |= (int)set(a->easy, CURLOPT_READFUNCTION, nothing);
	bad |= (int)set(a->easy, CURLOPT_UPLOAD, 1L);
	bad |= (int)set(a->easy, CURLOPT_POSTFIELDS, "x");
	return !bad && !CURL_FN(a->fl, multi_add_handle)(a->multi, a->easy);
}

/* The first word that arrives. */
static void listen_to(struct asking *a)
{
	ssize_t n;
	int running;

	for (int i = 0; i < TURNS && a->n < WORD; i++) {
		if (CURL_FN(a->fl, multi_perform)(a->multi, &running))
			return;
		if (!listener_accept(&a->listener))
			continue;
		n = recv(a->listener.peer, a->word + a->n, WORD - a->n, MSG_DONTWAIT);
		a->n += n > 0 ? (size_t)n : 0;
	}
}

static enum answer ask(const struct flavour *fl)
{
	struct asking a = {.fl = fl, .listener = LISTENER_NONE};

	a.easy = CURL_FN(fl, easy_init)();
	a.multi = CURL_FN(fl, multi_init)();
	if (a.easy && a.multi && listener_open(&a.listener) && set_up(&a)) {
		listen_to(&a);
		CURL_FN(fl, multi_remove_handle)(a.multi, a.easy);
	}
	if (a.multi)
		CURL_FN(fl, multi_cleanup)(a.multi);
	if (a.easy)
		CURL_FN(fl, easy_cleanup)(a.easy);
	listener_close(&a.listener);
	if (a.n < WORD)
		return NO_ANSWER;
	return memcmp(a.word, "POST", WORD) == 0 ? IS_KIND : IS_SWITCH;
}

void request_settle(struct options *options, const struct flavour *fl)
{
	enum answer answer;

	if (!options->upload || options->kind == HTTP_PUT)
		return;
	answer = look_up(fl);
	if (answer == NO_ANSWER) {
		answer = ask(fl);
		if (answer == NO_ANSWER) /* no descriptor left, or the like */
			return;
		note(fl, answer);
	}
	options->upload = answer == IS_SWITCH;
	options->puts = answer == IS_SWITCH;
}
