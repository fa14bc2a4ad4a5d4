/* Looks a name up in one object's own hash table, GNU or SysV style. dlsym cannot do it: it needs
 * a handle we don't have, takes the loader's lock, and finds the interposer itself.
 *
 * The tables belong to objects that the loader has accepted, so they are trusted as far as it
 * trusted them; every walk is bounded all the same, and an empty GNU bucket (its first index lies
 * below the first hashed symbol) means "absent". Addresses in the dynamic section are absolute
 * under glibc and relative under musl: a value below the load bias cannot be absolute.
 * Versions are ignored: of the functions looked up here all versions of one name are one. */
#include "preload/object.h"
#include "preload/text.h"

#ifndef DT_GNU_HASH
#define DT_GNU_HASH 0x6ffffef5
#endif

#define MAX_CHAIN (1u << 20)

enum { SYMBOL_NOTYPE = 0, SYMBOL_FUNCTION = 2 };

struct tables {
	unsigned long base;
	const Elf64_Sym *symbols;
	const char *strings;
	const unsigned *gnu_hash;
	const unsigned *sysv_hash;
};

static const void *absolute(unsigned long base, unsigned long value)
{
	return (const void *)(value < base ? value + base : value);
}

static int read_tables(const struct link_object *object, struct tables *tables)
{
	const struct tables none = {object->base, 0, 0, 0, 0};
	*tables = none;
	if (!object->dynamic)
		return 0;
	for (const Elf64_Dyn *entry = object->dynamic; entry->d_tag != DT_NULL; entry++) {
		const void *address = absolute(object->base, entry->d_un.d_ptr);
		if (entry->d_tag == DT_SYMTAB)
			tables->symbols = address;
		else if (entry->d_tag == DT_STRTAB)
			tables->strings = address;
		else if (entry->d_tag == DT_GNU_HASH)
			tables->gnu_hash = address;
		else if (entry->d_tag == DT_HASH)
			tables->sysv_hash = address;
	}
	return tables->symbols && tables->strings;
}

static unsigned long defined_as(const struct tables *tables, unsigned index, const char *name)
{
	const Elf64_Sym *symbol = &tables->symbols[index];
	unsigned type = symbol->st_info & 15u;

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_value == 0)
		return 0;
	if (type != SYMBOL_NOTYPE && type != SYMBOL_FUNCTION)
		return 0;
	if (!text_equal(tables->strings + symbol->st_name, name))
		return 0;
	return tables->base + symbol->st_value;
}

static unsigned long find_gnu(const struct tables *tables, const char *name)
{
	const unsigned *table = tables->gnu_hash;
	unsigned bucket_count = table[0], first_hashed = table[1], bloom_words = table[2];
	const unsigned *buckets = table + 4 + 2ul * bloom_words;
	const unsigned *chains = buckets + bucket_count;
	unsigned hash = 5381;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	if (bucket_count == 0)
		return 0;
	unsigned index = buckets[hash % bucket_count];
	if (index < first_hashed)
		return 0;
	for (unsigned steps = 0; steps < MAX_CHAIN; steps++, index++) {
		unsigned link = chains[index - first_hashed];
		unsigned long address =
		        (link | 1) == (hash | 1) ? defined_as(tables, index, name) : 0;
		if (address || (link & 1))
			return address;
	}
	return 0;
}

static unsigned long find_sysv(const struct tables *tables, const char *name)
{
	const unsigned *table = tables->sysv_hash;
	unsigned bucket_count = table[0], chain_count = table[1];
	unsigned hash = 0;

	for (const char *c = name; *c; c++) {
		hash = (hash << 4) + (unsigned char)*c;
		hash = (hash ^ ((hash & 0xf0000000u) >> 24)) & 0x0fffffffu;
	}
	if (bucket_count == 0)
		return 0;
	unsigned index = table[2 + hash % bucket_count];
	for (unsigned steps = 0; index && index < chain_count && steps < chain_count; steps++) {
		unsigned long address = defined_as(tables, index, name);
		if (address)
			return address;
		index = table[2 + bucket_count + index];
	}
	return 0;
}

unsigned long object_symbol(const struct link_object *object, const char *name)
{
	struct tables tables;
	if (!read_tables(object, &tables))
		return 0;
	if (tables.gnu_hash)
		return find_gnu(&tables, name);
	return tables.sysv_hash ? find_sysv(&tables, name) : 0;
}

const char *object_soname(const struct link_object *object)
{
	struct tables tables;
	if (!read_tables(object, &tables))
		return "";
	for (const Elf64_Dyn *entry = object->dynamic; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_SONAME)
			return tables.strings + entry->d_un.d_val;
	}
	return object->path ? text_base_name(object->path) : "";
}

int object_needs(const struct link_object *object, const char *soname)
{
	struct tables tables;
	if (!read_tables(object, &tables))
		return 0;
	for (const Elf64_Dyn *entry = object->dynamic; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag != DT_NEEDED)
			continue;
		const char *needed = tables.strings + entry->d_un.d_val;
		if (text_equal(text_base_name(needed), soname))
			return 1;
	}
	return 0;
}
