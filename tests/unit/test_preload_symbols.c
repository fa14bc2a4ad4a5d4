/* Symbol look-up of the preload against hash tables made by hand: what no linker on this machine
 * writes, but some loader somewhere maps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "preload/text.c"
#include "preload/symbols.c"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { FIRST_HASHED = 1 };

static const char strings[] = "\0alpha\0beta\0lib.so.1\0libneeded.so.2\0/opt/libabs.so";
enum { AT_ALPHA = 1, AT_BETA = 7, AT_SONAME = 12, AT_NEEDED = 21, AT_ABSOLUTE = 36 };

static Elf64_Sym symbols[3];
static unsigned gnu[16];
static unsigned sysv[8];
static Elf64_Dyn dynamic[10];
static char path[] = "/somewhere/file.so";
static struct link_object object;

static unsigned gnu_hash(const char *name)
{
	unsigned hash = 5381;
	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

static void add(long tag, unsigned long value)
{
	Elf64_Dyn *entry = dynamic;
	while (entry->d_tag != DT_NULL)
		entry++;
	entry->d_tag = tag;
	entry->d_un.d_val = value;
}

static int begin(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(dynamic); i++)
		dynamic[i].d_tag = DT_NULL;
	symbols[1] = (Elf64_Sym){
	        .st_name = AT_ALPHA, .st_info = SYMBOL_FUNCTION, .st_shndx = 1, .st_value = 0x10};
	symbols[2] = (Elf64_Sym){
	        .st_name = AT_BETA, .st_info = SYMBOL_FUNCTION, .st_shndx = 1, .st_value = 0x20};
	object = (struct link_object){.base = 0x1000, .path = path, .dynamic = dynamic};
	add(DT_SYMTAB, (unsigned long)symbols);
	add(DT_STRTAB, (unsigned long)strings);
	return 0;
}

/* One bucket with both names; bloom words are skipped, never asked. */
static void use_gnu(unsigned bucket)
{
	const unsigned table[] = {1,
	                          FIRST_HASHED,
	                          1,
	                          6,
	                          0,
	                          0,
	                          bucket,
	                          gnu_hash("alpha") & ~1u,
	                          gnu_hash("beta") | 1u};
	for (size_t i = 0; i < COUNT(table); i++)
		gnu[i] = table[i];
	add(DT_GNU_HASH, (unsigned long)gnu);
}

static void use_sysv(unsigned chain_of_beta)
{
	const unsigned table[] = {1, 3, 1, 0, 2, chain_of_beta};
	for (size_t i = 0; i < COUNT(table); i++)
		sysv[i] = table[i];
	add(DT_HASH, (unsigned long)sysv);
}

static void gnu_table(void **state)
{
	(void)state;
	use_gnu(FIRST_HASHED);
	assert_int_equal(object_symbol(&object, "alpha"), 0x1010);
	assert_int_equal(object_symbol(&object, "beta"), 0x1020);
	assert_int_equal(object_symbol(&object, "alph"), 0);
	assert_int_equal(object_symbol(&object, "gamma"), 0);
}

static void gnu_empty_bucket_and_no_buckets(void **state)
{
	(void)state;
	use_gnu(0);
	assert_int_equal(object_symbol(&object, "alpha"), 0);
	gnu[0] = 0;
	assert_int_equal(object_symbol(&object, "alpha"), 0);
}

static void sysv_table(void **state)
{
	(void)state;
	use_sysv(0);
	assert_int_equal(object_symbol(&object, "alpha"), 0x1010);
	assert_int_equal(object_symbol(&object, "beta"), 0x1020);
	assert_int_equal(object_symbol(&object, "gamma"), 0);
	sysv[0] = 0;
	assert_int_equal(object_symbol(&object, "alpha"), 0);
}

static void sysv_chain_that_never_ends(void **state)
{
	(void)state;
	use_sysv(1); /* beta -> alpha -> beta */
	assert_int_equal(object_symbol(&object, "gamma"), 0);
	sysv[5] = 99; /* outside the table */
	assert_int_equal(object_symbol(&object, "gamma"), 0);
}

static void undefined_data_and_absolute_symbols_are_no_functions(void **state)
{
	(void)state;
	use_gnu(FIRST_HASHED);
	symbols[1].st_shndx = SHN_UNDEF;
	symbols[2].st_info = 1; /* STT_OBJECT */
	assert_int_equal(object_symbol(&object, "alpha"), 0);
	assert_int_equal(object_symbol(&object, "beta"), 0);
}

static void object_without_tables(void **state)
{
	(void)state;
	assert_int_equal(object_symbol(&object, "alpha"), 0);
	object.dynamic = NULL;
	assert_int_equal(object_symbol(&object, "alpha"), 0);
	assert_string_equal(object_soname(&object), "");
	assert_false(object_needs(&object, "libneeded.so.2"));
}

static void addresses_as_musl_leaves_them(void **state)
{
	(void)state;
	const unsigned long base = 0x100000;
	assert_ptr_equal(absolute(base, 0x200), (void *)(base + 0x200));
	assert_ptr_equal(absolute(base, base + 0x200), (void *)(base + 0x200));
	assert_ptr_equal(absolute(0, 0x200), (void *)0x200);
}

static void names_of_libraries(void **state)
{
	(void)state;
	assert_string_equal(object_soname(&object), "file.so");
	add(DT_SONAME, AT_SONAME);
	add(DT_NEEDED, AT_NEEDED);
	add(DT_NEEDED, AT_ABSOLUTE);
	assert_string_equal(object_soname(&object), "lib.so.1");
	assert_true(object_needs(&object, "libneeded.so.2"));
	assert_true(object_needs(&object, "libabs.so"));
	assert_false(object_needs(&object, "lib.so.1"));
	assert_false(object_needs(&object, "libneeded.so"));
}

static void text_is_cut_off_not_overrun(void **state)
{
	(void)state;
	char buffer[8];
	struct text text;
	text_begin(&text, buffer, sizeof(buffer));
	text_add_number(&text, 0);
	text_add_number(&text, 1234567890);
	assert_string_equal(buffer, "0123456");
	text_add(&text, "more");
	assert_int_equal(text.length, 7);
	assert_int_equal(text_directory_length("no-slash"), 0);
	assert_string_equal(text_base_name("/a/b"), "b");
	assert_false(text_starts_with("cur", "curl_"));
	assert_false(text_equal("curl", "curl_"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup(gnu_table, begin),
	        cmocka_unit_test_setup(gnu_empty_bucket_and_no_buckets, begin),
	        cmocka_unit_test_setup(sysv_table, begin),
	        cmocka_unit_test_setup(sysv_chain_that_never_ends, begin),
	        cmocka_unit_test_setup(undefined_data_and_absolute_symbols_are_no_functions, begin),
	        cmocka_unit_test_setup(object_without_tables, begin),
	        cmocka_unit_test_setup(addresses_as_musl_leaves_them, begin),
	        cmocka_unit_test_setup(names_of_libraries, begin),
	        cmocka_unit_test(text_is_cut_off_not_overrun),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
