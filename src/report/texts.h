/* Each text once, named by a number. */
#ifndef SENDONCE_REPORT_TEXTS_H
#define SENDONCE_REPORT_TEXTS_H

#include <stdint.h>

#include "base/bytes.h"

struct log_texts;
struct log_texts *texts_new(void); /* null: no memory */
void texts_free(struct log_texts *texts);
/* The text's number, made when it is new; -1 out of memory. The empty text is 0. */
int64_t texts_add(struct log_texts *texts, struct span text);
int64_t texts_find(const struct log_texts *texts, struct span text); /* -1: not there */
const char *texts_get(const struct log_texts *texts, uint32_t number);

#endif
