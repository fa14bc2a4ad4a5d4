/* Reading `when` and `answers.body`: conditions on parts of a request or an answer. */
#ifndef SENDONCE_POLICY_PREDICATE_H
#define SENDONCE_POLICY_PREDICATE_H

#include "policy/reader.h"

/* `at`: struct predicate_list. arg: the parts that can be looked at here, null at the end. */
reader_fn predicate_read;
void predicate_free(struct predicate_list *list);

#endif
