/* Lines of the event log: one JSON object each, its members texts, numbers, words, or an object of
 * those one level down. */
#ifndef SENDONCE_REPORT_SCAN_H
#define SENDONCE_REPORT_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

enum scan_kind { SCAN_TEXT, SCAN_WORD, SCAN_OBJECT };

/* `value` of a text is what stands between its quotes, escapes as written; of an object all of it
 * with its braces. Both spans borrow the line. */
struct scan_member {
	struct span name, value;
	enum scan_kind kind;
};

/* Non-zero ends the scan. */
typedef int scan_visit(void *ctx, const struct scan_member *member);

/* Calls `visit` for each member in its order. 0; -1 when the line is no such object (the members
 * before the fault have been visited then); or what `visit` returned. */
int scan_object(struct span line, scan_visit *visit, void *ctx);

/* The event that was written behind the beginning of a torn one, on the same line: for a line that
 * scan_object takes for none. Empty when there is no such event. */
struct span scan_untorn(struct span line);

/* The text itself, in UTF-8, terminated, cut to `room` bytes. Returns its length. An escape that
 * is none, and half a surrogate pair, become U+FFFD. */
size_t scan_unescape(struct span text, char *out, size_t room);

/* A decimal of at most 18 digits; anything else is `otherwise`. */
long long scan_number(struct span value, long long otherwise);

#endif
