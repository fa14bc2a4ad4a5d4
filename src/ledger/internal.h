/* What the files of this room share. Nobody else includes it, tests apart. */
#ifndef SENDONCE_LEDGER_INTERNAL_H
#define SENDONCE_LEDGER_INTERNAL_H

#include "ledger/layout.h"
#include "ledger/ledger.h"
#include "ledger/word.h"

enum {
	VIEW_OPERATION = sizeof(((struct record_view *)0)->operation),
	VIEW_EXE = sizeof(((struct record_view *)0)->exe)
};

struct ledger {
	char *base; /* the mapping */
	uint64_t size;
	struct layout_header *header;
	struct layout_fixed fixed; /* our own checked copy: the file's cannot move our bounds */
	int64_t max_response;
	bool durable, read_only;
	bool populate;              /* a copy-on-write file system: before every change */
	shared64 self;              /* owner slot of this process: owner.c */
	shared64 grant, grant_size; /* places taken and not used yet: place.c */
	shared64 sweep_cursor;
	shared64 level;              /* of the index, as seen last: index.c */
	bool group;                  /* 0660, several users: access.c */
	bool set_aside;              /* a damaged file is moved away: aside.c */
	_Atomic bool heap_free_seen; /* the last search of the heap found room: heap.c */
	shared64 heap_none;          /* when a walk through the heap was in vain: heap.c */
	_Atomic bool torn;           /* local, because the file's own word could not be trusted */
	char warning[256];
	char path[];
};

/* file.c */
int file_fail(struct ledger_error *error, int code, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* Everything so far is on the disk when it returns (durable ledgers). */
int file_flush(struct ledger *l);
/* The same for a piece, whatever the durability of this process. */
int file_flush_range(struct ledger *l, const void *at, uint64_t n);
/* False when the disk has no room for these bytes: they must not be stored to. */
bool file_populate(struct ledger *l, uint64_t at, uint64_t n);
/* Before stores into the mapping: on a copy-on-write file system an overwrite needs room as well.
 * False: there is none, and nothing may be stored there. */
bool file_ready(struct ledger *l, const void *at, size_t n);
bool file_header_ready(struct ledger *l);
/* The same in an area that is filled from its start on, for a larger piece at once. */
bool file_populate_ahead(struct ledger *l, uint64_t area, uint64_t offset, uint64_t n);

/* create.c */
int create_file(const struct ledger_options *options, struct ledger_error *error);
void create_plan(struct layout_fixed *fixed, uint64_t size);
int create_folder_check(const struct ledger_options *options, struct ledger_error *error);
int create_fd_high(int fd); /* never 0-2; -1 with errno, fd closed */
/* A new ledger's fixed part. 0, or -1: no random bytes for its secret. */
int create_header(struct layout_fixed *fixed, const struct ledger_options *options);

void create_sync_folder(const char *path);

/* retire.c */
enum retire_level { RETIRE_NOT, RETIRE_NEW, RETIRE_ALL };
enum retire_why { RETIRE_RESIZED = 1, RETIRE_RECOVERED, RETIRE_DAMAGED };
enum { RETIRE_FOR_GOOD = 32 };                 /* the exchange was made: never called off */
bool retire_no_new(const struct ledger *l);    /* no record may get an owner any more */
bool retire_no_change(const struct ledger *l); /* nothing may change any more */
uint64_t retire_word(enum retire_level level, enum retire_why why);
void retire_set(struct ledger *l, enum retire_level level, enum retire_why why);
/* The same in a file that is open, not mapped. */
void retire_file(int fd, uint64_t word);
const char *retire_text(uint64_t word); /* "was ..." */

/* swap.c */
/* True: the path means the file that is open as fd, and we alone may replace it. */
bool swap_lock(int fd, const char *path);
void swap_unlock(int fd);
/* PATH.KIND-20261130T140511Z, a name that is free. 0, or -1. */
int swap_name(char *out, size_t room, const char *path, const char *kind);
/* Both exist; they exchange their names, and the folder is flushed. 0, or -1 with errno. */
int swap_exchange(const char *path, const char *other);

/* verify.c: what a recovery has to know. Faults of the index begin with VERIFY_INDEX. */
#define VERIFY_INDEX "index"
#define VERIFY_BLANK "a record is blank"

/* lost.c */
void lost_set(struct ledger *l, const struct ledger_lost *lost);
/* True when it was there already. One too many: `every`. */
bool lost_add(struct ledger_lost *lost, uint64_t operation);

/* aside.c */
/* The file that is open as fd and lies at `path` gets a name with the date, and a note its place.
 * `ours`: its users are told, by a word in it. False: it stays where it is. */
bool aside_put(int fd, const char *path, const char *why, bool ours, bool group);
/* Is this file such a note? Then `name` is where the ledger is. */
bool aside_note(int fd, char *name, size_t room);

/* access.c */
struct stat;
/* May this file be used as a ledger, of one user or of a group? */
int access_file(const struct stat *st, const char *path, bool group, struct ledger_error *error);
int access_folder(const struct stat *st, const char *path, const char *folder, bool group,
                  struct ledger_error *error);

/* memory.c */
bool memory_path(const char *path);
int memory_map(struct ledger *l, const struct ledger_options *o, struct ledger_error *error);

/* shared.c */
void shared_out(void *to, const void *from, size_t n);
void shared_in(void *to, const void *from, size_t n);
void shared_in_bytes(void *to, const void *from, size_t n); /* any n; zero-padded to 8 */
void futex_sleep(shared64 *word, uint64_t seen, int64_t timeout_us);
void futex_wake_all(shared64 *word);
void futex_wake_one(shared64 *word);
/* A lock whose holder may die: locks are stolen from the dead at once, from anybody else after 15
 * s. Returns the token to unlock with. */
uint64_t lock_take(struct ledger *l, shared64 *lock);
/* The same without waiting: 0 when somebody has it who lives, or may live and took it 15 s ago or
 * later. */
uint64_t lock_try(struct ledger *l, shared64 *lock);
void lock_drop(shared64 *lock, uint64_t token);
bool lock_held(shared64 *lock, uint64_t token);

/* sum.c */
uint64_t sum_bytes(uint64_t seed, const void *data, size_t n);
/* The same of n bytes of the file (in whole words, zeroes behind the last byte), copied out. */
uint64_t sum_out(void *to, const void *from, size_t n, uint64_t seed);
uint64_t hash_tag(const uint8_t *hash);

/* owner.c */
/* Slot and nonce of this process: claimed on first use and again in a forked child. 0: no slot. */
struct owner {
	unsigned slot, nonce;
};
struct owner owner_self(struct ledger *l);
/* The name of the program, for people; cut. */
void owner_exe(char out[VIEW_EXE]);
enum owner_life owner_life(struct ledger *l, unsigned slot, unsigned nonce, struct stamp now);
int owner_pid(struct ledger *l, unsigned slot, unsigned nonce); /* 0: not known here */
void owner_seen(struct ledger *l, struct stamp now);

/* index.c */
enum index_kind { INDEX_CONTENT = 1, INDEX_ANY = 2, INDEX_KEY = 3 };
/* Walks the entries whose kind and tag fit. `at` starts at 0; returns the number (record or key
 * cell) or -1 at the end. */
struct index_walk {
	uint64_t hash, at;
	unsigned level;
	enum index_kind kind;
};
struct index_walk index_start(const struct ledger *l, const uint8_t *hash, enum index_kind kind);
int64_t index_next(const struct ledger *l, struct index_walk *walk);
/* Under the table lock. 0 or LEDGER_FULL; an entry that is there already is not doubled. */
int index_add(struct ledger *l, const uint8_t *hash, enum index_kind kind, uint64_t number);
void index_remove(struct ledger *l, const uint8_t *hash, enum index_kind kind, uint64_t number);
bool index_has(const struct ledger *l, const uint8_t *hash, enum index_kind kind, uint64_t number);
void index_fetch(const struct ledger *l, const uint8_t *hash, enum index_kind kind);
uint64_t index_words(const struct ledger *l); /* of the level that counts */
uint64_t index_word(const struct ledger *l, uint64_t slot, uint64_t *offset);
int index_kind_of(uint64_t word);
uint64_t index_number_of(uint64_t word);

/* heap.c */
enum extent_kind { EXTENT_FREE = 1, EXTENT_FACTS = 2, EXTENT_ANSWER = 3, EXTENT_RUNS = 4 };
/* Room for n bytes, 0 when there is none. Takes the table lock. */
uint32_t heap_take(struct ledger *l, size_t n, enum extent_kind kind, uint64_t parent,
                   struct stamp now);
void heap_give(struct ledger *l, uint32_t unit, uint64_t parent);
/* The bytes of an extent if it is one of that kind, belongs to `parent` and holds n bytes. */
void *heap_at(const struct ledger *l, uint32_t unit, enum extent_kind kind, uint64_t parent,
              size_t n);
bool heap_step(const struct ledger *l, uint64_t *unit, uint64_t *word); /* for verify */

/* record.c */
struct layout_record *record_at(const struct ledger *l, uint64_t number);
uint64_t record_end(const struct ledger *l); /* none is used from here on */
uint64_t record_number(const struct ledger *l, const struct layout_record *rec);
uint64_t record_id(uint64_t number, uint64_t life);
/* The record with that id, or null when the place has another one. */
struct layout_record *record_of(const struct ledger *l, uint64_t id, uint64_t *number);
/* A hint to the processor: most of it will be read, not one line after the other. */
void record_fetch(const struct layout_record *rec);
size_t bank_size(const struct bank *bank);
/* Into the record's bank that is not in use. */
/* What lies beyond the record may be stored to: file_ready. */
bool bank_ready(struct ledger *l, uint64_t id, const struct bank *bank);
void bank_store(struct ledger *l, struct layout_record *rec, uint64_t id, unsigned which,
                const struct bank *bank);
uint64_t bank_sum(struct layout_record *rec, const struct bank *bank);
/* A consistent copy; a bank that fails its check comes back as damaged, in doubt. False: empty.
 * Of the runs only those that are there are written. */
bool record_read(const struct ledger *l, struct layout_record *rec, uint64_t *id, uint64_t *word,
                 struct bank *bank);
bool record_expired(const struct bank *bank, struct stamp now);

/* view.c */
struct facts {
	struct layout_facts fixed;
	char texts[LEDGER_KEY_MAX + VIEW_OPERATION + VIEW_EXE + 2]; /* a multiple of 8 */
};
_Static_assert(sizeof(struct facts) % 8 == 0, "copied in words");
uint64_t facts_seed(uint64_t id, uint32_t generation);
/* False when there are none, or they fail their check. */
bool record_facts(const struct ledger *l, struct layout_record *rec, uint64_t id,
                  const struct bank *bank, struct facts *facts);
bool record_view(struct ledger *l, struct layout_record *rec, struct stamp now,
                 struct record_view *out);

/* change.c */
/* One publication: begin locks the record and copies its bank, publish installs the changed copy by
 * one compare-and-swap of the state word. */
struct change {
	struct layout_record *rec;
	uint64_t id, token, seen; /* seen: the word as it was */
	struct word word;         /* to be installed; bank and sequence are set by publish */
	struct bank live;         /* as it was, without the runs */
	struct bank bank;
};
int change_begin(struct ledger *l, uint64_t id, struct change *c);
int change_publish(struct ledger *l, struct change *c, uint64_t *installed);
void change_cancel(struct change *c);
/* State, sequence and sum of a bank that is about to be published with this word. */
void change_seal(struct layout_record *rec, struct bank *bank, struct word w);
void change_own(struct change *c, struct owner who);
void change_drop_answer(struct change *c);
void change_drop_facts(struct change *c);
bool change_is_hold(const struct change *c, const struct hold *hold);
bool change_same_generation(const struct change *c, const struct hold *hold);
/* The owner is there and in time: nobody may take the record from it. */
bool change_owner_holds(struct ledger *l, const struct change *c, struct stamp now);
/* Room for so many runs; how many there is room for: two, or all. */
size_t change_runs_room(struct ledger *l, struct change *c, size_t count, struct stamp now);

/* room.c */
/* Where n bytes fit into the record beside what these banks refer to; 0: nowhere. */
uint32_t room_gap(const struct bank *live, const struct bank *made, size_t n);
/* The n bytes a reference means, null when it is not a good one. */
void *room_at(const struct ledger *l, struct layout_record *rec, uint64_t id, uint32_t at,
              enum extent_kind kind, size_t n);
void room_give(struct ledger *l, uint32_t at, uint64_t id);
/* Copies bytes to a place that room_gap or heap_take gave. False: the record's lock was lost. */
bool room_put(struct ledger *l, struct change *c, uint32_t at, enum extent_kind kind,
              struct span bytes);

/* place.c */
/* An empty place, locked; null when there is none. */
struct layout_record *place_take(struct ledger *l, uint64_t *token);

/* due.c */
/* When a bank may first be over, in microseconds of the wall clock; 0: never by itself. */
uint64_t due_of(const struct bank *bank);
void due_note(struct ledger *l, uint64_t number, uint64_t when);
/* 0 when nothing of the group is over yet, or somebody looks; else what due_end wants. */
uint64_t due_begin(struct ledger *l, uint64_t group, struct stamp now);
void due_end(struct ledger *l, uint64_t group, uint64_t token, uint64_t next);
void due_emptied(struct ledger *l, uint64_t number);
/* A look found so many empty places in the group. */
void due_empty_at_least(struct ledger *l, uint64_t group, uint64_t count);
void due_filled(struct ledger *l, uint64_t group, bool none_left);
bool due_has_empty(const struct ledger *l, uint64_t group);

/* key.c */
int64_t key_find(const struct ledger *l, const uint8_t *own_key);    /* record id or LEDGER_NONE */
int key_bind(struct ledger *l, uint64_t id, const uint8_t *own_key); /* under the table lock */
void key_unbind_all(struct ledger *l, struct layout_record *rec, uint64_t id);
/* The keys bound to a record, at most `room`; how many. */
size_t key_list(const struct ledger *l, struct layout_record *rec, uint64_t id,
                uint8_t (*out)[LEDGER_HASH], size_t room);

/* answer.c */
/* An answer too large for the record is copied into the heap; *unit 0 when it is not. */
void answer_write(struct ledger *l, const struct ledger_answer *answer, uint64_t id,
                  struct stamp now, uint32_t *unit);
/* Makes it the answer of the changed bank: what answer_write stored, else beside the record. False
 * when the record's lock was lost. */
bool answer_attach(struct ledger *l, struct change *c, const struct ledger_answer *answer,
                   uint32_t unit, bool final, struct stamp now);

/* sweep.c */
/* Looks for what is over: in a few groups, or, when `count` is not less than the number of records,
 * at every one of them. */
void sweep_some(struct ledger *l, uint64_t count, struct stamp now);
/* Before a write is refused for want of room: what is over or unused, in a bounded number of steps.
 */
void sweep_for_room(struct ledger *l, struct stamp now);
/* Looks at one record; true when it is empty afterwards. */
bool sweep_one(struct ledger *l, struct layout_record *rec, struct stamp now);

/* find.c */
uint64_t find_operation_hash(const char *operation);
enum settings_seen { SETTINGS_NONE, SETTINGS_SAME = 1, SETTINGS_OTHER = 2 };
/* Which settings this operation was ever reserved with. */
unsigned find_settings(struct ledger *l, uint64_t operation, uint64_t settings);
bool find_by_hash(struct ledger *l, const uint8_t *hash, enum index_kind kind, struct stamp now,
                  struct record_view *out);

#endif
