/* The system's libcurl, opened at run time: explain parses URLs and renders forms with the library
 * a program would use, and links none. */
#ifndef SENDONCE_CLI_LIBCURL_H
#define SENDONCE_CLI_LIBCURL_H

#include "base/curlapi.h"

struct libcurl {
	struct flavour flavour;
	void *object;
	__typeof__(&curl_mime_init) mime_init;
	__typeof__(&curl_mime_free) mime_free;
	__typeof__(&curl_mime_addpart) mime_addpart;
	__typeof__(&curl_mime_name) mime_name;
	__typeof__(&curl_mime_data) mime_data;
	__typeof__(&curl_mime_filedata) mime_filedata;
	__typeof__(&curl_mime_filename) mime_filename;
	__typeof__(&curl_mime_type) mime_type;
};

/* 0, or an exit code after a message. It stays open: the process is short. */
int libcurl_open(const char *command, struct libcurl *out);

#endif
