/* One line of the event log, as the commands show it. */
#ifndef SENDONCE_CLI_LINE_H
#define SENDONCE_CLI_LINE_H

#include <stdbool.h>
#include <stddef.h>

enum { LINE_FIELD_MAX = 512 };
enum line_field {
	LINE_TIME,
	LINE_EVENT,
	LINE_OPERATION,
	LINE_KEY,
	LINE_VERDICT,
	LINE_REASON,
	LINE_OUTCOME,
	LINE_STATUS,
	LINE_WIRE_SENDS,
	LINE_PID,
	LINE_EXE,
	LINE_TEXT,
	LINE_FIELDS
};
struct line {
	char field[LINE_FIELDS]
	          [LINE_FIELD_MAX]; /* "" where the line has none; longer ones are cut */
};

/* False when it is no event. */
bool line_read(const char *text, size_t n, struct line *line);
void line_print_header(void);
void line_print(const struct line *line);
/* Does it say something that only a person can settle? */
bool line_wants_person(const struct line *line);

#endif
