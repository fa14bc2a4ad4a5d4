/* Entry points of libsendonce.so on x86-64: curl_*, dlsym, dlvsym and dlopen.
 *
 * A curl_* entry keeps every register that may hold an argument, asks preload_select where the
 * call belongs, and jumps there, so that the callee sees the program's arguments and return
 * address. The others jump on as well: the loader looks at its caller for RTLD_NEXT,
 * RUNPATH and $ORIGIN. Written in assembly because compilers make no tail jump at -O0 and -Og.
 */
#include "base/flavour.h"

	.text

.macro function name
	.globl \name
	.type \name, @function
	.p2align 4
\name:
	endbr64
.endm

/* %r11 is free between caller and callee: not even a PLT entry expects it to live. libcurl calls
 * itself by these entries several times a request: the first libcurl's own calls go on at once, by
 * the range and the table that preload_select has left in preload_self. */
.macro entry name
	function curl_\name
	mov (%rsp), %r11
	cmp preload_self+8(%rip), %r11
	jae 1f
	cmp preload_self(%rip), %r11
	jb 1f
	jmp *preload_self+16+8*hook_index(%rip)
1:	movl $hook_index, %r11d
	jmp select_and_jump
	.size curl_\name, . - curl_\name
	.set hook_index, hook_index + 1
.endm

#define ENTRY(name) entry name;
	.set hook_index, 0
	CURL_HOOKED(ENTRY)

	.type select_and_jump, @function
	.p2align 4
select_and_jump:
	push %r10
	push %rax /* %al counts the vector registers of a variadic call */
	push %r9
	push %r8
	push %rcx
	push %rdx
	push %rsi
	push %rdi
	sub $136, %rsp
	movups %xmm0, 0(%rsp)
	movups %xmm1, 16(%rsp)
	movups %xmm2, 32(%rsp)
	movups %xmm3, 48(%rsp)
	movups %xmm4, 64(%rsp)
	movups %xmm5, 80(%rsp)
	movups %xmm6, 96(%rsp)
	movups %xmm7, 112(%rsp)
	movl %r11d, %edi
	mov 200(%rsp), %rsi
	lea 136(%rsp), %rdx
	call preload_select
	mov %rax, %r11
	movups 0(%rsp), %xmm0
	movups 16(%rsp), %xmm1
	movups 32(%rsp), %xmm2
	movups 48(%rsp), %xmm3
	movups 64(%rsp), %xmm4
	movups 80(%rsp), %xmm5
	movups 96(%rsp), %xmm6
	movups 112(%rsp), %xmm7
	add $136, %rsp
	pop %rdi
	pop %rsi
	pop %rdx
	pop %rcx
	pop %r8
	pop %r9
	pop %rax
	pop %r10
	jmp *%r11
	.size select_and_jump, . - select_and_jump

/* void *dlsym(void *handle, const char *name): preload_dlsym gives an answer or a place to jump to. */
	function dlsym
	push %rdi
	push %rsi
	xorl %edx, %edx
	mov 16(%rsp), %rcx
	sub $8, %rsp
	call preload_dlsym
	add $8, %rsp
	pop %rsi
	pop %rdi
	test %rdx, %rdx
	jz 1f
	jmp *%rdx
1:	ret
	.size dlsym, . - dlsym

/* void *dlvsym(void *handle, const char *name, const char *version) */
	function dlvsym
	push %rdi
	push %rsi
	push %rdx
	mov 24(%rsp), %rcx
	call preload_dlsym
	mov %rdx, %r11
	pop %rdx
	pop %rsi
	pop %rdi
	test %r11, %r11
	jz 1f
	jmp *%r11
1:	ret
	.size dlvsym, . - dlvsym

/* void *dlopen(const char *file, int mode): the same with another mode. */
	function dlopen
	push %rdi
	push %rsi
	movl %esi, %edi
	sub $8, %rsp
	call preload_dlopen
	add $8, %rsp
	pop %rsi
	pop %rdi
	movl %eax, %esi
	test %rdx, %rdx
	jz 1f
	jmp *%rdx
1:	xorl %eax, %eax
	ret
	.size dlopen, . - dlopen

	.section .note.GNU-stack, "", @progbits
