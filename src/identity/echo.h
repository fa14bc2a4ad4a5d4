/* What an answer repeats of its request (`answers.echo`). */
#ifndef SENDONCE_IDENTITY_ECHO_H
#define SENDONCE_IDENTITY_ECHO_H

#include "policy/policy.h"

/* `answer`, of that Content-Type, with what the pointers name taken from `request`. True: `out`,
 * empty before, is another text than the answer. */
bool echo_answer(const struct text_list *pointers, struct span request, struct span type,
                 struct span answer, struct buf *out);

#endif
