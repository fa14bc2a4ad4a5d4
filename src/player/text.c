/* What the player says: ERRORBUFFER and the program's view of VERBOSE.
 *
 * libcurl's rule for ERRORBUFFER is that the first error of a transfer stays. Errors that the
 * player itself finds (a short write, a deadline) are also told to the debug callback, as libcurl
 * does; errors of the sender are not, because its own debug line is on the tape already.
 *
 * Not promised: "* Closing connection" after an error of the player's own: the connection is the
 * courier's, and stays. */
#include "player/inner.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void player_error(struct player *p, const char *text)
{
	char *out = p->sink.error_buffer;
	if (!out || p->error_set || !text || !*text)
		return;
	size_t n = strnlen(text, CURL_ERROR_SIZE - 1);
	memcpy(out, text, n);
	out[n] = 0;
	p->error_set = true;
}

/* libcurl's own form, when VERBOSE is set and DEBUGFUNCTION is not. */
static void debug_print(const struct player *p, curl_infotype type, const char *data, size_t n)
{
	static const char mark[][3] = {
	        [CURLINFO_TEXT] = "* ", [CURLINFO_HEADER_IN] = "< ", [CURLINFO_HEADER_OUT] = "> "};
	if (type != CURLINFO_TEXT && type != CURLINFO_HEADER_IN && type != CURLINFO_HEADER_OUT)
		return;
	FILE *out = p->sink.stderr_file ? p->sink.stderr_file : stderr;
	fwrite(mark[type], 2, 1, out);
	fwrite(data, n, 1, out);
}

CURLcode player_debug(struct player *p, curl_infotype type, const char *data, size_t n)
{
	if (!p->sink.verbose || p->ended)
		return p->code;
	if (p->sink.debug) {
		/* The type of the callback says char *; libcurl passes its own buffers too. */
		p->sink.debug(p->sink.handle, type, (char *)data, n, p->sink.debug_data);
	} else {
		debug_print(p, type, data, n);
	}
	return p->code;
}

CURLcode player_fail(struct player *p, CURLcode code, const char *format, ...)
{
	char text[CURL_ERROR_SIZE + 1];
	if (p->code)
		return p->code;
	p->code = code;

	va_list args;
	va_start(args, format);
	int n = vsnprintf(text, CURL_ERROR_SIZE, format, args);
	va_end(args);
	if (n < 0)
		return code;
	player_error(p, text);
	size_t length = strlen(text);
	text[length] = '\n';
	text[length + 1] = 0;
	(void)player_debug(p, CURLINFO_TEXT, text, length + 1);
	return code;
}
