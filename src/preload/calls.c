/* The functions of include/sendonce.h, for programs that cooperate: each goes to the core, which is
 * loaded for it if need be. Where sendonce is off or its core cannot be loaded they do nothing and
 * say so by their code; a program that ignores it loses the name it gave, and nothing else. */
#include "preload/core.h"
#include "preload/environ.h"

/* The codes of sendonce.h, whose weak declarations must not reach this file's definitions. */
enum { CALL_OFF = -2, CALL_UNAVAILABLE = -3 };

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int sendonce_scope_set(const char *scope);
EXPORTED int sendonce_run_set(const char *run);
EXPORTED int sendonce_step_push(const char *step);
EXPORTED int sendonce_step_pop(void);

static int call(enum corelink_call which, const char *text)
{
	corelink_call_fn *function;

	if (environ_is_disabled())
		return CALL_OFF;
	if (core_ensure() != CORE_LOADED)
		return CALL_UNAVAILABLE;
	function = core_call(which);
	return function ? function(text) : CALL_UNAVAILABLE;
}

int sendonce_scope_set(const char *scope)
{
	return call(CALL_scope_set, scope);
}

int sendonce_run_set(const char *run)
{
	return call(CALL_run_set, run);
}

int sendonce_step_push(const char *step)
{
	return call(CALL_step_push, step);
}

int sendonce_step_pop(void)
{
	return call(CALL_step_pop, 0);
}
