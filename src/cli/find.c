/* Which record an operator means by KEY: the beginning of its key, or of its content id in hex.
 *
 * Four characters at least, and exactly one record: an operator who settles the wrong write does
 * harm. A whole key beats a longer one that begins with it. */
#include "cli/cli.h"

#include <string.h>

enum { PREFIX_MIN = 4, LISTED_MAX = 20 };

struct search {
	const char *prefix;
	size_t n;
	struct record_view found[LISTED_MAX];
	size_t count;
	bool whole; /* found[0] has exactly this key */
};

static bool begins(const char *text, const struct search *s)
{
	return strncmp(text, s->prefix, s->n) == 0;
}

static bool matches(const struct record_view *r, const struct search *s)
{
	char content[2 * LEDGER_HASH + 1];

	/* a key that is a quoted string is found without its quote */
	if (begins(r->key, s) || (r->key[0] == '"' && begins(r->key + 1, s)))
		return true;
	hex_encode(content, r->content, LEDGER_HASH);
	return begins(content, s);
}

static int visit(void *ctx, const struct record_view *r)
{
	struct search *s = ctx;

	if (s->whole || !matches(r, s))
		return 0;
	if (strcmp(r->key, s->prefix) == 0) {
		s->whole = true;
		s->found[0] = *r;
		s->count = 1;
		return 0;
	}
	if (s->count < LISTED_MAX)
		s->found[s->count] = *r;
	s->count++;
	return 0;
}

static int list_candidates(const char *command, const struct search *s)
{
	cli_fail(CLI_FAILED, command, "`%s` begins %zu keys; give more of one of these:", s->prefix,
	         s->count);
	for (size_t i = 0; i < s->count && i < LISTED_MAX; i++) {
		fputs("  ", stderr);
		cli_plain_text(stderr, s->found[i].key, 36);
		fputs("  ", stderr);
		cli_plain_text(stderr, s->found[i].operation, 0);
		fputc('\n', stderr);
	}
	return CLI_FAILED;
}

int cli_find_record(const char *command, struct ledger *ledger, const char *prefix,
                    struct record_view *out)
{
	static struct search s;

	memset(&s, 0, sizeof(s));
	s.prefix = prefix;
	s.n = strlen(prefix);
	if (s.n < PREFIX_MIN)
		return cli_usage(command, "`%s` is too short: give at least %d characters of a key",
		                 prefix, PREFIX_MIN);
	ledger_each(ledger, clock_now(), visit, &s);
	if (s.count == 0)
		return cli_fail(CLI_FAILED, command,
		                "no record whose key or content id begins with `%s`; `sendonce "
		                "ledger list` shows them",
		                prefix);
	if (s.count > 1)
		return list_candidates(command, &s);
	*out = s.found[0];
	return 0;
}
