/* System calls without a libc. They return the kernel's value: negative is -errno, and errno
 * itself is never touched. */
#ifndef SENDONCE_PRELOAD_RAWSYS_H
#define SENDONCE_PRELOAD_RAWSYS_H

#include <asm/unistd.h>

static inline long raw_syscall(long number, long a, long b, long c, long d)
{
#if defined(__x86_64__)
	long result;
	register long r10 __asm__("r10") = d;
	__asm__ volatile("syscall"
	                 : "=a"(result)
	                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
	                 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
#else
#error "sendonce knows x86-64 and aarch64 only"
#endif
}

#endif
