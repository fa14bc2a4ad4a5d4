/* For a test program that starts threads: a failed assertion ends it, with the assertion's place
 * and values as the last words. cmocka would jump out of the test and go on with the next one,
 * while threads still use the frame that is gone; what they do there shows as a damaged heap in
 * another test, and hides what has failed. */
#ifndef SENDONCE_TESTS_THREADS_HERE_H
#define SENDONCE_TESTS_THREADS_HERE_H

#include <stdlib.h>

__attribute__((constructor)) static void threads_end_with_the_test(void)
{
	setenv("CMOCKA_TEST_ABORT", "1", 1);
}

#endif
