/* The header lines of one transfer, answering curl_easy_header and curl_easy_nextheader as libcurl
 * would from its own list. Built from the lines a program was played, because the courier's handle,
 * which has them too, is not the program's and may be gone. */
#ifndef SENDONCE_PLAYER_HEADERS_H
#define SENDONCE_PLAYER_HEADERS_H

#include <stddef.h>

#include "base/curlapi.h"

struct headers; /* opaque */

struct headers *headers_new(void); /* null: out of memory */
void headers_free(struct headers *h);

/* Add one line (with or without its CRLF) of request number `request`. `origin` is CURLH_CONNECT
 * for a line of a CONNECT answer, else 0: then HEADER, 1XX, TRAILER and PSEUDO (":status" of
 * HTTP/2) are worked out from the lines seen. Status lines and blank lines only move that along. 0;
 * -1: out of memory or not a header, which is then left out. */
int headers_add(struct headers *h, const char *line, size_t n, unsigned origin, int request);

/* Another request was begun, of which no line came: what libcurl counts when it stops following. */
void headers_next_request(struct headers *h);

/* As curl_easy_header and curl_easy_nextheader. The struct they give lives until the next call. */
CURLHcode headers_get(struct headers *h, const char *name, size_t index, unsigned origin,
                      int request, struct curl_header **out);
struct curl_header *headers_next(struct headers *h, unsigned origin, int request,
                                 const struct curl_header *prev);

#endif
