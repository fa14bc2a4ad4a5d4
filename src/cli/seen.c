/* See seen.h. Events of writes that no rule names count, and those of rules too (another policy's
 * may be in the log). What stands in a log came from programs and their peers, so a host or path
 * that is no pattern is left out and counted. */
#include "cli/seen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "policy/matcher.h"
#include "policy/values.h"
#include "report/scan.h"

struct line {
	struct seen seen;
	char event[32], reason[64], status[16], key[64];
};

static bool is_plain_name(struct span name)
{
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_' || c == '-' || c == '/' || c == '.'))
			return false;
	}
	return name.n > 0 && name.n < SEEN_NOISE_TEXT;
}

/* {"/amount":"n1f3a5b7c", "/id":"v..."}: the first letter is the sort, v new each time. */
static int keep_part(void *ctx, const struct scan_member *member)
{
	struct seen *s = ctx;

	if (member->value.n == 0 || *member->value.p != 'v' || s->noise_count == SEEN_NOISE ||
	    !is_plain_name(member->name) || value_selector(member->name) ||
	    span_is(member->name, "query"))
		return 0;
	memcpy(s->noise[s->noise_count], member->name.p, member->name.n);
	s->noise[s->noise_count++][member->name.n] = '\0';
	return 0;
}

static int keep(void *ctx, const struct scan_member *m)
{
	struct line *l = ctx;
	const struct {
		const char *name;
		char *to;
		size_t room;
	} texts[] = {{"event", l->event, sizeof(l->event)},
	             {"method", l->seen.method, sizeof(l->seen.method)},
	             {"host", l->seen.host, sizeof(l->seen.host)},
	             {"path", l->seen.path, sizeof(l->seen.path)},
	             {"reason", l->reason, sizeof(l->reason)},
	             {"status", l->status, sizeof(l->status)},
	             {"own_key", l->key, sizeof(l->key)}};

	if (m->kind == SCAN_OBJECT && span_is(m->name, "parts"))
		return scan_object(m->value, keep_part, &l->seen) > 0;
	for (size_t i = 0; m->kind != SCAN_OBJECT && i < sizeof(texts) / sizeof(*texts); i++)
		if (span_is(m->name, texts[i].name))
			scan_unescape(m->value, texts[i].to, texts[i].room);
	return 0;
}

/* As init would write it: does it parse? */
static bool is_pattern(const struct seen *s)
{
	struct matcher *matcher = NULL;
	const char *problem;
	struct buf text = {0};
	bool good;

	buf_printf(&text, "%s *://%s:*%s", s->method, s->host, s->path);
	good = !text.failed && !strchr(s->host, '\'') &&
	       matcher_parse(span_buf(&text), &matcher, &problem) == 0;
	matcher_free(matcher);
	buf_free(&text);
	return good;
}

static bool is_same(const struct seen *a, const struct seen *b)
{
	return strcmp(a->method, b->method) == 0 && strcmp(a->host, b->host) == 0 &&
	       strcmp(a->path, b->path) == 0;
}

static struct seen *find_or_add(struct seen_list *all, const struct seen *s)
{
	struct seen *more;

	for (size_t i = 0; i < all->count; i++)
		if (is_same(&all->list[i], s))
			return &all->list[i];
	if (all->count == all->room) {
		more = realloc(all->list, (all->room * 2 + 16) * sizeof(*more));
		if (!more)
			return NULL;
		all->list = more;
		all->room = all->room * 2 + 16;
	}
	all->list[all->count] = *s;
	return &all->list[all->count++];
}

/* A part is noise only if it is new by its look in every request. */
static void merge_noise(struct seen *to, const struct seen *from)
{
	size_t kept = 0;

	for (size_t i = 0; i < to->noise_count; i++)
		for (size_t k = 0; k < from->noise_count; k++)
			if (strcmp(to->noise[i], from->noise[k]) == 0) {
				memmove(to->noise[kept++], to->noise[i], SEEN_NOISE_TEXT);
				break;
			}
	to->noise_count = kept;
}

static int add(struct seen_list *all, const struct line *line)
{
	struct seen *s;

	if (!is_pattern(&line->seen)) {
		all->skipped++;
		return 0;
	}
	s = find_or_add(all, &line->seen);
	if (!s)
		return -1;
	if (s->count)
		merge_noise(s, &line->seen);
	s->count++;
	s->resent += strcmp(line->reason, "wire-resend") == 0;
	s->own_key = s->own_key || line->key[0];
	if (line->status[0]) {
		s->answered = true;
		s->status = strtol(line->status, NULL, 10);
	}
	return 0;
}

static bool tells_of_write(const struct line *l)
{
	return (strcmp(l->event, "unlisted") == 0 || strcmp(l->event, "write") == 0) &&
	       l->seen.method[0] && l->seen.host[0] && l->seen.path[0] == '/';
}

static int compare(const void *left, const void *right)
{
	const struct seen *a = left, *b = right;
	int order = strcmp(a->host, b->host);

	if (a->count != b->count)
		return a->count < b->count ? 1 : -1;
	if (order == 0)
		order = strcmp(a->path, b->path);
	return order ? order : strcmp(a->method, b->method);
}

static int read_lines(FILE *log, struct seen_list *out)
{
	static struct line line;
	char *text = NULL;
	size_t room = 0;
	ssize_t n;
	int rc = 0;

	while (rc == 0 && (n = getline(&text, &room, log)) > 0) {
		struct span whole = {text, (size_t)n};

		memset(&line, 0, sizeof(line));
		if (scan_object(whole, keep, &line) != 0) {
			memset(&line, 0, sizeof(line));
			whole = scan_untorn(whole);
			if (scan_object(whole, keep, &line) != 0)
				continue;
		}
		if (tells_of_write(&line))
			rc = add(out, &line);
	}
	free(text);
	return rc;
}

int seen_read(const char *path, struct seen_list *out)
{
	FILE *log = fopen(path, "re");
	int rc;

	if (!log)
		return cli_fail(CLI_CANNOT, "init", "%s: %s", path, strerror(errno));
	rc = read_lines(log, out);
	fclose(log);
	if (rc)
		return cli_fail(CLI_CANNOT, "init", "out of memory");
	if (out->count)
		qsort(out->list, out->count, sizeof(*out->list), compare);
	return 0;
}

void seen_free(struct seen_list *list)
{
	free(list->list);
	*list = (struct seen_list){0};
}
