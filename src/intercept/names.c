/* See names.h. What is set here is copied under a mutex, and every write takes a copy of its own
 * when it begins, so that a task that ends does not rename what it left behind. Texts with control
 * characters are turned away, as the policy does: they go into the event log. */
#include "intercept/names.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "sendonce.h"

struct text {
	char text[POLICY_NAME_MAX + 1];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct text set_scope, set_run; /* "" is not set */

/* a/b/c, and where each of them begins. */
struct steps {
	char text[POLICY_NAME_MAX + 1];
	unsigned short start[SENDONCE_STEPS_MAX];
	unsigned depth;
};
static __thread struct steps steps;

static bool is_name(const char *text)
{
	size_t n = strnlen(text, POLICY_NAME_MAX + 1);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return false;
	return n <= POLICY_NAME_MAX;
}

static int set(struct text *to, const char *text)
{
	int cancel;

	text = text ? text : "";
	if (!is_name(text))
		return SENDONCE_INVALID;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&lock);
	snprintf(to->text, sizeof(to->text), "%s", text);
	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(cancel, &cancel);
	return SENDONCE_OK;
}

int names_set_scope(const char *scope)
{
	return set(&set_scope, scope);
}

int names_set_run(const char *run)
{
	return set(&set_run, run);
}

int names_push_step(const char *step)
{
	size_t used = strlen(steps.text);
	size_t room = sizeof(steps.text) - used - (used ? 1 : 0);

	if (!step || !*step || !is_name(step) || strchr(step, '/') || strlen(step) >= room ||
	    steps.depth == SENDONCE_STEPS_MAX)
		return SENDONCE_INVALID;
	steps.start[steps.depth++] = (unsigned short)used;
	snprintf(steps.text + used, sizeof(steps.text) - used, "%s%s", used ? "/" : "", step);
	return SENDONCE_OK;
}

int names_pop_step(const char *nothing)
{
	(void)nothing;
	if (steps.depth == 0)
		return SENDONCE_INVALID;
	steps.text[steps.start[--steps.depth]] = '\0';
	return SENDONCE_OK;
}

static void take_step(const struct process *p, char *out, size_t room)
{
	const char *own = p->policy && p->policy->step ? p->policy->step : "";

	if (*own && steps.text[0])
		snprintf(out, room, "%s/%s", own, steps.text);
	else
		text_copy(out, *own ? own : steps.text);
}

void names_clear(struct names *names)
{
	names->run_hash = 0;
	names->scope[0] = names->run[0] = names->step[0] = '\0';
}

void names_copy(struct names *to, const struct names *from)
{
	to->run_hash = from->run_hash;
	text_copy(to->scope, from->scope);
	text_copy(to->run, from->run);
	text_copy(to->step, from->step);
}

void names_take(const struct process *p, struct names *out)
{
	pthread_mutex_lock(&lock);
	text_copy(out->scope, set_scope.text[0] ? set_scope.text : p->scope);
	text_copy(out->run, set_run.text[0] ? set_run.text : p->run);
	pthread_mutex_unlock(&lock);
	out->run_hash = ledger_name_hash(span_of(out->run));
	take_step(p, out->step, sizeof(out->step));
}

static void read_header(const struct policy_source *from, const struct header_view *headers,
                        size_t count, char *out)
{
	char text[POLICY_NAME_MAX + 1];

	for (size_t i = 0; from->header && i < count; i++) {
		struct span value = span_trim(headers[i].value);

		if (!span_is_nocase(headers[i].name, from->header) || value.n == 0 ||
		    value.n > POLICY_NAME_MAX || memchr(value.p, 0, value.n))
			continue;
		memcpy(text, value.p, value.n);
		text[value.n] = '\0';
		if (is_name(text))
			memcpy(out, text, value.n + 1);
		return;
	}
}

void names_read(const struct process *p, const struct header_view *headers, size_t count,
                struct names *out)
{
	if (!p->policy)
		return;
	read_header(&p->policy->scope_from, headers, count, out->scope);
	read_header(&p->policy->run_from, headers, count, out->run);
	read_header(&p->policy->step_from, headers, count, out->step);
	out->run_hash = ledger_name_hash(span_of(out->run));
}

void names_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void names_fork_done(void)
{
	pthread_mutex_unlock(&lock);
}
