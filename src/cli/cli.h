/* What the commands share: exit codes, where policy and ledger are, and how a record is shown.
 *
 * A command gets its own arguments (argv[0] is its name) and returns the exit code. Only data goes
 * to stdout; messages go to stderr and say what to do. */
#ifndef SENDONCE_CLI_CLI_H
#define SENDONCE_CLI_CLI_H

#include <stdio.h>

#include "base/bytes.h"
#include "ledger/ledger.h"
#include "policy/policy.h"

#define SENDONCE_VERSION "0.1.0"

enum cli_exit { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_CANNOT = 3 };

int cli_run(int argc, char **argv);
int cli_ledger(int argc, char **argv);
int cli_stats(int argc, char **argv);
int cli_events(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_explain(int argc, char **argv);
int cli_init(int argc, char **argv);
/* Those of the ledger's that have files of their own. */
int cli_report(int argc, char **argv);
/* Two of the ledger's, in files of their own. */
int cli_resolve(int argc, char **argv);
int cli_forget(int argc, char **argv);
int cli_export(int argc, char **argv);
int cli_import(int argc, char **argv);
int cli_resize(int argc, char **argv);
int cli_recover(int argc, char **argv);

/* "sendonce COMMAND: text" and the way to its help. Returns CLI_USAGE. */
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "sendonce COMMAND: text". Returns `code`. */
int cli_fail(int code, const char *command, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* An option that stands for an environment variable: later look-ups, the policy's ${} and a
 * command that is started all see it. Paths become absolute. 0, or -1 (the message is printed). */
int cli_set_env(const char *name, const char *value);
int cli_set_path(const char *name, const char *path);
const char *cli_env(void *ctx, const char *name);
/* Puts the library in front of this process's LD_PRELOAD. 0, or CLI_CANNOT after a message. */
int cli_set_preload(const char *command);

struct cli_place {
	struct policy *policy; /* null: none named and none at the default path, or not needed */
	char ledger[4096], events[4200]; /* events: empty where a ledger in memory has none */
	bool ledger_default;
};
/* What the environment and the policy say. A policy that cannot be read is an error, except where
 * SENDONCE_LEDGER already says which ledger is meant. 0, or an exit code after a message. */
int cli_find_place(const char *command, struct cli_place *out);
void cli_free_place(struct cli_place *place);
/* Opens it without creating it. 0, or an exit code after a message: also where it is in memory, the
 * programs' own. */
int cli_open_ledger(const char *command, const struct cli_place *place, bool read_only,
                    struct ledger **out);
/* There is a path for an event log; else an exit code after a message. */
int cli_check_events(const char *command, const struct cli_place *place);
/* There is a file, whatever is in it; else an exit code after a message. */
int cli_check_file(const char *command, const struct cli_place *place);
/* On stderr: what `ledger recover` could not read, while nobody has settled it. */
void cli_tell_lost(const struct ledger *ledger);
/* There is no file at its path, nor is it in memory. */
bool cli_ledger_missing(const struct cli_place *place);

/* The options every command that reads a ledger has. */
#define CLI_PLACE_HELP                                                                             \
	"  --policy F   where the ledger's path is taken from (SENDONCE_POLICY)\n"                 \
	"  --ledger F   the ledger itself (SENDONCE_LEDGER)\n"                                     \
	"  --json       one object a line\n"                                                       \
	"  --help       this text\n"
struct cli_common {
	bool json, done; /* done: --help was printed */
};
/* Parses --policy, --ledger, --json and --help; optind is at the first operand afterwards. 0, or
 * an exit code after a message. */
int cli_parse_common(const char *command, const char *help, int argc, char **argv,
                     struct cli_common *out);

/* --- options --- */

enum cli_kind {
	CLI_FLAG,  /* no value; sets a bool */
	CLI_TEXT,  /* a value, kept as a const char * into argv */
	CLI_MAYBE, /* the same, or "" where there is no `=value` */
	CLI_ENV,   /* a value, put into a variable of the environment */
	CLI_PATH,  /* the same, made absolute */
	CLI_CALL,  /* a value, given to a function that returns 0 or an exit code */
	CLI_LATER  /* known, but not supported in this version */
};
struct cli_option {
	const char *name; /* without the dashes */
	enum cli_kind kind;
	void *at;        /* what is set, or the function's context */
	const char *env; /* CLI_ENV, CLI_PATH */
	int (*call)(void *ctx, const char *value);
};
struct cli_syntax {
	const char *command, *help;
	const struct cli_option *options; /* at most 30, a null name at the end; not --help */
	bool stop_at_operand;             /* what follows it belongs to somebody else */
};
/* optind is at the first operand afterwards. 0, or an exit code after a message; `*done`: --help
 * was asked for and printed. */
int cli_parse(const struct cli_syntax *syntax, int argc, char **argv, bool *done);

#define CLI_PLACE_OPTIONS(json)                                                                    \
	{.name = "policy", .kind = CLI_PATH, .env = "SENDONCE_POLICY"},                            \
	        {.name = "ledger", .kind = CLI_PATH, .env = "SENDONCE_LEDGER"},                    \
	{                                                                                          \
		.name = "json", .kind = CLI_FLAG, .at = (json)                                     \
	}

/* --- records --- */

/* In doubt: unknown, or sent by an owner who is gone. */
bool cli_in_doubt(const struct record_view *record);
/* Null for FREED_NOT. */
const char *cli_freed_name(enum freed_how how);
void cli_record_json(FILE *out, const struct record_view *record);
void cli_record_header(FILE *out);
void cli_record_line(FILE *out, const struct record_view *record);
/* All of one, also the hash that `store: meta` keeps in the place of an answer. */
void cli_record_show(FILE *out, struct ledger *ledger, const struct record_view *record, bool json);

/* The one record whose key, or hex content id, begins with `prefix`. 0, or an exit code after a
 * message that lists the candidates. */
int cli_find_record(const char *command, struct ledger *ledger, const char *prefix,
                    struct record_view *out);

/* --- text --- */

/* "text" with JSON's escapes; null gives null. */
void cli_json_text(FILE *out, const char *text);
/* For a terminal: control bytes become '?'. */
void cli_plain_text(FILE *out, const char *text, int width);

#endif
