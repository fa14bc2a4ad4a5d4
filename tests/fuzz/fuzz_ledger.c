/* A ledger with bytes changed anywhere, opened and read: every look-up, every record, every answer,
 * and `verify`; a part of the time also used, as a host would that found it so. The input is a byte
 * of choices and a list of changes, five bytes each: where (3), how (1), with what (1). Nothing may
 * crash, run away, or invent an answer.
 *
 * Damage is one thing, a ledger that somebody made up another: all its sums are right. So the sums
 * of the header and, in half of all cases, those of every record that was changed are computed
 * anew; else nothing behind them would ever be read. What such a record says is not compared with
 * anything.
 *
 * It needs a folder in memory, /dev/shm. The source of opening is included so that the file is
 * mapped once and not each time: faults of pages would be all that this does. */
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

enum { SIZE = 256 * 1024, RECORDS = 12, CHANGES_MAX = 64, CHANGE = 5, SECTOR = 512 };
/* The first byte of an input. Verifying takes ten times as long as all the rest. */
enum {
	MEND_HEADER = 1,
	NO_VERIFY = 2 | 4 | 8,
	USE = 32,
	MEND_RECORDS = 64,
	FOR_WRITING = 128,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
const char *__asan_default_options(void);

/* A large quarantine is nothing but cold memory here: little is allocated, and given back at once.
 */
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=2:malloc_context_size=8";
}

static char path[64];
static bool dirty[SIZE / SECTOR], mended;

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

/* 0, or it was not let in. */
static int make_record(struct ledger *l, unsigned n)
{
	static char body[4096];
	struct ledger_answer answer = {.status = 201, .blob = {body, answer_of(n, body)}};
	uint8_t hash[LEDGER_HASH], content[LEDGER_HASH];
	char key[24];
	struct record_new rec = {.content = content,
	                         .any_account = hash,
	                         .place = hash,
	                         .own_key = hash,
	                         .fingerprint = hash,
	                         .wire_body = hash,
	                         .settings = n % 5 == 4,
	                         .operation = "orders.create",
	                         .key = key,
	                         .generation = n + 1,
	                         .ttl_us = INT64_C(86400000000),
	                         .tombstone_us = INT64_C(86400000000),
	                         .run = n + 1};
	struct hold hold;

	hash_of(n, hash);
	/* One is written a second time under a key of its own. */
	hash_of(n == RECORDS - 1 ? 8 : n, content);
	snprintf(key, sizeof(key), "key-%u", n);
	if (ledger_reserve(l, &rec, NULL, clock_now(), &hold) != LEDGER_OK)
		return -1;
	if (n % 4 == 3 || ledger_gate(l, &hold, clock_now()) != LEDGER_OK)
		return 0;
	if (n % 4 == 2)
		ledger_unknown(l, &hold, true, NULL, clock_now());
	else
		ledger_done(l, &hold, &answer, clock_now());
	for (unsigned run = 1; run < 2 + n % 6; run++)
		ledger_delivered(l, hold.id, n + 1, run, clock_now());
	return 0;
}

static void clean_up(void)
{
	unlink(path);
}

/* All that is stored to goes through here: `undo` puts it back. */
static char *touch(size_t where, size_t n)
{
	for (size_t i = where / SECTOR; i <= (where + n - 1) / SECTOR; i++)
		dirty[i] = true;
	return file + where;
}

static size_t record_place(unsigned number)
{
	const struct layout_fixed *f = (const struct layout_fixed *)(void *)image;

	return f->records_at + number / LAYOUT_PER_PAGE * LAYOUT_PAGE +
	       number % LAYOUT_PER_PAGE * LAYOUT_RECORD;
}

/* A word that a bound or a sum in 64 bits may stumble over. */
static uint64_t word_of(uint8_t with, uint64_t there)
{
	static const uint64_t words[] = {0,          1,         UINT64_MAX, INT64_MAX,
	                                 UINT32_MAX, INT32_MAX, SIZE,       SIZE - 8,
	                                 SIZE / 64,  1u << 31,  0x7fffffc0, UINT64_C(1) << 63};

	if (with < 2 * sizeof(words) / sizeof(*words))
		return with % 2 ? (there & ~(uint64_t)UINT32_MAX) | (uint32_t)words[with / 2]
		                : words[with / 2];
	return there + (uint64_t)(int64_t)(int8_t)with;
}

static void change_word(size_t where, uint8_t with)
{
	uint64_t word;

	memcpy(&word, file + where, sizeof(word));
	word = word_of(with, word);
	memcpy(touch(where, sizeof(word)), &word, sizeof(word));
}

static void change(const uint8_t *at)
{
	size_t where = (size_t)(at[0] | at[1] << 8 | at[2] << 16), from = where % SIZE;

	switch (at[3] % 8) {
	case 0:
		*touch(from, 1) = (char)at[4];
		break;
	case 1:
		*touch(from, 1) = (char)(file[from] ^ 1 << at[4] % 8);
		break;
	case 2: /* a piece of somewhere else: a page that went astray */
		memcpy(touch(from / 64 * 64, 64),
		       image + (where >> 3 ^ (size_t)at[4] << 10) % SIZE / 64 * 64, 64);
		break;
	case 3:
		memset(touch(from / SECTOR * SECTOR, SECTOR), at[4] & 1 ? 0 : at[4], SECTOR);
		break;
	case 4:
		change_word(from / 8 * 8, at[4]);
		break;
	case 5: /* the same in a record that is used: where all of it happens */
		from = record_place(at[2] % RECORDS) + (where & 0xffff) % LAYOUT_RECORD / 8 * 8;
		change_word(from, at[4]);
		break;
	case 6: /* and in the header, its words and its settings */
		change_word((where & 0xffff) % 4096 / 8 * 8, at[4]);
		break;
	default: /* a record in the place of another one */
		memcpy(touch(record_place(at[4] % RECORDS), LAYOUT_RECORD),
		       image + record_place(at[2] % RECORDS), LAYOUT_RECORD);
		break;
	}
}

static void undo(void)
{
	for (size_t i = 0; i < sizeof(dirty); i++) {
		if (dirty[i])
			memcpy(file + i * SECTOR, image + i * SECTOR, SECTOR);
		dirty[i] = false;
	}
}

/* A header that would be refused says nothing about what lies behind it. */
static void mend_header(void)
{
	struct layout_fixed *f = (struct layout_fixed *)(void *)touch(0, sizeof(*f));

	f->sum = sum_bytes(0, f, offsetof(struct layout_fixed, sum));
}

static void mend_facts(struct layout_record *rec, unsigned number, const struct bank *bank)
{
	size_t from = bank->facts & ~LAYOUT_INLINE, n = bank->facts_size;
	uint64_t id = record_id(number, rec->life & UINT32_MAX);
	struct layout_facts *f;

	if (!(bank->facts & LAYOUT_INLINE) || from % 8 ||
	    from < offsetof(struct layout_record, room) || from > LAYOUT_RECORD || n < sizeof(*f) ||
	    n > LAYOUT_RECORD - from)
		return;
	f = (struct layout_facts *)(void *)((char *)rec + from);
	f->sum = sum_bytes(facts_seed(id, bank->generation), (const char *)f + sizeof(f->sum),
	                   n - sizeof(f->sum));
}

/* The runs that are not in the record, as they stand there. */
static void take_more_runs(unsigned which, struct bank *bank)
{
	const struct layout_fixed *f = (const struct layout_fixed *)(void *)image;
	size_t at =
	        f->heap_at + (size_t)bank->more_runs * LAYOUT_UNIT + sizeof(struct layout_extent);
	size_t n = sizeof(((struct layout_runs *)0)->more[0]);

	if (at + 2 * n <= SIZE)
		memcpy(bank->runs + LAYOUT_RUNS, file + at + which * n, n);
}

/* Both banks, each as it stands there; an unused one stays blank. */
static void mend_record(unsigned number)
{
	struct layout_record *rec =
	        (struct layout_record *)(void *)touch(record_place(number), LAYOUT_RECORD);
	struct bank bank = {0};

	for (unsigned i = 0; i < 2; i++) {
		memcpy(&bank, &rec->bank[i], sizeof(rec->bank[i]));
		if (bank.sum == 0)
			continue;
		take_more_runs(i, &bank);
		mend_facts(rec, number, &bank);
		rec->bank[i].sum = bank_sum(rec, &bank);
	}
}

static void mend_records(void)
{
	for (unsigned n = 0; n < RECORDS; n++) {
		size_t from = record_place(n) / SECTOR,
		       to = (record_place(n) + LAYOUT_RECORD) / SECTOR;
		bool touched = false;

		for (size_t i = from; i <= to; i++)
			touched |= dirty[i];
		if (touched)
			mend_record(n);
	}
}

/* Nothing has changed, so there is nothing to mend; else what is mended below would be refused. */
static void check_mending(void)
{
	for (unsigned n = 0; n < RECORDS; n++)
		mend_record(n);
	mend_header();
	if (memcmp(file, image, SIZE) != 0)
		abort();
	undo();
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
		if (make_record(l, n) != 0)
			abort();
	ledger_close(l);
	fd = open(path, O_RDWR);
	file = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	image = malloc(SIZE);
	if (file == MAP_FAILED || !image)
		abort();
	memcpy(image, file, SIZE);
	check_mending();
}

/* An answer that is given is the one that was stored for this write. */
static void check_answer(struct ledger *l, const struct record_view *view)
{
	static char expected[4096];
	struct buf blob = {0};
	long status;

	if (view->answer_kept && ledger_answer(l, view, &blob, &status) == LEDGER_OK && !mended) {
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

	if (!memchr(view->key, 0, sizeof(view->key)) ||
	    !memchr(view->operation, 0, sizeof(view->operation)) ||
	    !memchr(view->exe, 0, sizeof(view->exe)) || view->run_count > LEDGER_RUNS)
		abort();
	check_answer(l, view);
	return 0;
}

static void look_up(struct ledger *l, bool verify)
{
	struct record_view view;
	uint32_t place;
	uint8_t hash[LEDGER_HASH], other[LEDGER_HASH] = {9}, keys[8][LEDGER_HASH];
	struct ledger_ids ids = {.content = hash,
	                         .any_account = hash,
	                         .own_key = hash,
	                         .operation = "orders.create"};

	for (unsigned n = 0; n <= RECORDS; n++) {
		hash_of(n, hash);
		ids.own_key = n % 2 ? hash : NULL;
		ids.place = n % 3 ? other : hash;
		if (ledger_find(l, &ids, clock_now(), &view) == LEDGER_OK)
			check_answer(l, &view);
		ledger_find_content(l, hash, n, clock_now(), &view);
		ledger_find_turn(l, hash, n % 4 + 1, 1, clock_now(), &view, &place);
		key_list(l, record_at(l, n), record_id(n, 1), keys, 8);
		ledger_look(l, n << 20 | n, clock_now(), &view);
	}
	ledger_each(l, clock_now(), visit, l);
	ledger_find_lost(l, "orders.create", &view);
	ledger_has_run(l, UINT64_MAX);
	ledger_retired(l);
	if (verify)
		ledger_verify(l, NULL, NULL);
}

/* Locks that somebody seems to hold are waited for, which is another matter. */
static void free_locks(struct ledger *l)
{
	l->header->table_lock = 0;
	for (uint64_t n = 0; n < l->fixed.record_count; n++)
		record_at(l, n)->lock = 0;
}

/* What a host does with what it found: takes a doubt over, ends it, tells, makes new ones, and
 * sweeps a day later. */
static void use(struct ledger *l)
{
	struct stamp later = clock_now();
	struct record_view view;
	uint8_t hash[LEDGER_HASH];
	struct hold hold;

	free_locks(l);
	later.wall_us += INT64_C(90000000000);
	later.boot_us += INT64_C(90000000000);
	for (unsigned n = 0; n < RECORDS; n++) {
		hash_of(n, hash);
		if (ledger_find_content(l, hash, 0, later, &view) != LEDGER_OK)
			continue;
		if (ledger_take(l, &view, later, &hold) == LEDGER_OK &&
		    ledger_gate(l, &hold, later) == LEDGER_OK)
			ledger_done(l, &hold, NULL, later);
		ledger_delivered(l, view.id, view.generation, 99 + n, later);
	}
	sweep_some(l, UINT64_MAX, later);
	for (unsigned n = RECORDS; n < RECORDS + 4; n++)
		make_record(l, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct ledger_options o = {.path = path};
	struct ledger *l = NULL;

	if (!file)
		prepare();
	if (n == 0)
		return 0;
	for (size_t i = 1; i + CHANGE <= n && i < CHANGE * CHANGES_MAX; i += CHANGE)
		change(data + i);
	mended = data[0] & MEND_RECORDS;
	if (mended)
		mend_records();
	if (data[0] & MEND_HEADER)
		mend_header();
	o.read_only = !(data[0] & FOR_WRITING);
	if (ledger_open(&o, &l, NULL) == LEDGER_OK)
		look_up(l, !(data[0] & NO_VERIFY));
	if (l && (data[0] & USE) && !o.read_only) {
		use(l);
		touch(0, SIZE);
	}
	ledger_close(l);
	/* Opening for writing may call off a replacement. */
	touch(offsetof(struct layout_header, retired), sizeof(uint64_t));
	undo();
	return 0;
}
