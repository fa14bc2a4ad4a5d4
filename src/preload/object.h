/* The objects (executable and shared libraries) the loader has mapped, and their symbols. */
#ifndef SENDONCE_PRELOAD_OBJECT_H
#define SENDONCE_PRELOAD_OBJECT_H

#include <linux/elf.h>

/* The public head of the loader's list; the same in glibc and musl. */
struct link_object {
	unsigned long base; /* load bias */
	char *path;
	const Elf64_Dyn *dynamic;
	struct link_object *next, *previous;
};

struct address_range {
	unsigned long lo, hi; /* [lo, hi); both 0: nothing */
};

/* The list's first entry, the executable; null when the loader shows none. */
const struct link_object *object_first(void);
/* Our own entry; null when the loader does not list us. */
const struct link_object *object_self(void);
/* The object whose executable pages hold the address; null for code made at run time. */
const struct link_object *object_containing(unsigned long address);

/* The span of the object's executable segments. */
struct address_range object_text(const struct link_object *object);
/* The address of a symbol the object itself defines, 0 when it defines none of that name. */
unsigned long object_symbol(const struct link_object *object, const char *name);
/* DT_SONAME, else the file's name, else an empty string. */
const char *object_soname(const struct link_object *object);
/* Does DT_NEEDED name this soname? */
int object_needs(const struct link_object *object, const char *soname);

/* The definition of `name` that stands behind us in the loader's order: what a caller of ours
 * would have got without us. */
unsigned long object_next_symbol(const char *name);

static inline int range_contains(struct address_range range, unsigned long address)
{
	return address >= range.lo && address < range.hi;
}

#endif
