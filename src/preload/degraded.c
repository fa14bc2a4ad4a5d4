/* Refuses writes when the core is missing. It follows the options that decide the method of a
 * handle, as libcurl does (the last one wins), and lets every setopt go on to libcurl; only the
 * transfer itself is refused. SENDONCE_FAIL=open, and the modes that never refuse, pass everything.
 *
 * A handle nothing is known of is a GET. The table is fixed: handles that found no room in it make
 * every unknown handle count as a write from then on. A handle is used by one thread at a time, so
 * only claiming and freeing an entry need atomics. Not followed: options of a handle made by
 * curl_easy_duphandle before the core failed; what curl_easy_send carries, which has no method. */
#include "preload/degraded.h"
#include "preload/environ.h"
#include "preload/flavours.h"
#include "preload/text.h"

#define MAX_HANDLES 256
#define ERROR_SIZE  256 /* CURL_ERROR_SIZE */

enum option { /* the numbers of curl.h */
	      OPTION_NOBODY = 44,
	      OPTION_UPLOAD = 46,
	      OPTION_POST = 47,
	      OPTION_PUT = 54,
	      OPTION_HTTPGET = 80,
	      OPTION_CONNECT_ONLY = 141,
	      OPTION_ERRORBUFFER = 10010,
	      OPTION_POSTFIELDS = 10015,
	      OPTION_HTTPPOST = 10024,
	      OPTION_CUSTOMREQUEST = 10036,
	      OPTION_COPYPOSTFIELDS = 10165,
	      OPTION_MIMEPOST = 10269
};

enum method { METHOD_GET, METHOD_HEAD, METHOD_WRITE };
enum custom { CUSTOM_NONE, CUSTOM_READ, CUSTOM_WRITE };

struct handle_entry {
	unsigned long handle; /* 0: free */
	char *error_buffer;
	unsigned char method;
	unsigned char custom;
	unsigned char connect_only;
};

static struct handle_entry entries[MAX_HANDLES];
static int is_overfull; /* relaxed: once a handle was turned away, it stays set */

static const char refusal[] = "sendonce: write refused: libsendonce-core.so cannot be loaded "
                              "(SENDONCE_LOG names a file that says why)";

static struct handle_entry *find(unsigned long handle)
{
	for (int i = 0; handle && i < MAX_HANDLES; i++) {
		if (__atomic_load_n(&entries[i].handle, __ATOMIC_RELAXED) == handle)
			return &entries[i];
	}
	return 0;
}

static struct handle_entry *find_or_claim(unsigned long handle)
{
	struct handle_entry *entry = find(handle);
	for (int i = 0; handle && !entry && i < MAX_HANDLES; i++) {
		unsigned long holder = 0;
		/* Acquire pairs with forget's release: its last owner is done with the fields. */
		if (__atomic_compare_exchange_n(&entries[i].handle, &holder, handle, 0,
		                                __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			entry = &entries[i];
	}
	if (!entry)
		__atomic_store_n(&is_overfull, 1, __ATOMIC_RELAXED);
	return entry;
}

static void forget(unsigned long handle)
{
	struct handle_entry *entry = find(handle);
	if (!entry)
		return;
	entry->error_buffer = 0;
	entry->method = METHOD_GET;
	entry->custom = CUSTOM_NONE;
	entry->connect_only = 0;
	__atomic_store_n(&entry->handle, 0, __ATOMIC_RELEASE);
}

static int is_followed(unsigned option)
{
	static const unsigned short followed[] = {
	        OPTION_NOBODY,   OPTION_UPLOAD,        OPTION_POST,           OPTION_PUT,
	        OPTION_HTTPGET,  OPTION_CONNECT_ONLY,  OPTION_ERRORBUFFER,    OPTION_POSTFIELDS,
	        OPTION_HTTPPOST, OPTION_CUSTOMREQUEST, OPTION_COPYPOSTFIELDS, OPTION_MIMEPOST};
	for (unsigned long i = 0; i < sizeof(followed) / sizeof(followed[0]); i++) {
		if (followed[i] == option)
			return 1;
	}
	return 0;
}

static enum custom custom_of(const char *name)
{
	static const char reads[] = "GET\0HEAD\0OPTIONS\0TRACE\0";
	if (!name)
		return CUSTOM_NONE;
	for (const char *read = reads; *read; read += text_length(read) + 1) {
		if (text_equal(name, read))
			return CUSTOM_READ;
	}
	return CUSTOM_WRITE;
}

static enum method after_nobody(enum method method, int on)
{
	if (on)
		return METHOD_HEAD;
	return method == METHOD_HEAD ? METHOD_GET : method;
}

static void apply(struct handle_entry *entry, unsigned option, unsigned long value)
{
	int on = (int)value != 0; /* a long; FFI callers may pass an int with a dirty upper half */

	if (option == OPTION_ERRORBUFFER)
		entry->error_buffer = (char *)value;
	else if (option == OPTION_CUSTOMREQUEST)
		entry->custom = (unsigned char)custom_of((const char *)value);
	else if (option == OPTION_CONNECT_ONLY)
		entry->connect_only = (unsigned char)on;
	else if (option == OPTION_NOBODY)
		entry->method = (unsigned char)after_nobody((enum method)entry->method, on);
	else if (option == OPTION_HTTPGET)
		entry->method = on ? METHOD_GET : entry->method;
	else if (option == OPTION_POST || option == OPTION_PUT || option == OPTION_UPLOAD)
		entry->method = on ? METHOD_WRITE : METHOD_GET;
	else /* a body, even a null one, makes it a POST: libcurl says so */
		entry->method = METHOD_WRITE;
}

static void follow(unsigned long handle, unsigned option, unsigned long value)
{
	if (!is_followed(option))
		return;
	/* Most programs set most options to what they are anyway. */
	struct handle_entry *entry = value ? find_or_claim(handle) : find(handle);
	if (!entry && option > 10000 && option != OPTION_ERRORBUFFER &&
	    option != OPTION_CUSTOMREQUEST)
		entry = find_or_claim(handle);
	if (entry)
		apply(entry, option, value);
}

static int is_write(unsigned long handle)
{
	const struct handle_entry *entry = find(handle);
	if (!entry)
		return __atomic_load_n(&is_overfull, __ATOMIC_RELAXED);
	if (entry->connect_only)
		return 0;
	if (entry->custom != CUSTOM_NONE)
		return entry->custom == CUSTOM_WRITE;
	return entry->method == METHOD_WRITE;
}

static void explain(unsigned long handle)
{
	const struct handle_entry *entry = find(handle);
	struct text text;
	if (!entry || !entry->error_buffer)
		return;
	text_begin(&text, entry->error_buffer, ERROR_SIZE);
	text_add(&text, refusal);
}

/* CURLE_ABORTED_BY_CALLBACK: "somebody on this side stopped it". Programs do not retry it as they
 * would a connection that failed, and it claims nothing about the server. */
static int refuse_perform(void)
{
	return 42;
}

/* CURLM_INTERNAL_ERROR: the one code every version knows that does not blame the handle, which
 * some programs answer by freeing it. */
static int refuse_add(void)
{
	return 4;
}

typedef void *duphandle_fn(void *handle);

static void *follow_duphandle(void *handle)
{
	const struct flavour *flavour = flavours_of_caller(__builtin_return_address(0));
	duphandle_fn *real = flavour ? (duphandle_fn *)flavour->fn[FN_easy_duphandle] : 0;
	unsigned long made = real ? (unsigned long)real(handle) : 0;
	const struct handle_entry *from = find((unsigned long)handle);
	struct handle_entry *to = made && from ? find_or_claim(made) : 0;

	if (to) { /* all but the error buffer, which libcurl does not copy either */
		to->method = from->method;
		to->custom = from->custom;
		to->connect_only = from->connect_only;
	}
	return (void *)made;
}

int degraded_passes_everything(void)
{
	const char *fail = environ_get(ENV_SENDONCE_FAIL);
	const char *mode = environ_get(ENV_SENDONCE_MODE);
	if (fail && text_equal(fail, "open"))
		return 1;
	return mode && (text_equal(mode, "off") || text_equal(mode, "audit"));
}

void *degraded_select(enum curl_fn function, const unsigned long *args, void *real)
{
	unsigned long subject = function == FN_multi_add_handle ? args[1] : args[0];

	if (degraded_passes_everything())
		return real;
	if (function == FN_easy_setopt)
		follow(subject, (unsigned)args[1], args[2]);
	else if (function == FN_easy_reset || function == FN_easy_cleanup)
		forget(subject);
	else if (function == FN_easy_duphandle)
		return (void *)follow_duphandle;
	if (function != FN_easy_perform && function != FN_multi_add_handle)
		return real;
	if (!is_write(subject))
		return real;
	explain(subject);
	return function == FN_easy_perform ? (void *)refuse_perform : (void *)refuse_add;
}

static long answer_null(void)
{
	return 0;
}

static int answer_failed_init(void) /* CURLE_FAILED_INIT */
{
	return 2;
}

static int answer_bad_handle(void) /* CURLM_BAD_HANDLE */
{
	return 1;
}

static int answer_not_built_in(void) /* CURLHE_NOT_BUILT_IN */
{
	return 7;
}

void *degraded_missing(enum curl_fn function)
{
	switch (function) {
	case FN_easy_setopt:
	case FN_easy_perform:
	case FN_easy_getinfo:
	case FN_easy_pause:
	case FN_easy_send:
	case FN_easy_recv:
	case FN_easy_upkeep:
	case FN_mime_data_cb:
		return (void *)answer_failed_init;
	case FN_easy_header:
		return (void *)answer_not_built_in;
	case FN_multi_add_handle:
		return (void *)refuse_add;
	case FN_multi_cleanup:
	case FN_multi_setopt:
	case FN_multi_remove_handle:
	case FN_multi_perform:
	case FN_multi_socket_action:
	case FN_multi_socket:
	case FN_multi_socket_all:
	case FN_multi_fdset:
	case FN_multi_wait:
	case FN_multi_poll:
	case FN_multi_timeout:
	case FN_multi_assign:
	case FN_multi_waitfds:
	case FN_multi_notify_enable:
	case FN_multi_notify_disable:
		return (void *)answer_bad_handle;
	default: /* no pointer, or no answer at all */
		return (void *)answer_null;
	}
}
