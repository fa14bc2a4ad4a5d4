/* Inside of `sendonce explain`: what is found out about one request, and how it is shown. */
#ifndef SENDONCE_CLI_EXPLAIN_H
#define SENDONCE_CLI_EXPLAIN_H

#include "cli/curl_line.h"
#include "cli/describe.h"
#include "intercept/writing.h"
#include "policy/matcher.h"

struct explained {
	struct curl_line line;
	struct shadow shadow; /* as if the program's handle had been told all that */
	struct writing write;
	struct captured form;
	struct description parts, must_match, account;
	bool account_opaque;
	struct record_view view; /* state REC_NONE: there is none */
	struct verdict verdict;
	const char *decision; /* pass, refuse, execute, ... */
	const char *why;      /* a sentence of it */
	char text[512];       /* more of it, or "" */
	char key[KEY_TEXT_MAX + 1];
	const char *key_source; /* null: there is no key to show */
	uint32_t generation;
	bool doubt_resent; /* were its answer to get lost, a retry would send it again */
};

/* What all requests of one command share. */
struct explaining {
	const char *command;
	struct libcurl lib;
	struct process process;
	struct ledger *ledger; /* null: there is none */
	bool ledger_broken;
	char ledger_text[512]; /* why it cannot be used, or "" */
	bool has_secret;       /* else hashes are of this output only, and no key can be told */
};

/* Reads one request from argv and finds out all about it. Returns how many arguments were its own;
 * or, negative, an exit code after a message. `out` is all zero before, and explain_free'd. */
int explain_request(const struct explaining *all, int argc, char **argv, struct explained *out);
void explain_free(const struct explaining *all, struct explained *e);

void explain_show_text(const struct explaining *all, const struct explained *e);
void explain_show_json(const struct explaining *all, const struct explained *e);
/* True: the two are the same write. */
bool explain_compare(const struct explaining *all, const struct explained *a,
                     const struct explained *b, bool json);

/* "method, path": what of the target the rule does not fit, and whether its conditions hold. */
void explain_mismatch(const struct explained *e, const struct rule *rule, struct buf *out);

#endif
