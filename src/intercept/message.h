/* The messages of one multi, in the order its transfers ended: libcurl's own and ours in one queue.
 * Each message lies with the transfer it is about; only a stranger's is allocated. */
#ifndef SENDONCE_INTERCEPT_MESSAGE_H
#define SENDONCE_INTERCEPT_MESSAGE_H

#include <stdbool.h>

#include "base/curlapi.h"

struct messages;

/* All zero: not queued. */
struct message {
	struct message *next;
	struct messages *in;
	bool stranger; /* it is freed when it leaves the queue */
	CURLMsg *msg;  /* valid as long as its handle is not removed */
};

struct messages {
	struct message *first, *last;
	struct message
	        *untold; /* the first that message_untold has not given; those after it too */
	int count;
	bool arrived; /* one has come into an empty queue */
};

void message_add(struct messages *q, struct message *m, CURLMsg *msg);
/* The oldest; null: none. *left: how many are there after it. */
CURLMsg *message_take(struct messages *q, int *left);
/* The oldest that this has not given yet; null: none. *arrived: since the last time one has come
 * into an empty queue. */
struct message *message_untold(struct messages *q, bool *arrived);
/* Out of whatever queue it is in. */
void message_drop(struct message *m);
/* A stranger's, by its handle. */
void message_drop_of(struct messages *q, CURL *handle);

#endif
