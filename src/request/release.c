/* See release.h. libcurl says nothing but the argument when it calls such a function, and that is
 * the program's own, which its other callbacks get as well. So there is a function of ours for each
 * function of the program, and what it stands for is kept for good: an address that comes back with
 * another library, or with another closure of an interpreter, is called where libcurl would call
 * it.
 *
 * A copy of ours ends inside one call of libcurl, on the thread that makes it, and no other
 * function of the program's runs in there: a mark of the thread is enough.
 *
 * Not promised: to know of functions that libcurl was given behind our back, by a program that
 * found curl_mime_data_cb in libcurl's own symbol table. */
#include "request/release.h"

#include <pthread.h>
#include <stdatomic.h>

static _Atomic(curl_free_callback) functions[RELEASE_FUNCTIONS]; /* in order; null: free */
static atomic_bool is_overfull; /* relaxed: whoever gets such a form learns it with the form */
static __thread bool is_unheard;

static void call(unsigned which, void *arg)
{
	/* Relaxed: it was there before libcurl was given the stand-in, and never changes. */
	if (!is_unheard)
		atomic_load_explicit(&functions[which], memory_order_relaxed)(arg);
}

/* Numbered in octal: eight times eight. */
#define STAND_IN(number)                                                                           \
	static void stand_in_##number(void *arg)                                                   \
	{                                                                                          \
		call(number, arg);                                                                 \
	}
#define STAND_IN_NAME(number) stand_in_##number,
#define EIGHT(X, n)                                                                                \
	X(0##n##0)                                                                                 \
	X(0##n##1) X(0##n##2) X(0##n##3) X(0##n##4) X(0##n##5) X(0##n##6) X(0##n##7)
#define ALL(X)                                                                                     \
	EIGHT(X, 0)                                                                                \
	EIGHT(X, 1) EIGHT(X, 2) EIGHT(X, 3) EIGHT(X, 4) EIGHT(X, 5) EIGHT(X, 6) EIGHT(X, 7)

ALL(STAND_IN)
static const curl_free_callback stand_ins[] = {ALL(STAND_IN_NAME)};
_Static_assert(sizeof(stand_ins) / sizeof(*stand_ins) == RELEASE_FUNCTIONS, "one for each");

curl_free_callback release_stand_in(curl_free_callback function)
{
	for (unsigned i = 0; i < RELEASE_FUNCTIONS; i++) {
		curl_free_callback known = NULL;

		/* Relaxed: the pointer is all there is, and it goes one way, from null. */
		if (atomic_compare_exchange_strong_explicit(&functions[i], &known, function,
		                                            memory_order_relaxed,
		                                            memory_order_relaxed) ||
		    known == function)
			return stand_ins[i];
	}
	atomic_store_explicit(&is_overfull, true, memory_order_relaxed);
	return function;
}

bool release_is_unheard(void)
{
	return !atomic_load_explicit(&is_overfull, memory_order_relaxed);
}

/* A form's files are closed, where a thread may be cancelled: not with the mark, since its cleanup
 * is the program's. */
static void begin(int *cancel)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel);
	is_unheard = true;
}

static void end(int cancel)
{
	is_unheard = false;
	pthread_setcancelstate(cancel, &cancel);
}

CURL *release_copy(const struct flavour *fl, CURL *easy)
{
	CURL *copy;
	int cancel;

	begin(&cancel); /* one that fails ends what it has copied */
	copy = CURL_FN(fl, easy_duphandle)(easy);
	end(cancel);
	return copy;
}

void release_form(const struct flavour *fl, CURL *easy, bool heard)
{
	int cancel;

	if (!heard)
		begin(&cancel);
	CURL_FN(fl, easy_setopt)(easy, CURLOPT_MIMEPOST, NULL);
	if (!heard)
		end(cancel);
}
