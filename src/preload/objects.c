/* Walks the loader's list of objects. The list is read without the loader's lock: taking it can
 * hang a child forked from a threaded process, and a library whose constructor waits for another
 * thread's libcurl call. The price is that an object unloaded by another thread at this very
 * moment may be read; so each object's header is probed before it is touched.
 * It lies at the load bias; a library linked for a fixed address has none there and is not seen.
 *
 * Other link-map namespaces (dlmopen) are not seen, nor is code in a static executable. */
#include "preload/object.h"
#include "preload/environ.h"
#include "preload/rawsys.h"

#define PAGE        4096ul
#define MAX_OBJECTS 4096

/* Their public parts, the same in glibc and musl. */
struct loader_state {
	int version;
	const struct link_object *first;
};

struct headers {
	const Elf64_Phdr *first;
	unsigned long count;
};

extern struct loader_state _r_debug __attribute__((weak));
extern const Elf64_Dyn _DYNAMIC[] __attribute__((visibility("hidden")));

/* "Normal" is what these pages are, so that the call changes nothing: it fails where there are
 * none. Allocators use it, hence filters of system calls let it pass. */
static int is_mapped(unsigned long address)
{
	const long normal = 0;
	return raw_syscall(__NR_madvise, (long)(address & ~(PAGE - 1)), PAGE, normal, 0) == 0;
}

static struct headers executable_headers(void)
{
	struct headers headers = {0, 0};
	headers.first = environ_program_headers(&headers.count);
	return headers;
}

/* musl shows its list only through the executable's DT_DEBUG. */
static const struct loader_state *state_from_executable(void)
{
	struct headers headers = executable_headers();
	unsigned long base = 0;
	const Elf64_Dyn *dynamic = 0;

	for (unsigned long i = 0; i < headers.count; i++) {
		if (headers.first[i].p_type == PT_PHDR)
			base = (unsigned long)headers.first - headers.first[i].p_vaddr;
	}
	for (unsigned long i = 0; i < headers.count; i++) {
		if (headers.first[i].p_type == PT_DYNAMIC)
			dynamic = (const Elf64_Dyn *)(base + headers.first[i].p_vaddr);
	}
	for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
		if (dynamic->d_tag == DT_DEBUG)
			return (const struct loader_state *)dynamic->d_un.d_ptr;
	}
	return 0;
}

const struct link_object *object_first(void)
{
	if (&_r_debug && _r_debug.first)
		return _r_debug.first;
	const struct loader_state *state = state_from_executable();
	return state ? state->first : 0;
}

const struct link_object *object_self(void)
{
	int budget = MAX_OBJECTS;
	for (const struct link_object *o = object_first(); o && budget--; o = o->next) {
		if (o->dynamic == _DYNAMIC)
			return o;
	}
	return 0;
}

static int is_elf_header(unsigned long address)
{
	if (address == 0 || !is_mapped(address))
		return 0;
	const unsigned char *ident = (const unsigned char *)address;
	return ident[0] == 0x7f && ident[1] == 'E' && ident[2] == 'L' && ident[3] == 'F';
}

static struct headers object_headers(const struct link_object *object)
{
	struct headers none = {0, 0};

	if (object == object_first()) {
		struct headers headers = executable_headers();
		if (headers.count)
			return headers;
	}
	if (!is_elf_header(object->base))
		return none;
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)object->base;
	const Elf64_Phdr *first = (const Elf64_Phdr *)(object->base + header->e_phoff);
	struct headers headers = {first, header->e_phnum};
	return is_mapped((unsigned long)first) ? headers : none;
}

struct address_range object_text(const struct link_object *object)
{
	struct headers headers = object_headers(object);
	struct address_range text = {0, 0};

	for (unsigned long i = 0; i < headers.count; i++) {
		const Elf64_Phdr *segment = &headers.first[i];
		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		unsigned long lo = object->base + segment->p_vaddr;
		unsigned long hi = lo + segment->p_memsz;
		if (text.hi == 0 || lo < text.lo)
			text.lo = lo;
		if (hi > text.hi)
			text.hi = hi;
	}
	return text;
}

const struct link_object *object_containing(unsigned long address)
{
	int budget = MAX_OBJECTS;
	for (const struct link_object *o = object_first(); o && budget--; o = o->next) {
		if (range_contains(object_text(o), address))
			return o;
	}
	return 0;
}

unsigned long object_next_symbol(const char *name)
{
	const struct link_object *self = object_self();
	int budget = MAX_OBJECTS;

	for (const struct link_object *o = self ? self->next : 0; o && budget--; o = o->next) {
		unsigned long address = object_symbol(o, name);
		if (address)
			return address;
	}
	budget = MAX_OBJECTS;
	for (const struct link_object *o = object_first(); o && o != self && budget--;
	     o = o->next) {
		unsigned long address = object_symbol(o, name);
		if (address)
			return address;
	}
	return 0;
}
