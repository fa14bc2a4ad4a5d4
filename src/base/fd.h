/* Descriptors of ours are never 0, 1 or 2: a program that closed those may be about to print. */
#ifndef SENDONCE_BASE_FD_H
#define SENDONCE_BASE_FD_H

/* The same file under a number above them, close-on-exec; the lower one is closed. -1, with errno,
 * when there is none. What is above already, or below 0, is returned as it is. */
int fd_above_stdio(int fd);

#endif
