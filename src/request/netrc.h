/* User and password of a host in a .netrc file, as libcurl finds them. */
#ifndef SENDONCE_REQUEST_NETRC_H
#define SENDONCE_REQUEST_NETRC_H

/* What a `machine` entry, or `default`, says of `host`. *user: the name to look for, or null; both
 * are allocated, and replaced by what is found. 0: found; 1: not found or no file, nothing changed;
 * -1: malformed or out of memory, nothing changed. */
int netrc_find(const char *path, const char *host, char **user, char **password);

#endif
