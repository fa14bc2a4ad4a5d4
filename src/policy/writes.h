/* What a file that another one includes may hold: `version`, `include`, `writes`. */
#ifndef SENDONCE_POLICY_WRITES_H
#define SENDONCE_POLICY_WRITES_H

#include "policy/reader.h"

reader_fn writes_version; /* `at`: nothing */
reader_fn writes_include; /* nothing: writes_included reads them when the rest was read */
reader_fn writes_read;    /* struct policy: the rules are appended */

/* The files that `include` of this tree names, and what they include, in that order. */
int writes_included(struct reader *r, const struct node *root, struct policy *policy);

/* ${NAME} in every value but those whose readers have rules of their own for a variable that is not
 * set (scope, run, step, paths); elsewhere such a one is an error. expand.c */
int expand_tree(struct reader *r, struct node *root);

#endif
