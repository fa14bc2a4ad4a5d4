/* Entry points of libsendonce.so on aarch64; see stubs-x86_64.S, which explains them.
 * x16 and x17 are free between caller and callee; x8 is kept because it carries the address of
 * a returned struct. "hint #34" is `bti c`, a no-op where branch targets are not checked.
 */
#include "base/flavour.h"

	.text

.macro function name
	.globl \name
	.type \name, %function
	.p2align 4
\name:
	hint #34
.endm

.macro entry name
	function curl_\name
	mov w17, #hook_index
	b select_and_jump
	.size curl_\name, . - curl_\name
	.set hook_index, hook_index + 1
.endm

#define ENTRY(name) entry name;
	.set hook_index, 0
	CURL_HOOKED(ENTRY)

	.type select_and_jump, %function
	.p2align 4
select_and_jump:
	stp x29, x30, [sp, #-224]!
	mov x29, sp
	stp x0, x1, [sp, #16]
	stp x2, x3, [sp, #32]
	stp x4, x5, [sp, #48]
	stp x6, x7, [sp, #64]
	str x8, [sp, #80]
	stp q0, q1, [sp, #96]
	stp q2, q3, [sp, #128]
	stp q4, q5, [sp, #160]
	stp q6, q7, [sp, #192]
	mov w0, w17
	mov x1, x30
	add x2, sp, #16
	bl preload_select
	mov x16, x0
	ldp x0, x1, [sp, #16]
	ldp x2, x3, [sp, #32]
	ldp x4, x5, [sp, #48]
	ldp x6, x7, [sp, #64]
	ldr x8, [sp, #80]
	ldp q0, q1, [sp, #96]
	ldp q2, q3, [sp, #128]
	ldp q4, q5, [sp, #160]
	ldp q6, q7, [sp, #192]
	ldp x29, x30, [sp], #224
	br x16
	.size select_and_jump, . - select_and_jump

	function dlsym
	stp x29, x30, [sp, #-32]!
	mov x29, sp
	stp x0, x1, [sp, #16]
	mov x2, #0
	mov x3, x30
	bl preload_dlsym
	mov x16, x1
	cbz x16, 1f
	ldp x0, x1, [sp, #16]
	ldp x29, x30, [sp], #32
	br x16
1:	ldp x29, x30, [sp], #32
	ret
	.size dlsym, . - dlsym

	function dlvsym
	stp x29, x30, [sp, #-48]!
	mov x29, sp
	stp x0, x1, [sp, #16]
	str x2, [sp, #32]
	mov x3, x30
	bl preload_dlsym
	mov x16, x1
	cbz x16, 1f
	ldp x0, x1, [sp, #16]
	ldr x2, [sp, #32]
	ldp x29, x30, [sp], #48
	br x16
1:	ldp x29, x30, [sp], #48
	ret
	.size dlvsym, . - dlvsym

	function dlopen
	stp x29, x30, [sp, #-32]!
	mov x29, sp
	str x0, [sp, #16]
	mov w0, w1
	bl preload_dlopen
	mov x16, x1
	cbz x16, 1f
	mov w1, w0
	ldr x0, [sp, #16]
	ldp x29, x30, [sp], #32
	br x16
1:	mov x0, #0
	ldp x29, x30, [sp], #32
	ret
	.size dlopen, . - dlopen

	.section .note.GNU-stack, "", %progbits
