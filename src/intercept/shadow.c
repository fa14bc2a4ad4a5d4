/* See shadow.h. One table for the process under one mutex. Since a handle is looked up at each
 * libcurl call, most are found without it: each handle has a place in a small array, told by its
 * hash, and the first one that finds its place empty has it until it is cleaned up. So a place
 * never changes under somebody who looks for the handle in it: libcurl lets nobody use a handle
 * while it is being made or cleaned up. A handle whose place another one has is looked up in the
 * table. */
#define HASH_NONFATAL_OOM                1
#define HASH_FUNCTION(key, length, hash) ((void)(length), (hash) = hash_handle(key))
#include "intercept/shadow.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) ((void)(element), out_of_memory = true)

enum { PLACE_BITS = 12 };

/* Both are written under the lock. */
struct place {
	_Atomic(CURL *) handle; /* release: `shadow` is its own; null: nobody's place */
	_Atomic(struct shadow *) shadow;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shadow *table;
static struct place places[1 << PLACE_BITS];

/* The key is a pointer; its low bits are all alike, so those from the middle of a product are
 * taken.
 */
static unsigned hash_handle(const void *key)
{
	uint64_t word = 0;

	memcpy(&word, key, sizeof(CURL *));
	return (unsigned)(word * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static struct place *place_of(CURL *handle)
{
	return &places[hash_handle(&handle) >> (32 - PLACE_BITS)];
}

static void take_place(struct shadow *s)
{
	struct place *place = place_of(s->handle);

	if (atomic_load_explicit(&place->handle, memory_order_relaxed))
		return;
	atomic_store_explicit(&place->shadow, s, memory_order_relaxed);
	/* Release: who finds the handle here reads that shadow, and it is complete. */
	atomic_store_explicit(&place->handle, s->handle, memory_order_release);
}

static void leave_place(const struct shadow *s)
{
	struct place *place = place_of(s->handle);

	/* Relaxed: who looks for another handle does not care, and for this one nobody does. */
	if (atomic_load_explicit(&place->handle, memory_order_relaxed) == s->handle)
		atomic_store_explicit(&place->handle, NULL, memory_order_relaxed);
}

static void forget_transfer(struct shadow *s)
{
	info_free(s->info);
	headers_free(s->headers);
	s->info = NULL;
	s->headers = NULL;
	s->played = false;
}

static void forget_body(struct shadow *s)
{
	capture_drop(&s->capture, s->flavour);
	payload_unref(s->unsent.payload);
	free(s->unsent.type);
	s->unsent = (struct unsent){0};
	s->foreign_form = false;
	atomic_store_explicit(&s->form, NULL, memory_order_relaxed);
}

static void shadow_free(struct shadow *s)
{
	late_forget(s);
	message_drop(&s->message);
	forget_transfer(s);
	forget_body(s);
	ambient_free(&s->ambient);
	courier_stay_free(&s->stay);
	request_target_free(&s->target);
	options_free(&s->options);
	free(s);
}

static struct shadow *take_out(CURL *handle)
{
	struct shadow *s;

	pthread_mutex_lock(&lock);
	HASH_FIND_PTR(table, &handle, s);
	if (s) {
		leave_place(s);
		HASH_DEL(table, s);
	}
	pthread_mutex_unlock(&lock);
	return s;
}

static bool put_in(struct shadow *s)
{
	bool out_of_memory = false;

	pthread_mutex_lock(&lock);
	HASH_ADD_PTR(table, handle, s);
	if (!out_of_memory)
		take_place(s);
	pthread_mutex_unlock(&lock);
	return !out_of_memory;
}

struct shadow *shadow_new(CURL *handle, const struct flavour *flavour)
{
	struct shadow *s = calloc(1, sizeof(*s));

	shadow_drop(handle);
	if (!s)
		return NULL;
	s->handle = handle;
	s->flavour = flavour;
	options_init(&s->options);
	if (put_in(s))
		return s;
	free(s);
	return NULL;
}

/* Its place may be free by now: then it takes it. Not inlined, so that the usual way saves no
 * registers. */
__attribute__((noinline)) static struct shadow *find_in_table(CURL *handle)
{
	struct shadow *s;

	pthread_mutex_lock(&lock);
	HASH_FIND_PTR(table, &handle, s);
	if (s)
		take_place(s);
	pthread_mutex_unlock(&lock);
	return s;
}

struct shadow *shadow_find(CURL *handle)
{
	struct place *place = place_of(handle);

	if (!handle) /* as nobody's place */
		return NULL;
	/* Acquire: pairs with take_place. */
	if (atomic_load_explicit(&place->handle, memory_order_acquire) == handle)
		return atomic_load_explicit(&place->shadow, memory_order_relaxed);
	return find_in_table(handle);
}

static struct shadow *find_form(curl_mime *form)
{
	struct shadow *s, *next, *found = NULL;

	pthread_mutex_lock(&lock);
	HASH_ITER (hh, table, s, next) {
		if (atomic_load_explicit(&s->form, memory_order_relaxed) == form)
			found = s;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static void forget_form(struct shadow *s)
{
	atomic_store_explicit(&s->form, NULL, memory_order_relaxed);
	for (size_t i = 0; i < s->options.count; i++) {
		if (s->options.list[i].id == CURLOPT_MIMEPOST)
			s->options.list[i].v.ptr = NULL;
	}
}

const struct flavour *shadow_form_freed(curl_mime *form)
{
	struct shadow *s = find_form(form);

	if (!s)
		return NULL;
	if (s->capture.mime == form) /* libcurl takes it off our handle */
		s->capture.mime = NULL;
	s->capture.lost = false;
	forget_form(s);
	return s->flavour;
}

void shadow_copy(struct shadow *to, const struct shadow *from, const struct capture *form)
{
	options_copy(&to->options, &from->options);
	to->capture = *form;
	if (!options_get(&from->options, CURLOPT_MIMEPOST))
		return;
	/* libcurl copied it, and nobody else knows where it is */
	to->foreign_form = from->foreign_form || options_pointer(&from->options, CURLOPT_MIMEPOST);
	for (size_t i = 0; i < to->options.count; i++) {
		if (to->options.list[i].id == CURLOPT_MIMEPOST)
			to->options.list[i].v.ptr = NULL;
	}
}

bool shadow_lacks_form(const struct shadow *s)
{
	return s->foreign_form && (!s->capture.copied || s->capture.busy);
}

CURLcode shadow_perform(struct shadow *s)
{
	CURLcode code;

	s->native = true;
	code = CURL_FN(s->flavour, easy_perform)(s->handle);
	s->native = false;
	return code;
}

void shadow_drop(CURL *handle)
{
	struct shadow *s = take_out(handle);

	if (s)
		shadow_free(s);
}

void shadow_reset(struct shadow *s)
{
	unsigned change = s->options.change;

	options_free(&s->options);
	s->options.change = change + 1; /* the parsed target is stale */
	courier_stay_free(&s->stay);
	forget_transfer(s);
	forget_body(s);
	s->pace = (struct player_pace){0};
	s->native = false;
}

void shadow_left(struct shadow *s)
{
	struct playing *playing = s->playing;

	if (!playing || !playing->left)
		return;
	s->playing = NULL;
	playing->left(playing->ctx);
}

void shadow_begin(struct shadow *s, struct playing *playing)
{
	forget_transfer(s);
	s->playing = playing;
}

void shadow_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

/* In parent and child alike: the thread that forked holds the lock. */
void shadow_fork_done(void)
{
	pthread_mutex_unlock(&lock);
}
