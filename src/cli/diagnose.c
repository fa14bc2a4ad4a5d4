/* See diagnose.h. The questions are asked in the order in which the loader and sendonce meet them:
 * is the preload dropped (setuid, capabilities), is it a program at all or a script, of this
 * machine, dynamically linked, by which loader; and then where its libcurl comes from: linked,
 * opened by name, from a module of an interpreter, from a helper it starts, inside, or nowhere. */
#include "cli/diagnose.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/closure.h"
#include "cli/hosts.h"

enum { SCRIPTS_MAX = 4 };

const char *sight_name(enum sight sight)
{
	return sight == SIGHT_PROTECTED ? "protected" : sight == SIGHT_PARTLY ? "partly" : "not";
}

__attribute__((format(printf, 3, 4))) static void say(struct diagnosis *d, enum sight sight,
                                                      const char *format, ...)
{
	va_list args;

	d->sight = sight;
	va_start(args, format);
	vsnprintf(d->why, sizeof(d->why), format, args);
	va_end(args);
}

static void advise(struct diagnosis *d, const char *text)
{
	snprintf(d->advice, sizeof(d->advice), "%s", text);
}

/* --- before the file is read --- */

/* The loader runs such programs in secure mode: LD_PRELOAD counts no more. */
static bool is_privileged(const char *path, struct diagnosis *d)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return false;
	if (st.st_mode & (S_ISUID | S_ISGID)) {
		say(d, SIGHT_NOT,
		    "it is set%s: the loader drops LD_PRELOAD there, and so do the "
		    "programs it starts",
		    st.st_mode & S_ISUID ? "uid" : "gid");
		advise(d,
		       "run what it starts under `sendonce run` inside, or use /etc/ld.so.preload "
		       "for those");
		return true;
	}
	if (getxattr(path, "security.capability", NULL, 0) > 0) {
		say(d, SIGHT_NOT, "it has file capabilities: the loader drops LD_PRELOAD there");
		return true;
	}
	return false;
}

/* The interpreter of a `#!` line. */
static bool read_script(const char *path, char *interpreter, size_t room)
{
	FILE *f = fopen(path, "re");
	char line[PATH_MAX], *word, *save = NULL;
	bool script = false;

	if (!f)
		return false;
	if (fgets(line, sizeof(line), f) && strncmp(line, "#!", 2) == 0) {
		word = strtok_r(line + 2, " \t\n", &save);
		if (word && strcmp(word, "/usr/bin/env") == 0) {
			do
				word = strtok_r(NULL, " \t\n", &save);
			while (word && *word == '-');
		}
		script = word != NULL;
		if (word)
			snprintf(interpreter, room, "%s", word);
	}
	fclose(f);
	return script;
}

/* --- what an ELF file says --- */

static void judge_static(const struct elf *e, struct diagnosis *d)
{
	d->curl_inside = e->curl_inside || e->defines_curl;
	if (e->go) {
		say(d, SIGHT_NOT, "a Go program: it has no loader and an HTTP client of its own");
		advise(d,
		       "nothing of it can be preloaded; use the provider's own idempotency keys");
	} else if (e->curl_inside || e->defines_curl) {
		say(d, SIGHT_NOT, "statically linked, with %.64s inside",
		    e->curl_inside ? e->curl_inside : "a libcurl");
		advise(d, "link it to the shared libcurl");
	} else {
		say(d, SIGHT_NOT, "statically linked: nothing can be preloaded");
	}
}

static bool is_shell(const char *name)
{
	static const char *const shells[] = {"sh", "bash", "dash", "zsh", "ksh", "busybox", NULL};

	for (int i = 0; shells[i]; i++)
		if (strcmp(name, shells[i]) == 0)
			return true;
	return false;
}

/* Does a library of its open libcurl by name, or bring one of its own? */
static const char *indirect(const struct closure *c, bool *inside)
{
	const char *found = NULL;
	struct elf e;

	for (size_t i = 0; i < c->count && !found; i++) {
		if (elf_open(c->path[i], &e) == ELF_OK &&
		    !(e.soname && strstr(e.soname, "libcurl"))) {
			*inside = e.defines_curl && e.curl_inside;
			if (*inside || (e.names_libcurl && e.opens_libraries))
				found = c->path[i];
		}
		elf_close(&e);
	}
	return found;
}

static const char *const tls_stacks[] = {"libssl.so", "libgnutls.so", "libnss3.so", "libmbedtls.so",
                                         NULL};

static void judge_without_curl(const char *name, const struct elf *e, const struct closure *c,
                               struct diagnosis *d)
{
	const char *tls = NULL;

	for (int i = 0; tls_stacks[i] && !tls; i++)
		tls = closure_find(c, tls_stacks[i]);
	if (is_shell(name)) {
		say(d, SIGHT_PARTLY,
		    "a shell sends nothing itself; the programs it starts inherit the "
		    "preload");
		advise(d, "ask about those programs");
	} else if (tls) {
		say(d, SIGHT_NOT, "no libcurl; it speaks TLS by itself (%s)", tls);
		advise(d, "its HTTP is not libcurl's: nothing of it is seen");
	} else if (e->opens_libraries) {
		say(d, SIGHT_NOT,
		    "no libcurl is linked or named; only a plugin it loads could bring one");
		advise(d, "look at the running process with --pid");
	} else {
		say(d, SIGHT_NOT, "no libcurl: it makes no HTTP requests through one");
	}
}

static void judge_dynamic(const char *path, const char *name, const struct elf *e,
                          struct diagnosis *d)
{
	struct closure c;
	const char *curl, *host;
	bool inside = false;

	closure_make(path, e, &c);
	curl = closure_find(&c, "libcurl");
	host = hosts_module(name);
	if (e->defines_curl || (e->curl_inside && !curl)) {
		d->curl_inside = true;
		say(d, SIGHT_NOT, "a libcurl is linked into it statically (%.64s)",
		    e->curl_inside ? e->curl_inside : "by its symbols");
		advise(d, "link it to the shared libcurl");
	} else if (curl) {
		say(d, SIGHT_PROTECTED, "libcurl is linked: %s", curl);
	} else if (e->names_libcurl && e->opens_libraries) {
		say(d, SIGHT_PROTECTED, "it opens libcurl by name");
	} else if (host) {
		say(d, SIGHT_PROTECTED, "it loads a module with libcurl: %s", host);
	} else if (hosts_known(name)) {
		say(d, SIGHT_NOT, "none of its modules that use libcurl is installed");
	} else if ((curl = indirect(&c, &inside))) {
		say(d, inside ? SIGHT_NOT : SIGHT_PROTECTED, "%s %s", curl,
		    inside ? "has a libcurl inside" : "opens libcurl by name");
	} else {
		judge_without_curl(name, e, &c, d);
	}
	if (*c.missing && d->sight != SIGHT_PROTECTED)
		snprintf(d->advice, sizeof(d->advice), "%s is missing: it may not start at all",
		         c.missing);
	closure_free(&c);
}

static void judge_helper(const char *helper, struct diagnosis *d)
{
	struct diagnosis inner;

	diagnose_file(helper, &inner);
	say(d, inner.sight, "it writes through %s: %.500s", helper, inner.why);
	memcpy(d->advice, inner.advice, sizeof(d->advice));
}

static void judge_elf(const char *path, const struct elf *e, struct diagnosis *d)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *helper = hosts_helper(name);

	if (e->foreign || !e->wide) {
		say(d, SIGHT_NOT, "of another architecture than libsendonce.so");
		advise(d,
		       "install sendonce for that architecture, and name it by $LIB in LD_PRELOAD");
	} else if (!e->interp && !e->soname) {
		judge_static(e, d);
	} else if (e->interp && strstr(e->interp, "ld-musl")) {
		say(d, SIGHT_PARTLY, "linked to musl (%s): the preload loads, its core needs glibc",
		    e->interp);
		advise(d, "its writes are refused; SENDONCE_FAIL=open lets them pass unprotected");
	} else if (helper) {
		judge_helper(helper, d);
	} else {
		judge_dynamic(path, name, e, d);
	}
}

/* --- files and commands --- */

static void follow(const char *path, struct diagnosis *d, int depth)
{
	char real[PATH_MAX], interpreter[PATH_MAX];
	struct diagnosis inner;
	struct elf e;
	int rc;

	if (!realpath(path, real))
		snprintf(real, sizeof(real), "%s", path);
	if (is_privileged(real, d))
		return;
	rc = elf_open(real, &e);
	if (rc == ELF_OK) {
		judge_elf(real, &e, d);
	} else if (rc == ELF_CANNOT) {
		say(d, SIGHT_NOT, "it cannot be read: %s", strerror(errno));
	} else if (rc == ELF_DAMAGED) {
		say(d, SIGHT_NOT, "a damaged ELF file");
	} else if (depth < SCRIPTS_MAX && read_script(real, interpreter, sizeof(interpreter)) &&
	           diagnose_command(interpreter, &inner) == 0) {
		say(d, inner.sight, "a script for %s: %.500s", inner.name, inner.why);
		memcpy(d->advice, inner.advice, sizeof(d->advice));
	} else {
		say(d, SIGHT_NOT, "neither an ELF program nor a script");
	}
	elf_close(&e);
}

void diagnose_file(const char *path, struct diagnosis *out)
{
	static _Thread_local int depth;

	*out = (struct diagnosis){.sight = SIGHT_NOT};
	snprintf(out->name, sizeof(out->name), "%s", path);
	depth++;
	follow(path, out, depth);
	depth--;
}

int diagnose_command(const char *command, struct diagnosis *out)
{
	const char *list = getenv("PATH");
	char path[PATH_MAX];
	size_t n;

	if (strchr(command, '/')) {
		if (access(command, F_OK) != 0)
			return -1;
		diagnose_file(command, out);
		return 0;
	}
	for (list = list ? list : "/usr/local/bin:/usr/bin:/bin"; *list;
	     list += n + (list[n] == ':')) {
		n = strcspn(list, ":");
		snprintf(path, sizeof(path), "%.*s/%s", (int)n, list, command);
		if (access(path, X_OK) == 0) {
			diagnose_file(path, out);
			return 0;
		}
	}
	errno = ENOENT;
	return -1;
}

/* --- processes --- */

struct mapped {
	bool us, core, curl;
	char library[PATH_MAX];
};

static void look_at_line(const char *line, struct mapped *m)
{
	const char *path = strchr(line, '/'), *name = path ? strrchr(path, '/') : NULL;

	if (!name)
		return;
	name++;
	m->us |= strncmp(name, "libsendonce.so", 14) == 0;
	m->core |= strncmp(name, "libsendonce-core.so", 19) == 0;
	if (strncmp(name, "libcurl.so", 10) == 0 || strncmp(name, "libcurl-", 8) == 0) {
		m->curl = true;
		snprintf(m->library, sizeof(m->library), "%.*s", (int)strcspn(path, "\n"), path);
	}
}

static int read_maps(pid_t pid, struct mapped *m)
{
	char path[64], line[PATH_MAX + 128];
	FILE *f;

	*m = (struct mapped){.us = false};
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		look_at_line(line, m);
	fclose(f);
	return 0;
}

/* Is LD_PRELOAD, with us in it, in the environment the process was started with? */
static bool was_asked_for(pid_t pid)
{
	char path[64], *text = NULL;
	size_t room = 0;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	f = fopen(path, "re");
	while (f && !found && getdelim(&text, &room, '\0', f) > 0)
		found = strncmp(text, "LD_PRELOAD=", 11) == 0 && strstr(text, "libsendonce.so");
	if (f)
		fclose(f);
	free(text);
	return found;
}

static void judge_unseen(pid_t pid, const struct mapped *m, struct diagnosis *d)
{
	if (was_asked_for(pid)) {
		say(d, SIGHT_NOT, "%s is loaded, sendonce is not, although its LD_PRELOAD names it",
		    m->library);
		advise(d, "the file named there cannot be loaded by it (path, permissions, "
		          "AppArmor), or "
		          "it was installed later: restart it");
		return;
	}
	say(d, SIGHT_NOT,
	    "%s is loaded, sendonce is not: LD_PRELOAD was lost on the way (env -i, "
	    "sudo, clear_env, a unit file) or never set",
	    m->library);
	advise(d, "set LD_PRELOAD where it is started, or use /etc/ld.so.preload");
}

/* Nothing of libcurl is loaded: is there one inside? */
static bool judge_executable(const char *link, struct diagnosis *d)
{
	struct diagnosis file;

	diagnose_file(link, &file);
	d->sight = SIGHT_NOT;
	if (file.sight == SIGHT_PROTECTED) {
		say(d, SIGHT_NOT, "sendonce is not loaded, and so far libcurl is not either");
		return false;
	}
	memcpy(d->why, file.why, sizeof(d->why));
	memcpy(d->advice, file.advice, sizeof(d->advice));
	return file.curl_inside;
}

int diagnose_process(pid_t pid, struct diagnosis *out, bool *concerned)
{
	char link[64];
	struct mapped m;
	ssize_t n;

	*out = (struct diagnosis){.sight = SIGHT_NOT};
	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	n = readlink(link, out->name, sizeof(out->name) - 1);
	if (n < 0 || read_maps(pid, &m) != 0)
		return -1;
	out->name[n] = '\0';
	*concerned = m.us || m.curl;
	if (m.core)
		say(out, SIGHT_PROTECTED, "sendonce and its core are loaded");
	else if (m.us && m.curl)
		say(out, SIGHT_PROTECTED,
		    "sendonce is loaded beside %s; its core comes with the first "
		    "request",
		    m.library);
	else if (m.us)
		say(out, SIGHT_PARTLY, "sendonce is loaded; libcurl is not, so far");
	else if (m.curl)
		judge_unseen(pid, &m, out);
	else
		*concerned = judge_executable(link, out);
	return 0;
}
