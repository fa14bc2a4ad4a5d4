/* Reading a tree of values into structs by tables of keys.
 *
 * A table says for each key how its value is read and where it goes. Keys a table does not list are
 * errors. Every reader returns 0, or a policy_load code with the error filled in. */
#ifndef SENDONCE_POLICY_READER_H
#define SENDONCE_POLICY_READER_H

#include "policy/tree.h"

struct section;

struct reader {
	const char *path;
	policy_env *env;
	void *ctx;
	struct policy_error *error;
	const struct section *const *sections; /* all there are, null at the end; for hints */
};

struct field;
typedef int reader_fn(struct reader *r, const struct field *f, const struct node *value, void *at);

struct field {
	const char *name; /* as shown, `provider.key_ttl`; the key itself is after the last dot */
	reader_fn *read;
	size_t offset;   /* of the target in the struct the table belongs to */
	const void *arg; /* what the reader wants to know */
};

struct section {
	const char *title; /* "a rule of `writes`" */
	const struct field *fields;
};

/* One word out of several. `off` words are known, but this version does not act on them. */
struct choice {
	const char *text;
	int value;
	enum { CHOICE_ON, CHOICE_OFF } state;
};

struct number_limits {
	int64_t least;
	const char *word; /* a word that may stand instead, as `never`; or null */
	int64_t word_value;
};

int reader_fields(struct reader *r, const struct node *map, const struct section *section,
                  void *base);

/* Readers for tables. `at` is: */
reader_fn reader_section;   /* the struct itself; arg: struct section */
reader_fn reader_choice;    /* an enum or int; arg: struct choice[], null text at the end */
reader_fn reader_bool;      /* bool */
reader_fn reader_text;      /* char *, not empty */
reader_fn reader_duration;  /* int64_t; arg: struct number_limits or null */
reader_fn reader_size;      /* int64_t; arg: struct number_limits or null */
reader_fn reader_statuses;  /* struct status_set */
reader_fn reader_selectors; /* struct text_list */
/* char *, ${NAME} expanded, null when empty or unset. Also a map {from: header:NAME, strip: true},
 * if arg is there: a size_t, the offset of its struct policy_source. */
reader_fn reader_expanded;
reader_fn reader_path; /* char *, ${NAME} expanded, absolute */

/* --- for readers of values with a form of their own --- */

int reader_fail(struct reader *r, const struct node *at, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* "`key: value` text" */
int reader_fail_value(struct reader *r, const struct field *f, const struct node *value,
                      const char *text);
int reader_fail_unsupported(struct reader *r, const struct field *f, const struct node *value,
                            const char *shown);
int reader_nomem(struct reader *r);
/* A scalar with a value and without control characters. */
int reader_scalar(struct reader *r, const struct field *f, const struct node *value,
                  struct span *out);
/* Each item of a list, or the one scalar that stands for a list of one. */
typedef int item_fn(struct reader *r, const struct field *f, const struct node *item, void *at);
int reader_list(struct reader *r, const struct field *f, const struct node *value, item_fn *item,
                void *at);
int reader_copy(struct reader *r, struct span text, char **out); /* replaces *out */
int reader_append(struct reader *r, struct span text, struct text_list *list);
/* At most POLICY_NAME_MAX bytes; null is fine. */
int reader_check_name(struct reader *r, const struct field *f, const struct node *value,
                      const char *text);
void reader_free_list(struct text_list *list);

#endif
