/* See lines.h. Lists are copied with their quirks: "Name:" and "Name;" mean something to libcurl,
 * which also sends a name with blanks before its colon.
 *
 * Both lists and the texts they share lie in one block: libcurl reads the list it is given and
 * never frees it, and a block is one allocation for what would be two a line.
 *
 * A form was rendered beforehand and goes out as a POST of known bytes; its Content-Type, boundary
 * and all, has to stand where libcurl writes it for a form: at the end, behind Content-Length. Both
 * are therefore given as the last lines of the program's own list. libcurl would send them with the
 * GET that a redirect can make of a POST too, so the lists are cut before them then. */
#include "courier/lines.h"

#include <stdbool.h>
#include <stdlib.h>
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

/* --- one block --- */

struct laying {
	struct curl_slist *node;
	char *text;
};

static size_t size_of_all(const char *const *lines, size_t count)
{
	size_t size = 0;

	for (size_t i = 0; i < count; i++)
		size += lines[i] ? strlen(lines[i]) + 1 : 0;
	return size;
}

/* Room for every line in both lists. */
static bool make_room(const struct curl_slist *own, const struct header_edit *edit,
                      struct lines *out, struct laying *l)
{
	size_t nodes = LINES_ADD + LINES_LAST;
	size_t size = size_of_all(edit->add, LINES_ADD) + size_of_all(edit->last, LINES_LAST);

	for (; own; own = own->next) {
		nodes += 2;
		size += strlen(own->data) + 1;
	}
	out->room = malloc(nodes * sizeof(*l->node) + size);
	if (!out->room)
		return false;
	l->node = out->room;
	l->text = (char *)(l->node + nodes);
	return true;
}

static char *lay(struct laying *l, const char *line)
{
	size_t n = strlen(line) + 1;
	char *text = memcpy(l->text, line, n);

	l->text += n;
	return text;
}

/* To the end of a list: the place that says what comes next. */
static void tie(struct laying *l, struct curl_slist ***end, char *text)
{
	*l->node = (struct curl_slist){.data = text};
	**end = l->node;
	*end = &l->node++->next;
}

static void lay_all(struct laying *l, struct curl_slist ***end, const char *const *lines,
                    size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (lines[i])
			tie(l, end, lay(l, lines[i]));
}

int lines_make(const struct curl_slist *own, const struct header_edit *edit, struct lines *out)
{
	struct curl_slist **headers = &out->headers, **bare = &out->bare, **tail = &out->tail;
	size_t key = edit->key_name ? strlen(edit->key_name) : 0;
	struct laying l;

	if (!make_room(own, edit, out, &l))
		return -1;
	for (; own; own = own->next) {
		if (is_dropped(own->data, edit))
			continue;
		char *text = lay(&l, own->data);
		if (!is_replaced(text, edit))
			tie(&l, &headers, text);
		if (!is_named(text, edit->key_name, key))
			tie(&l, &bare, text);
	}
	lay_all(&l, &headers, edit->add, LINES_ADD);
	lay_all(&l, &tail, edit->last, LINES_LAST);
	*headers = *bare = out->tail;
	return 0;
}

static void cut(struct curl_slist **link, const struct curl_slist *tail)
{
	while (*link && *link != tail)
		link = &(*link)->next;
	*link = NULL;
}

void lines_cut(struct lines *lines)
{
	cut(&lines->headers, lines->tail);
	cut(&lines->bare, lines->tail);
	lines->tail = NULL;
}

void lines_free(struct lines *lines)
{
	free(lines->room);
	*lines = (struct lines){0};
}

/* --- a form --- */

static void form_line(struct buf *line, const char *name, const char *value)
{
	buf_add_text(line, name);
	buf_add_text(line, ": ");
	buf_add_text(line, value);
}

int lines_form(struct lines_form *f, const struct curl_slist *own, curl_off_t size,
               const char *type, struct header_edit *edit)
{
	size_t n = 0;

	*f = (struct lines_form){0};
	while (n < LINES_DROP - 1 && edit->drop[n])
		n++;
	edit->drop[n] = "Content-Type"; /* libcurl's own goes out */
	form_line(&f->length, "Content-Length", "");
	buf_add_number(&f->length, size);
	form_line(&f->type, "Content-Type", type);
	if (f->length.failed || f->type.failed)
		return -1;
	if (size >= 0 && !lines_have(own, "Content-Length") &&
	    !lines_have(own, "Transfer-Encoding"))
		edit->last[0] = f->length.data;
	edit->last[1] = f->type.data;
	return 0;
}

void lines_form_free(struct lines_form *f)
{
	buf_free(&f->length);
	buf_free(&f->type);
}

bool lines_have(const struct curl_slist *list, const char *name)
{
	size_t n = strlen(name);

	for (; list; list = list->next)
		if (strncasecmp(list->data, name, n) == 0 && list->data[n] == ':')
			return true;
	return false;
}
