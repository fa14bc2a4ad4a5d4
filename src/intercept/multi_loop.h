/* The program's loop over a managed multi, whichever of libcurl's ways it uses: what it has to wait
 * for, and what is done each time it comes by. */
#ifndef SENDONCE_INTERCEPT_MULTI_LOOP_H
#define SENDONCE_INTERCEPT_MULTI_LOOP_H

#include "intercept/multi.h"

/* From now on messages and times of this multi go through us. */
void loop_manage(struct multi *m);

/* Before and after libcurl's own perform or socket_action. begin: our transfers go as far as they
 * can. end: libcurl's messages are taken over, and *running becomes the number of all. */
void loop_begin(struct multi *m);
void loop_end(struct multi *m, int *running);

/* socket_action with CURL_SOCKET_TIMEOUT: what the program was told has come. */
void loop_timer_fired(struct multi *m);
/* Tell TIMERFUNCTION what has changed, and, where `sockets`, SOCKETFUNCTION. CURLM_OK, or what the
 * call that this is the end of has to return. */
CURLMcode loop_tell(struct multi *m, bool sockets);

/* When we want to be called, in milliseconds; -1: not. */
long loop_timeout_ms(struct multi *m);
/* The sooner of two such numbers. */
long loop_sooner_ms(long one, long other);
/* What has to be watched for reading while any transfer of ours is not over; -1: nothing. */
int loop_fd(struct multi *m);

#endif
