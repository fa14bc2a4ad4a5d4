/* Where policy, ledger and event log are.
 *
 * Each path has an order of places it may be named in; the first that says something is taken, and
 * a relative path there is an error and never a reason to look further: two programs with different
 * working directories would quietly keep two ledgers. Nothing is opened or made here, and nothing
 * is said about whether the path exists. */
#include "policy/paths.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

const char *paths_error(int code)
{
	switch (code) {
	case PATHS_OK:
		return "";
	case PATHS_RELATIVE:
		return "is a relative path: give an absolute one";
	case PATHS_TOO_LONG:
		return "is too long for a path";
	case PATHS_NO_HOME:
		return "no home directory: set SENDONCE_LEDGER or ledger.path in the policy";
	case PATHS_NOWHERE:
		return "is in memory: name a file for `events` in the policy";
	default:
		return "cannot be used as a path";
	}
}

static const char *look_up(policy_env *env, void *ctx, const char *name)
{
	const char *value = env ? env(ctx, name) : NULL;

	return value && *value ? value : NULL;
}

static int join(char *out, size_t room, const char *head, const char *tail)
{
	int n = snprintf(out, room, "%s%s", head, tail);

	if (n < 0 || (size_t)n >= room)
		return PATHS_TOO_LONG;
	return *out == '/' ? PATHS_OK : PATHS_RELATIVE;
}

/* The home of this user as the passwd file says. */
static int join_passwd_home(char *out, size_t room, const char *tail)
{
	struct passwd entry, *found = NULL;
	char text[4096];
	int saved = errno, rc = PATHS_NO_HOME;

	if (getpwuid_r(geteuid(), &entry, text, sizeof(text), &found) == 0 && found &&
	    found->pw_dir && *found->pw_dir)
		rc = join(out, room, found->pw_dir, tail);
	errno = saved;
	return rc;
}

int paths_policy(policy_env *env, void *ctx, char *out, size_t room, bool *named)
{
	const char *given = look_up(env, ctx, "SENDONCE_POLICY");

	*named = given != NULL;
	return join(out, room, given ? given : PATHS_POLICY_DEFAULT, "");
}

static int default_ledger(policy_env *env, void *ctx, char *out, size_t room)
{
	const char *state = look_up(env, ctx, "XDG_STATE_HOME");
	const char *home = look_up(env, ctx, "HOME");

	if (state)
		return join(out, room, state, "/sendonce/ledger");
	if (home)
		return join(out, room, home, "/.local/state/sendonce/ledger");
	return join_passwd_home(out, room, "/.local/state/sendonce/ledger");
}

int paths_ledger(const struct policy *policy, policy_env *env, void *ctx, char *out, size_t room,
                 bool *is_default)
{
	const char *given = look_up(env, ctx, "SENDONCE_LEDGER");

	if (!given && policy)
		given = policy->ledger_path;
	*is_default = given == NULL;
	if (room > 0)
		*out = '\0';
	if (given && strcmp(given, "memory") == 0) {
		snprintf(out, room, "memory");
		return PATHS_OK;
	}
	return given ? join(out, room, given, "") : default_ledger(env, ctx, out, room);
}

int paths_events(const struct policy *policy, policy_env *env, void *ctx, char *out, size_t room)
{
	static const char suffix[] = ".events.jsonl";
	bool is_default;
	size_t used;
	int rc;

	if (policy && policy->events_path)
		return join(out, room, policy->events_path, "");
	rc = paths_ledger(policy, env, ctx, out, room, &is_default);
	if (rc)
		return rc;
	if (*out != '/') {
		*out = '\0';
		return PATHS_NOWHERE;
	}
	used = strlen(out);
	if (used + sizeof(suffix) > room)
		return PATHS_TOO_LONG;
	memcpy(out + used, suffix, sizeof(suffix));
	return PATHS_OK;
}
