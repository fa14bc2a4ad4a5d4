/* See lines.h. Lists are copied with their quirks: "Name:" and "Name;" mean something to libcurl,
 * which also sends a name with blanks before its colon. */
#include "courier/lines.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* Length of the name in a line; 0: it has none. */
static size_t name_length(const char *line)
{
	size_t n = strcspn(line, ":;");

	if (!line[n])
		return 0;
	while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'))
		n--;
	return n;
}

static bool is_named(const char *line, const char *name, size_t n)
{
	return n > 0 && name_length(line) == n && strncasecmp(line, name, n) == 0;
}

static bool is_dropped(const char *line, const struct header_edit *edit)
{
	for (size_t i = 0; i < LINES_DROP && edit->drop[i]; i++) {
		if (is_named(line, edit->drop[i], strlen(edit->drop[i])))
			return true;
	}
	return false;
}

static bool is_replaced(const char *line, const struct header_edit *edit)
{
	for (size_t i = 0; i < LINES_ADD; i++) {
		if (edit->add[i] && is_named(line, edit->add[i], name_length(edit->add[i])))
			return true;
	}
	return false;
}

static int append(const struct flavour *fl, struct curl_slist **list, const char *line)
{
	struct curl_slist *more = CURL_FN(fl, slist_append)(*list, line);

	if (!more)
		return -1;
	*list = more;
	return 0;
}

int lines_make(const struct flavour *fl, const struct curl_slist *own,
               const struct header_edit *edit, struct curl_slist **headers,
               struct curl_slist **bare)
{
	size_t key = edit->key_name ? strlen(edit->key_name) : 0;
	int rc = 0;

	for (; own && !rc; own = own->next) {
		if (is_dropped(own->data, edit))
			continue;
		if (!is_replaced(own->data, edit))
			rc = append(fl, headers, own->data);
		if (!rc && bare && !is_named(own->data, edit->key_name, key))
			rc = append(fl, bare, own->data);
	}
	for (size_t i = 0; i < LINES_ADD && !rc; i++) {
		if (edit->add[i])
			rc = append(fl, headers, edit->add[i]);
	}
	return rc;
}

bool lines_have(const struct curl_slist *list, const char *name)
{
	size_t n = strlen(name);

	for (; list; list = list->next)
		if (strncasecmp(list->data, name, n) == 0 && list->data[n] == ':')
			return true;
	return false;
}
