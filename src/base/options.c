/* See options.h. The list is short (60 entries for the curl tool), so look-ups walk it, unless a
 * bit says that the option was never set, as most that we ask for were not. */
#include "base/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

enum { NUMBER_MAX = 512, POST_SIZE_UNSET = -1 };

struct option_row {
	const char *name;
	enum option_kind kind;
};

static const struct option_row table[NUMBER_MAX] = {
#define OPTION(number, name, kind) [number] = {#name, OPTION_##kind},
#include "base/option_table.h"
#undef OPTION
};

static const struct option_row *row_of(CURLoption id)
{
	unsigned number = (unsigned)id % 10000;

	return number < NUMBER_MAX && table[number].name ? &table[number] : NULL;
}

enum option_kind option_kind_of(CURLoption id)
{
	const struct option_row *row = row_of(id);

	return row ? row->kind : OPTION_UNKNOWN;
}

const char *option_name_of(CURLoption id)
{
	const struct option_row *row = row_of(id);

	return row ? row->name : NULL;
}

void options_init(struct options *o)
{
	*o = (struct options){.kind = HTTP_GET, .post_size = POST_SIZE_UNSET};
}

static void value_free(struct option *option)
{
	if (option->kind == OPTION_STRING)
		free(option->v.text);
	if (option->kind == OPTION_BLOB)
		free(option->v.ptr);
}

void options_free(struct options *o)
{
	for (size_t i = 0; i < o->count; i++)
		value_free(&o->list[i]);
	free(o->list);
	free(o->post_copy);
	options_init(o);
}

static int fail(struct options *o)
{
	o->failed = true;
	return -1;
}

/* POSTFIELDS' four options, as lib/setopt.c of libcurl treats them. */
static int set_copied_post(struct options *o, const char *data)
{
	size_t n;
	char *copy = NULL;

	if (data) {
		n = o->post_size == POST_SIZE_UNSET ? strlen(data) : (size_t)o->post_size;
		copy = span_dup((struct span){data, n});
		if (!copy)
			return fail(o);
	}
	free(o->post_copy);
	o->post_copy = copy;
	o->post = copy;
	o->kind = HTTP_POST;
	return 0;
}

static void set_post(struct options *o, const char *data)
{
	free(o->post_copy);
	o->post_copy = NULL;
	o->post = data;
	o->kind = HTTP_POST;
}

static void set_post_size(struct options *o, curl_off_t size)
{
	if (o->post_size < size && o->post == o->post_copy) {
		free(o->post_copy);
		o->post_copy = NULL;
		o->post = NULL;
	}
	o->post_size = size;
}

static void set_method(struct options *o, CURLoption id, bool on)
{
	switch (id) {
	case CURLOPT_NOBODY:
		o->no_body = on;
		if (on)
			o->kind = HTTP_HEAD;
		else if (o->kind == HTTP_HEAD)
			o->kind = HTTP_GET;
		return;
	case CURLOPT_UPLOAD:
	case CURLOPT_PUT:
		o->upload = on;
		o->kind = on ? HTTP_PUT : HTTP_GET;
		break;
	case CURLOPT_POST:
		o->upload = false;
		o->kind = on ? HTTP_POST : HTTP_GET;
		break;
	case CURLOPT_HTTPGET:
		if (!on)
			return;
		o->upload = false;
		o->kind = HTTP_GET;
		break;
	case CURLOPT_MIMEPOST:
		o->kind = HTTP_MIME;
		on = true;
		break;
	case CURLOPT_HTTPPOST:
		o->kind = HTTP_FORM;
		on = true;
		break;
	default:
		return;
	}
	if (on)
		o->no_body = false;
}

static bool shapes_target(CURLoption id)
{
	switch (id) {
	case CURLOPT_URL:
	case CURLOPT_CURLU:
	case CURLOPT_PORT:
	case CURLOPT_DEFAULT_PROTOCOL:
	case CURLOPT_PATH_AS_IS:
	case CURLOPT_REQUEST_TARGET:
	case CURLOPT_DISALLOW_USERNAME_IN_URL:
		return true;
	default:
		return false;
	}
}

/* A program that sets its URL before each request need not have it parsed each time. */
static bool is_same_text(const struct options *o, CURLoption id, uintptr_t word)
{
	const char *now = options_text(o, id), *next = (const char *)word;

	return option_kind_of(id) == OPTION_STRING && now && next && strcmp(now, next) == 0;
}

static int read_value(struct option *option, uintptr_t word)
{
	const struct curl_blob *blob;
	const char *text = (const char *)word;

	switch (option->kind) {
	case OPTION_LONG:
		option->v.num = (long)word;
		return 0;
	case OPTION_OFF_T:
		option->v.off = (curl_off_t)word;
		return 0;
	case OPTION_STRING:
		option->v.text = text ? span_dup(span_of(text)) : NULL;
		return text && !option->v.text ? -1 : 0;
	case OPTION_BLOB:
		blob = (const struct curl_blob *)word;
		if (!blob)
			return 0;
		option->size = blob->len;
		option->v.ptr = span_dup((struct span){blob->data, blob->len});
		return option->v.ptr ? 0 : -1;
	case OPTION_FUNCTION:
		option->v.fn = (void (*)(void))word;
		return 0;
	case OPTION_SLIST:
	case OPTION_POINTER:
	case OPTION_UNKNOWN:
		option->v.ptr = (void *)word;
		return 0;
	}
	return 0;
}

static struct option *append(struct options *o)
{
	struct option *list;
	size_t room = o->room ? o->room * 2 : 32;

	if (o->count < o->room)
		return &o->list[o->count++];
	list = realloc(o->list, room * sizeof(*list));
	if (!list)
		return NULL;
	o->list = list;
	o->room = room;
	return &o->list[o->count++];
}

static uint64_t bit_of(CURLoption id)
{
	return UINT64_C(1) << ((unsigned)id % 64);
}

static void forget(struct options *o, CURLoption id)
{
	if (!(o->ever & bit_of(id)))
		return;
	for (size_t i = 0; i < o->count; i++) {
		if (o->list[i].id != id)
			continue;
		value_free(&o->list[i]);
		o->count--;
		memmove(&o->list[i], &o->list[i + 1], (o->count - i) * sizeof(*o->list));
		return;
	}
}

/* The new value is read before the old one goes: a program may set an option from itself. */
static int record(struct options *o, CURLoption id, uintptr_t word)
{
	struct option made = {.id = id, .kind = option_kind_of(id)}, *place;

	if (read_value(&made, word) != 0)
		return fail(o);
	forget(o, id);
	place = append(o);
	if (!place) {
		value_free(&made);
		return fail(o);
	}
	*place = made;
	o->ever |= bit_of(id);
	return 0;
}

int options_set(struct options *o, CURLoption id, uintptr_t word)
{
	switch (id) {
	case CURLOPT_COPYPOSTFIELDS:
		return set_copied_post(o, (const char *)word);
	case CURLOPT_POSTFIELDS:
		set_post(o, (const char *)word);
		return 0;
	case CURLOPT_POSTFIELDSIZE:
		set_post_size(o, (long)word);
		return 0;
	case CURLOPT_POSTFIELDSIZE_LARGE:
		set_post_size(o, (curl_off_t)word);
		return 0;
	default:
		break;
	}
	set_method(o, id, word != 0);
	if (shapes_target(id) && !is_same_text(o, id, word))
		o->change++;
	return record(o, id, word);
}

const struct option *options_get(const struct options *o, CURLoption id)
{
	if (!(o->ever & bit_of(id)))
		return NULL;
	for (size_t i = o->count; i-- > 0;) {
		if (o->list[i].id == id)
			return &o->list[i];
	}
	return NULL;
}

long options_long(const struct options *o, CURLoption id, long fallback)
{
	const struct option *option = options_get(o, id);

	if (!option)
		return fallback;
	return option->kind == OPTION_OFF_T ? (long)option->v.off : option->v.num;
}

const char *options_text(const struct options *o, CURLoption id)
{
	const struct option *option = options_get(o, id);

	return option && option->kind == OPTION_STRING ? option->v.text : NULL;
}

void *options_pointer_or(const struct options *o, CURLoption id, void *unset)
{
	const struct option *option = options_get(o, id);

	return option ? option->v.ptr : unset;
}

void *options_pointer(const struct options *o, CURLoption id)
{
	return options_pointer_or(o, id, NULL);
}

void (*options_function(const struct options *o, CURLoption id))(void)
{
	const struct option *option = options_get(o, id);

	return option && option->kind == OPTION_FUNCTION ? option->v.fn : NULL;
}

static int copy_value(struct option *to, const struct option *from)
{
	*to = *from;
	if (from->kind == OPTION_STRING && from->v.text) {
		to->v.text = span_dup(span_of(from->v.text));
		return to->v.text ? 0 : -1;
	}
	if (from->kind == OPTION_BLOB && from->v.ptr) {
		to->v.ptr = span_dup((struct span){from->v.ptr, from->size});
		return to->v.ptr ? 0 : -1;
	}
	return 0;
}

static int copy_post(struct options *to, const struct options *from)
{
	size_t n;

	to->post_size = from->post_size;
	to->post = from->post;
	if (!from->post_copy)
		return 0;
	n = from->post_size == POST_SIZE_UNSET ? strlen(from->post_copy) : (size_t)from->post_size;
	to->post_copy = span_dup((struct span){from->post_copy, n});
	to->post = to->post_copy;
	return to->post_copy ? 0 : -1;
}

int options_copy(struct options *to, const struct options *from)
{
	options_init(to);
	to->kind = from->kind;
	to->no_body = from->no_body;
	to->upload = from->upload;
	to->puts = from->puts;
	to->failed = from->failed;
	to->change = from->change;
	to->ever = from->ever;
	if (copy_post(to, from) != 0)
		return fail(to);
	for (size_t i = 0; i < from->count; i++) {
		struct option *place = append(to);
		if (!place)
			return fail(to);
		if (copy_value(place, &from->list[i]) != 0) {
			place->kind = OPTION_POINTER; /* nothing to free */
			return fail(to);
		}
	}
	return 0;
}
