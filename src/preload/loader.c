/* Finds dlopen, dlsym, dlvsym and dlerror of the libc by walking the loader's objects. Linking to
 * them would need a libc version, or a libdl, that not every process has. What is found stays: libc
 * is never unloaded. A process without libdl (glibc before 2.34) may get it later, so that "absent"
 * is not remembered. */
#include "preload/loader.h"
#include "preload/object.h"

static unsigned long find_once(unsigned long *cache, const char *name)
{
	/* A single word that is complete by itself; several threads find the same. */
	unsigned long address = __atomic_load_n(cache, __ATOMIC_RELAXED);
	if (address)
		return address;
	address = object_next_symbol(name);
	__atomic_store_n(cache, address, __ATOMIC_RELAXED);
	return address;
}

loader_dlopen_fn *loader_dlopen(void)
{
	static unsigned long cache;
	return (loader_dlopen_fn *)find_once(&cache, "dlopen");
}

loader_dlsym_fn *loader_dlsym(void)
{
	static unsigned long cache;
	return (loader_dlsym_fn *)find_once(&cache, "dlsym");
}

loader_dlvsym_fn *loader_dlvsym(void)
{
	static unsigned long cache;
	return (loader_dlvsym_fn *)find_once(&cache, "dlvsym");
}

const char *loader_error(void)
{
	static unsigned long cache;
	char *(*dlerror)(void) = (char *(*)(void))find_once(&cache, "dlerror");
	const char *message = dlerror ? dlerror() : 0;
	return message ? message : "no reason given";
}

int *loader_errno(void)
{
	static unsigned long cache;
	int *(*location)(void) = (int *(*)(void))find_once(&cache, "__errno_location");
	return location ? location() : 0;
}

void loader_pin(const char *path)
{
	loader_dlopen_fn *open = loader_dlopen();
	int *error = loader_errno();
	int saved = error ? *error : 0;

	if (!open || !path || !path[0])
		return; /* the executable stays anyway */
	/* A failed call would leave a text that the program's next dlerror() shows as its own. */
	if (!open(path, LOADER_LAZY | LOADER_NOLOAD | LOADER_NODELETE))
		loader_error();
	if (error)
		*error = saved;
}
