/* Programs whose libcurl is not their own: interpreters and daemons with modules, and programs that
 * write through a helper. */
#ifndef SENDONCE_CLI_HOSTS_H
#define SENDONCE_CLI_HOSTS_H

#include <stdbool.h>

/* An installed module of the program that uses libcurl; null when there is none. The text is good
 * until the next call. */
const char *hosts_module(const char *name);
/* Is it a program of which modules are known? */
bool hosts_known(const char *name);
/* The helper the program writes through; null when it has none, or it is not installed. */
const char *hosts_helper(const char *name);

#endif
