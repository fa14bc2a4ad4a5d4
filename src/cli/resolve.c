/* `sendonce ledger resolve` and `forget`: the two ways to settle a record by hand.
 *
 * Either may lead to a second execution if the operator is wrong, so both ask for a person
 * (person.c) except where the claim is "it was executed", and both are in the event log before they
 * are done: a change that cannot be logged does not happen. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/person.h"
#include "courier/answer.h"
#include "ledger/events.h"

static const char resolve_help[] =
        "Usage: sendonce ledger resolve KEY --executed [--answer F] [OPTION...]\n"
        "       sendonce ledger resolve KEY --not-executed [OPTION...]\n"
        "\n"
        "Settle a write in doubt, after a look at the provider's own list. KEY `lost-range`: what\n"
        "`ledger recover` could not read; only --not-executed, for all of it.\n"
        "\n"
        "  --executed       it happened there; retries get F, or `answer-not-kept`\n"
        "  --answer F       the answer: a body, or a whole one that begins with HTTP/\n"
        "  --not-executed   it did not; the next retry sends it with the same key\n"
        "  --operator NAME  who says so; together with\n"
        "  --evidence TEXT  what was seen. Needed where no person sits at a "
        "terminal\n" CLI_PLACE_HELP;

static const char forget_help[] =
        "Usage: sendonce ledger forget KEY [OPTION...]\n"
        "\n"
        "Drop a record. The same write will be sent again when a program asks for it.\n"
        "\n"
        "  --operator NAME  who wants it; together with\n"
        "  --evidence TEXT  why. Needed where no person sits at a terminal\n" CLI_PLACE_HELP;

#define LOST_RANGE "lost-range"

struct task {
	const char *command;
	bool forget, executed, not_executed, json, done;
	const char *answer, *key;
	struct person person;
	struct cli_place place;
	struct ledger *ledger;
	struct record_view record;
};

/* --- options --- */

static int check_options(struct task *t, int argc, char **argv)
{
	if (argc - optind != 1)
		return cli_usage(t->command, "give one KEY");
	t->key = argv[optind];
	if (!t->forget && t->executed == t->not_executed)
		return cli_usage(t->command, "say --executed or --not-executed");
	if (t->answer && !t->executed)
		return cli_usage(t->command, "--answer goes with --executed");
	return 0;
}

static int parse(struct task *t, int argc, char **argv)
{
	/* forget knows all but the first three */
	const struct cli_option options[] = {
	        {.name = "executed", .kind = CLI_FLAG, .at = &t->executed},
	        {.name = "not-executed", .kind = CLI_FLAG, .at = &t->not_executed},
	        {.name = "answer", .kind = CLI_TEXT, .at = &t->answer},
	        {.name = "operator", .kind = CLI_TEXT, .at = &t->person.name},
	        {.name = "evidence", .kind = CLI_TEXT, .at = &t->person.evidence},
	        CLI_PLACE_OPTIONS(&t->json),
	        {0}};
	const struct cli_syntax syntax = {.command = t->command,
	                                  .help = t->forget ? forget_help : resolve_help,
	                                  .options = options + (t->forget ? 3 : 0)};
	int rc = cli_parse(&syntax, argc, argv, &t->done);

	return rc || t->done ? rc : check_options(t, argc, argv);
}

/* --- the answer of a resolved write --- */

static int read_file(const char *command, const char *path, struct buf *out)
{
	char piece[4096];
	FILE *file = fopen(path, "rbe");
	size_t n;
	bool bad;

	if (!file)
		return cli_fail(CLI_CANNOT, command, "%s: %s", path, strerror(errno));
	while ((n = fread(piece, 1, sizeof(piece), file)) > 0)
		buf_add(out, piece, n);
	bad = ferror(file) != 0;
	fclose(file);
	if (bad || out->failed)
		return cli_fail(CLI_CANNOT, command, "%s: cannot be read", path);
	return 0;
}

/* A file that is a body alone gets the head of a plain 200. */
static void split_answer(const struct buf *file, struct buf *head, struct span *body)
{
	static const char end[] = "\r\n\r\n";
	struct span all = span_buf(file);
	const char *type = "text/plain; charset=utf-8";
	char *at;

	*body = all;
	if (span_starts(all, "HTTP/")) {
		at = memmem(all.p, all.n, end, sizeof(end) - 1);
		if (at) {
			body->p = at + sizeof(end) - 1;
			body->n = all.n - (size_t)(body->p - all.p);
			buf_add(head, all.p, all.n - body->n);
			return;
		}
	}
	if (all.n && (*all.p == '{' || *all.p == '['))
		type = "application/json";
	buf_printf(head, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", type,
	           all.n);
}

static long status_of(const struct buf *head)
{
	long status = 0;

	return sscanf(head->data, "HTTP/%*s %3ld", &status) == 1 ? status : 0;
}

/* The file as the ledger keeps answers. */
static int make_answer(const struct task *t, struct buf *blob, long *status)
{
	int64_t max = t->place.policy ? t->place.policy->max_response : 1 << 20;
	struct buf file = {0}, head = {0};
	struct tape *tape = NULL;
	struct span body;
	int rc = read_file(t->command, t->answer, &file);

	if (rc)
		goto cleanup;
	split_answer(&file, &head, &body);
	if (!head.failed) {
		*status = status_of(&head);
		tape = answer_made(span_buf(&head), body, NULL);
	}
	if (!tape || *status < 200 || answer_keep(tape, (size_t)max, blob) != 0)
		rc = cli_fail(CLI_CANNOT, t->command,
		              "%s: not an answer, or larger than ledger.max_response (%lld bytes)",
		              t->answer, (long long)max);
cleanup:
	if (tape)
		tape_unref(tape);
	buf_free(&file);
	buf_free(&head);
	return rc;
}

/* --- what is done --- */

static int write_log(const struct task *t, const char *name, const char *outcome)
{
	struct event event = event_make(name);
	char text[600];

	snprintf(text, sizeof(text), "%s: %s", t->person.name ? t->person.name : "at a terminal",
	         t->person.evidence ? t->person.evidence : "no evidence given");
	event.run = getenv("SENDONCE_RUN");
	event.operation = t->record.operation;
	event.key = t->record.key;
	event.fingerprint = t->record.fingerprint;
	event.record = t->record.id;
	event.generation = t->record.generation;
	event.outcome = outcome;
	event.text = text;
	if (event_write(t->place.events, &event) == 0)
		return 0;
	return cli_fail(CLI_CANNOT, t->command, "%s: cannot be written, so nothing was changed",
	                t->place.events);
}

static int explain(const struct task *t, int code)
{
	if (code == LEDGER_LOST || code == LEDGER_NONE)
		return cli_fail(
		        CLI_FAILED, t->command,
		        "the record changed meanwhile; look at it again with `sendonce ledger "
		        "show`");
	return cli_fail(CLI_CANNOT, t->command, "%s: the record could not be changed (code %d)",
	                t->place.ledger, code);
}

static int check_settleable(const struct task *t)
{
	const struct record_view *r = &t->record;

	if (t->forget && (r->state == REC_RESERVED || r->state == REC_SENT) && !cli_in_doubt(r) &&
	    r->lease_fresh)
		return cli_fail(CLI_FAILED, t->command, "it is being sent right now; wait for it");
	if (t->forget || cli_in_doubt(r))
		return 0;
	return cli_fail(CLI_FAILED, t->command, "nothing to settle: it is `%s`, not in doubt",
	                record_state_name(r->state));
}

static int resolve(struct task *t)
{
	struct buf blob = {0};
	struct ledger_answer answer = {0};
	int rc = t->answer ? make_answer(t, &blob, &answer.status) : 0;

	answer.blob = span_buf(&blob);
	if (rc == 0)
		rc = write_log(t, "resolve", t->executed ? "executed" : "not-executed");
	if (rc == 0) {
		int code = ledger_resolve(t->ledger, &t->record, t->executed,
		                          t->answer ? &answer : NULL, clock_now());
		if (code != LEDGER_OK)
			rc = explain(t, code);
	}
	buf_free(&blob);
	return rc;
}

static int forget(struct task *t)
{
	int code, rc = write_log(t, "forget", "forgotten");

	if (rc)
		return rc;
	code = ledger_forget(t->ledger, &t->record, clock_now());
	return code == LEDGER_OK ? 0 : explain(t, code);
}

/* Not one record, but all that may have been lost to damage. */
static int settle_lost(struct task *t, const char *run)
{
	struct ledger_lost lost;
	int rc;

	if (t->executed)
		return cli_usage(
		        t->command,
		        "what was lost has no records: --not-executed says that nothing of "
		        "it will be repeated that was executed");
	snprintf(t->record.operation, sizeof(t->record.operation), "%s", LOST_RANGE);
	if (!ledger_lost(t->ledger, &lost))
		return cli_fail(CLI_FAILED, t->command, "nothing to settle: no records are lost");
	rc = person_require(t->command, t->ledger, &t->person, run,
	                    "Writes whose records were lost will be sent when a program asks for "
	                    "them. Did you see at the providers which were executed?");
	if (rc == 0)
		rc = write_log(t, "resolve", "not-executed");
	if (rc == 0 && ledger_settle_lost(t->ledger) != LEDGER_OK)
		rc = explain(t, LEDGER_CANNOT);
	if (rc == 0)
		fputs(LOST_RANGE ": settled\n", stderr);
	return rc;
}

static int settle(struct task *t)
{
	const char *run = t->place.policy ? t->place.policy->run : getenv("SENDONCE_RUN");
	const char *question =
	        t->forget ? "The record is dropped, and the same write will be sent again."
	                  : "Retries will send this write again. Did you see at the "
	                    "provider that it was not executed?";
	int rc;

	if (!t->forget && strcmp(t->key, LOST_RANGE) == 0)
		return settle_lost(t, run);
	rc = cli_find_record(t->command, t->ledger, t->key, &t->record);
	if (rc == 0)
		rc = check_settleable(t);
	if (rc == 0 && !t->executed)
		rc = person_require(t->command, t->ledger, &t->person, run, question);
	if (rc == 0)
		rc = t->forget ? forget(t) : resolve(t);
	if (rc)
		return rc;
	if (t->json && ledger_look(t->ledger, t->record.id, clock_now(), &t->record) == LEDGER_OK)
		cli_record_json(stdout, &t->record);
	fprintf(stderr, "%.8s: %s\n", t->record.key,
	        t->forget     ? "forgotten"
	        : t->executed ? "resolved as executed"
	                      : "resolved as not executed");
	return CLI_OK;
}

static int perform(struct task *t, int argc, char **argv)
{
	int rc = parse(t, argc, argv);

	if (rc || t->done)
		return rc;
	rc = cli_find_place(t->command, &t->place);
	if (rc)
		return rc;
	rc = cli_open_ledger(t->command, &t->place, false, &t->ledger);
	if (rc == 0) {
		rc = settle(t);
		ledger_close(t->ledger);
	}
	cli_free_place(&t->place);
	return rc;
}

int cli_resolve(int argc, char **argv)
{
	static struct task task = {.command = "ledger resolve"};

	return perform(&task, argc, argv);
}

int cli_forget(int argc, char **argv)
{
	static struct task task = {.command = "ledger forget", .forget = true};

	return perform(&task, argc, argv);
}
