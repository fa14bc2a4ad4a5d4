/* Reading .netrc for the identity: who the credentials belong to that libcurl will find there.
 *
 * libcurl reads the file itself when it connects, and offers no way to ask it. So this follows its
 * rules: words between blanks, "..." with backslash escapes, # to the end of a line, `macdef` up to
 * an empty line, the first entry that gives both a login and a password, and with a user name known
 * beforehand only that user's. Not followed: lines longer than 4095 bytes, which libcurl skips. */
#include "request/netrc.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LINE_MAX_BYTES = 4096 };
enum state { OUTSIDE, HOST_NEXT, OURS, MACRO };

struct search {
	const char *host;
	const char *wanted; /* this user's entry only; null: any */
	char *user, *password;
	enum state state;
	bool login_next, password_next;
	bool our_login; /* the entry's login is the wanted one, or it has none */
	bool found, bad;
};

static char unescaped(char c)
{
	switch (c) {
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	default:
		return c;
	}
}

/* The quoted word whose quote *at stands on; null: it does not end. */
static char *take_quoted(char **at)
{
	char *word = *at, *store = word, *p = word + 1;

	for (; *p && *p != '"'; p++) {
		if (*p == '\\' && *++p)
			*store++ = unescaped(*p);
		else if (*p)
			*store++ = *p;
		else
			break;
	}
	if (*p != '"')
		return NULL;
	*at = p + 1;
	*store = '\0';
	return word;
}

/* The next word of a line, cut out in place; null at its end. */
static char *take_word(struct search *s, char **at)
{
	char *word = *at + strspn(*at, " \t"), *end;

	*at = word;
	if (!*word || *word == '#' || *word == '\n' || *word == '\r')
		return NULL;
	if (*word == '"') {
		word = take_quoted(at);
		s->bad = s->bad || !word;
		return word;
	}
	end = word + strcspn(word, " \t\r\n\v\f");
	*at = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

static void keep(struct search *s, char **place, const char *word)
{
	char *copy = strdup(word);

	s->bad = s->bad || !copy;
	if (!copy)
		return;
	free(*place);
	*place = copy;
}

static void read_entry(struct search *s, const char *word)
{
	if (s->login_next) {
		if (s->wanted)
			s->our_login = strcmp(s->wanted, word) == 0;
		else
			keep(s, &s->user, word);
		s->login_next = false;
	} else if (s->password_next) {
		if (s->our_login || !s->wanted)
			keep(s, &s->password, word);
		s->password_next = false;
	} else if (strcasecmp(word, "login") == 0) {
		s->login_next = true;
	} else if (strcasecmp(word, "password") == 0) {
		s->password_next = true;
	} else if (strcasecmp(word, "machine") == 0) {
		s->state = HOST_NEXT;
		s->our_login = false;
	}
}

static void read_word(struct search *s, const char *word)
{
	switch (s->state) {
	case OUTSIDE:
		if (strcasecmp(word, "macdef") == 0)
			s->state = MACRO;
		else if (strcasecmp(word, "machine") == 0)
			s->state = HOST_NEXT;
		else if (strcasecmp(word, "default") == 0)
			s->state = OURS;
		break;
	case HOST_NEXT:
		s->state = strcasecmp(s->host, word) == 0 ? OURS : OUTSIDE;
		break;
	case OURS:
		read_entry(s, word);
		break;
	case MACRO:
		break;
	}
	s->found = s->found || s->state == OURS;
}

static bool is_whole(const struct search *s)
{
	const char *user = s->wanted ? s->wanted : s->user;

	return user && *user && s->password && *s->password;
}

static void read_line(struct search *s, char *line)
{
	char *word;

	if (s->state == MACRO) {
		if (*line == '\n' || *line == '\r')
			s->state = OUTSIDE;
		return;
	}
	while (!s->bad && !is_whole(s) && (word = take_word(s, &line)))
		read_word(s, word);
}

/* What was found becomes the caller's. */
static int hand_over(struct search *s, char **user, char **password)
{
	if (!s->bad && s->found && s->user) {
		free(*user);
		*user = s->user;
		s->user = NULL;
	}
	if (!s->bad && s->found && s->password) {
		free(*password);
		*password = s->password;
		s->password = NULL;
	}
	free(s->user);
	free(s->password);
	if (s->bad)
		return -1;
	return s->found ? 0 : 1;
}

int netrc_find(const char *path, const char *host, char **user, char **password)
{
	struct search s = {.host = host, .our_login = true};
	char line[LINE_MAX_BYTES];
	int saved = errno;
	FILE *file = fopen(path, "re");

	if (!file) {
		errno = saved;
		return 1;
	}
	s.wanted = *user && **user ? *user : NULL;
	if (*password)
		keep(&s, &s.password, *password);
	while (!s.bad && !is_whole(&s) && fgets(line, sizeof(line), file))
		read_line(&s, line);
	fclose(file);
	errno = saved;
	return hand_over(&s, user, password);
}
