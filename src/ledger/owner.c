/* Who owns: one slot a process, in a table in the file.
 *
 * A record's word holds a slot number and the slot's nonce. The slot says which process that is:
 * pid, start time, boot, pid namespace. Slots are claimed by one compare-and-swap of `claim` (nonce
 * 12, state 2, pid 22, second of CLOCK_BOOTTIME 28), described, and then made `live` by another; a
 * claim that its maker never finished may be taken over after the lease time. A slot is given to
 * another process only when its process is known dead, belongs to another boot, or lives in another
 * pid namespace and has been silent for a minute (four leases: nothing it owns is fresh any more).
 * The new nonce makes every word with the old one recognisably stale.
 *
 * A forked child is another owner: its getpid() differs from the one the slot was claimed with. A
 * process whose slot was taken away claims another one; its old holds stay valid words. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pid.h"
#include "ledger/internal.h"

enum { CLAIM_NONE, CLAIM_MAKING, CLAIM_LIVE };
enum { SLOT_SILENT_SECONDS = 60, PID_MASK = 0x3fffff };

static void read_exe(char out[VIEW_EXE])
{
	char path[PATH_MAX];
	const char *name;
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	memset(out, 0, VIEW_EXE);
	if (n <= 0)
		return;
	path[n] = '\0';
	name = strrchr(path, '/');
	name = name ? name + 1 : path;
	memcpy(out, name, strnlen(name, VIEW_EXE - 1));
}

/* Read once, and not before it is needed: the first look into /proc is a third of what opening a
 * ledger costs. */
void owner_exe(char out[VIEW_EXE])
{
	enum { UNKNOWN, WRITING, KNOWN };
	static _Atomic int state;
	static char known[VIEW_EXE];
	int saved = errno, seen = UNKNOWN;

	/* Acquire: the name is whole. */
	if (atomic_load_explicit(&state, memory_order_acquire) == KNOWN) {
		memcpy(out, known, VIEW_EXE);
		return;
	}
	read_exe(out);
	if (atomic_compare_exchange_strong(&state, &seen, WRITING)) {
		memcpy(known, out, VIEW_EXE);
		/* Release: publishes the name. */
		atomic_store_explicit(&state, KNOWN, memory_order_release);
	}
	errno = saved;
}

struct claim {
	unsigned nonce, state, pid, second;
};

static struct claim claim_read(uint64_t w)
{
	return (struct claim){(unsigned)(w >> 52), (unsigned)(w >> 50 & 3),
	                      (unsigned)(w >> 28 & PID_MASK), (unsigned)(w & 0xfffffff)};
}

static uint64_t claim_make(struct claim c)
{
	return (uint64_t)(c.nonce & 0xfff) << 52 | (uint64_t)(c.state & 3) << 50 |
	       (uint64_t)(c.pid & PID_MASK) << 28 | (c.second & 0xfffffff);
}

static unsigned second_of(struct stamp now)
{
	return (unsigned)(now.boot_us / 1000000) & 0xfffffff;
}

static struct layout_owner *slot_at(const struct ledger *l, unsigned slot)
{
	return (struct layout_owner *)(void *)(l->base + l->fixed.owners_at) + slot;
}

struct process_stat {
	unsigned pid;
	char state;
	int threads;
	uint64_t start;
};

/* /proc/PID/stat; fields are counted after the last ')': a program may be called "a) R 1". */
static int stat_read(const char *path, struct process_stat *out)
{
	char text[1024], *at;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	at = strrchr(text, ')');
	if (!at || at[1] != ' ' || !at[2])
		return -1;
	out->pid = (unsigned)strtoul(text, NULL, 10);
	out->state = at[2];
	for (int field = 3; field <= 22; field++) {
		at = strchr(at + 1, ' ');
		if (!at)
			return -1;
		if (field == 20)
			out->threads = atoi(at + 1);
	}
	out->start = strtoull(at + 1, NULL, 10);
	return 0;
}

static uint64_t own_start(void)
{
	struct process_stat own;

	return stat_read("/proc/self/stat", &own) == 0 ? own.start : 0;
}

static uint64_t own_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* A sandbox may have a pid namespace of its own and the /proc of another: somebody else, or nobody,
 * is in there under each number. /proc/self is found all the same, under its number there. */
static bool proc_is_of_here(void)
{
	struct process_stat own;

	return stat_read("/proc/self/stat", &own) == 0 && own.pid == (unsigned)getpid();
}

static bool stat_says_dead(const struct process_stat *found, uint64_t start)
{
	if (start && found->start != start)
		return true;
	return (found->state == 'Z' || found->state == 'X') && found->threads <= 1;
}

/* In our own namespace. A zombie is dead, unless it is a leader whose other threads go on. Where
 * /proc tells nothing (hidden, not mounted, of another namespace), a pid that answers counts as
 * alive: leases decide. */
static enum owner_life process_life(unsigned pid, uint64_t start)
{
	struct process_stat found;
	char path[40];

	if (kill((pid_t)pid, 0) != 0 && errno == ESRCH)
		return OWNER_DEAD;
	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	if (stat_read(path, &found) != 0)
		return OWNER_ALIVE;
	return stat_says_dead(&found, start) && proc_is_of_here() ? OWNER_DEAD : OWNER_ALIVE;
}

/* The namespace of this process, read once per process: a child may have another one. */
static uint64_t namespace_here(void)
{
	static shared64 cached; /* pid 32, low half of the inode 32 */
	uint64_t seen = atomic_load_explicit(&cached, memory_order_relaxed), pid, ino;

	pid = pid_own();
	if (seen >> 32 == pid)
		return seen & UINT32_MAX;
	ino = own_namespace() & UINT32_MAX;
	/* Relaxed: one self-contained word; another thread stores the same. */
	atomic_store_explicit(&cached, pid << 32 | ino, memory_order_relaxed);
	return ino;
}

static bool slot_is_here(const struct layout_owner *slot, struct stamp now)
{
	uint64_t boot = atomic_load_explicit(&slot->boot, memory_order_relaxed);
	uint64_t ns = atomic_load_explicit(&slot->pid_ns, memory_order_relaxed);

	return boot && boot == now.boot && ns && ns == namespace_here();
}

enum owner_life owner_life(struct ledger *l, unsigned slot, unsigned nonce, struct stamp now)
{
	struct layout_owner *at = slot_at(l, slot);
	enum owner_life life;
	struct claim c;
	uint64_t claim;
	int saved = errno;

	if (slot == 0 || slot >= LAYOUT_OWNERS)
		return OWNER_NONE;
	/* Acquire: a live claim publishes the description. */
	claim = atomic_load_explicit(&at->claim, memory_order_acquire);
	c = claim_read(claim);
	if (c.nonce != nonce || c.state != CLAIM_LIVE)
		return OWNER_DEAD;
	if (!slot_is_here(at, now))
		return OWNER_UNKNOWABLE;
	if (c.pid == pid_own() % (PID_MASK + 1u))
		return OWNER_ALIVE;
	life = process_life(c.pid, atomic_load_explicit(&at->start, memory_order_relaxed));
	errno = saved;
	/* The slot changed hands while we looked: its old process is gone. */
	return atomic_load_explicit(&at->claim, memory_order_acquire) == claim ? life : OWNER_DEAD;
}

int owner_pid(struct ledger *l, unsigned slot, unsigned nonce)
{
	struct layout_owner *at = slot_at(l, slot);
	struct claim c;

	if (slot == 0 || slot >= LAYOUT_OWNERS)
		return 0;
	c = claim_read(atomic_load_explicit(&at->claim, memory_order_acquire));
	if (c.nonce != nonce || c.state != CLAIM_LIVE || !slot_is_here(at, clock_now()))
		return 0;
	return (int)c.pid;
}

static bool slot_free(struct layout_owner *at, uint64_t claim, struct stamp now)
{
	struct claim c = claim_read(claim);
	uint64_t seen = atomic_load_explicit(&at->seen, memory_order_relaxed);
	uint64_t silent = lease_make(now, -(SLOT_SILENT_SECONDS - LEASE_SECONDS)) >> 24;
	unsigned age = (second_of(now) - c.second) & 0xfffffff;

	if (c.state == CLAIM_NONE)
		return true;
	if (c.state == CLAIM_MAKING)
		return age > LEASE_SECONDS;
	if (slot_is_here(at, now))
		return process_life(c.pid, atomic_load_explicit(
		                                   &at->start, memory_order_relaxed)) == OWNER_DEAD;
	if ((seen & 0xffffff) != (now.boot & 0xffffff))
		return true;
	return seen >> 24 < silent && age > SLOT_SILENT_SECONDS;
}

static bool slot_claim(struct ledger *l, unsigned slot, struct stamp now, unsigned *nonce)
{
	struct layout_owner *at = slot_at(l, slot);
	uint64_t claim = atomic_load_explicit(&at->claim, memory_order_acquire), mine;
	struct claim c;

	if (!slot_free(at, claim, now) || !file_ready(l, at, sizeof(*at)))
		return false;
	c = (struct claim){claim_read(claim).nonce + 1, CLAIM_MAKING, pid_own() & PID_MASK,
	                   second_of(now)};
	mine = claim_make(c);
	/* Acquire: what we store below comes after the slot is ours. */
	if (!atomic_compare_exchange_strong_explicit(&at->claim, &claim, mine, memory_order_acq_rel,
	                                             memory_order_relaxed))
		return false;
	atomic_store_explicit(&at->start, own_start(), memory_order_relaxed);
	atomic_store_explicit(&at->boot, now.boot, memory_order_relaxed);
	atomic_store_explicit(&at->pid_ns, namespace_here(), memory_order_relaxed);
	atomic_store_explicit(&at->seen, lease_make(now, LEASE_SECONDS), memory_order_relaxed);
	c.state = CLAIM_LIVE;
	*nonce = c.nonce & 0xfff;
	/* Release: publishes the description. */
	return atomic_compare_exchange_strong_explicit(&at->claim, &mine, claim_make(c),
	                                               memory_order_release, memory_order_relaxed);
}

static bool self_valid(struct ledger *l, uint64_t self, unsigned pid)
{
	unsigned slot = (unsigned)(self >> 12 & 0x3ff), nonce = (unsigned)(self & 0xfff);
	struct claim c;

	if (!slot || self >> 22 != pid)
		return false;
	c = claim_read(atomic_load_explicit(&slot_at(l, slot)->claim, memory_order_relaxed));
	return c.nonce == nonce && c.state == CLAIM_LIVE;
}

/* Two threads of a new process may both claim; one slot is then wasted until the process ends. */
struct owner owner_self(struct ledger *l)
{
	uint64_t self = atomic_load_explicit(&l->self, memory_order_relaxed);
	unsigned pid = pid_own(), slot, nonce;
	struct stamp now;
	int saved = errno;

	if (self_valid(l, self, pid))
		return (struct owner){(unsigned)(self >> 12 & 0x3ff), (unsigned)(self & 0xfff)};
	now = clock_now();
	for (unsigned i = 0; i < LAYOUT_OWNERS; i++) {
		slot = (pid * 7u + i) % LAYOUT_OWNERS;
		if (slot == 0 || !slot_claim(l, slot, now, &nonce))
			continue;
		/* Relaxed: one self-contained word, only read by this process. */
		atomic_store_explicit(&l->self, (uint64_t)pid << 22 | (uint64_t)slot << 12 | nonce,
		                      memory_order_relaxed);
		errno = saved;
		return (struct owner){slot, nonce};
	}
	errno = saved;
	return (struct owner){0, 0};
}

/* Stored only when it says something new: each store makes the page dirty, and a flush write it. */
void owner_seen(struct ledger *l, struct stamp now)
{
	struct owner self = owner_self(l);
	uint64_t seen = lease_make(now, LEASE_SECONDS);
	struct layout_owner *at = slot_at(l, self.slot);

	if (self.slot && atomic_load_explicit(&at->seen, memory_order_relaxed) != seen &&
	    file_ready(l, at, sizeof(*at)))
		atomic_store_explicit(&at->seen, seen, memory_order_relaxed);
}

/* The slot stays, with its nonce, so that every word that names it stays good; only the process it
 * stands for is another one. A start time of 0 is "not known" and is compared with nothing: between
 * the stores an onlooker sees one process or the other, both alive. */
void ledger_adopt(struct ledger *l)
{
	uint64_t self = atomic_load_explicit(&l->self, memory_order_relaxed), claim;
	unsigned slot = (unsigned)(self >> 12 & 0x3ff), nonce = (unsigned)(self & 0xfff);
	unsigned pid = pid_own();
	struct layout_owner *at = slot_at(l, slot);
	struct claim c;
	int saved = errno;

	if (!slot || self >> 22 == pid)
		return;
	claim = atomic_load_explicit(&at->claim, memory_order_relaxed);
	c = claim_read(claim);
	if (c.nonce != nonce || c.state != CLAIM_LIVE)
		return;
	atomic_store_explicit(&at->start, 0, memory_order_relaxed);
	c.pid = pid & PID_MASK;
	/* Release: who sees the new process sees that its start is not known. */
	if (atomic_compare_exchange_strong_explicit(&at->claim, &claim, claim_make(c),
	                                            memory_order_release, memory_order_relaxed)) {
		atomic_store_explicit(&at->start, own_start(), memory_order_release);
		atomic_store_explicit(&l->self, (uint64_t)pid << 22 | (uint64_t)slot << 12 | nonce,
		                      memory_order_relaxed);
	}
	errno = saved;
}
