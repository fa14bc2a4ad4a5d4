/* A YAML text as a tree of values that know their line and column.
 *
 * The subset a policy needs: one document of maps, lists and scalars in UTF-8. Anchors, aliases and
 * tags are errors, so are duplicate keys, so the tree is never larger than the text. */
#ifndef SENDONCE_POLICY_TREE_H
#define SENDONCE_POLICY_TREE_H

#include "base/bytes.h"
#include "policy/policy.h"

enum {
	TREE_BYTES = 4 << 20, /* of text */
	TREE_NODES = 100000,
	TREE_DEPTH = 16,
	TREE_ENTRIES = 256 /* of one map; the search for duplicate keys is quadratic */
};

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	int line, column;    /* 1-based */
	struct span text;    /* scalar: NUL-terminated as well */
	struct span written; /* what stood there before ${NAME} was filled in; p null: text */
	bool plain;          /* scalar: written without quotes */
	struct node *key;    /* in a map: what this value is named by */
	struct node *first, *last, *next;
	size_t count;
};

/* 0 and a tree for tree_free, or a policy_load code with `error` filled in. */
int tree_parse(const char *path, struct span text, struct node **root, struct policy_error *error);
void tree_free(struct node *root);

/* The value of `key`, or null. */
const struct node *tree_get(const struct node *map, const char *key);

/* Fill in `error` for a place in the file. */
void tree_error(struct policy_error *error, const char *path, int line, int column,
                const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
