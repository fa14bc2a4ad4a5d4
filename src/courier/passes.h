/* Counting the wire sends of one transfer, and telling whether an answer came between two of them.
 *
 * Fed with what a handle's callbacks see, whoever's handle it is: the courier's own, or the
 * program's where it is served in place. Not shared between threads: only the transfer's own
 * callbacks touch it. */
#ifndef SENDONCE_COURIER_PASSES_H
#define SENDONCE_COURIER_PASSES_H

#include <stdbool.h>
#include <stddef.h>

#include "courier/courier.h"

struct authority {
	char scheme[16];
	char host[256];
	long port;
};

/* All zero is the start; `first.port` may be set before, where CURLOPT_PORT replaces the URL's. */
struct passes {
	bool by_lines;   /* no PREREQ in this libcurl: requests are counted by their answers */
	bool opening;    /* header blocks that come now are CONNECT's */
	bool answered;   /* an answer that makes libcurl ask again came since the last pass */
	bool in_block;   /* between a status line and its empty line */
	bool block_done; /* a final header block came since the last pass */
	unsigned count, request;
	long status, block_status;
	long seen_at; /* 302 or 303: what the first request was answered, when another followed */
	struct authority first;
	char *first_url; /* `first_room`, or allocated */
	char first_room[96];
};

/* A wire send is about to happen. `url` may be null and must live as long as *out is used. */
void passes_begin(struct passes *p, const char *url, struct gate_pass *out);
/* A header line of an answer. True: it ended a block. */
bool passes_header(struct passes *p, const char *line, size_t n);
/* The number in a status line; 0: there is none. */
long passes_status(const char *line, size_t n);
/* A request head has left (CURLINFO_HEADER_OUT): tells CONNECT's answers where no socket callback
 * does. */
void passes_request(struct passes *p, const char *head, size_t n);
/* Which request of the transfer is being answered, 0-based. */
unsigned passes_answering(const struct passes *p);
/* 302 or 303 came for the write itself, and then something else was asked, or was to be; 0: no. */
long passes_seen_at(const struct passes *p, bool failed);
/* The answer that came last makes libcurl ask for something else by GET; `keep_post`: POSTREDIR. */
bool passes_drops_body(const struct passes *p, long keep_post);
void passes_free(struct passes *p);

/* False: no host can be read from it. */
bool passes_authority(const char *url, struct authority *out);

#endif
