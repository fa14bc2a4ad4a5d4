/* Decides where a call goes; the assembly stubs ask here and jump to what they are told.
 *
 * For a curl_* call: libcurl calling itself goes to libcurl, whatever else holds, since a hook
 * there would take internal transfers for the program's. A process where sendonce is switched off
 * or must not act, and a function the core leaves alone, go to the real function as well.
 *
 * For dlsym and dlvsym: foreign function interfaces bind by them, so a hooked name that leads into
 * a libcurl is answered by our entry. The libc is asked exactly once, so that dlerror() stays true;
 * only a program that looks into a process without libcurl, or for a function that its libcurl is
 * too old for, and finds us, is answered by a second question that fails as it would have failed
 * without us. For dlopen: RTLD_DEEPBIND would bind an
 * extension past every preload, so that flag is cleared. */
#include "preload/core.h"
#include "preload/degraded.h"
#include "preload/environ.h"
#include "preload/flavours.h"
#include "preload/loader.h"
#include "preload/object.h"
#include "preload/text.h"

struct dlsym_answer {
	void *value;
	void *jump; /* null: return `value` */
};

struct dlopen_answer {
	unsigned long mode;
	void *jump; /* null: there is no loader to ask */
};

/* The text of the first libcurl that called itself and where such calls go, for the stubs: it is
 * pinned, so what is here once is true for ever. All zero: none yet. The end is stored last. */
struct self {
	unsigned long lo, hi;
	void *to[FN_HOOKED_COUNT];
};
extern struct self preload_self;
struct self preload_self;

/* One thread fills it, and nobody waits for that. */
static void note_self(const struct flavour *flavour)
{
	static int noted;

	if (__atomic_load_n(&noted, __ATOMIC_RELAXED) ||
	    __atomic_exchange_n(&noted, 1, __ATOMIC_RELAXED))
		return;
	for (int i = 0; i < FN_HOOKED_COUNT; i++) {
		void *real = (void *)flavour->fn[i];
		__atomic_store_n(&preload_self.to[i],
		                 real ? real : degraded_missing((enum curl_fn)i), __ATOMIC_RELAXED);
	}
	__atomic_store_n(&preload_self.lo, flavour->text_lo, __ATOMIC_RELAXED);
	/* Release: who sees the end sees the rest. */
	__atomic_store_n(&preload_self.hi, flavour->text_hi, __ATOMIC_RELEASE);
}

/* Called by the stubs only. */
void *preload_select(int index, unsigned long caller, const unsigned long *args);
struct dlsym_answer preload_dlsym(void *handle, const char *name, const char *version,
                                  unsigned long caller);
struct dlopen_answer preload_dlopen(unsigned mode);

#define ENTRY(name) void curl_##name(void);
CURL_HOOKED(ENTRY)
#undef ENTRY

static void *own_entry(int index)
{
	switch (index) {
#define CASE(name)                                                                                 \
	case FN_##name:                                                                            \
		return (void *)curl_##name;
		CURL_HOOKED(CASE)
#undef CASE
	default:
		return 0;
	}
}

/* Not inlined: once the core is there, nobody comes here. */
__attribute__((noinline)) static void *without_core(enum curl_fn function,
                                                    const unsigned long *args, void *real)
{
	if (environ_is_disabled())
		return real;
	/* The core need not hear of a form that was never set where it could see: the curl tool
	 * frees one, null, whatever it does. */
	if (function == FN_mime_free)
		return real;
	if (core_ensure() != CORE_LOADED)
		return degraded_select(function, args, real);
	void *hook = core_hook((int)function);
	return hook ? hook : real;
}

void *preload_select(int index, unsigned long caller, const unsigned long *args)
{
	enum curl_fn function = (enum curl_fn)index;
	const struct flavour *flavour = flavours_of_caller((const void *)caller);
	void *real = flavour ? (void *)flavour->fn[function] : 0;

	if (!real)
		return degraded_missing(function);
	if (caller >= flavour->text_lo && caller < flavour->text_hi) {
		note_self(flavour);
		return real;
	}
	/* Where sendonce is switched off, it never is. */
	if (!core_is_loaded())
		return without_core(function, args, real);
	void *hook = core_hook(index);
	return hook ? hook : real;
}

static int hooked_index(const char *name)
{
	if ((unsigned long)name < 4096 || !text_starts_with(name, "curl_"))
		return -1;
	return flavours_hooked_index(name);
}

/* No version: it is dlsym's question, not dlvsym's. */
static void *real_for(const char *version)
{
	return version ? (void *)loader_dlvsym() : (void *)loader_dlsym();
}

static void *ask(void *handle, const char *name, const char *version)
{
	if (version)
		return loader_dlvsym()(handle, name, version);
	return loader_dlsym()(handle, name);
}

struct dlsym_answer preload_dlsym(void *handle, const char *name, const char *version,
                                  unsigned long caller)
{
	struct dlsym_answer answer = {0, real_for(version)};
	int index = hooked_index(name);

	if (!answer.jump || index < 0 || handle == LOADER_NEXT || environ_is_disabled())
		return answer;
	answer.jump = 0;
	answer.value = ask(handle, name, version);
	if (!answer.value)
		return answer;
	if (answer.value == own_entry(index)) {
		const struct flavour *meant = flavours_of_caller((const void *)caller);
		if (!flavours_any() || (meant && !meant->fn[index]))
			answer.value = ask(LOADER_NEXT, name, version);
		return answer;
	}
	const struct flavour *flavour = flavours_containing((unsigned long)answer.value);
	if (!flavour || (void *)flavour->fn[index] != answer.value)
		return answer;
	flavours_note_handout(caller, flavour);
	answer.value = own_entry(index);
	return answer;
}

struct dlopen_answer preload_dlopen(unsigned mode)
{
	struct dlopen_answer answer = {mode, (void *)loader_dlopen()};

	flavours_forget_callers();
	if (!environ_is_disabled())
		answer.mode = mode & ~(unsigned)LOADER_DEEPBIND;
	return answer;
}
