/* See closure.h. The loader's cache is asked through its own list of folders (ld.so.conf), not its
 * binary file: a container's may be of another layout. Order: the object's runpath, then
 * LD_LIBRARY_PATH, the configured folders, and the built-in ones. */
#include "cli/closure.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FOLDERS_MAX = 64, DEPTH_MAX = 4 };

struct search {
	char *folder[FOLDERS_MAX];
	size_t count;
};

static void add_folder(struct search *s, const char *name, size_t n)
{
	if (n == 0 || s->count == FOLDERS_MAX)
		return;
	s->folder[s->count] = strndup(name, n);
	s->count += s->folder[s->count] != NULL;
}

static void add_list(struct search *s, const char *list)
{
	size_t n;

	for (; list && *list; list += n + (list[n] == ':')) {
		n = strcspn(list, ":");
		add_folder(s, list, n);
	}
}

static void read_conf(struct search *s, const char *path, int depth);

static void include(struct search *s, const char *pattern, int depth)
{
	glob_t found;

	if (glob(pattern, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			read_conf(s, found.gl_pathv[i], depth + 1);
	globfree(&found);
}

static void read_conf(struct search *s, const char *path, int depth)
{
	FILE *f = depth < DEPTH_MAX ? fopen(path, "re") : NULL;
	char line[PATH_MAX];

	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "#\n")] = '\0';
		if (strncmp(line, "include ", 8) == 0)
			include(s, line + 8 + strspn(line + 8, " \t"), depth);
		else if (*line == '/')
			add_folder(s, line, strcspn(line, " \t"));
	}
	fclose(f);
}

static void search_make(struct search *s)
{
	add_list(s, getenv("LD_LIBRARY_PATH"));
	read_conf(s, "/etc/ld.so.conf", 0);
	add_list(s, "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib/aarch64-linux-gnu:"
	            "/usr/lib/aarch64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib:/usr/local/lib");
}

static void search_free(struct search *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->folder[i]);
}

static bool try_folder(const char *folder, size_t n, const char *name, const char *origin,
                       char *out)
{
	const char *mark = n >= 7 && strncmp(folder, "$ORIGIN", 7) == 0 ? folder + 7 : NULL;

	if (!mark && n >= 9 && strncmp(folder, "${ORIGIN}", 9) == 0)
		mark = folder + 9;
	if (mark)
		snprintf(out, PATH_MAX, "%s%.*s/%s", origin, (int)(folder + n - mark), mark, name);
	else
		snprintf(out, PATH_MAX, "%.*s/%s", (int)n, folder, name);
	return access(out, R_OK) == 0;
}

static bool find_library(const struct search *s, const char *runpath, const char *origin,
                         const char *name, char *out)
{
	size_t n;

	if (strchr(name, '/')) {
		snprintf(out, PATH_MAX, "%s", name);
		return access(out, R_OK) == 0;
	}
	for (const char *p = runpath; p && *p; p += n + (p[n] == ':')) {
		n = strcspn(p, ":");
		if (try_folder(p, n, name, origin, out))
			return true;
	}
	for (size_t i = 0; i < s->count; i++)
		if (try_folder(s->folder[i], strlen(s->folder[i]), name, origin, out))
			return true;
	return false;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool has(const struct closure *c, const char *name)
{
	for (size_t i = 0; i < c->count; i++)
		if (strcmp(base_name(c->path[i]), base_name(name)) == 0)
			return true;
	return false;
}

static void add_needed(struct closure *c, const struct search *s, const char *from,
                       const struct elf *e)
{
	char path[PATH_MAX], origin[PATH_MAX];
	char *slash;

	snprintf(origin, sizeof(origin), "%s", from);
	slash = strrchr(origin, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < e->needed_count; i++) {
		if (has(c, e->needed[i]) || c->count == CLOSURE_MAX)
			continue;
		if (find_library(s, e->runpath, origin, e->needed[i], path)) {
			c->path[c->count] = strdup(path);
			c->count += c->path[c->count] != NULL;
		} else if (!*c->missing) {
			snprintf(c->missing, sizeof(c->missing), "%s", e->needed[i]);
		}
	}
}

void closure_make(const char *from, const struct elf *program, struct closure *out)
{
	struct search search = {.count = 0};
	struct elf e;

	*out = (struct closure){.count = 0};
	search_make(&search);
	add_needed(out, &search, from, program);
	for (size_t i = 0; i < out->count; i++) {
		if (elf_open(out->path[i], &e) == ELF_OK)
			add_needed(out, &search, out->path[i], &e);
		elf_close(&e);
	}
	search_free(&search);
}

void closure_free(struct closure *closure)
{
	for (size_t i = 0; i < closure->count; i++)
		free(closure->path[i]);
	closure->count = 0;
}

const char *closure_find(const struct closure *closure, const char *prefix)
{
	for (size_t i = 0; i < closure->count; i++)
		if (strncmp(base_name(closure->path[i]), prefix, strlen(prefix)) == 0)
			return closure->path[i];
	return NULL;
}
