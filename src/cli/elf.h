/* One ELF file, read without being run: what doctor asks of it. */
#ifndef SENDONCE_CLI_ELF_H
#define SENDONCE_CLI_ELF_H

#include <stdbool.h>
#include <stddef.h>

enum { ELF_NEEDED_MAX = 128 };

struct elf {
	const unsigned char *map;
	size_t size;
	bool wide;           /* 64 bits */
	bool foreign;        /* of another machine or byte order than this program */
	const char *interp;  /* the loader's path; null: linked statically, or a library */
	const char *soname;  /* null: none */
	const char *runpath; /* DT_RUNPATH, else DT_RPATH; null: none */
	const char *needed[ELF_NEEDED_MAX];
	size_t needed_count;
	bool dynamic;
	bool go;                 /* made by the Go linker */
	bool defines_curl;       /* has a curl_easy_perform of its own */
	bool wants_curl;         /* imports one */
	bool opens_libraries;    /* imports dlopen */
	bool names_libcurl;      /* holds the text "libcurl.so.4" or "libcurl-gnutls.so.4" */
	const char *curl_inside; /* "libcurl/8.5.0" of a static one; null: none */
};

enum { ELF_OK = 0, ELF_CANNOT = -1 /* errno */, ELF_NOT_ELF = -2, ELF_DAMAGED = -3 };

/* Texts point into the mapping. The caller ends it with elf_close whatever is returned. */
int elf_open(const char *path, struct elf *out);
void elf_close(struct elf *elf);

#endif
