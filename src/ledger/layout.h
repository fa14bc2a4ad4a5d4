/* What is in the file: fixed-size integers only, the same for every libc and compiler.
 * docs/ledger-format.md explains each field; change both, and LAYOUT_VERSION, together. */
#ifndef SENDONCE_LEDGER_LAYOUT_H
#define SENDONCE_LEDGER_LAYOUT_H

#include <stdatomic.h>
#include <stdint.h>

#include "ledger/ledger.h"

#define LAYOUT_MAGIC "SENDONCE"
enum {
	LAYOUT_VERSION = 3,
	LAYOUT_PAGE = 4096,
	LAYOUT_LARGE = 2 << 20, /* what the processor can map at once */
	LAYOUT_HEADER = 8192,
	LAYOUT_OWNERS = 1024, /* slot 0 is never used: owner 0 means "none" */
	LAYOUT_SETTINGS = 128,
	LAYOUT_COUNTERS = 64,
	LAYOUT_RECORD = 1344,        /* 21 cache lines: words, hashes, banks, and a room */
	LAYOUT_PER_PAGE = 3,         /* so that none lies on two pages */
	LAYOUT_GROUP = 12,           /* records that share one "next look" */
	LAYOUT_RUNS = 2,             /* in the bank itself */
	LAYOUT_UNIT = 64,            /* heap extents are counted in these */
	LAYOUT_LEVEL = 10,           /* the smallest index has 2^10 words */
	LAYOUT_LEVEL_MAX = 28,       /* and the largest this many bits */
	LAYOUT_MIN_SIZE = 256 * 1024 /* owners and sixty records */
};
/* A file made by a later version may carry bits we do not know. Unknown `compatible` ones are left
 * alone, an unknown `incompatible` one means: do not touch. */
#define LAYOUT_COMPATIBLE   UINT32_C(0)
#define LAYOUT_INCOMPATIBLE UINT32_C(0)
/* In a reference to bytes: an offset within the record, not a unit of the heap (room.c). */
#define LAYOUT_INLINE   (UINT32_C(1) << 31)
#define LAYOUT_MAX_SIZE (INT64_C(1) << 36)

typedef _Atomic uint64_t shared64;
typedef _Atomic uint32_t shared32;

/* Never changes after creation; covered by `sum`. */
struct layout_fixed {
	char magic[8];
	uint32_t layout, compatible, incompatible, header_size;
	uint64_t size;
	uint64_t boot;       /* of creation */
	uint8_t machine[16]; /* of creation, zeroes when unknown */
	uint8_t secret[LEDGER_SECRET];
	uint64_t owners_at, groups_at, group_count, index_at, index_levels;
	uint64_t keys_at, key_count, records_at, record_count, heap_at, heap_size;
	int64_t made_us;
	uint64_t sum;
};

struct layout_setting {
	shared64 operation; /* hash; 0: free */
	shared64 settings;
};

/* What could not be read when this ledger was made from a damaged one: lost.c. */
struct layout_lost {
	uint64_t sum; /* over the rest */
	int64_t from_us;
	struct stamp until;
	uint32_t every, count;
	uint64_t operations[LEDGER_LOST_OPERATIONS];
};

struct layout_header {
	struct layout_fixed fixed;
	uint8_t fixed_pad[256 - sizeof(struct layout_fixed)];
	shared64 table_lock;          /* index, key cells, heap */
	shared64 index_level;         /* which index counts: 2^(LAYOUT_LEVEL + this) words */
	shared64 next_key, next_heap; /* never used beyond; heap in units */
	shared64 key_cursor, heap_cursor;
	shared64 settings_full; /* more pairs than the table holds: always look */
	shared64 flushed;       /* 1: somebody opened it with durability `power` */
	/* Lines of their own: taken by everybody, without the lock. */
	shared64 next_record; /* never used beyond */
	shared64 emptied;     /* places that became empty again, about */
	uint64_t next_pad[6];
	shared64 record_cursor;
	shared64 looked;     /* how far everything was looked at for want of room: sweep.c */
	shared64 index_left; /* levels below have no empty word any more */
	shared64 heap_boot;  /* in which heap_cursor was set */
	uint8_t cursors_pad[512 - 256 - 20 * 8];
	shared64 counters[LAYOUT_COUNTERS];
	struct layout_setting settings[LAYOUT_SETTINGS];
	shared64 retired;   /* 0: this is the ledger; else level 2, why 3: retire.c */
	shared64 lost_open; /* 1: `lost` is not settled */
	uint8_t end_pad[LAYOUT_HEADER - 512 - LAYOUT_COUNTERS * 8 - LAYOUT_SETTINGS * 16 - 16 -
	                sizeof(struct layout_lost) - 256];
	struct layout_lost lost;
	struct layout_fixed again; /* a copy of `fixed`, on another page, for `ledger recover` */
	uint8_t again_pad[256 - sizeof(struct layout_fixed)];
};

/* A process that may own records. `claim`: see owner.c. */
struct layout_owner {
	shared64 claim;
	shared64 start; /* clock ticks after boot, from /proc/self/stat */
	shared64 boot;
	shared64 pid_ns; /* inode of /proc/self/ns/pid; 0: not known */
	shared64 seen;   /* lease word of the last time it did something */
	uint64_t pad[3];
};

/* A moment in two words: the wall clock, and CLOCK_BOOTTIME in milliseconds 40 with the low bits
 * of the boot id 24 (0: not known). */
struct layout_stamp {
	int64_t wall_us;
	uint64_t at;
};

/* The changing part of a record. Two of them in the file, and copies in memory; the state word says
 * which one counts. `sum` covers what follows, as far as it is used, and the record's two hashes;
 * `sequence` is as in the state word that named it; `facts` and `answer` say where (room.c), 0:
 * none; `more_runs` is a unit of the heap with the runs beyond the first two; `keep_until` a lease
 * word: how long an answer that is not final is kept. */
#define BANK_FIELDS(RUNS)                                                                          \
	uint64_t sum;                                                                              \
	uint32_t generation, sequence;                                                             \
	uint8_t state, freed, flags, run_count;                                                    \
	int32_t status;                                                                            \
	struct layout_stamp made, first_sent, ended, first_delivered;                              \
	int64_t ttl_us, tombstone_us;                                                              \
	uint32_t facts, answer, facts_size, answer_size;                                           \
	uint64_t answer_sum, keep_until;                                                           \
	uint32_t attempts, wire_sends, more_runs, pad;                                             \
	struct run_entry runs[RUNS]

struct layout_bank {
	BANK_FIELDS(LAYOUT_RUNS);
};
struct bank {
	BANK_FIELDS(LEDGER_RUNS);
};

enum bank_flags {
	BANK_EVER_SENT = 1,
	BANK_IN_DOUBT = 2,
	BANK_CURLCODE = 4,
	BANK_ANSWER_FINAL = 8,
	BANK_DAMAGED = 16,     /* only in memory, never in the file */
	BANK_ANSWER_HASH = 64, /* what is kept is a hash of the answer, for people */
	BANK_NOTED = 32        /* holds a note about a write that is done, perhaps not flushed */
};

struct layout_record {
	shared64 word;  /* state, bank, owner, sequence, nonce, tenure, generation: word.h */
	shared64 lock;  /* who is writing the spare bank, or in the room */
	shared64 lease; /* lease word of the owner */
	shared64 life;  /* counts the records this place has held */
	shared64 content[4];
	shared64 any_account[4];
	shared64 linked;  /* 1 while index entries may point here */
	shared64 keys;    /* number + 1 of the first key cell; 0: none */
	shared64 waiting; /* 1: somebody sleeps on `word` */
	shared64 granted; /* 1: taken by a process; a place of zeroes below the mark was wiped */
	struct layout_bank bank[2];
	uint64_t room[102]; /* facts and answer, as long as they fit: room.c */
};

/* Records that are looked at together: due.c. */
struct layout_group {
	shared64 due;
	shared64 emptied; /* places that became empty again, about */
};

/* A program's own key that means this record. */
struct layout_key {
	shared64 target; /* record id; 0: free cell */
	shared64 next;   /* number + 1 of the record's next cell */
	shared64 own_key[4];
	uint64_t pad[2];
};

/* Runs beyond the first two, in the heap: one half for each bank, written as the bank is. */
struct layout_runs {
	struct run_entry more[2][LEDGER_RUNS - LAYOUT_RUNS];
};

/* In front of everything in the heap. `word`: size, kind, age, magic: heap.c. */
struct layout_extent {
	shared64 word;
	shared64 parent; /* record id */
};

/* What one generation was written with. The texts follow it: key, operation, program. */
struct layout_facts {
	uint64_t sum; /* over the rest and the texts; depends on the record and the generation */
	uint64_t settings;
	uint64_t maker_boot;
	uint32_t maker_pid;
	uint8_t key_size, operation_size, exe_size, pad;
	uint8_t place[LEDGER_HASH], fingerprint[LEDGER_HASH], wire_body[LEDGER_HASH];
	uint8_t trace[16];
};

_Static_assert(sizeof(struct layout_fixed) <= 256, "fixed part fits");
_Static_assert(sizeof(struct layout_header) == LAYOUT_HEADER, "header");
_Static_assert(sizeof(struct layout_owner) == 64, "owner");
_Static_assert(sizeof(struct layout_stamp) == 16, "stamp");
_Static_assert(sizeof(struct layout_bank) == 200, "bank");
_Static_assert(sizeof(struct layout_record) == LAYOUT_RECORD, "record");
_Static_assert(sizeof(struct layout_group) == 16, "group");
_Static_assert(sizeof(struct layout_key) == 64, "key cell");
_Static_assert(sizeof(struct layout_extent) == 16, "extent");
_Static_assert(sizeof(struct layout_facts) == 144, "facts");
_Static_assert(sizeof(struct run_entry) == 24, "shared struct");
_Static_assert((int)COUNT_COUNT <= (int)LAYOUT_COUNTERS, "counters");

#endif
