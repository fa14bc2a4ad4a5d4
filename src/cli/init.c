/* `sendonce init`: a policy to begin with, every line of it explained.
 *
 * With --from-events it is made of what audit saw: one rule for each kind of write in the event
 * log, the most frequent first, with what was seen of it. The log knows neither query nor body, nor
 * the scheme; what it cannot know is left at its default and said so beside it. An existing file is
 * never touched. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/seen.h"
#include "policy/known.h"
#include "policy/matcher.h"

static const char help[] =
        "Usage: sendonce init [OPTION...] [FILE]\n"
        "\n"
        "Write a commented policy to FILE (policy.yaml; - is standard output). A file that is\n"
        "there already is left alone.\n"
        "\n"
        "  --from-events F  with a rule for each kind of write in this event log, as\n"
        "                   SENDONCE_MODE=audit and `unlisted: audit` write it\n"
        "  --help           this text\n"
        "\n"
        "Exit code: 0 written, 1 the file is there or cannot be written, 2 usage, 3 the event log\n"
        "cannot be read.\n";

static const char head[] =
        "# Which HTTP requests are writes, and what is known about each. `sendonce check FILE` "
        "reads it,\n"
        "# `sendonce explain --policy FILE -- curl ...` says what would become of a request.\n"
        "version: 1\n"
        "\n"
        "# Whose writes these are (a tenant, a customer). Writes of two scopes never meet.\n"
        "scope: \"${SENDONCE_SCOPE}\"\n"
        "\n"
        "# The task at hand. A write repeated within a run is answered from the ledger; the same "
        "write in\n"
        "# another run is a new one. A resumed task gives the run it had before.\n"
        "run: \"${SENDONCE_RUN}\"\n"
        "\n"
        "# Writes no rule names are left alone; with audit they are written down in the event "
        "log.\n"
        "unlisted: audit\n"
        "\n";

static const char sample[] =
        "writes:\n"
        "  # The first rule whose `match` fits names the request.\n"
        "  - operation: orders.create\n"
        "    # {name} stands for one segment of the path, ** for the rest of it.\n"
        "    match: POST https://api.example.com/v1/orders\n"
        "\n"
        "    # Without the next line a write whose fate is unknown is never sent again by "
        "itself. Of a\n"
        "    # provider that executes a write once for the same key, say so and for how long it "
        "remembers\n"
        "    # the key, and which answers it gives again:\n"
        "    # provider: {dedups: true, key_ttl: 24h, stores: [2xx]}\n"
        "\n"
        "    # Parts of the request that differ between tries of the same write:\n"
        "    # identity: {ignore: [/sent_at, header:X-Request-Id]}\n"
        "\n"
        "    # How long a finished write is remembered, and so answered from the ledger when "
        "repeated.\n"
        "    ttl: 24h\n"
        "\n"
        "    # Where no run is given: for how long after its first answer a repeat counts as a "
        "retry.\n"
        "    replay_for: 10m\n"
        "\n"
        "    # Money: a write that is older than ttl is not repeated by itself.\n"
        "    # on_expired: refuse\n";

/* --- a rule of what was seen --- */

static void add_operation(struct buf *out, const struct seen *s)
{
	static const struct {
		const char *method, *verb;
	} verbs[] = {{"POST", "create"}, {"PUT", "put"}, {"PATCH", "update"}, {"DELETE", "delete"}};
	const char *verb = s->method;
	size_t before = out->n;
	struct span rest = span_of(s->path);

	while (rest.n) {
		const char *slash = memchr(rest.p, '/', rest.n);
		struct span part = {rest.p, slash ? (size_t)(slash - rest.p) : rest.n};
		bool version = part.n > 1 && part.n < 4 && part.p[0] == 'v' && part.p[1] >= '0' &&
		               part.p[1] <= '9';

		rest = (struct span){rest.p + part.n + (slash != NULL),
		                     rest.n - part.n - (slash != NULL)};
		if (part.n == 0 || part.p[0] == '{' || version)
			continue;
		for (size_t i = 0; i < part.n && out->n - before < 80; i++) {
			char c = part.p[i];
			bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			             (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';

			buf_add_char(out, plain ? c : '_');
		}
		buf_add_char(out, '.');
	}
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (strcmp(s->method, verbs[i].method) == 0)
			verb = verbs[i].verb;
	if (out->n == before)
		buf_add_text(out, "root.");
	buf_add_text(out, verb);
}

static void add_noise(struct buf *out, const struct seen *s)
{
	const char *comma = "";

	if (s->noise_count == 0)
		return;
	buf_add_text(out, "    # New in each request, so probably not what makes it this write:\n"
	                  "    # identity: {ignore: [");
	for (size_t i = 0; i < s->noise_count; i++) {
		buf_printf(out, "%s%s", comma, s->noise[i]);
		comma = ", ";
	}
	buf_add_text(out, "]}\n");
}

static void add_rule(struct buf *out, const struct seen *s)
{
	buf_printf(out, "\n  # seen %lu times", s->count);
	if (s->answered)
		buf_printf(out, ", last answer %ld", s->status);
	if (s->resent)
		buf_printf(out, ", %lu of them sent twice by libcurl itself", s->resent);
	if (s->own_key)
		buf_add_text(out, ", with a key of the program's own");
	buf_add_text(out, "\n  - operation: ");
	add_operation(out, s);
	/* The log does not say which scheme and port; quotes, because a path may hold anything. */
	buf_printf(out, "\n    match: '%s *://%s:*", s->method, s->host);
	for (const char *c = s->path; *c; c++)
		buf_add_text(out, *c == '\'' ? "%27" : (char[]){*c, '\0'});
	buf_add_text(out, "'\n");
	buf_add_text(out, "    # provider: {dedups: true, key_ttl: 24h, stores: [2xx]}\n");
	add_noise(out, s);
}

/* --- ready-made rules --- */

/* Where `make install` puts them: beside the folder this program is in. */
static bool find_pack(const char *pack, char *out, size_t room)
{
	char self[4096], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int written;

	if (n <= 0)
		return false;
	self[n] = '\0';
	for (int up = 0; up < 2; up++) {
		slash = strrchr(self, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
	written = snprintf(out, room, "%s/share/sendonce/policy/%s.yaml", self, pack);
	return written > 0 && (size_t)written < room && access(out, R_OK) == 0;
}

/* Does a rule of this file name it? Its hosts take more than its rules are about. */
static bool is_named_by(const char *path, const struct seen *s)
{
	struct policy_error error;
	struct policy *policy = NULL;
	struct matcher *m = NULL;
	const char *problem;
	struct buf text = {0};
	bool named = false;

	buf_printf(&text, "%s https://%s%s", s->method, s->host, s->path);
	if (policy_load(path, cli_env, NULL, &policy, &error) == POLICY_OK &&
	    matcher_parse(span_buf(&text), &m, &problem) == 0)
		for (size_t i = 0; i < policy->rule_count && !named; i++)
			named = matcher_covers(policy->rules[i].matcher, m);
	matcher_free(m);
	policy_free(policy);
	buf_free(&text);
	return named;
}

static const struct known *pack_of(const struct seen *s)
{
	const struct known *known = known_host(span_of(s->host));

	return known && known->pack ? known : NULL;
}

/* Is it the first of the list with this pack? */
static bool is_first(const struct seen_list *list, size_t at)
{
	const struct known *known = pack_of(&list->list[at]), *before;

	for (size_t i = 0; i < at; i++) {
		before = pack_of(&list->list[i]);
		if (before && strcmp(before->pack, known->pack) == 0)
			return false;
	}
	return true;
}

/* What a provider promises is known there, and need not be filled in. No rule is proposed for what
 * a file that can be included names already. */
static void add_packs(struct buf *out, struct seen_list *list)
{
	char path[4200];
	bool any = false, found;

	for (size_t i = 0; i < list->count; i++) {
		const struct known *known = pack_of(&list->list[i]);

		if (!known)
			continue;
		found = find_pack(known->pack, path, sizeof(path));
		list->list[i].covered = found && is_named_by(path, &list->list[i]);
		if (!is_first(list, i))
			continue;
		if (!found) {
			buf_printf(out, "# There are ready-made rules for %s: policy/%s.yaml\n",
			           known->name, known->pack);
			continue;
		}
		buf_printf(out, "%s  - %s # %s\n",
		           any ? "" : "# Ready-made rules of providers that were seen.\ninclude:\n",
		           path, known->name);
		any = true;
	}
	buf_add_text(out, any ? "\n" : "");
}

static bool all_covered(const struct seen_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (!list->list[i].covered)
			return false;
	return true;
}

static int add_seen(struct buf *out, const char *path)
{
	struct seen_list list = {0};
	int rc = seen_read(path, &list);

	if (rc == 0 && list.count == 0)
		rc = cli_fail(CLI_FAILED, "init",
		              "%s: there is no write in it; run the program with "
		              "SENDONCE_MODE=audit and `unlisted: audit` first",
		              path);
	if (rc == 0) {
		add_packs(out, &list);
		buf_add_text(out, "# Made from the event log. Take out what is not a write, and "
		                  "write https:// where that is\n# all; fill in `provider` where "
		                  "the server deduplicates by key.\nwrites:");
		buf_add_text(out, all_covered(&list) ? " []\n" : "");
		for (size_t i = 0; i < list.count; i++)
			if (!list.list[i].covered)
				add_rule(out, &list.list[i]);
		if (list.skipped)
			fprintf(stderr,
			        "sendonce init: %lu events name no pattern and are left out\n",
			        list.skipped);
	}
	seen_free(&list);
	return rc;
}

/* --- writing it --- */

static int write_file(const char *path, struct span text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	bool bad;

	if (!file && errno == EEXIST)
		return cli_fail(CLI_FAILED, "init",
		                "%s is there already: name another file, or - for standard output",
		                path);
	if (!file)
		return cli_fail(CLI_FAILED, "init", "%s: %s", path, strerror(errno));
	bad = fwrite(text.p, 1, text.n, file) != text.n;
	bad = fclose(file) != 0 || bad;
	if (bad) {
		unlink(path);
		return cli_fail(CLI_FAILED, "init", "%s: cannot be written", path);
	}
	printf("%s: written; `sendonce check %s` reads it\n", path, path);
	return CLI_OK;
}

int cli_init(int argc, char **argv)
{
	const char *events = NULL, *path;
	bool done;
	const struct cli_option options[] = {
	        {.name = "from-events", .kind = CLI_TEXT, .at = &events}, {0}};
	const struct cli_syntax syntax = {.command = "init", .help = help, .options = options};
	struct buf text = {0};
	int rc = cli_parse(&syntax, argc, argv, &done);

	if (rc || done)
		return rc;
	if (argc - optind > 1)
		return cli_usage("init", "give one file");
	path = optind < argc ? argv[optind] : "policy.yaml";
	buf_add_text(&text, head);
	if (events)
		rc = add_seen(&text, events);
	else
		buf_add_text(&text, sample);
	if (rc == 0 && text.failed)
		rc = cli_fail(CLI_FAILED, "init", "out of memory");
	if (rc == 0 && strcmp(path, "-") == 0)
		fwrite(text.data, 1, text.n, stdout);
	else if (rc == 0)
		rc = write_file(path, span_buf(&text));
	buf_free(&text);
	return rc;
}
