/* How a record looks: a line of a table, all of it, or a JSON object.
 *
 * The JSON names are an interface and stay. Text that came from elsewhere (an operation, a
 * program's name) is escaped: a ledger must not be able to drive a terminal. */
#include "cli/cli.h"

#include <inttypes.h>
#include <string.h>

void cli_json_text(FILE *out, const char *text)
{
	if (!text) {
		fputs("null", out);
		return;
	}
	fputc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < ' ' || c == 0x7f)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

void cli_plain_text(FILE *out, const char *text, int width)
{
	int n = 0;

	for (; *text; text++, n++)
		fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, out);
	for (; n < width; n++)
		fputc(' ', out);
}

static bool is_gone(const struct record_view *r)
{
	return !r->lease_fresh || r->owner == OWNER_DEAD || r->owner == OWNER_NONE;
}

bool cli_in_doubt(const struct record_view *r)
{
	return r->state == REC_UNKNOWN || (r->state == REC_SENT && is_gone(r));
}

static const char *owner_name(enum owner_life life)
{
	switch (life) {
	case OWNER_ALIVE:
		return "alive";
	case OWNER_DEAD:
		return "dead";
	case OWNER_UNKNOWABLE:
		return "unknowable";
	case OWNER_NONE:
		break;
	}
	return NULL;
}

const char *cli_freed_name(enum freed_how how)
{
	switch (how) {
	case FREED_WITHDRAWN:
		return "withdrawn";
	case FREED_ANSWER:
		return "answer";
	case FREED_STORED:
		return "stored-answer";
	case FREED_RESOLVED:
		return "resolved";
	case FREED_NOT:
		break;
	}
	return NULL;
}

/* --- JSON --- */

static void json_hex(FILE *out, const char *name, const uint8_t *bytes, size_t n)
{
	char hex[2 * LEDGER_HASH + 1];

	hex_encode(hex, bytes, n);
	fprintf(out, ",\"%s\":\"%s\"", name, hex);
}

static void json_named(FILE *out, const char *name, const char *text)
{
	fprintf(out, ",\"%s\":", name);
	cli_json_text(out, text);
}

static void json_time(FILE *out, const char *name, int64_t wall_us)
{
	char text[32];

	clock_rfc3339(text, sizeof(text), wall_us);
	json_named(out, name, wall_us ? text : NULL);
}

static void json_runs(FILE *out, const struct record_view *r)
{
	fputs(",\"runs\":[", out);
	for (size_t i = 0; i < r->run_count && i < LEDGER_RUNS; i++) {
		fprintf(out, "%s{\"run\":\"%016" PRIx64 "\"", i ? "," : "", r->runs[i].run);
		json_time(out, "asked", r->runs[i].asked_us);
		json_time(out, "delivered", r->runs[i].delivered_us);
		fputc('}', out);
	}
	fputc(']', out);
}

static void json_record(FILE *out, const struct record_view *r, const uint8_t *answer_hash)
{
	static const uint8_t no_trace[sizeof(r->trace)];

	fprintf(out, "{\"record\":\"%016" PRIx64 "\"", r->id);
	json_named(out, "key", r->key);
	json_named(out, "operation", r->operation);
	json_named(out, "state", record_state_name(r->state));
	fprintf(out, ",\"in_doubt\":%s", cli_in_doubt(r) ? "true" : "false");
	fprintf(out, ",\"generation\":%" PRIu32, r->generation);
	fprintf(out, r->status ? ",\"status\":%ld" : ",\"status\":null", r->status);
	fprintf(out, ",\"answer_kept\":%s", r->answer_kept ? "true" : "false");
	fprintf(out, ",\"attempts\":%" PRIu32 ",\"wire_sends\":%" PRIu32, r->attempts,
	        r->wire_sends);
	json_named(out, "exe", r->exe);
	json_named(out, "owner", owner_name(r->owner));
	fprintf(out, ",\"owner_pid\":%d,\"lease_fresh\":%s", r->owner_pid,
	        r->lease_fresh ? "true" : "false");
	json_named(out, "freed", cli_freed_name(r->freed));
	json_time(out, "made", r->made.wall_us);
	json_time(out, "first_sent", r->first_sent.wall_us);
	json_time(out, "ended", r->ended.wall_us);
	json_time(out, "first_delivered", r->first_delivered.wall_us);
	json_runs(out, r);
	json_hex(out, "content", r->content, LEDGER_HASH);
	json_hex(out, "fingerprint", r->fingerprint, 8);
	if (memcmp(r->trace, no_trace, sizeof(no_trace)) != 0)
		json_hex(out, "trace", r->trace, sizeof(r->trace));
	if (answer_hash)
		json_hex(out, "answer_hash", answer_hash, LEDGER_HASH);
	fputs("}\n", out);
}

void cli_record_json(FILE *out, const struct record_view *r)
{
	json_record(out, r, NULL);
}

/* --- for people --- */

static const char *state_text(const struct record_view *r)
{
	return cli_in_doubt(r) ? "in doubt" : record_state_name(r->state);
}

static void time_text(char *out, size_t room, int64_t wall_us)
{
	if (wall_us == 0) {
		snprintf(out, room, "-");
		return;
	}
	clock_rfc3339(out, room, wall_us);
	if (strlen(out) > 19)
		strcpy(out + 19, "Z"); /* seconds are enough for a table */
}

void cli_record_header(FILE *out)
{
	fprintf(out, "%-20s  %-9s  %-24s  %-8s  %3s  %6s  %8s  %s\n", "TIME", "STATE", "OPERATION",
	        "KEY", "GEN", "STATUS", "ATTEMPTS", "WHO");
}

void cli_record_line(FILE *out, const struct record_view *r)
{
	char when[32], status[24] = "-";

	time_text(when, sizeof(when),
	          r->first_sent.wall_us ? r->first_sent.wall_us : r->made.wall_us);
	if (r->status)
		snprintf(status, sizeof(status), "%ld", r->status);
	fprintf(out, "%-20s  %-9s  ", when, state_text(r));
	cli_plain_text(out, r->operation, 24);
	fprintf(out, "  %-8.8s  %3" PRIu32 "  %6s  %8" PRIu32 "  ", r->key[0] ? r->key : "-",
	        r->generation, status, r->attempts);
	cli_plain_text(out, r->exe[0] ? r->exe : "-", 0);
	if (r->owner_pid)
		fprintf(out, " (pid %d)", r->owner_pid);
	fputc('\n', out);
}

static void full_text(FILE *out, const char *name, const char *text)
{
	fprintf(out, "%-16s", name);
	cli_plain_text(out, text && *text ? text : "-", 0);
	fputc('\n', out);
}

static void full_time(FILE *out, const char *name, int64_t wall_us)
{
	char text[32] = "-";

	if (wall_us)
		clock_rfc3339(text, sizeof(text), wall_us);
	full_text(out, name, text);
}

static void full_runs(FILE *out, const struct record_view *r)
{
	for (size_t i = 0; i < r->run_count && i < LEDGER_RUNS; i++)
		fprintf(out, "%-16s%016" PRIx64 "%s\n", "run", r->runs[i].run,
		        r->runs[i].delivered_us ? ", has the answer" : ", asked");
}

static void full_record(FILE *out, const struct record_view *r)
{
	char content[2 * LEDGER_HASH + 1];

	hex_encode(content, r->content, LEDGER_HASH);
	full_text(out, "state", state_text(r));
	full_text(out, "operation", r->operation);
	full_text(out, "key", r->key);
	fprintf(out, "%-16s%" PRIu32 "\n", "generation", r->generation);
	fprintf(out, "%-16s%ld%s\n", "status", r->status,
	        r->answer_kept ? ", answer kept" : ", no answer kept");
	fprintf(out, "%-16s%" PRIu32 ", wire sends %" PRIu32 "\n", "attempts", r->attempts,
	        r->wire_sends);
	full_text(out, "program", r->exe);
	full_text(out, "owner", owner_name(r->owner));
	full_text(out, "freed by", cli_freed_name(r->freed));
	full_time(out, "made", r->made.wall_us);
	full_time(out, "first sent", r->first_sent.wall_us);
	full_time(out, "ended", r->ended.wall_us);
	full_time(out, "first delivered", r->first_delivered.wall_us);
	full_runs(out, r);
	full_text(out, "content", content);
}

void cli_record_show(FILE *out, struct ledger *ledger, const struct record_view *r, bool json)
{
	uint8_t hash[LEDGER_HASH];
	bool hashed = ledger_answer_hash(ledger, r, hash) == LEDGER_OK;
	char text[2 * LEDGER_HASH + 1];

	if (json) {
		json_record(out, r, hashed ? hash : NULL);
		return;
	}
	full_record(out, r);
	if (!hashed)
		return;
	hex_encode(text, hash, LEDGER_HASH);
	full_text(out, "answer hash", text);
}
