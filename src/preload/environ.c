/* Keeps the values of our variables for later. php-fpm clears its environment and setproctitle
 * writes over the very bytes, so the strings are copied, not pointed to, when the process is
 * loaded. The constructor only copies: no system call, no allocation, errno untouched.
 *
 * Another library's constructor may call libcurl before ours has run; then the first question
 * asked here does the copying. Two threads that do it at once write the same bytes. A value that
 * does not fit into the buffer is only pointed to: no promise for it once it is overwritten. */
#include "preload/environ.h"
#include "preload/text.h"

#include <linux/auxvec.h>

#define KEEP_BYTES 4096

extern char **__environ __attribute__((weak));
extern unsigned long getauxval(unsigned long type) __attribute__((weak));
extern const char *gnu_get_libc_version(void) __attribute__((weak));

static char kept[KEEP_BYTES];
static const char *value_of[ENV_COUNT];
static int is_secure;
static int is_disabled;
static int is_captured; /* release: value_of, is_secure and is_disabled are complete */

static const char names[] =
#define NAME(name) #name "\0"
        CORELINK_ENV(NAME)
#undef NAME
        ;

/* `variable` is "NAME=value": the value if NAME is this name. */
static const char *value_in(const char *variable, const char *name)
{
	if (!text_starts_with(variable, name))
		return 0;
	variable += text_length(name);
	return *variable == '=' ? variable + 1 : 0;
}

static const char *find_value(char **envp, const char *name)
{
	for (; *envp; envp++) {
		const char *value = value_in(*envp, name);
		if (value)
			return value;
	}
	return 0;
}

static const char *keep(struct text *buffer, const char *value)
{
	unsigned long length = text_length(value);
	if (buffer->length + length + 2 > buffer->size)
		return value;
	const char *copy = buffer->data + buffer->length;
	text_add_bytes(buffer, value, length);
	buffer->length++; /* the NUL stays */
	return copy;
}

static void capture(char **envp, int secure)
{
	struct text buffer = {kept, sizeof(kept), 0};
	const char *name = names;

	for (int i = 0; i < ENV_COUNT; i++) {
		const char *value = secure ? 0 : find_value(envp, name);
		value_of[i] = value ? keep(&buffer, value) : 0;
		name += text_length(name) + 1;
	}
	is_secure = secure;
	is_disabled = secure || (value_of[ENV_SENDONCE_DISABLE] &&
	                         text_equal(value_of[ENV_SENDONCE_DISABLE], "1"));
	__atomic_store_n(&is_captured, 1, __ATOMIC_RELEASE);
}

/* The auxiliary vector lies behind the environment the kernel made. Only valid for that one. */
static int secure_behind(char **envp)
{
	while (*envp)
		envp++;
	const unsigned long *pair = (const unsigned long *)(envp + 1);
	for (; pair[0] != AT_NULL; pair += 2) {
		if (pair[0] == AT_SECURE)
			return pair[1] != 0;
	}
	return 0;
}

/* glibc hands argc, argv and envp to constructors; musl hands over whatever the registers hold.
 * Where there is no libc at all there is no libcurl either, and nothing to keep. */
__attribute__((constructor)) static void environ_at_load(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	if (__atomic_load_n(&is_captured, __ATOMIC_ACQUIRE))
		return;
	if (gnu_get_libc_version && envp)
		capture(envp, getauxval ? getauxval(AT_SECURE) != 0 : secure_behind(envp));
	else if (&__environ && __environ)
		capture(__environ, getauxval ? getauxval(AT_SECURE) != 0 : 1);
}

static void ensure_captured(void)
{
	if (__atomic_load_n(&is_captured, __ATOMIC_ACQUIRE))
		return;
	if (&__environ && __environ)
		capture(__environ, getauxval ? getauxval(AT_SECURE) != 0 : 1);
}

const char *environ_get(enum corelink_env name)
{
	ensure_captured();
	return value_of[name];
}

int environ_is_disabled(void)
{
	ensure_captured();
	return is_disabled;
}

const void *environ_program_headers(unsigned long *count)
{
	*count = getauxval ? getauxval(AT_PHNUM) : 0;
	return *count ? (const void *)getauxval(AT_PHDR) : 0;
}
