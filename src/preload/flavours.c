/* Finds every libcurl of the process and says which one a caller means.
 *
 * A libcurl is any object that defines curl_easy_perform, curl_easy_init and curl_version_info in
 * its own symbol table and is not a preload like this one (those define dlsym as well): wheels
 * and vendors give theirs other file names, so names prove nothing. The table only grows. A slot
 * is claimed by compare-and-swap on the object's address; whoever finds a slot claimed but not
 * ready fills it with the same values, so that no thread ever waits for another one, nor a forked
 * child for a thread it does not have.
 *
 * The answer for a caller is kept per page of code, one word an entry, stamped with an epoch that
 * every dlopen moves on: a call from a known place costs one load. Only an unknown place makes us
 * walk the loader's list. Eight libcurls in a process are kept; further ones are not seen. */
#include "preload/flavours.h"
#include "preload/loader.h"
#include "preload/object.h"
#include "preload/text.h"

#define MAX_FLAVOURS 8
#define MAX_OBJECTS  4096
#define MAX_HANDOUTS 16
#define CALLER_SLOTS 256u
#define PAGE_BITS    12
#define NO_FLAVOUR   15ul
#define FLAVOUR_BITS 4
#define EPOCH_BITS   15
#define EPOCH_MASK   ((1ul << EPOCH_BITS) - 1)

struct slot {
	const struct link_object *object; /* claimed by this object; null: free */
	int ready;                        /* release: `flavour` is complete */
	int pinned;
	struct flavour flavour;
};

struct handout {
	unsigned long object_lo; /* text of the object that asked; 0: free */
	unsigned long flavour;   /* its index plus one; 0: not yet written */
};

static struct slot slots[MAX_FLAVOURS];
static unsigned long callers[CALLER_SLOTS]; /* page << 19 | epoch << 4 | flavour */
static unsigned long epoch = 1;
static struct handout handouts[MAX_HANDOUTS];
static const struct flavour *last_handout;

static const char function_names[] =
#define NAME(name) "curl_" #name "\0"
        CURL_HOOKED(NAME) CURL_CALLED(NAME)
#undef NAME
        ;

int flavours_hooked_index(const char *name)
{
	const char *known = function_names;
	for (int i = 0; i < FN_HOOKED_COUNT; i++) {
		if (text_equal(known, name))
			return i;
		known += text_length(known) + 1;
	}
	return -1;
}

static int is_libcurl(const struct link_object *object)
{
	return object_symbol(object, "curl_easy_perform") &&
	       object_symbol(object, "curl_easy_init") &&
	       object_symbol(object, "curl_version_info") && !object_symbol(object, "dlsym");
}

/* Stores are atomic because two threads may fill one slot, with equal values. */
static void fill(struct flavour *flavour, const struct link_object *object)
{
	struct address_range text = object_text(object);
	const char *name = function_names;

	for (int i = 0; i < FN_COUNT; i++) {
		void (*function)(void) = (void (*)(void))object_symbol(object, name);
		__atomic_store_n(&flavour->fn[i], function, __ATOMIC_RELAXED);
		name += text_length(name) + 1;
	}
	__atomic_store_n(&flavour->base, object->base, __ATOMIC_RELAXED);
	__atomic_store_n(&flavour->path, (const char *)object->path, __ATOMIC_RELAXED);
	__atomic_store_n(&flavour->text_lo, text.lo, __ATOMIC_RELAXED);
	__atomic_store_n(&flavour->text_hi, text.hi, __ATOMIC_RELAXED);
}

/* The object's slot, claimed if it has none yet; null when the table is full. */
static struct slot *claim(const struct link_object *object)
{
	for (int i = 0; i < MAX_FLAVOURS; i++) {
		const struct link_object *holder = 0;
		/* Only the slot's address matters here; `ready` publishes its content. */
		if (__atomic_compare_exchange_n(&slots[i].object, &holder, object, 0,
		                                __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
		    holder == object)
			return &slots[i];
	}
	return 0;
}

/* A libcurl that is unloaded takes its pointers along, so it is pinned at once. Pinning asks the
 * loader, which may be busy with our caller's dlopen: therefore the slot is shown first. */
static void publish(const struct link_object *object)
{
	struct slot *slot = claim(object);
	if (!slot || __atomic_load_n(&slot->ready, __ATOMIC_ACQUIRE))
		return;
	fill(&slot->flavour, object);
	__atomic_store_n(&slot->ready, 1, __ATOMIC_RELEASE);
	if (!__atomic_exchange_n(&slot->pinned, 1, __ATOMIC_ACQ_REL))
		loader_pin(object->path);
}

static void look_for_libcurls(void)
{
	int budget = MAX_OBJECTS;
	for (const struct link_object *o = object_first(); o && budget--; o = o->next) {
		if (is_libcurl(o))
			publish(o);
	}
}

/* Slots are claimed in order: behind the first free one there is nothing. */
static int is_claimed(unsigned long index)
{
	return index < MAX_FLAVOURS && __atomic_load_n(&slots[index].object, __ATOMIC_RELAXED);
}

static const struct flavour *ready_flavour(unsigned long index)
{
	/* Pairs with the release in publish: the fields are complete. */
	if (index >= MAX_FLAVOURS || !__atomic_load_n(&slots[index].ready, __ATOMIC_ACQUIRE))
		return 0;
	return &slots[index].flavour;
}

static unsigned long index_of(const struct flavour *flavour)
{
	for (unsigned long i = 0; i < MAX_FLAVOURS; i++) {
		if (&slots[i].flavour == flavour)
			return i;
	}
	return NO_FLAVOUR;
}

int flavours_any(void)
{
	if (ready_flavour(0))
		return 1;
	look_for_libcurls();
	return ready_flavour(0) != 0;
}

const struct flavour *flavours_known_containing(unsigned long address)
{
	for (unsigned long i = 0; is_claimed(i); i++) {
		const struct flavour *flavour = ready_flavour(i);
		if (flavour && address >= flavour->text_lo && address < flavour->text_hi)
			return flavour;
	}
	return 0;
}

const struct flavour *flavours_containing(unsigned long address)
{
	const struct flavour *flavour = flavours_known_containing(address);
	if (flavour)
		return flavour;
	look_for_libcurls();
	return flavours_known_containing(address);
}

static const struct flavour *only_flavour(void)
{
	const struct flavour *found = 0;
	for (unsigned long i = 0; is_claimed(i); i++) {
		const struct flavour *flavour = ready_flavour(i);
		if (flavour && found)
			return 0;
		if (flavour)
			found = flavour;
	}
	return found;
}

static const struct flavour *needed_directly(const struct link_object *object)
{
	for (unsigned long i = 0; is_claimed(i); i++) {
		const struct flavour *flavour = ready_flavour(i);
		if (flavour && object_needs(object, object_soname(slots[i].object)))
			return flavour;
	}
	return 0;
}

/* The libcurl the object was linked to, itself or by way of a library it was linked to. */
static const struct flavour *needed_by(const struct link_object *object)
{
	const struct flavour *flavour = needed_directly(object);
	int budget = MAX_OBJECTS;

	for (const struct link_object *o = object_first(); !flavour && o && budget--; o = o->next) {
		if (o != object && object_needs(object, object_soname(o)))
			flavour = needed_directly(o);
	}
	return flavour;
}

static const struct flavour *handed_to(const struct link_object *object)
{
	unsigned long lo = object_text(object).lo;
	for (int i = 0; i < MAX_HANDOUTS; i++) {
		if (__atomic_load_n(&handouts[i].object_lo, __ATOMIC_ACQUIRE) != lo)
			continue;
		unsigned long number = __atomic_load_n(&handouts[i].flavour, __ATOMIC_ACQUIRE);
		return number ? ready_flavour(number - 1) : 0;
	}
	return 0;
}

/* FFI calls come from libffi, tail calls from anywhere: then the libcurl that dlsym was last asked
 * about is the likeliest, and the first one found is better than none. */
static const struct flavour *work_out(const struct link_object *object)
{
	const struct flavour *flavour = only_flavour();
	if (!flavour && object)
		flavour = needed_by(object);
	if (!flavour && object)
		flavour = handed_to(object);
	if (!flavour)
		flavour = __atomic_load_n(&last_handout, __ATOMIC_ACQUIRE);
	return flavour ? flavour : ready_flavour(0);
}

static unsigned long *entry_of(unsigned long address)
{
	return &callers[(address >> PAGE_BITS) % CALLER_SLOTS];
}

static const struct flavour *ask_and_remember(unsigned long address)
{
	unsigned long *entry = entry_of(address);
	/* Read before the walk: a dlopen that starts meanwhile makes the answer out of date. */
	unsigned long now = __atomic_load_n(&epoch, __ATOMIC_ACQUIRE) & EPOCH_MASK;
	look_for_libcurls();
	const struct flavour *flavour = flavours_known_containing(address);
	if (flavour)
		return flavour;
	flavour = work_out(object_containing(address));
	if (flavour)
		/* One word, complete by itself; slots are published by their own `ready`. */
		__atomic_store_n(entry,
		                 address >> PAGE_BITS << (EPOCH_BITS + FLAVOUR_BITS) |
		                         now << FLAVOUR_BITS | index_of(flavour),
		                 __ATOMIC_RELEASE);
	return flavour;
}

/* Not inlined: what is remembered is answered without saving a register. */
__attribute__((noinline)) static const struct flavour *look_for_caller(unsigned long address)
{
	const struct flavour *flavour = flavours_known_containing(address);
	return flavour ? flavour : ask_and_remember(address);
}

const struct flavour *flavours_of_caller(const void *caller)
{
	unsigned long address = (unsigned long)caller;
	unsigned long page = address >> PAGE_BITS;
	unsigned long known = __atomic_load_n(entry_of(address), __ATOMIC_ACQUIRE);
	unsigned long now = __atomic_load_n(&epoch, __ATOMIC_ACQUIRE) & EPOCH_MASK;

	if (known >> FLAVOUR_BITS == (page << EPOCH_BITS | now))
		return ready_flavour(known & NO_FLAVOUR);
	return look_for_caller(address);
}

void flavours_forget_callers(void)
{
	__atomic_fetch_add(&epoch, 1, __ATOMIC_ACQ_REL);
}

void flavours_note_handout(unsigned long caller, const struct flavour *flavour)
{
	const struct link_object *object = object_containing(caller);
	unsigned long lo = object ? object_text(object).lo : 0;

	for (int i = 0; lo && i < MAX_HANDOUTS; i++) {
		unsigned long holder = 0;
		if (__atomic_compare_exchange_n(&handouts[i].object_lo, &holder, lo, 0,
		                                __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
		    holder == lo) {
			__atomic_store_n(&handouts[i].flavour, index_of(flavour) + 1,
			                 __ATOMIC_RELEASE);
			break;
		}
	}
	if (__atomic_exchange_n(&last_handout, flavour, __ATOMIC_ACQ_REL) != flavour)
		flavours_forget_callers();
}
