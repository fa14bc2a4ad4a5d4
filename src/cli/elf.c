/* See elf.h. Every offset is checked against the file: doctor looks at whatever a container holds.
 * Only what is needed is read: program headers for the loader and the dynamic section, section
 * headers for the symbol table and Go's mark, and three searches for texts. A symbol is looked for
 * by its name in the string tables of the dynamic and the full symbol table. */
#include "cli/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { MACHINE_HERE = EM_X86_64 };
#elif defined(__aarch64__)
enum { MACHINE_HERE = EM_AARCH64 };
#else
enum { MACHINE_HERE = EM_NONE };
#endif

/* What the two word sizes have in common. */
struct segment {
	uint64_t type, at, address, size;
};
struct section {
	uint64_t name, type, at, size, link;
};

static bool inside(const struct elf *e, uint64_t at, uint64_t n)
{
	return at <= e->size && n <= e->size - at;
}

/* A terminated text in the file, or null. */
static const char *text_at(const struct elf *e, uint64_t at)
{
	if (at >= e->size || !memchr(e->map + at, '\0', e->size - (size_t)at))
		return NULL;
	return (const char *)e->map + at;
}

static bool read_segment(const struct elf *e, size_t i, struct segment *out)
{
	if (e->wide) {
		const Elf64_Ehdr *h = (const void *)e->map;
		Elf64_Phdr p;
		uint64_t at = h->e_phoff + i * (uint64_t)h->e_phentsize;

		if (i >= h->e_phnum || h->e_phentsize < sizeof(p) || !inside(e, at, sizeof(p)))
			return false;
		memcpy(&p, e->map + at, sizeof(p));
		*out = (struct segment){p.p_type, p.p_offset, p.p_vaddr, p.p_filesz};
	} else {
		const Elf32_Ehdr *h = (const void *)e->map;
		Elf32_Phdr p;
		uint64_t at = h->e_phoff + i * (uint64_t)h->e_phentsize;

		if (i >= h->e_phnum || h->e_phentsize < sizeof(p) || !inside(e, at, sizeof(p)))
			return false;
		memcpy(&p, e->map + at, sizeof(p));
		*out = (struct segment){p.p_type, p.p_offset, p.p_vaddr, p.p_filesz};
	}
	return true;
}

static bool read_section(const struct elf *e, size_t i, struct section *out)
{
	if (e->wide) {
		const Elf64_Ehdr *h = (const void *)e->map;
		Elf64_Shdr s;
		uint64_t at = h->e_shoff + i * (uint64_t)h->e_shentsize;

		if (i >= h->e_shnum || h->e_shentsize < sizeof(s) || !inside(e, at, sizeof(s)))
			return false;
		memcpy(&s, e->map + at, sizeof(s));
		*out = (struct section){s.sh_name, s.sh_type, s.sh_offset, s.sh_size, s.sh_link};
	} else {
		const Elf32_Ehdr *h = (const void *)e->map;
		Elf32_Shdr s;
		uint64_t at = h->e_shoff + i * (uint64_t)h->e_shentsize;

		if (i >= h->e_shnum || h->e_shentsize < sizeof(s) || !inside(e, at, sizeof(s)))
			return false;
		memcpy(&s, e->map + at, sizeof(s));
		*out = (struct section){s.sh_name, s.sh_type, s.sh_offset, s.sh_size, s.sh_link};
	}
	return true;
}

static uint64_t to_offset(const struct elf *e, uint64_t address)
{
	struct segment s;

	for (size_t i = 0; read_segment(e, i, &s); i++)
		if (s.type == PT_LOAD && address >= s.address && address - s.address < s.size)
			return s.at + (address - s.address);
	return UINT64_MAX;
}

/* --- the dynamic section --- */

static bool read_dynamic(const struct elf *e, const struct segment *s, size_t i, uint64_t *tag,
                         uint64_t *value)
{
	if (e->wide) {
		Elf64_Dyn d;

		if ((i + 1) * sizeof(d) > s->size || !inside(e, s->at + i * sizeof(d), sizeof(d)))
			return false;
		memcpy(&d, e->map + s->at + i * sizeof(d), sizeof(d));
		*tag = (uint64_t)d.d_tag;
		*value = d.d_un.d_val;
	} else {
		Elf32_Dyn d;

		if ((i + 1) * sizeof(d) > s->size || !inside(e, s->at + i * sizeof(d), sizeof(d)))
			return false;
		memcpy(&d, e->map + s->at + i * sizeof(d), sizeof(d));
		*tag = (uint64_t)(int64_t)d.d_tag;
		*value = d.d_un.d_val;
	}
	return *tag != DT_NULL;
}

static void take_tag(struct elf *e, uint64_t tag, const char *text)
{
	if (!text)
		return;
	if (tag == DT_NEEDED && e->needed_count < ELF_NEEDED_MAX)
		e->needed[e->needed_count++] = text;
	else if (tag == DT_SONAME)
		e->soname = text;
	else if (tag == DT_RUNPATH || (tag == DT_RPATH && !e->runpath))
		e->runpath = text;
}

static void take_dynamic(struct elf *e, const struct segment *s)
{
	uint64_t tag, value, strings = UINT64_MAX;

	e->dynamic = true;
	for (size_t i = 0; read_dynamic(e, s, i, &tag, &value); i++)
		if (tag == DT_STRTAB)
			strings = to_offset(e, value);
	for (size_t i = 0; strings != UINT64_MAX && read_dynamic(e, s, i, &tag, &value); i++)
		if (tag == DT_NEEDED || tag == DT_SONAME || tag == DT_RUNPATH || tag == DT_RPATH)
			take_tag(e, tag, text_at(e, strings + value));
}

static void take_segments(struct elf *e)
{
	struct segment s;

	for (size_t i = 0; read_segment(e, i, &s); i++) {
		if (s.type == PT_INTERP)
			e->interp = text_at(e, s.at);
		else if (s.type == PT_DYNAMIC)
			take_dynamic(e, &s);
	}
}

/* --- symbols --- */

struct symbol {
	uint64_t name;
	bool defined;
};

static bool read_symbol(const struct elf *e, const struct section *t, size_t i, struct symbol *out)
{
	if (e->wide) {
		Elf64_Sym s;

		if ((i + 1) * sizeof(s) > t->size || !inside(e, t->at + i * sizeof(s), sizeof(s)))
			return false;
		memcpy(&s, e->map + t->at + i * sizeof(s), sizeof(s));
		*out = (struct symbol){s.st_name, s.st_shndx != SHN_UNDEF};
	} else {
		Elf32_Sym s;

		if ((i + 1) * sizeof(s) > t->size || !inside(e, t->at + i * sizeof(s), sizeof(s)))
			return false;
		memcpy(&s, e->map + t->at + i * sizeof(s), sizeof(s));
		*out = (struct symbol){s.st_name, s.st_shndx != SHN_UNDEF};
	}
	return true;
}

static void take_symbol(struct elf *e, const char *name, bool defined)
{
	if (strcmp(name, "curl_easy_perform") == 0 || strcmp(name, "curl_multi_perform") == 0) {
		e->defines_curl |= defined;
		e->wants_curl |= !defined;
	} else if (strcmp(name, "dlopen") == 0 && !defined) {
		e->opens_libraries = true;
	}
}

static void take_symbols(struct elf *e, const struct section *table)
{
	struct section strings;
	struct symbol s;
	const char *name;

	if (!read_section(e, (size_t)table->link, &strings))
		return;
	for (size_t i = 0; read_symbol(e, table, i, &s); i++) {
		if (s.name == 0 || s.name >= strings.size)
			continue;
		name = text_at(e, strings.at + s.name);
		if (name)
			take_symbol(e, name, s.defined);
	}
}

static void take_sections(struct elf *e)
{
	struct section s, names;
	const Elf64_Ehdr *h64 = (const void *)e->map;
	const Elf32_Ehdr *h32 = (const void *)e->map;
	bool named = read_section(e, e->wide ? h64->e_shstrndx : h32->e_shstrndx, &names);
	const char *name;

	for (size_t i = 0; read_section(e, i, &s); i++) {
		if (s.type == SHT_SYMTAB || s.type == SHT_DYNSYM)
			take_symbols(e, &s);
		name = named && s.name < names.size ? text_at(e, names.at + s.name) : NULL;
		if (name &&
		    (strcmp(name, ".go.buildinfo") == 0 || strcmp(name, ".note.go.buildid") == 0))
			e->go = true;
	}
}

/* --- texts --- */

static bool holds(const struct elf *e, const char *text)
{
	return memmem(e->map, e->size, text, strlen(text)) != NULL;
}

/* "libcurl/8.5.0" as libcurl's own version text has it: a digit follows the slash. */
static const char *find_version(const struct elf *e)
{
	static const char mark[] = "libcurl/";
	const unsigned char *p = e->map, *end = e->map + e->size;

	while ((p = memmem(p, (size_t)(end - p), mark, sizeof(mark) - 1))) {
		p += sizeof(mark) - 1;
		if (p < end && *p >= '0' && *p <= '9')
			return text_at(e, (uint64_t)(p - (sizeof(mark) - 1) - e->map));
	}
	return NULL;
}

static void take_texts(struct elf *e)
{
	e->names_libcurl = holds(e, "libcurl.so.4") || holds(e, "libcurl-gnutls.so.4");
	e->curl_inside = find_version(e);
}

/* --- the file --- */

static int take_header(struct elf *e)
{
	const unsigned char *id = e->map;
	const Elf64_Ehdr *h = (const void *)e->map;
	const uint16_t one = 1;
	bool little = *(const unsigned char *)&one == 1;

	if (e->size < sizeof(Elf32_Ehdr) || memcmp(id, ELFMAG, SELFMAG) != 0)
		return ELF_NOT_ELF;
	e->wide = id[EI_CLASS] == ELFCLASS64;
	if (e->wide && e->size < sizeof(Elf64_Ehdr))
		return ELF_DAMAGED;
	if (id[EI_DATA] != (little ? ELFDATA2LSB : ELFDATA2MSB)) {
		e->foreign = true;
		return ELF_OK;
	}
	e->foreign = h->e_machine != MACHINE_HERE; /* at one place in both word sizes */
	return ELF_OK;
}

static int map_file(const char *path, struct elf *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), saved;
	struct stat st;
	void *map = MAP_FAILED;

	if (fd < 0)
		return ELF_CANNOT;
	if (fstat(fd, &st) == 0) {
		if (!S_ISREG(st.st_mode) || st.st_size == 0) {
			close(fd);
			return ELF_NOT_ELF;
		}
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	saved = errno;
	close(fd);
	errno = saved;
	if (map == MAP_FAILED)
		return ELF_CANNOT;
	e->map = map;
	e->size = (size_t)st.st_size;
	return ELF_OK;
}

int elf_open(const char *path, struct elf *out)
{
	int rc;

	*out = (struct elf){0};
	rc = map_file(path, out);
	if (rc == ELF_OK)
		rc = take_header(out);
	if (rc != ELF_OK || out->foreign)
		return rc;
	take_segments(out);
	take_sections(out);
	take_texts(out);
	return ELF_OK;
}

void elf_close(struct elf *elf)
{
	if (elf->map)
		munmap((void *)(uintptr_t)elf->map, elf->size);
	elf->map = NULL;
}
