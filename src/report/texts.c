/* See texts.h. An open-addressed table of numbers over one growing heap of terminated texts. Texts
 * are never taken out, so a number is good as long as the table lives; pointers only until the next
 * texts_add. */
#include "report/texts.h"

#include <stdlib.h>
#include <string.h>

struct log_texts {
	struct buf heap;
	uint64_t *at; /* of each number in the heap */
	uint32_t count, room;
	uint32_t *slot; /* number + 1; 0: empty */
	uint32_t slots; /* power of two, at most two thirds full */
};

enum { FIRST_SLOTS = 1024 };

static uint32_t hash_text(struct span text)
{
	uint32_t h = UINT32_C(2166136261); /* FNV-1a */

	for (size_t i = 0; i < text.n; i++)
		h = (h ^ (unsigned char)text.p[i]) * UINT32_C(16777619);
	return h;
}

struct log_texts *texts_new(void)
{
	struct log_texts *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->slots = FIRST_SLOTS;
	t->slot = calloc(t->slots, sizeof(*t->slot));
	if (!t->slot || texts_add(t, (struct span){"", 0}) != 0) {
		texts_free(t);
		return NULL;
	}
	return t;
}

void texts_free(struct log_texts *t)
{
	if (!t)
		return;
	buf_free(&t->heap);
	free(t->at);
	free(t->slot);
	free(t);
}

const char *texts_get(const struct log_texts *t, uint32_t number)
{
	return number < t->count ? t->heap.data + t->at[number] : "";
}

/* Where the text is, or the empty slot where it belongs. */
static uint32_t *find_slot(const struct log_texts *t, struct span text)
{
	uint32_t mask = t->slots - 1, i = hash_text(text) & mask;

	for (; t->slot[i]; i = (i + 1) & mask) {
		const char *there = texts_get(t, t->slot[i] - 1);

		if (strncmp(there, text.p, text.n) == 0 && there[text.n] == '\0')
			break;
	}
	return &t->slot[i];
}

static int grow_slots(struct log_texts *t)
{
	uint32_t *old = t->slot;

	t->slot = calloc((size_t)t->slots * 2, sizeof(*t->slot));
	if (!t->slot) {
		t->slot = old;
		return -1;
	}
	t->slots *= 2;
	for (uint32_t n = 0; n < t->count; n++)
		*find_slot(t, span_of(texts_get(t, n))) = n + 1;
	free(old);
	return 0;
}

static int grow_numbers(struct log_texts *t)
{
	uint32_t room = t->room ? t->room * 2 : 256;
	uint64_t *at = realloc(t->at, room * sizeof(*at));

	if (!at)
		return -1;
	t->at = at;
	t->room = room;
	return 0;
}

int64_t texts_find(const struct log_texts *t, struct span text)
{
	return (int64_t)*find_slot(t, text) - 1;
}

int64_t texts_add(struct log_texts *t, struct span text)
{
	uint32_t *slot;

	/* A text ends at its first NUL here: the log escapes them, so none comes from there. */
	text.n = text.n ? strnlen(text.p, text.n) : 0;
	slot = find_slot(t, text);
	if (*slot)
		return *slot - 1;
	if (t->count == t->room && grow_numbers(t) != 0)
		return -1;
	t->at[t->count] = t->heap.n;
	buf_add_span(&t->heap, text);
	buf_add_char(&t->heap, '\0');
	if (t->heap.failed)
		return -1;
	*slot = ++t->count;
	if (t->count > t->slots / 3 * 2 && grow_slots(t) != 0)
		return -1;
	return t->count - 1;
}
