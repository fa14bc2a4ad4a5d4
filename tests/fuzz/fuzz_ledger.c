/* A ledger with bytes changed anywhere, opened and read: every look-up, every record, every answer,
 * and `verify`. The input is a list of changes, five bytes each: where (3), how (1), with what (1).
 * Nothing may crash, run away, or invent an answer. It needs a folder in memory, /dev/shm. The
 * source of opening is included so that the file is mapped once and not each time: faults of pages
 * would be all that this does. */
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

static char *file, *image;

static void *map_once(void *at, size_t n, int protection, int flags, int fd, long offset)
{
	return file ? file : mmap(at, n, protection, flags, fd, offset);
}

static int unmap_never(void *at, size_t n)
{
	return (char *)at == file ? 0 : munmap(at, n);
}

#define mmap   map_once
#define munmap unmap_never
#include "../../src/ledger/file.c"
#undef mmap
#undef munmap

enum { SIZE = 256 * 1024, RECORDS = 12, CHANGES_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char path[64];

static void hash_of(unsigned n, uint8_t out[LEDGER_HASH])
{
	for (unsigned i = 0; i < LEDGER_HASH; i++)
		out[i] = (uint8_t)(n * 31 + i * 7 + 1);
}

static size_t answer_of(unsigned n, char *out)
{
	size_t size = n % 3 ? 40 + n : 3000;

	memset(out, (int)('a' + n), size);
	return size;
}

static void make_record(struct ledger *l, unsigned n)
{
	static char body[4096];
	struct ledger_answer answer = {.status = 201, .blob = {body, answer_of(n, body)}};
	uint8_t hash[LEDGER_HASH];
	char key[24];
	struct record_new rec = {.content = hash,
	                         .any_account = hash,
	                         .place = hash,
	                         .own_key = hash,
	                         .fingerprint = hash,
	                         .wire_body = hash,
	                         .operation = "orders.create",
	                         .key = key,
	                         .generation = n + 1,
	                         .ttl_us = INT64_C(86400000000),
	                         .tombstone_us = INT64_C(86400000000),
	                         .run = n + 1};
	struct hold hold;

	hash_of(n, hash);
	snprintf(key, sizeof(key), "key-%u", n);
	if (ledger_reserve(l, &rec, NULL, clock_now(), &hold) != LEDGER_OK)
		abort();
	if (n % 4 == 3 || ledger_gate(l, &hold, clock_now()) != LEDGER_OK)
		return;
	if (n % 4 == 2)
		ledger_unknown(l, &hold, true, NULL, clock_now());
	else
		ledger_done(l, &hold, &answer, clock_now());
	for (unsigned run = 1; run < 2 + n % 6; run++)
		ledger_delivered(l, hold.id, n + 1, run, clock_now());
}

static void clean_up(void)
{
	unlink(path);
}

static void prepare(void)
{
	struct ledger_options o = {
	        .path = path, .size = SIZE, .max_response = 8192, .create = true};
	struct ledger *l;
	int fd;

	snprintf(path, sizeof(path), "/dev/shm/sendonce-fuzz-%d", (int)getpid());
	unlink(path);
	atexit(clean_up);
	if (ledger_open(&o, &l, NULL) != LEDGER_OK)
		abort();
	for (unsigned n = 0; n < RECORDS; n++)
		make_record(l, n);
	ledger_close(l);
	fd = open(path, O_RDWR);
	file = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	image = malloc(SIZE);
	if (file == MAP_FAILED || !image)
		abort();
	memcpy(image, file, SIZE);
}

static void change(const uint8_t *at)
{
	uint32_t where = (uint32_t)(at[0] | at[1] << 8 | at[2] << 16);
	char *to = file + where % SIZE;

	switch (at[3] % 4) {
	case 0:
		*to = (char)at[4];
		break;
	case 1:
		*to = (char)(*to ^ 1 << at[4] % 8);
		break;
	case 2: /* a piece of somewhere else: a page that went astray */
		memmove(file + where % SIZE / 64 * 64,
		        image + (where >> 3 ^ (uint32_t)at[4] << 10) % SIZE / 64 * 64, 64);
		break;
	default:
		memset(file + where % SIZE / 512 * 512, at[4] & 1 ? 0 : at[4], 512);
		break;
	}
}

static void undo(const uint8_t *at)
{
	uint32_t where = (uint32_t)(at[0] | at[1] << 8 | at[2] << 16) % SIZE / 512 * 512;

	memcpy(file + where, image + where, 512);
}

/* A header that would be refused says nothing about what lies behind it: made right, half the time.
 */
static void mend_header(void)
{
	struct layout_fixed *f = (struct layout_fixed *)(void *)file;

	f->sum = sum_bytes(0, f, offsetof(struct layout_fixed, sum));
}

/* An answer that is given is the one that was stored for this write. */
static void check_answer(struct ledger *l, const struct record_view *view)
{
	static char expected[4096];
	struct buf blob = {0};
	long status;

	if (view->answer_kept && ledger_answer(l, view, &blob, &status) == LEDGER_OK) {
		unsigned n = view->generation - 1;

		if (n >= RECORDS || blob.n != answer_of(n, expected) ||
		    memcmp(blob.data, expected, blob.n) != 0)
			abort();
	}
	buf_free(&blob);
}

static int visit(void *ctx, const struct record_view *view)
{
	struct ledger *l = ctx;

	if (memchr(view->key, 0, sizeof(view->key)) == NULL)
		abort();
	check_answer(l, view);
	return 0;
}

static void look_up(struct ledger *l, bool verify)
{
	struct record_view view;
	uint8_t hash[LEDGER_HASH], other[LEDGER_HASH] = {9};
	struct ledger_ids ids = {.content = hash,
	                         .any_account = hash,
	                         .own_key = hash,
	                         .place = other,
	                         .operation = "orders.create"};

	for (unsigned n = 0; n <= RECORDS; n++) {
		hash_of(n, hash);
		ids.own_key = n % 2 ? hash : NULL;
		if (ledger_find(l, &ids, clock_now(), &view) == LEDGER_OK)
			check_answer(l, &view);
		ledger_find_content(l, hash, n, clock_now(), &view);
		ledger_look(l, n << 20 | n, clock_now(), &view);
	}
	ledger_each(l, clock_now(), visit, l);
	ledger_find_lost(l, "orders.create", &view);
	ledger_retired(l);
	if (verify) /* takes ten times as long as all the rest */
		ledger_verify(l, NULL, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct ledger_options o = {.path = path, .read_only = true};
	struct ledger *l = NULL;

	if (!file)
		prepare();
	if (n == 0)
		return 0;
	for (size_t i = 1; i + 5 <= n && i < 5 * CHANGES_MAX; i += 5)
		change(data + i);
	if (data[0] & 1)
		mend_header();
	if (ledger_open(&o, &l, NULL) == LEDGER_OK)
		look_up(l, data[0] % 8 < 2);
	ledger_close(l);
	for (size_t i = 1; i + 5 <= n && i < 5 * CHANGES_MAX; i += 5)
		undo(data + i);
	memcpy(file, image, sizeof(struct layout_fixed));
	return 0;
}
