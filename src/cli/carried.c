/* A record as one line of JSON, and back.
 *
 * Numbers are microseconds, hashes hex, the answer base64 of what the ledger keeps. Reading is
 * strict: a line that is not whole, or says what no ledger could hold, is refused; members that are
 * not known are passed over, so that a later version may add some. */
#include "cli/carried.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "identity/identity.h"
#include "identity/parts.h"

/* --- writing --- */

void carried_fingerprint(struct span secret, char out[2 * CARRIED_PRINT + 1])
{
	static const char label[] = "sendonce ledger export";
	uint8_t hash[HASH_SIZE];

	hash_hmac(secret, label, sizeof(label), hash);
	hex_encode(out, hash, CARRIED_PRINT);
}

void carried_print_head(FILE *out, const struct carried_head *head, int64_t now_us)
{
	char when[32], hex[2 * LEDGER_SECRET + 1];

	clock_rfc3339(when, sizeof(when), now_us);
	fprintf(out, "{\"sendonce\":\"ledger\",\"version\":%d,\"time\":\"%s\",\"secret\":\"%s\"",
	        CARRIED_VERSION, when, head->secret);
	fprintf(out, ",\"origin\":\"%016" PRIx64 "\"", head->origin);
	if (head->has_secret) {
		hex_encode(hex, head->secret_value, LEDGER_SECRET);
		fprintf(out, ",\"secret_value\":\"%s\"", hex);
	}
	fputs("}\n", out);
}

void carried_print_end(FILE *out, unsigned long count)
{
	fprintf(out, "{\"sendonce\":\"end\",\"records\":%lu}\n", count);
}

/* Names come from everywhere and are bytes: each is written as the character of that number. */
static void print_text(FILE *out, const char *name, const char *text)
{
	fprintf(out, ",\"%s\":\"", name);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < ' ' || c > '~')
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static void print_freed(FILE *out, enum freed_how how)
{
	if (cli_freed_name(how))
		print_text(out, "freed", cli_freed_name(how));
}

static void print_hex(FILE *out, const char *name, const uint8_t *bytes, size_t n)
{
	char hex[2 * LEDGER_HASH + 1];

	hex_encode(hex, bytes, n);
	fprintf(out, ",\"%s\":\"%s\"", name, hex);
}

static void print_stamp(FILE *out, const char *name, struct stamp s)
{
	if (s.wall_us)
		fprintf(out,
		        ",\"%s\":{\"wall_us\":%" PRId64 ",\"boot_us\":%" PRId64
		        ",\"boot\":\"%016" PRIx64 "\"}",
		        name, s.wall_us, s.boot_us, s.boot);
}

static void print_flag(FILE *out, const char *name, bool set)
{
	if (set)
		fprintf(out, ",\"%s\":true", name);
}

static void print_runs(FILE *out, const struct record_view *v)
{
	fputs(",\"runs\":[", out);
	for (size_t i = 0; i < v->run_count && i < LEDGER_RUNS; i++)
		fprintf(out,
		        "%s{\"run\":\"%016" PRIx64 "\",\"asked_us\":%" PRId64
		        ",\"delivered_us\":%" PRId64 "}",
		        i ? "," : "", v->runs[i].run, v->runs[i].asked_us, v->runs[i].delivered_us);
	fputc(']', out);
}

static void print_keys(FILE *out, const struct ledger_record *r)
{
	char hex[2 * LEDGER_HASH + 1];

	fputs(",\"own_keys\":[", out);
	for (size_t i = 0; i < r->own_key_count; i++) {
		hex_encode(hex, r->own_keys[i], LEDGER_HASH);
		fprintf(out, "%s\"%s\"", i ? "," : "", hex);
	}
	fputc(']', out);
}

static void print_base64(FILE *out, struct span bytes)
{
	static const char letters[] =
	        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < bytes.n; i += 3) {
		size_t left = bytes.n - i;
		uint32_t b = (uint32_t)(uint8_t)bytes.p[i] << 16;

		b |= left > 1 ? (uint32_t)(uint8_t)bytes.p[i + 1] << 8 : 0;
		b |= left > 2 ? (uint8_t)bytes.p[i + 2] : 0;
		fputc(letters[b >> 18], out);
		fputc(letters[b >> 12 & 63], out);
		fputc(left > 1 ? letters[b >> 6 & 63] : '=', out);
		fputc(left > 2 ? letters[b & 63] : '=', out);
	}
}

static void print_identity(FILE *out, const struct record_view *v)
{
	print_hex(out, "content", v->content, LEDGER_HASH);
	print_hex(out, "any_account", v->any_account, LEDGER_HASH);
	print_hex(out, "place", v->place, LEDGER_HASH);
	print_hex(out, "fingerprint", v->fingerprint, LEDGER_HASH);
	print_hex(out, "wire_body", v->wire_body, LEDGER_HASH);
	fprintf(out, ",\"settings\":\"%016" PRIx64 "\"", v->settings);
	print_text(out, "operation", v->operation);
	print_text(out, "key", v->key);
	print_text(out, "exe", v->exe);
	print_hex(out, "trace", v->trace, sizeof(v->trace));
}

static void print_times(FILE *out, const struct record_view *v)
{
	print_stamp(out, "made", v->made);
	print_stamp(out, "first_sent", v->first_sent);
	print_stamp(out, "ended", v->ended);
	print_stamp(out, "first_delivered", v->first_delivered);
	fprintf(out, ",\"ttl_us\":%" PRId64 ",\"tombstone_us\":%" PRId64, v->ttl_us,
	        v->tombstone_us);
}

void carried_print(FILE *out, const struct ledger_record *r)
{
	const struct record_view *v = &r->view;

	fprintf(out, "{\"state\":\"%s\",\"generation\":%" PRIu32, record_state_name(v->state),
	        v->generation);
	print_freed(out, v->freed);
	print_flag(out, "ever_sent", v->ever_sent);
	print_flag(out, "in_doubt", v->in_doubt);
	print_flag(out, "ended_by_curlcode", v->ended_by_curlcode);
	print_identity(out, v);
	print_times(out, v);
	fprintf(out, ",\"attempts\":%" PRIu32 ",\"wire_sends\":%" PRIu32 ",\"status\":%ld",
	        v->attempts, v->wire_sends, v->status);
	print_runs(out, v);
	print_keys(out, r);
	fprintf(out, ",\"maker_pid\":%" PRIu32 ",\"maker_boot\":\"%016" PRIx64 "\"", r->maker_pid,
	        r->maker_boot);
	if (r->answer.n) {
		fputs(",\"answer\":\"", out);
		print_base64(out, span_buf(&r->answer));
		fputc('"', out);
	}
	fputs("}\n", out);
}

/* --- reading --- */

struct line {
	struct json_doc doc;
	uint32_t at;     /* the object that is read */
	const char *why; /* null: all is well so far */
};

static const struct json_node *member(struct line *line, const char *name)
{
	uint32_t at = json_child(&line->doc, line->at, span_of(name));

	return at == JSON_NONE ? NULL : &line->doc.node[at];
}

static void bad(struct line *line, const char *why)
{
	if (!line->why)
		line->why = why;
}

static int64_t number_of(struct line *line, const struct json_node *n)
{
	char text[24] = "";
	char *end;
	long long value;

	if (!n)
		return 0;
	if (n->kind == JSON_NUMBER && n->text.n < sizeof(text))
		memcpy(text, n->text.p, n->text.n);
	value = strtoll(text, &end, 10);
	if (!*text || *end)
		bad(line, "a number is not a whole one");
	return value;
}

static int64_t read_number(struct line *line, const char *name, int64_t least, int64_t most)
{
	int64_t value = number_of(line, member(line, name));

	if (value < least || value > most)
		bad(line, "a number is out of bounds");
	return value;
}

static bool read_flag(struct line *line, const char *name)
{
	const struct json_node *n = member(line, name);

	if (n &&
	    (n->kind != JSON_WORD || (!span_is(n->text, "true") && !span_is(n->text, "false"))))
		bad(line, "a flag is neither true nor false");
	return n && span_is(n->text, "true");
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void hex_of(struct line *line, const struct json_node *n, uint8_t *out, size_t size)
{
	if (!n || n->kind != JSON_STRING || n->text.n != 2 * size) {
		bad(line, "a hash is missing or of another length");
		return;
	}
	for (size_t i = 0; i < size; i++) {
		int high = digit(n->text.p[2 * i]), low = digit(n->text.p[2 * i + 1]);

		if (high < 0 || low < 0) {
			bad(line, "a hash is not hex");
			return;
		}
		out[i] = (uint8_t)(high << 4 | low);
	}
}

static uint64_t word_of(struct line *line, const struct json_node *n)
{
	uint8_t bytes[8] = {0};
	uint64_t value = 0;

	hex_of(line, n, bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		value = value << 8 | bytes[i];
	return value;
}

/* One character of a string that json_parse found valid, as the byte it stands for; -1: none. */
static int next_byte(const char **p, const char *end)
{
	static const char escapes[] = "\"\\/b\bf\fn\nr\rt\t";
	const unsigned char *c = (const unsigned char *)*p;
	const char *at;

	if (*c < 0x80 && *c != '\\') {
		*p += 1;
		return *c;
	}
	if (*c != '\\') {
		*p += 2;
		return *c < 0xc4 && end - *p >= 0 ? (*c & 3) << 6 | (c[1] & 0x3f) : -1;
	}
	*p += c[1] == 'u' ? 6 : 2;
	if (c[1] == 'u')
		return c[2] == '0' && c[3] == '0'
		               ? digit((char)(c[4] | 0x20)) << 4 | digit((char)(c[5] | 0x20))
		               : -1;
	if (c[1] == '"' || c[1] == '\\' || c[1] == '/')
		return c[1];
	at = strchr(escapes + 3, c[1]);
	return at ? at[1] : -1;
}

static void read_text(struct line *line, const char *name, char *out, size_t room)
{
	const struct json_node *n = member(line, name);
	const char *p = n ? n->text.p : NULL, *end = n ? p + n->text.n : NULL;
	size_t k = 0;
	int c = 1;

	if (!n || n->kind != JSON_STRING) {
		bad(line, "a text is missing");
		return;
	}
	while (p < end && k < room && (c = next_byte(&p, end)) > 0)
		out[k++] = (char)c;
	if (k >= room || c <= 0)
		bad(line, "a text is too long, or holds what no name holds");
	out[k < room ? k : room - 1] = '\0';
}

static struct stamp read_stamp(struct line *line, const char *name)
{
	const struct json_node *n = member(line, name);
	uint32_t before = line->at;
	struct stamp s = {0};

	if (!n)
		return s;
	line->at = (uint32_t)(n - line->doc.node);
	s.wall_us = read_number(line, "wall_us", 1, INT64_MAX);
	s.boot_us = read_number(line, "boot_us", 0, INT64_MAX);
	s.boot = word_of(line, member(line, "boot"));
	line->at = before;
	return s;
}

static void read_state(struct line *line, struct record_view *v)
{
	const struct json_node *n = member(line, "state"), *how = member(line, "freed");

	for (int i = REC_RESERVED; n && i <= REC_TOMBSTONE; i++)
		if (span_is(n->text, record_state_name((enum record_state)i)))
			v->state = (enum record_state)i;
	if (v->state == REC_NONE)
		bad(line, "there is no such state");
	for (int i = FREED_NOT; how && how->kind == JSON_STRING && i <= FREED_RESOLVED; i++) {
		const char *name = cli_freed_name((enum freed_how)i);

		if (name && span_is(how->text, name))
			v->freed = (enum freed_how)i;
	}
	v->generation = (uint32_t)read_number(line, "generation", 1, UINT32_MAX);
}

static void read_runs(struct line *line, struct record_view *v)
{
	const struct json_node *list = member(line, "runs");
	uint32_t before = line->at, at = list ? list->first : JSON_NONE;

	for (; at != JSON_NONE; at = line->doc.node[at].next) {
		struct run_entry *e = &v->runs[v->run_count];

		if (v->run_count == LEDGER_RUNS) {
			bad(line, "more runs than a record holds");
			break;
		}
		line->at = at;
		e->run = word_of(line, member(line, "run"));
		e->asked_us = read_number(line, "asked_us", 0, INT64_MAX);
		e->delivered_us = read_number(line, "delivered_us", 0, INT64_MAX);
		v->run_count++;
	}
	line->at = before;
}

static void read_keys(struct line *line, struct ledger_record *r)
{
	const struct json_node *list = member(line, "own_keys");
	size_t count = 0;

	for (uint32_t at = list ? list->first : JSON_NONE; at != JSON_NONE;
	     at = line->doc.node[at].next)
		count++;
	r->own_keys = count ? calloc(count, sizeof(*r->own_keys)) : NULL;
	if (count && !r->own_keys) {
		bad(line, "out of memory");
		return;
	}
	for (uint32_t at = list ? list->first : JSON_NONE; at != JSON_NONE;
	     at = line->doc.node[at].next)
		hex_of(line, &line->doc.node[at], r->own_keys[r->own_key_count++], LEDGER_HASH);
}

static void read_identity(struct line *line, struct record_view *v)
{
	hex_of(line, member(line, "content"), v->content, LEDGER_HASH);
	hex_of(line, member(line, "any_account"), v->any_account, LEDGER_HASH);
	hex_of(line, member(line, "place"), v->place, LEDGER_HASH);
	hex_of(line, member(line, "fingerprint"), v->fingerprint, LEDGER_HASH);
	hex_of(line, member(line, "wire_body"), v->wire_body, LEDGER_HASH);
	hex_of(line, member(line, "trace"), v->trace, sizeof(v->trace));
	v->settings = word_of(line, member(line, "settings"));
	read_text(line, "operation", v->operation, sizeof(v->operation));
	read_text(line, "key", v->key, sizeof(v->key));
	read_text(line, "exe", v->exe, sizeof(v->exe));
	/* It goes into a header line some day. */
	for (const char *p = v->key; *p; p++)
		if (*p < ' ' || *p > '~')
			bad(line, "a text is not a key");
}

static void read_record(struct line *line, struct ledger_record *r)
{
	struct record_view *v = &r->view;
	const struct json_node *answer = member(line, "answer");

	read_state(line, v);
	v->ever_sent = read_flag(line, "ever_sent");
	v->in_doubt = read_flag(line, "in_doubt");
	v->ended_by_curlcode = read_flag(line, "ended_by_curlcode");
	read_identity(line, v);
	v->made = read_stamp(line, "made");
	v->first_sent = read_stamp(line, "first_sent");
	v->ended = read_stamp(line, "ended");
	v->first_delivered = read_stamp(line, "first_delivered");
	v->ttl_us = read_number(line, "ttl_us", 0, INT64_MAX);
	v->tombstone_us = read_number(line, "tombstone_us", 0, INT64_MAX);
	v->attempts = (uint32_t)read_number(line, "attempts", 0, UINT32_MAX);
	v->wire_sends = (uint32_t)read_number(line, "wire_sends", 0, UINT32_MAX);
	v->status = (long)read_number(line, "status", 0, 999);
	read_runs(line, v);
	read_keys(line, r);
	r->maker_pid = (uint32_t)read_number(line, "maker_pid", 0, UINT32_MAX);
	r->maker_boot = word_of(line, member(line, "maker_boot"));
	if (answer && (answer->kind != JSON_STRING || token_base64(answer->text, &r->answer) != 0))
		bad(line, "the answer is not base64");
	v->answer_kept = v->answer_final = r->answer.n > 0;
	if (r->answer.failed)
		bad(line, "out of memory");
}

static void read_head(struct line *line, struct carried_head *head)
{
	uint8_t print[CARRIED_PRINT] = {0};

	memset(head, 0, sizeof(*head));
	if (number_of(line, member(line, "version")) != CARRIED_VERSION)
		bad(line, "it is of another version");
	hex_of(line, member(line, "secret"), print, sizeof(print));
	hex_encode(head->secret, print, sizeof(print));
	head->origin = word_of(line, member(line, "origin"));
	head->has_secret = member(line, "secret_value") != NULL;
	if (head->has_secret)
		hex_of(line, member(line, "secret_value"), head->secret_value, LEDGER_SECRET);
}

static enum carried_line read_line(struct line *line, struct carried_head *head,
                                   struct ledger_record *record, unsigned long *count)
{
	const struct json_node *kind = member(line, "sendonce");

	if (!kind) {
		read_record(line, record);
		return CARRIED_RECORD;
	}
	if (span_is(kind->text, "ledger")) {
		read_head(line, head);
		return CARRIED_HEAD;
	}
	if (!span_is(kind->text, "end"))
		bad(line, "it is of a kind that is not known");
	*count = (unsigned long)read_number(line, "records", 0, INT64_MAX);
	return CARRIED_END;
}

enum carried_line carried_parse(struct span text, struct carried_head *head,
                                struct ledger_record *record, unsigned long *count,
                                const char **why)
{
	struct line line = {.at = JSON_ROOT};
	enum carried_line kind = CARRIED_BAD;

	if (json_parse(&line.doc, text) != 0 || line.doc.node[JSON_ROOT].kind != JSON_OBJECT)
		bad(&line, "it is not one JSON object");
	else
		kind = read_line(&line, head, record, count);
	json_free(&line.doc);
	*why = line.why;
	return line.why ? CARRIED_BAD : kind;
}
