/* Parts of a form whose functions that free what they read from are counted. They read nothing, so
 * that several handles may have one at once. */
#ifndef SENDONCE_TESTS_FREED_H
#define SENDONCE_TESTS_FREED_H

#include <curl/curl.h>
#include <stdio.h>

enum { FREED_FUNCTIONS = 100 };

struct freed {
	unsigned calls, told, by[FREED_FUNCTIONS];
};

#define FREED_ONES(X, tens)                                                                        \
	X(tens, 0)                                                                                 \
	X(tens, 1)                                                                                 \
	X(tens, 2) X(tens, 3) X(tens, 4) X(tens, 5) X(tens, 6) X(tens, 7) X(tens, 8) X(tens, 9)
#define FREED_HUNDRED(X)                                                                           \
	FREED_ONES(X, 0)                                                                           \
	FREED_ONES(X, 1)                                                                           \
	FREED_ONES(X, 2)                                                                           \
	FREED_ONES(X, 3)                                                                           \
	FREED_ONES(X, 4)                                                                           \
	FREED_ONES(X, 5)                                                                           \
	FREED_ONES(X, 6)                                                                           \
	FREED_ONES(X, 7)                                                                           \
	FREED_ONES(X, 8)                                                                           \
	FREED_ONES(X, 9)

#define FREED_FUNCTION(tens, ones)                                                                 \
	static void freed_by_##tens##ones(void *ctx)                                               \
	{                                                                                          \
		((struct freed *)ctx)->calls++;                                                    \
		((struct freed *)ctx)->by[tens * 10 + ones]++;                                     \
	}
FREED_HUNDRED(FREED_FUNCTION)

#define FREED_NAME(tens, ones) freed_by_##tens##ones,
static const curl_free_callback FREED[FREED_FUNCTIONS] = {FREED_HUNDRED(FREED_NAME)};

static size_t freed_read(char *out, size_t size, size_t n, void *ctx)
{
	(void)out, (void)size, (void)n, (void)ctx;
	return 0;
}

static int freed_seek(void *ctx, curl_off_t offset, int origin)
{
	(void)ctx, (void)offset, (void)origin;
	return CURL_SEEKFUNC_OK;
}

/* `function` null: it has none. */
static inline curl_mimepart *freed_part(struct freed *f, curl_mime *form,
                                        curl_free_callback function)
{
	curl_mimepart *part = curl_mime_addpart(form);

	curl_mime_name(part, "counted");
	curl_mime_data_cb(part, 0, freed_read, freed_seek, function, f);
	return part;
}

/* A line, where there were calls since the last one: how many, all so far, and which functions. */
static inline void freed_tell(struct freed *f)
{
	if (f->calls == f->told)
		return;
	printf("freed calls=%u all=%u by", f->calls - f->told, f->calls);
	for (int i = 0; i < FREED_FUNCTIONS; i++) {
		if (f->by[i])
			printf(" %d:%u", i, f->by[i]);
	}
	putchar('\n');
	f->told = f->calls;
}

#endif
