/* The few string functions the preload needs; it has no libc to take them from. */
#ifndef SENDONCE_PRELOAD_TEXT_H
#define SENDONCE_PRELOAD_TEXT_H

/* A string built piece by piece in a buffer of fixed size; what does not fit is cut off, and
 * `text` always ends with a NUL. */
struct text {
	char *data;
	unsigned long size;
	unsigned long length;
};

unsigned long text_length(const char *string);
int text_equal(const char *a, const char *b);
int text_starts_with(const char *string, const char *prefix);
/* The part after the last slash. */
const char *text_base_name(const char *path);
/* The length of the part up to and with the last slash; 0 without one. */
unsigned long text_directory_length(const char *path);

void text_begin(struct text *text, char *data, unsigned long size);
void text_add(struct text *text, const char *string);
void text_add_bytes(struct text *text, const char *bytes, unsigned long length);
void text_add_number(struct text *text, unsigned long number);

#endif
