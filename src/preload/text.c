/* String functions for a library without libc: comparing names, taking paths apart, and putting
 * one log line together in a buffer of fixed size. Nothing here allocates or fails. */
#include "preload/text.h"

unsigned long text_length(const char *string)
{
	unsigned long length = 0;
	while (string[length])
		length++;
	return length;
}

int text_equal(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

int text_starts_with(const char *string, const char *prefix)
{
	while (*prefix) {
		if (*string++ != *prefix++)
			return 0;
	}
	return 1;
}

unsigned long text_directory_length(const char *path)
{
	unsigned long length = 0;
	for (unsigned long i = 0; path[i]; i++) {
		if (path[i] == '/')
			length = i + 1;
	}
	return length;
}

const char *text_base_name(const char *path)
{
	return path + text_directory_length(path);
}

void text_begin(struct text *text, char *data, unsigned long size)
{
	text->data = data;
	text->size = size;
	text->length = 0;
	data[0] = '\0';
}

void text_add_bytes(struct text *text, const char *bytes, unsigned long length)
{
	for (unsigned long i = 0; i < length && text->length + 1 < text->size; i++)
		text->data[text->length++] = bytes[i];
	text->data[text->length] = '\0';
}

void text_add(struct text *text, const char *string)
{
	text_add_bytes(text, string, text_length(string));
}

void text_add_number(struct text *text, unsigned long number)
{
	char digits[24];
	unsigned long start = sizeof(digits);
	do {
		digits[--start] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	text_add_bytes(text, digits + start, sizeof(digits) - start);
}
