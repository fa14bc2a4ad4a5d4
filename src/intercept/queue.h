/* Which transfers of a multi have something to do now, without a look at each of them: those whose
 * time has come, and those for which the bell was rung. In the order they were added. */
#ifndef SENDONCE_INTERCEPT_QUEUE_H
#define SENDONCE_INTERCEPT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct multi;
struct pseudo;

/* All zero is an empty one. */
struct queue {
	struct pseudo **heap; /* by time, the nearest first */
	struct pseudo **come; /* to be looked at in this call */
	size_t at, coming;    /* those from `at` on still are */
	size_t timed, members, room;
	unsigned ours; /* not over, and not counted by libcurl */
	uint64_t last_number;
};

/* In and out; false: no memory. */
bool queue_join(struct multi *m, struct pseudo *p);
void queue_leave(struct pseudo *p);
/* Something about it has changed. */
void queue_settle(struct pseudo *p);
void queue_free(struct queue *q);

unsigned queue_ours(const struct multi *m);
/* When the next one has something to do; not after `now_us` if one has it now; MULTI_NEVER: none.
 */
int64_t queue_due_us(const struct multi *m, int64_t now_us);
/* pseudo_step for each that has something to do. */
void queue_step(struct multi *m);

#endif
