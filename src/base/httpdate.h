/* Dates as HTTP headers hold them (IMF-fixdate): Sun, 06 Nov 1994 08:49:37 GMT. No locale. */
#ifndef SENDONCE_BASE_HTTPDATE_H
#define SENDONCE_BASE_HTTPDATE_H

#include "base/bytes.h"

enum { HTTPDATE_ROOM = 30 };

/* Whole seconds, rounded down; from 1970 to 9999. */
void httpdate_write(char out[HTTPDATE_ROOM], int64_t wall_us);
/* False: not of this form, or no such day. The name of the day is not looked at. */
bool httpdate_read(struct span text, int64_t *wall_us);

#endif
