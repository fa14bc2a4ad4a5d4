/* Notifications (libcurl 8.17 and later): a callback of a program's multi that is told of each
 * transfer that ends, and of messages that wait to be read, at the end of a perform or
 * socket_action. In a managed multi the messages are in our queue, so that it is ours to call. */
#ifndef SENDONCE_INTERCEPT_MULTI_NOTIFY_H
#define SENDONCE_INTERCEPT_MULTI_NOTIFY_H

#include "intercept/multi.h"

/* The multi is managed from now on: libcurl calls no more. */
void notify_manage(struct multi *m);
/* True: `option` is one of notifications', recorded, and libcurl must not get it. */
bool notify_keeps(struct multi *m, CURLMoption option, uintptr_t word);
/* libcurl has taken it. */
void notify_record(struct multi *m, CURLMoption option, uintptr_t word);
/* The program's callback is called for what is new. With `busy` off: it may use its multi. */
void notify_tell(struct multi *m);

CURLMcode hook_multi_notify_enable(CURLM *multi, unsigned notification);
CURLMcode hook_multi_notify_disable(CURLM *multi, unsigned notification);

#endif
