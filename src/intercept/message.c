/* See message.h. */
#include "intercept/message.h"

#include <stdlib.h>

void message_add(struct messages *q, struct message *m, CURLMsg *msg)
{
	message_drop(m);
	m->in = q;
	m->next = NULL;
	m->msg = msg;
	q->arrived = q->arrived || !q->count;
	if (!q->untold)
		q->untold = m;
	if (q->last)
		q->last->next = m;
	else
		q->first = m;
	q->last = m;
	q->count++;
}

CURLMsg *message_take(struct messages *q, int *left)
{
	struct message *m = q->first;
	CURLMsg *msg = m ? m->msg : NULL;

	if (m)
		message_drop(m);
	*left = q->count;
	return msg;
}

struct message *message_untold(struct messages *q, bool *arrived)
{
	struct message *m = q->untold;

	if (!m)
		return NULL;
	q->untold = m->next;
	*arrived = q->arrived;
	q->arrived = false;
	return m;
}

void message_drop(struct message *m)
{
	struct messages *q = m->in;
	struct message *before = NULL;

	if (!q)
		return;
	for (struct message *at = q->first; at != m; at = at->next)
		before = at;
	if (before)
		before->next = m->next;
	else
		q->first = m->next;
	if (q->last == m)
		q->last = before;
	if (q->untold == m)
		q->untold = m->next;
	q->count--;
	if (m->stranger)
		free(m);
	else
		*m = (struct message){0};
}

void message_drop_of(struct messages *q, CURL *handle)
{
	for (struct message *m = q->first, *next; m; m = next) {
		next = m->next;
		if (m->stranger && m->msg->easy_handle == handle)
			message_drop(m);
	}
}
