/* The intercepted functions of the multi interface. Each does what libcurl's does, for transfers of
 * libcurl's and ours alike; hooks.c puts them into the core's table. */
#ifndef SENDONCE_INTERCEPT_MULTI_HOOKS_H
#define SENDONCE_INTERCEPT_MULTI_HOOKS_H

#include <stdint.h>
#include <sys/select.h>

#include "base/curlapi.h"
#include "intercept/decide.h"
#include "intercept/multi.h"
#include "intercept/shadow.h"

CURLM *hook_multi_init(void);
CURLMcode hook_multi_cleanup(CURLM *multi);
CURLMcode hook_multi_setopt(CURLM *multi, CURLMoption option, uintptr_t word);
CURLMcode hook_multi_add_handle(CURLM *multi, CURL *handle);
CURLMcode hook_multi_remove_handle(CURLM *multi, CURL *handle);
CURLMcode hook_multi_perform(CURLM *multi, int *running);
CURLMcode hook_multi_socket_action(CURLM *multi, curl_socket_t fd, int events, int *running);
CURLMcode hook_multi_socket(CURLM *multi, curl_socket_t fd, int *running);
CURLMcode hook_multi_socket_all(CURLM *multi, int *running);
CURLMcode hook_multi_fdset(CURLM *multi, fd_set *in, fd_set *out, fd_set *exc, int *max);
CURLMcode hook_multi_wait(CURLM *multi, struct curl_waitfd *fds, unsigned count, int ms,
                          int *ready);
CURLMcode hook_multi_poll(CURLM *multi, struct curl_waitfd *fds, unsigned count, int ms,
                          int *ready);
CURLMcode hook_multi_timeout(CURLM *multi, long *ms);
CURLMcode hook_multi_assign(CURLM *multi, curl_socket_t fd, void *data);
CURLMsg *hook_multi_info_read(CURLM *multi, int *left);
CURL **hook_multi_get_handles(CURLM *multi);
CURLMcode hook_multi_waitfds(CURLM *multi, struct curl_waitfd *fds, unsigned size, unsigned *count);

/* The handle is in no multi, and libcurl alone does not serve it. */
CURLMcode multi_add_ours(struct multi *m, struct shadow *s, const struct decision *d);

/* For the hooks of an easy handle that may be in a multi: it is cleaned up (before libcurl does
 * it), or may go on (after). */
void multi_handle_dropped(struct shadow *s);
void multi_handle_resumed(struct shadow *s);
/* libcurl itself has it in the program's multi. */
bool multi_handle_is_native(const struct shadow *s);

#endif
