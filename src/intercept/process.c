/* See process.h. Everything is loaded under one mutex at the first libcurl call that needs it,
 * never when the process starts: most processes of a container never make one. What cannot be used
 * stays described in `error`, and the hooks turn that into refusals. */
#include "intercept/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "courier/answer.h"
#include "identity/identity.h"
#include "intercept/notice.h"
#include "policy/paths.h"

enum { SECRET_FILE_MAX = 4096, SECRET_FILE_MIN = 16 };

static const struct preload_api *_Atomic api_linked;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct process process;
static atomic_bool loaded;
static struct ledger *_Atomic ledger;
static char secret_file[SECRET_FILE_MAX];
static size_t secret_size;

void process_link(const struct preload_api *preload)
{
	/* Release: the preload may publish us to other threads in ways no one here can see. */
	atomic_store_explicit(&api_linked, preload, memory_order_release);
}

static const struct preload_api *linked(void)
{
	/* Acquire: pairs with process_link. */
	return atomic_load_explicit(&api_linked, memory_order_acquire);
}

const struct flavour *process_flavour(const void *caller)
{
	return linked()->flavour_of_caller(caller);
}

const char *process_env(void *ctx, const char *name)
{
	static const char *const names[ENV_COUNT] = {
#define ENV_NAME(n) #n,
	        CORELINK_ENV(ENV_NAME)
#undef ENV_NAME
	};
	(void)ctx;

	for (size_t i = 0; i < ENV_COUNT; i++) {
		if (strcmp(names[i], name) == 0)
			return linked()->env[i];
	}
	return getenv(name);
}

static const char *env_text(enum corelink_env which)
{
	const char *value = linked()->env[which];

	return value && *value ? value : NULL;
}

/* `where` names the place, `what` says what is wrong there; either may be cut. */
static void broken(struct process *p, const char *where, const char *what)
{
	p->state = PROCESS_BROKEN;
	snprintf(p->error, sizeof(p->error), "%.900s%.280s", where, what);
}

/* SENDONCE_MODE goes before the policy's own. audit and off never refuse anything. */
static void choose_mode(struct process *p)
{
	const char *text = env_text(ENV_SENDONCE_MODE);
	int mode = text ? policy_mode_parse(text) : (p->policy ? (int)p->policy->mode : MODE_OFF);

	if (mode == MODE_AUDIT && !p->policy && p->state == PROCESS_OFF)
		policy_empty(process_env, NULL, &p->policy); /* without one, nothing is audited */
	if (mode == MODE_OFF || mode == MODE_AUDIT) {
		p->state = mode == MODE_AUDIT && p->policy ? PROCESS_AUDIT : PROCESS_OFF;
		p->mode = policy_mode_name((enum policy_mode)mode);
		return;
	}
	p->acting = mode < 0 ? MODE_ENFORCE : (enum policy_mode)mode;
	p->mode = policy_mode_name(p->acting);
	if (mode < 0)
		broken(p,
		       "SENDONCE_MODE: ", "not a mode; use off, audit, inject, enforce or replay");
}

/* Without memory they are computed at each request. */
static void load_settings(struct policy *policy)
{
	for (size_t i = 0; i < policy->rule_count; i++) {
		if (identity_settings(&policy->rules[i], &policy->rules[i].settings) != IDENTITY_OK)
			policy->rules[i].settings = 0;
	}
}

static void load_policy(struct process *p)
{
	struct policy_error error;
	char path[4096];
	bool named;
	int rc = paths_policy(process_env, NULL, path, sizeof(path), &named);

	if (rc != PATHS_OK) {
		broken(p, "SENDONCE_POLICY: ", paths_error(rc));
		return;
	}
	rc = policy_load(path, process_env, NULL, &p->policy, &error);
	if (rc == POLICY_OK) {
		p->state = PROCESS_ON;
		load_settings(p->policy);
		return;
	}
	if (rc == POLICY_MISSING && !named)
		return;
	broken(p, error.text, "");
}

static void copy_text(char *out, size_t room, const char *text)
{
	snprintf(out, room, "%s", text ? text : "");
}

static void load_paths(struct process *p)
{
	int rc = paths_ledger(p->policy, process_env, NULL, p->ledger_path, sizeof(p->ledger_path),
	                      &p->ledger_default);

	if (rc != PATHS_OK && p->state == PROCESS_ON)
		broken(p, "the ledger's path ", paths_error(rc));
	if (paths_events(p->policy, process_env, NULL, p->events_path, sizeof(p->events_path)) !=
	    PATHS_OK)
		p->events_path[0] = '\0';
	event_log_shared(p->policy && p->policy->ledger_group);
}

void process_names(struct process *p)
{
	const char *scope = env_text(ENV_SENDONCE_SCOPE), *run = env_text(ENV_SENDONCE_RUN);

	if (p->policy) {
		scope = p->policy->scope;
		run = p->policy->run;
	}
	copy_text(p->run, sizeof(p->run), run);
	p->run_hash = ledger_name_hash(span_of(p->run));
	if (scope && *scope)
		copy_text(p->scope, sizeof(p->scope), scope);
	else
		snprintf(p->scope, sizeof(p->scope), "uid:%u", (unsigned)geteuid());
}

/* Things a person should know once, not at every write. */
static void tell(const struct process *p)
{
	if (p->error[0])
		notice_warning(p, "policy-invalid", p->error);
	else if (p->state == PROCESS_OFF)
		notice_warning(p, "off",
		               p->policy ? "mode is off: nothing is protected"
		                         : "no policy: nothing is protected");
	else if (!p->policy->scope || !*p->policy->scope)
		notice_warning(p, "scope-unset",
		               "scope is unset: the user id is used; set SENDONCE_SCOPE");
}

/* Beside the ledger, whose default folder is made with the ledger. Audit makes none. */
static void make_events_folder(const struct process *p)
{
	char folder[sizeof(p->events_path)];
	char *at = folder;

	if (!p->ledger_default || !p->events_path[0] || (p->policy && p->policy->events_path))
		return;
	memcpy(folder, p->events_path, sizeof(folder));
	while ((at = strchr(at + 1, '/')) != NULL) {
		*at = '\0';
		mkdir(folder, 0700);
		*at = '/';
	}
}

/* Mode audit writes down what no rule names as well: that is what somebody without rules runs. */
static void load_unlisted(struct process *p)
{
	if (p->state != PROCESS_AUDIT &&
	    !(p->state == PROCESS_ON && p->policy->unlisted == UNLISTED_AUDIT))
		return;
	if (policy_defaults(&p->unlisted) == POLICY_OK)
		load_settings(p->unlisted);
}

static void load(void)
{
	struct process *p = &process;

	p->state = PROCESS_OFF;
	p->mode = "off";
	load_policy(p);
	if (p->state == PROCESS_ON || env_text(ENV_SENDONCE_MODE))
		choose_mode(p);
	load_unlisted(p);
	load_paths(p);
	process_names(p);
	if (strcmp(p->mode, "audit") == 0)
		make_events_folder(p);
	tell(p);
}

/* Loading reads files, and a thread may be cancelled wherever it reads: not with the lock. */
static void guard(int *cancel)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel);
	pthread_mutex_lock(&lock);
}

static void unguard(int cancel)
{
	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(cancel, &cancel);
}

const struct process *process_get(void)
{
	int cancel;

	/* Acquire pairs with the release below: who sees `loaded` sees the whole struct. */
	if (atomic_load_explicit(&loaded, memory_order_acquire))
		return &process;
	guard(&cancel);
	if (!atomic_load_explicit(&loaded, memory_order_relaxed)) {
		load();
		atomic_store_explicit(&loaded, true, memory_order_release);
	}
	unguard(cancel);
	return &process;
}

uint64_t process_as_run(void)
{
	static uint64_t run;
	static pid_t pid;
	uint64_t known;
	int cancel, saved = errno;

	guard(&cancel);
	if (pid != getpid()) {
		pid = getpid();
		/* A pid comes back, and this must not. */
		if (getrandom(&run, sizeof(run), GRND_NONBLOCK) != (ssize_t)sizeof(run))
			run = (uint64_t)clock_boot_us() << 22 | (uint64_t)pid;
		run = run ? run : 1;
	}
	known = run;
	unguard(cancel);
	errno = saved;
	return known;
}

static struct ledger *open_ledger(struct ledger_error *error)
{
	const struct policy *policy = process.policy;
	struct ledger *made = NULL;
	struct ledger_options options = {
	        .path = process.ledger_path,
	        .size = policy->ledger_size,
	        .max_response = policy->max_response + ANSWER_BESIDE_BODY,
	        .durable = policy->durability == DURABILITY_POWER,
	        .create = process.acting != MODE_REPLAY, /* an empty one answers nothing */
	        .make_folder = process.ledger_default,
	        .group = policy->ledger_group,
	        .set_aside = true,
	};

	return ledger_open(&options, &made, error) == LEDGER_OK ? made : NULL;
}

struct ledger *process_ledger_opened(void)
{
	/* Acquire: as in process_ledger. */
	return atomic_load_explicit(&ledger, memory_order_acquire);
}

/* What is under way in the old mapping ends there, so another one cannot take its place. */
static struct ledger *not_retired(struct ledger *l, struct ledger_error *error)
{
	const char *why = l ? ledger_retired(l) : NULL;

	if (why && error)
		snprintf(error->text, sizeof(error->text),
		         "%.300s: the ledger this program opened %s; restart the program",
		         ledger_path(l), why);
	return why ? NULL : l;
}

struct ledger *process_ledger(struct ledger_error *error)
{
	/* Acquire: a ledger that another thread opened is seen mapped and checked. */
	struct ledger *known = atomic_load_explicit(&ledger, memory_order_acquire);
	int cancel;

	if (known)
		return not_retired(known, error);
	guard(&cancel);
	known = atomic_load_explicit(&ledger, memory_order_relaxed);
	if (!known) {
		known = open_ledger(error);
		atomic_store_explicit(&ledger, known, memory_order_release);
	}
	unguard(cancel);
	return known ? not_retired(known, error) : NULL;
}

static int read_secret(const char *path, struct ledger_error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, secret_file, sizeof(secret_file));

	if (fd >= 0)
		close(fd);
	if (n >= SECRET_FILE_MIN) {
		secret_size = (size_t)n;
		return 0;
	}
	if (!error)
		return -1;
	snprintf(error->text, sizeof(error->text), "SENDONCE_SECRET_FILE: %.300s: %s", path,
	         n < 0 ? strerror(errno) : "shorter than 16 bytes");
	return -1;
}

struct span process_secret(struct ledger *l, struct ledger_error *error)
{
	const char *path = env_text(ENV_SENDONCE_SECRET_FILE);
	struct span secret = {0};
	int cancel;

	if (!path && !l)
		return span_of("sendonce audit, no secret");
	if (!path)
		return (struct span){(const char *)ledger_secret(l), LEDGER_SECRET};
	guard(&cancel);
	if (secret_size || read_secret(path, error) == 0)
		secret = (struct span){secret_file, secret_size};
	unguard(cancel);
	return secret;
}

void process_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void process_fork_done(void)
{
	pthread_mutex_unlock(&lock);
}
