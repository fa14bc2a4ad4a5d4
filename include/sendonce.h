/* sendonce for programs that cooperate: say whose writes these are, which task and which step.
 *
 * Nothing has to be linked. The functions are exported by libsendonce.so where it is preloaded, and
 * declared weak here, so that the same program runs without it: call the wrappers at the end, which
 * give SENDONCE_ABSENT then. (In a program that is linked with -no-pie, compile what includes this
 * with -fPIE: else it is decided at build time that they are absent.)
 *
 * Scope and run belong to the process: a task's writes are made by whichever thread, and a
 * library's thread that the program never sees must write under the task's name too. They hold for
 * writes that begin after the call; a write keeps what it began with. A child inherits them over
 * fork, a program that is started does not: give it SENDONCE_SCOPE and SENDONCE_RUN.
 *
 * The step belongs to the thread: two threads are at two steps at the same time, and a write is
 * begun on the thread that makes it. Steps are pushed and popped; what is pushed stands behind the
 * policy's own `step`, as in `plan/pay/invoice-7`, and the whole is a part of the write's identity:
 * the same request at another step is another write. A new thread begins without any.
 *
 * All functions may be called by any thread at any time, before the first libcurl call too, keep
 * errno and print nothing. What a request header says (`from: header:NAME` in the policy) goes
 * before what is set here, and that before the environment and the policy. */
#ifndef SENDONCE_H
#define SENDONCE_H

#ifdef __cplusplus
extern "C" {
#endif

enum sendonce_code {
	SENDONCE_OK = 0,
	SENDONCE_ABSENT = -1,      /* libsendonce.so is not in this process */
	SENDONCE_OFF = -2,         /* it is, and switched off (SENDONCE_DISABLE, setuid) */
	SENDONCE_UNAVAILABLE = -3, /* its core cannot be loaded; SENDONCE_LOG says why */
	SENDONCE_INVALID = -4      /* longer than 255 bytes, control characters, no step to pop */
};

enum { SENDONCE_NAME_MAX = 255, SENDONCE_STEPS_MAX = 16 };

/* Whose writes these are, a tenant. The text is copied; null or "": what environment and policy
 * say again. */
__attribute__((weak)) int sendonce_scope_set(const char *scope);
/* The task. The same name again when it is resumed. Null or "": as above. */
__attribute__((weak)) int sendonce_run_set(const char *run);
/* Enter a step of this thread, with a text that is neither empty nor holds a /; at most 16 deep and
 * 255 bytes in all. */
__attribute__((weak)) int sendonce_step_push(const char *step);
/* Leave the step that was entered last. */
__attribute__((weak)) int sendonce_step_pop(void);

static inline int sendonce_scope(const char *scope)
{
	return sendonce_scope_set ? sendonce_scope_set(scope) : SENDONCE_ABSENT;
}

static inline int sendonce_run(const char *run)
{
	return sendonce_run_set ? sendonce_run_set(run) : SENDONCE_ABSENT;
}

static inline int sendonce_enter(const char *step)
{
	return sendonce_step_push ? sendonce_step_push(step) : SENDONCE_ABSENT;
}

static inline int sendonce_leave(void)
{
	return sendonce_step_pop ? sendonce_step_pop() : SENDONCE_ABSENT;
}

#ifdef __cplusplus
}
#endif

#endif
