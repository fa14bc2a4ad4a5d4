/* A libcurl that is mapped into this process, and its functions.
 *
 * One process may hold several (OpenSSL and GnuTLS builds, a vendored copy under another
 * name), so there is no global table: every easy handle is tied to the flavour that made it.
 * Shared by the preload, which finds flavours and has no libc, and by the core; hence no
 * libc header may be included here. The assembler reads the two name lists too. */
#ifndef SENDONCE_BASE_FLAVOUR_H
#define SENDONCE_BASE_FLAVOUR_H

/* The functions we export and intercept, without their `curl_` prefix. */
#define CURL_HOOKED(X)                                                                             \
	X(easy_init)                                                                               \
	X(easy_cleanup)                                                                            \
	X(easy_reset)                                                                              \
	X(easy_duphandle)                                                                          \
	X(easy_setopt)                                                                             \
	X(easy_perform)                                                                            \
	X(easy_getinfo)                                                                            \
	X(easy_pause)                                                                              \
	X(easy_header)                                                                             \
	X(easy_nextheader)                                                                         \
	X(easy_send)                                                                               \
	X(easy_recv)                                                                               \
	X(easy_upkeep)                                                                             \
	X(multi_init)                                                                              \
	X(multi_cleanup)                                                                           \
	X(multi_setopt)                                                                            \
	X(multi_add_handle)                                                                        \
	X(multi_remove_handle)                                                                     \
	X(multi_perform)                                                                           \
	X(multi_socket_action)                                                                     \
	X(multi_socket)                                                                            \
	X(multi_socket_all)                                                                        \
	X(multi_fdset)                                                                             \
	X(multi_wait)                                                                              \
	X(multi_poll)                                                                              \
	X(multi_timeout)                                                                           \
	X(multi_assign)                                                                            \
	X(multi_info_read)                                                                         \
	X(multi_get_handles)                                                                       \
	X(multi_waitfds)                                                                           \
	X(multi_notify_enable)                                                                     \
	X(multi_notify_disable)                                                                    \
	X(mime_data_cb)                                                                            \
	X(mime_free)

/* The functions we only call. Any of them may be missing in an older libcurl: its slot is null. */
#define CURL_CALLED(X)                                                                             \
	X(easy_strerror)                                                                           \
	X(easy_escape)                                                                             \
	X(free)                                                                                    \
	X(getdate)                                                                                 \
	X(global_init)                                                                             \
	X(global_cleanup)                                                                          \
	X(multi_strerror)                                                                          \
	X(multi_wakeup)                                                                            \
	X(share_init)                                                                              \
	X(share_setopt)                                                                            \
	X(share_cleanup)                                                                           \
	X(slist_append)                                                                            \
	X(slist_free_all)                                                                          \
	X(url)                                                                                     \
	X(url_cleanup)                                                                             \
	X(url_dup)                                                                                 \
	X(url_get)                                                                                 \
	X(url_set)                                                                                 \
	X(version_info)

#ifndef __ASSEMBLER__

enum curl_fn {
#define CURL_FN_NAME(name) FN_##name,
	CURL_HOOKED(CURL_FN_NAME) FN_HOOKED_COUNT,
	FN_before_called = FN_HOOKED_COUNT - 1,
	CURL_CALLED(CURL_FN_NAME) FN_COUNT
#undef CURL_FN_NAME
};

/* Never freed and never moved once published: a pointer to a flavour is good for ever, since
 * the libcurl behind it is pinned (RTLD_NOLOAD|RTLD_NODELETE) when it is first used. */
struct flavour {
	unsigned long text_lo; /* the executable segment: [text_lo, text_hi) */
	unsigned long text_hi;
	unsigned long base;         /* load bias, as in link_map.l_addr */
	const char *path;           /* as the loader knows it; owned by the loader */
	void (*fn[FN_COUNT])(void); /* null where this libcurl does not have the function */
};

#endif /* __ASSEMBLER__ */
#endif
