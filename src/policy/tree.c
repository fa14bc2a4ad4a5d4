/* From YAML text to a tree of places and values.
 *
 * libyaml's events are read, not its documents: a document hides where an alias stood and lets a
 * tree contain itself, while an event can be refused on sight. Depth, number of values and size of
 * a map are bounded, so a hostile file costs no more than its size. No value is given a meaning
 * here: `yes`, `1` and `"1"` are all just text with a place. */
#include "policy/tree.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct builder {
	yaml_parser_t parser;
	const char *path;
	struct span text;
	struct policy_error *error;
	struct node *open[TREE_DEPTH]; /* the collections around the next event */
	struct node *key[TREE_DEPTH];  /* of a map: the key that waits for its value */
	size_t depth;
	size_t nodes;
	struct node *root;
};

void tree_error(struct policy_error *error, const char *path, int line, int column,
                const char *format, ...)
{
	va_list args;
	int n;

	error->line = line;
	error->column = column;
	n = line ? snprintf(error->text, sizeof(error->text), "%.400s:%d:%d: ", path, line, column)
	         : snprintf(error->text, sizeof(error->text), "%.400s: ", path);
	if (n < 0 || (size_t)n >= sizeof(error->text))
		return;
	va_start(args, format);
	vsnprintf(error->text + n, sizeof(error->text) - (size_t)n, format, args);
	va_end(args);
}

void tree_free(struct node *root)
{
	struct node *next;

	/* Depth is bounded, siblings are walked. */
	for (; root; root = next) {
		next = root->next;
		tree_free(root->first);
		if (root->key)
			free((char *)(uintptr_t)root->key->text.p);
		free(root->key);
		free((char *)(uintptr_t)root->text.p);
		free((char *)(uintptr_t)root->written.p);
		free(root);
	}
}

const struct node *tree_get(const struct node *map, const char *key)
{
	for (const struct node *n = map->first; n; n = n->next) {
		if (n->key && span_is(n->key->text, key))
			return n;
	}
	return NULL;
}

static int mark_line(yaml_mark_t mark)
{
	return mark.line < INT32_MAX ? (int)mark.line + 1 : INT32_MAX;
}

static int mark_column(yaml_mark_t mark)
{
	return mark.column < INT32_MAX ? (int)mark.column + 1 : INT32_MAX;
}

static int fail_at(struct builder *b, yaml_mark_t mark, const char *text)
{
	tree_error(b->error, b->path, mark_line(mark), mark_column(mark), "%s", text);
	return POLICY_INVALID;
}

static int fail_nomem(struct builder *b)
{
	tree_error(b->error, b->path, 0, 0, "out of memory");
	return POLICY_NOMEM;
}

/* The reader knows only an offset. */
static int fail_encoding(struct builder *b)
{
	size_t offset = b->parser.problem_offset;
	int line = 1, column = 1;

	for (size_t i = 0; i < offset && i < b->text.n; i++) {
		bool newline = b->text.p[i] == '\n';

		line += newline;
		column = newline ? 1 : column + 1;
	}
	tree_error(b->error, b->path, line, column,
	           "not readable as YAML text (%s): save the file as UTF-8",
	           b->parser.problem ? b->parser.problem : "bad character");
	return POLICY_INVALID;
}

static bool is_tab(const struct builder *b, yaml_mark_t mark)
{
	size_t line = 0, i = 0;

	while (i < b->text.n && line < mark.line)
		line += b->text.p[i++] == '\n';
	return mark.column < b->text.n - i && b->text.p[i + mark.column] == '\t';
}

static int fail_syntax(struct builder *b)
{
	const yaml_parser_t *p = &b->parser;

	if (p->error == YAML_MEMORY_ERROR)
		return fail_nomem(b);
	if (p->error == YAML_READER_ERROR)
		return fail_encoding(b);
	if (is_tab(b, p->problem_mark))
		return fail_at(b, p->problem_mark, "a tab cannot indent YAML: use spaces instead");
	tree_error(b->error, b->path, mark_line(p->problem_mark), mark_column(p->problem_mark),
	           "not valid YAML: %s%s%s", p->problem ? p->problem : "cannot be read",
	           p->context ? " " : "", p->context ? p->context : "");
	return POLICY_INVALID;
}

static struct node *make_node(struct builder *b, const yaml_event_t *event)
{
	struct node *node = calloc(1, sizeof(*node));
	struct span text;

	if (!node)
		return NULL;
	node->line = mark_line(event->start_mark);
	node->column = mark_column(event->start_mark);
	b->nodes++;
	if (event->type == YAML_MAPPING_START_EVENT)
		node->kind = NODE_MAP;
	if (event->type == YAML_SEQUENCE_START_EVENT)
		node->kind = NODE_LIST;
	if (event->type != YAML_SCALAR_EVENT)
		return node;
	text.p = (const char *)event->data.scalar.value;
	text.n = event->data.scalar.length;
	node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	node->text.p = span_dup(text);
	node->text.n = text.n;
	if (node->text.p)
		return node;
	free(node);
	return NULL;
}

static int add_key(struct builder *b, struct node *node)
{
	const struct node *map = b->open[b->depth - 1], *first;

	b->key[b->depth - 1] = node;
	if (memchr(node->text.p, '\0', node->text.n)) {
		tree_error(b->error, b->path, node->line, node->column, "a key holds a NUL byte");
		return POLICY_INVALID;
	}
	first = tree_get(map, node->text.p);
	if (first) {
		tree_error(b->error, b->path, node->line, node->column,
		           "`%.60s` is there twice: remove one of them (the first is in line %d)",
		           node->text.p, first->key->line);
		return POLICY_INVALID;
	}
	if (map->count < TREE_ENTRIES)
		return 0;
	tree_error(b->error, b->path, node->line, node->column,
	           "more than %d keys in one place: not a policy", TREE_ENTRIES);
	return POLICY_INVALID;
}

/* Takes the node over in every case. */
static int add_node(struct builder *b, struct node *node)
{
	struct node *parent = b->depth ? b->open[b->depth - 1] : NULL;

	if (!parent) {
		b->root = node;
		return 0;
	}
	if (parent->kind == NODE_MAP && !b->key[b->depth - 1]) {
		if (node->kind == NODE_SCALAR)
			return add_key(b, node);
		tree_error(b->error, b->path, node->line, node->column,
		           "a key must be plain text, not a list or a map");
		tree_free(node);
		return POLICY_INVALID;
	}
	if (parent->kind == NODE_MAP) {
		node->key = b->key[b->depth - 1];
		b->key[b->depth - 1] = NULL;
	}
	if (parent->last)
		parent->last->next = node;
	else
		parent->first = node;
	parent->last = node;
	parent->count++;
	return 0;
}

static int add_value(struct builder *b, const yaml_event_t *event)
{
	struct node *node;
	int rc;

	if (b->nodes >= TREE_NODES)
		return fail_at(b, event->start_mark, "too many values: not a policy");
	node = make_node(b, event);
	if (!node)
		return fail_nomem(b);
	rc = add_node(b, node);
	if (rc || event->type == YAML_SCALAR_EVENT)
		return rc;
	if (b->depth == TREE_DEPTH)
		return fail_at(b, event->start_mark, "nested too deeply: not a policy");
	b->key[b->depth] = NULL;
	b->open[b->depth++] = node;
	return 0;
}

/* libyaml keeps anchor and tag at a place of their own in each kind of event. */
static bool has_extras(const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return event->data.scalar.anchor || event->data.scalar.tag;
	case YAML_SEQUENCE_START_EVENT:
		return event->data.sequence_start.anchor || event->data.sequence_start.tag;
	case YAML_MAPPING_START_EVENT:
		return event->data.mapping_start.anchor || event->data.mapping_start.tag;
	default:
		return false;
	}
}

static int add_event(struct builder *b, const yaml_event_t *event)
{
	if (event->type == YAML_ALIAS_EVENT || has_extras(event))
		return fail_at(b, event->start_mark,
		               "anchors (&), aliases (*) and tags (!) are not used in a policy: "
		               "write the value out, or put it in quotes");
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		return b->root ? fail_at(b, event->start_mark,
		                         "a second document begins here: a policy is one document")
		               : 0;
	case YAML_SCALAR_EVENT:
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT:
		return add_value(b, event);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		b->depth--;
		return 0;
	default:
		return 0;
	}
}

/* No document at all, or one without a value. */
static bool is_nothing(const struct node *root)
{
	return !root || (root->kind == NODE_SCALAR && root->plain && root->text.n == 0);
}

static int read_events(struct builder *b)
{
	yaml_event_t event;
	bool last = false;
	int rc = 0;

	while (!rc && !last) {
		if (!yaml_parser_parse(&b->parser, &event))
			return fail_syntax(b);
		last = event.type == YAML_STREAM_END_EVENT || event.type == YAML_NO_EVENT;
		rc = add_event(b, &event);
		yaml_event_delete(&event);
	}
	if (!rc && is_nothing(b->root))
		return fail_at(b, (yaml_mark_t){0},
		               "the policy is empty: it needs at least `version: 1`");
	return rc;
}

static void drop(struct builder *b)
{
	for (size_t i = 0; i < b->depth; i++)
		tree_free(b->key[i]);
	tree_free(b->root);
}

int tree_parse(const char *path, struct span text, struct node **root, struct policy_error *error)
{
	struct builder b = {.path = path, .text = text, .error = error};
	int rc;

	*root = NULL;
	if (!text.p)
		b.text = text = span_of(""); /* libyaml asserts that there is one */
	if (text.n > TREE_BYTES)
		return fail_at(&b, (yaml_mark_t){0}, "larger than 4 MiB: not a policy");
	if (span_starts(text, "\xef\xbb\xbf"))
		b.text = (struct span){text.p + 3, text.n - 3};
	if (!yaml_parser_initialize(&b.parser))
		return fail_nomem(&b);
	yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b.parser, (const unsigned char *)b.text.p, b.text.n);
	rc = read_events(&b);
	yaml_parser_delete(&b.parser);
	if (rc)
		drop(&b);
	else
		*root = b.root;
	return rc;
}
