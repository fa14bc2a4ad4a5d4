/* What a policy file means: defaults, values, expansion, and the place of every error.
 *
 * The malformed policies that can be text files are in tests/policy/bad, one a file, each with what
 * is expected in its first line; those that cannot (empty, not UTF-8, too large) are made here. */
#include "policy_test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND INT64_C(1000000)
#define HOUR   (3600 * SECOND)

/* --- defaults --- */

static void test_policy_defaults(void **state)
{
	struct policy *p = parse("version: 1\n");

	(void)state;
	assert_string_equal(p->path, "p.yaml");
	assert_int_equal(p->mode, MODE_ENFORCE);
	assert_null(p->scope);
	assert_null(p->run);
	assert_null(p->step);
	assert_int_equal(p->unlisted, UNLISTED_PASS);
	assert_null(p->ledger_path);
	assert_int_equal(p->durability, DURABILITY_POWER);
	assert_int_equal(p->ledger_size, 32 << 20);
	assert_int_equal(p->max_response, 1 << 20);
	assert_null(p->events_path);
	assert_int_equal(p->rule_count, 0);
	policy_free(p);
}

static void assert_set(const struct status_set *set, const char *const *members)
{
	for (long status = 0; status < 700; status++) {
		bool member = false;

		for (const char *const *m = members; *m; m++)
			member = member ||
			         (strcmp(*m + 1, "xx") == 0 ? status / 100 == **m - '0'
			                                    : strtol(*m, NULL, 10) == status);
		if (status_set_has(set, status) != member)
			fail_msg("status %ld: not %d", status, member);
	}
}

static const char *const no_status[] = {NULL};
static const char *const default_final[] = {"2xx", "303", NULL};
static const char *const default_not_executed[] = {"400", "401", "402", "403", "404", "405", "411",
                                                   "413", "414", "415", "422", "429", NULL};

/* `rule` has nothing set but operation a.b and POST https://h/p. */
static void assert_default_rule(const struct rule *rule)
{
	assert_string_equal(rule->operation, "a.b");
	assert_string_equal(rule->match_text, "POST https://h/p");
	assert_string_equal(rule->path_text, "/p");
	assert_string_equal(rule->file, "p.yaml");
	assert_false(rule->dedups);
	assert_int_equal(rule->key_ttl, 0);
	assert_set(&rule->stores, no_status);
	assert_int_equal(rule->carrier, CARRIER_HEADER);
	assert_string_equal(rule->carrier_name, "Idempotency-Key");
	assert_int_equal(rule->format, FORMAT_UUID);
	assert_int_equal(rule->app_key, APP_KEY_TRUST);
	assert_false(rule->key_required);
	assert_string_equal(rule->key_id, "a.b");
	assert_null(rule->target);
	assert_int_equal(rule->fields.count + rule->ignore.count + rule->must_match.count, 0);
	assert_int_equal(rule->account, ACCOUNT_AUTO);
	assert_int_equal(rule->account_from.count, 0);
	assert_int_equal(rule->repeat, REPEAT_REPLAY);
	assert_int_equal(rule->replay_for, 600 * SECOND);
	assert_set(&rule->final, default_final);
	assert_set(&rule->not_executed, default_not_executed);
	assert_set(&rule->already_done, no_status);
	assert_set(&rule->in_progress, no_status);
	assert_int_equal(rule->ttl, 24 * HOUR);
	assert_int_equal(rule->on_expired, EXPIRED_EXECUTE);
	assert_int_equal(rule->on_unknown, UNKNOWN_AUTO);
	assert_int_equal(rule->unknown_ttl, POLICY_NEVER);
	assert_int_equal(rule->linger, 30 * SECOND);
	assert_int_equal(rule->exit_wait, POLICY_AUTO);
	assert_int_equal(rule_exit_wait(rule), 5 * SECOND);
	assert_int_equal(rule->max_request, 64 << 20);
	assert_int_equal(rule->oversize, OVERSIZE_REFUSE);
	assert_int_equal(rule->store, STORE_FULL);
	assert_int_equal(rule->refuse_as, REFUSE_AUTO);
}

static void test_rule_defaults(void **state)
{
	struct policy *p = parse(WITH_RULE);

	(void)state;
	assert_int_equal(p->rule_count, 1);
	assert_int_equal(p->rules[0].line, 3);
	assert_default_rule(&p->rules[0]);
	policy_free(p);
}

/* The schema written out with its defaults is the same as nothing. */
static void test_written_defaults(void **state)
{
	struct policy *p = parse(
	        "version: 1\nmode: enforce\nstep: \"\"\nunlisted: pass\nreplay_reads: pass\n"
	        "scope: \"${SENDONCE_SCOPE}\"\nrun: \"${SENDONCE_RUN}\"\n"
	        "ledger: {durability: power, size: 32MiB, max_response: 1MiB, group: false}\n"
	        "events: beside the ledger\ninclude: []\n"
	        "writes:\n"
	        "  - operation: a.b\n"
	        "    match: POST https://h/p\n"
	        "    when: {}\n"
	        "    provider: {dedups: false, key_ttl: 0, stores: []}\n"
	        "    key: {carrier: 'header:Idempotency-Key', format: uuid, first_sent: none,\n"
	        "          app_key: trust, required: false, id: <operation>}\n"
	        "    identity: {target: auto, fields: [], ignore: [], must_match: [], account: "
	        "auto}\n"
	        "    repeat: replay\n"
	        "    replay_for: 10m\n"
	        "    answers:\n"
	        "      final: [2xx, 303]\n"
	        "      not_executed: [400, 401, 402, 403, 404, 405, 411, 413, 414, 415, 422, 429]\n"
	        "      already_done: []\n"
	        "      in_progress: []\n"
	        "      body: {}\n"
	        "      echo: []\n"
	        "    ttl: 24h\n"
	        "    on_expired: execute\n"
	        "    on_unknown: auto\n"
	        "    unknown_ttl: never\n"
	        "    linger: 30s\n"
	        "    exit: wait\n"
	        "    exit_wait: auto\n"
	        "    max_request: 64MiB\n"
	        "    oversize: refuse\n"
	        "    store: full\n"
	        "    refuse_as: auto\n");

	(void)state;
	assert_default_rule(&p->rules[0]);
	assert_null(p->scope);
	assert_null(p->run);
	assert_null(p->step);
	assert_null(p->events_path);
	policy_free(p);
}

/* --- values --- */

static void assert_list(const struct text_list *list, const char *a, const char *b)
{
	assert_int_equal(list->count, b ? 2 : 1);
	assert_string_equal(list->item[0], a);
	if (b)
		assert_string_equal(list->item[1], b);
}

static void test_policy_values(void **state)
{
	struct policy *p = parse("version: 1\nmode: off\nscope: acme\nrun: '7'\nstep: pay\n"
	                         "ledger:\n"
	                         "  path: /var/lib/sendonce/ledger\n"
	                         "  durability: process\n"
	                         "  size: 2GiB\n"
	                         "  max_response: 0\n"
	                         "  group: true\n"
	                         "events: /var/log/sendonce\n");

	(void)state;
	assert_int_equal(p->mode, MODE_OFF);
	assert_string_equal(p->scope, "acme");
	assert_string_equal(p->run, "7");
	assert_string_equal(p->step, "pay");
	assert_string_equal(p->ledger_path, "/var/lib/sendonce/ledger");
	assert_int_equal(p->durability, DURABILITY_PROCESS);
	assert_int_equal(p->ledger_size, INT64_C(2) << 30);
	assert_int_equal(p->max_response, 0);
	assert_true(p->ledger_group);
	assert_string_equal(p->events_path, "/var/log/sendonce");
	policy_free(p);
}

static void test_policy_audit(void **state)
{
	struct policy *p = parse("version: 1\nmode: audit\nunlisted: audit\n");

	(void)state;
	assert_int_equal(p->mode, MODE_AUDIT);
	assert_int_equal(p->unlisted, UNLISTED_AUDIT);
	policy_free(p);
	p = parse("version: 1\nmode: inject\n");
	assert_int_equal(p->mode, MODE_INJECT);
	policy_free(p);
}

static void test_rule_values(void **state)
{
	static const char *const stores[] = {"2xx", "400", "500", NULL};
	static const char *const final[] = {"201", NULL}, *const freed[] = {"4xx", NULL};
	struct policy *p = parse(
	        WITH_RULE "    provider: {dedups: true, key_ttl: 7d, stores: [2xx, 400, 500]}\n"
	                  "    key: {carrier: 'header:X-Key', required: true, id: old.name}\n"
	                  "    identity: {target: acme, fields: [/a~1b, sum], ignore: 'query:_',\n"
	                  "               must_match: ['header:X-A', /c], account: [header:X-Me, "
	                  "env:ME]}\n"
	                  "    replay_for: 0\n"
	                  "    answers: {final: 201, not_executed: [4XX]}\n"
	                  "    ttl: 500ms\n"
	                  "    on_expired: execute\n"
	                  "    on_unknown: resend\n"
	                  "    unknown_ttl: 1h\n"
	                  "    linger: 2m\n"
	                  "    exit_wait: 0\n"
	                  "    max_request: 64KiB\n"
	                  "    oversize: pass\n"
	                  "    refuse_as: error\n");
	const struct rule *rule = &p->rules[0];

	(void)state;
	assert_true(rule->dedups);
	assert_int_equal(rule->key_ttl, 7 * 24 * HOUR);
	assert_set(&rule->stores, stores);
	assert_string_equal(rule->carrier_name, "X-Key");
	assert_true(rule->key_required);
	assert_string_equal(rule->key_id, "old.name");
	assert_string_equal(rule->target, "acme");
	assert_list(&rule->fields, "/a~1b", "sum");
	assert_list(&rule->ignore, "query:_", NULL);
	assert_list(&rule->must_match, "header:X-A", "/c");
	assert_int_equal(rule->account, ACCOUNT_LIST);
	assert_list(&rule->account_from, "header:X-Me", "env:ME");
	assert_int_equal(rule->replay_for, 0);
	assert_set(&rule->final, final);
	assert_set(&rule->not_executed, freed);
	assert_int_equal(rule->ttl, SECOND / 2);
	assert_int_equal(rule->on_unknown, UNKNOWN_RESEND);
	assert_int_equal(rule->unknown_ttl, HOUR);
	assert_int_equal(rule->linger, 120 * SECOND);
	assert_int_equal(rule->exit_wait, 0);
	assert_int_equal(rule_exit_wait(rule), 0);
	assert_int_equal(rule->max_request, 64 << 10);
	assert_int_equal(rule->oversize, OVERSIZE_PASS);
	assert_int_equal(rule->refuse_as, REFUSE_ERROR);
	policy_free(p);
}

static void test_more_rule_values(void **state)
{
	struct policy *p = parse(
	        WITH_RULE "    provider: {dedups: true, key_ttl: 1h, stores: []}\n"
	                  "    identity: {account: none}\n"
	                  "    on_expired: refuse\n"
	                  "    on_unknown: refuse\n"
	                  "    unknown_ttl: never\n"
	                  "    repeat: ordinal\n"
	                  "    max_request: 0\n"
	                  "    refuse_as: response\n"
	                  "  - {operation: c, match: PUT http://h, identity: {account: 'env:ME'}, "
	                  "exit_wait: 1s}\n");

	(void)state;
	assert_int_equal(p->rule_count, 2);
	assert_int_equal(p->rules[0].account, ACCOUNT_NONE);
	assert_int_equal(p->rules[0].on_expired, EXPIRED_REFUSE);
	assert_int_equal(p->rules[0].on_unknown, UNKNOWN_REFUSE);
	assert_int_equal(p->rules[0].max_request, 0);
	assert_int_equal(p->rules[0].repeat, REPEAT_ORDINAL);
	assert_int_equal(p->rules[1].repeat, REPEAT_REPLAY);
	assert_int_equal(p->rules[0].refuse_as, REFUSE_RESPONSE);
	assert_int_equal(rule_exit_wait(&p->rules[0]), 0);
	assert_string_equal(p->rules[1].path_text, "/");
	assert_list(&p->rules[1].account_from, "env:ME", NULL);
	assert_int_equal(rule_exit_wait(&p->rules[1]), SECOND);
	assert_int_equal(p->rules[1].line, 13);
	policy_free(p);
}

struct duration_row {
	const char *text;
	int64_t value;
};

static void test_durations(void **state)
{
	static const struct duration_row rows[] = {{"0", 0},
	                                           {"0s", 0},
	                                           {"1ms", 1000},
	                                           {"007s", 7 * SECOND},
	                                           {"90s", 90 * SECOND},
	                                           {"10m", 600 * SECOND},
	                                           {"24h", 24 * HOUR},
	                                           {"36500d", 36500 * 24 * HOUR}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char text[256];
		struct policy *p;

		snprintf(text, sizeof(text), WITH_RULE "    replay_for: %s\n", rows[i].text);
		p = parse(text);
		assert_int_equal(p->rules[0].replay_for, rows[i].value);
		policy_free(p);
	}
}

/* --- ${NAME} --- */

struct expand_row {
	const char *text, *value;
};

static void test_expansion(void **state)
{
	static const char *env[] = {"A", "x", "B_2", "y z", "EMPTY", "", "_c", "${A}", NULL};
	static const struct expand_row rows[] = {{"${A}", "x"},
	                                         {"\"${A}\"", "x"},
	                                         {"p-${A}-${B_2}-s", "p-x-y z-s"},
	                                         {"${A}${A}", "xx"},
	                                         {"$A", "$A"},
	                                         {"a$", "a$"},
	                                         {"${_c}", "${A}"},
	                                         {"${UNSET}", NULL},
	                                         {"${EMPTY}", NULL},
	                                         {"t-${UNSET}", NULL},
	                                         {"t-${EMPTY}-${A}", NULL},
	                                         {"\"\"", NULL},
	                                         {"plain", "plain"},
	                                         {"\"null\"", "null"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char text[128];
		struct policy *p;

		snprintf(text, sizeof(text), "version: 1\nscope: %s\nrun: %s\n", rows[i].text,
		         rows[i].text);
		p = parse_env(text, env);
		if (!rows[i].value) {
			assert_null(p->scope);
			assert_null(p->run);
		} else {
			assert_string_equal(p->scope, rows[i].value);
			assert_string_equal(p->run, rows[i].value);
		}
		policy_free(p);
	}
}

static void test_default_expansion(void **state)
{
	static const char *env[] = {"SENDONCE_SCOPE", "acme", "SENDONCE_RUN", "r1", NULL};
	struct policy *p = parse_env("version: 1\n", env);

	(void)state;
	assert_string_equal(p->scope, "acme");
	assert_string_equal(p->run, "r1");
	policy_free(p);
	p = parse_env("version: 1\nscope: mine\nrun: \"\"\n", env);
	assert_string_equal(p->scope, "mine");
	assert_null(p->run);
	policy_free(p);
}

static void test_path_expansion(void **state)
{
	static const char *env[] = {"D", "/var/x", "R", "rel", NULL};
	struct policy *p = parse_env("version: 1\nledger: {path: \"${D}/ledger\"}\nevents: "
	                             "${D}/events\n",
	                             env);
	struct policy_error error;
	static const char relative[] = "version: 1\nevents: ${R}/events\n";

	(void)state;
	assert_string_equal(p->ledger_path, "/var/x/ledger");
	assert_string_equal(p->events_path, "/var/x/events");
	policy_free(p);
	assert_int_equal(policy_parse("p", relative, strlen(relative), table_env, env, &p, &error),
	                 POLICY_INVALID);
	assert_non_null(strstr(error.text, "p:2:9: `events: ${R}/events` is a relative path"));
}

/* An error in the form does not wait for the variable before it to be set. */
static void test_form_before_values(void **state)
{
	static const char text[] = "version: 1\nscope: ${UNSET}-${A b}\n";

	(void)state;
	assert_non_null(strstr(refuse(text, strlen(text)).text, "has a ${ without"));
}

/* --- malformed files --- */

static void read_text_file(const char *path, char *out, size_t room)
{
	FILE *f = fopen(path, "r");
	size_t n;

	if (!f)
		fail_msg("%s: %s", path, strerror(errno));
	n = fread(out, 1, room - 1, f);
	out[n] = '\0';
	fclose(f);
}

/* "# expect: LINE:COL text", and the error is "FILE:LINE:COL: ...text..." */
static void check_bad_file(const char *folder, const char *name)
{
	char path[PATH_MAX + 256], text[8192], place[sizeof(path) + 32];
	struct policy_error error;
	struct policy *policy = NULL;
	int line = 0, column = 0, used = 0, rc;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	read_text_file(path, text, sizeof(text));
	if (sscanf(text, "# expect: %d:%d %n", &line, &column, &used) != 2 || used == 0)
		fail_msg("%s: no expectation in the first line", path);
	*strchr(text, '\n') = '\0';
	assert_true(strlen(text + used) >= 8);
	rc = policy_load(path, table_env, NULL, &policy, &error);
	snprintf(place, sizeof(place), "%s:%d:%d: ", path, line, column);
	if (rc != POLICY_INVALID || policy || error.line != line || error.column != column ||
	    strncmp(error.text, place, strlen(place)) != 0 || !strstr(error.text, text + used))
		fail_msg("%s: expected %d:%d %s\ngot %d %s", name, line, column, text + used, rc,
		         error.text);
}

static void test_bad_files(void **state)
{
	char folder[PATH_MAX];
	struct dirent *entry;
	size_t count = 0;
	DIR *dir;

	(void)state;
	snprintf(folder, sizeof(folder), "%s", __FILE__);
	*strrchr(folder, '/') = '\0';
	strcat(folder, "/../policy/bad");
	dir = opendir(folder);
	if (!dir)
		fail_msg("%s: %s (run from the root of the repository)", folder, strerror(errno));
	while ((entry = readdir(dir))) {
		if (*entry->d_name == '.')
			continue;
		check_bad_file(folder, entry->d_name);
		count++;
	}
	closedir(dir);
	assert_true(count >= 60);
}

struct bad_bytes {
	const char *text;
	size_t n;
	int line, column;
	const char *fragment;
};
#define BYTES(literal) literal, sizeof(literal) - 1

static void test_bad_bytes(void **state)
{
	static const struct bad_bytes rows[] = {
	        {NULL, 0, 1, 1, "the policy is empty"},
	        {BYTES(""), 1, 1, "the policy is empty"},
	        {BYTES("# only a comment\n"), 1, 1, "the policy is empty"},
	        {BYTES("\xef\xbb\xbf"), 1, 1, "the policy is empty"},
	        {BYTES("---\n"), 1, 1, "the policy is empty"},
	        {BYTES("\xff\xfev\0e\0r\0"), 1, 1, "save the file as UTF-8"},
	        {BYTES("version: 1\nscope: \xe9\n"), 2, 8, "save the file as UTF-8"},
	        {BYTES("version: 1\nscope: a\0b\n"), 2, 9, "save the file as UTF-8"},
	        {BYTES("version: 1\nscope: \x01\n"), 2, 8, "save the file as UTF-8"},
	        {BYTES("\0"), 1, 1, "save the file as UTF-8"},
	        {BYTES("\xef\xbb\xbfversion: 2\n"), 1, 10, "knows version 1"},
	        {BYTES("version: 1\r\nmode: on\r\n"), 2, 7, "write off or enforce"},
	        {BYTES("%YAML 3.0\n---\nversion: 1\n"), 1, 1, "not valid YAML"},
	        {BYTES("\tversion: 1\n"), 1, 1, "a tab cannot indent YAML"},
	        {BYTES("version: 1\n...\nmode: off\n"), 3, 1, "not valid YAML"},
	        {BYTES("version: 1\n---"), 2, 1, "a second document"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct policy_error error = refuse(rows[i].text, rows[i].n);

		if (error.line != rows[i].line || error.column != rows[i].column ||
		    !strstr(error.text, rows[i].fragment))
			fail_msg("row %zu: %s", i, error.text);
	}
}

static void test_good_bytes(void **state)
{
	(void)state;
	policy_free(parse("\xef\xbb\xbfversion: 1\n"));
	policy_free(parse("version: 1\r\nmode: off\r\n"));
	policy_free(parse("---\nversion: 1\n...\n"));
	policy_free(parse("version: 1"));
	policy_free(parse("{version: \"1\", scope: \"\xc3\xa9\"}"));
}

/* Bounds: size, depth that only the scanner sees, number of values, keys of one map. */
static void test_hostile_sizes(void **state)
{
	size_t n = (4 << 20) + 1;
	char *text = malloc(n);

	(void)state;
	assert_non_null(text);
	memset(text, '#', n);
	assert_non_null(strstr(refuse(text, n).text, "larger than 4 MiB"));
	memset(text, '\n', n);
	memcpy(text, "version: 1", 10);
	assert_non_null(strstr(refuse(text, n).text, "larger than 4 MiB"));
	memset(text, '[', n);
	refuse(text, 1 << 20);
	memset(text, '{', n);
	refuse(text, 1 << 20);
	for (size_t i = 0; i + 4 <= n; i += 4)
		memcpy(text + i, "- a\n", 4);
	assert_non_null(strstr(refuse(text, 4 << 20).text, "too many values"));
	for (size_t i = 0; i < 1000; i++)
		sprintf(text + 10 * i, "k%07zu:\n", i);
	assert_non_null(strstr(refuse(text, 10000).text, "p.yaml:257:1: more than 256 keys"));
	free(text);
}

/* Text of the file reaches the message cut, printable, and not in the middle of a character. */
static void test_shown_values(void **state)
{
	char text[4200] = "version: 1\nmode: \"\\e[3m\\x7f";
	struct policy_error error;

	(void)state;
	for (int i = 0; i < 1000; i++)
		strcat(text, "\xc3\xa9");
	strcat(text, "\"\n");
	error = refuse(text, strlen(text));
	assert_non_null(strstr(error.text, "`mode: ?[3m?\xc3\xa9"));
	assert_non_null(strstr(error.text, "\xc3\xa9...`"));
	assert_true(strlen(error.text) < 250);
}

static void test_long_values(void **state)
{
	static char text[6000];
	struct policy_error error;

	(void)state;
	strcpy(text, "version: 1\nevents: /");
	memset(text + strlen(text), 'a', 4096);
	error = refuse(text, strlen(text));
	assert_non_null(strstr(error.text, "is longer than 4096 bytes"));
	text[20 + 4095] = '\0';
	policy_free(parse(text));
}

/* A scope that others cut would be another tenant's: 255 bytes are a name, 256 an error. */
static void test_long_names(void **state)
{
	static const char *const texts[] = {"version: 1\nscope: \"${LONG}%s\"\n",
	                                    "version: 1\nrun: \"%s${LONG}\"\n"};
	static char value[256], text[400];
	static const char *env[] = {"LONG", value, "SENDONCE_RUN", value, NULL};
	struct policy_error error;
	struct policy *p;

	(void)state;
	memset(value, 'v', 255);
	for (size_t i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), texts[i], "");
		policy_free(parse_env(text, env));
		snprintf(text, sizeof(text), texts[i], "x");
		assert_int_equal(policy_parse("p", text, strlen(text), table_env, env, &p, &error),
		                 POLICY_INVALID);
		assert_non_null(strstr(error.text, "is longer than 255 bytes"));
		assert_int_equal(error.line, 2);
	}
	snprintf(text, sizeof(text), "version: 1\nstep: %sx\n", value);
	assert_non_null(strstr(refuse(text, strlen(text)).text, "p.yaml:2:7: `step` is longer"));
}

static void test_long_default_names(void **state)
{
	static char value[257];
	static const char *env[] = {"SENDONCE_SCOPE", value, NULL};
	struct policy_error error;
	struct policy *p;

	(void)state;
	memset(value, 'v', 256);
	assert_int_equal(policy_parse("p", "version: 1", 10, table_env, env, &p, &error),
	                 POLICY_INVALID);
	assert_non_null(strstr(error.text, "p:1:1: `SENDONCE_SCOPE` is longer than 255 bytes"));
}

/* A long path may cut a message, never overrun it. */
static void test_long_path(void **state)
{
	static char path[3000];
	struct policy_error error;
	struct policy *policy;

	(void)state;
	memset(path, 'd', sizeof(path) - 1);
	assert_int_equal(policy_parse(path, "x: 1", 4, NULL, NULL, &policy, &error),
	                 POLICY_INVALID);
	assert_non_null(strstr(error.text, ":1:1: unknown key `x`"));
}

/* --- files --- */

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void write_file(const char *path, const char *text, size_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static int load(const char *path, struct policy_error *error)
{
	struct policy *policy = NULL;
	int before = count_fds(), rc;

	errno = EDOM;
	rc = policy_load(path, table_env, NULL, &policy, error);
	assert_int_equal(errno, EDOM);
	assert_int_equal(count_fds(), before);
	assert_int_equal(rc == POLICY_OK, policy != NULL);
	policy_free(policy);
	return rc;
}

static void test_load(void **state)
{
	char folder[] = "/tmp/sendonce-policy-XXXXXX", path[64], text[20000];
	struct policy_error error;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/p.yaml", folder);
	assert_int_equal(load(path, &error), POLICY_MISSING);
	assert_non_null(strstr(error.text, "/p.yaml: there is no such policy file"));
	assert_int_equal(error.line, 0);

	write_file(path, "version: 1\n", 11);
	assert_int_equal(load(path, &error), POLICY_OK);
	/* Longer than one read. */
	memset(text, '#', sizeof(text));
	memcpy(text + sizeof(text) - 12, "\nversion: 1\n", 12);
	write_file(path, text, sizeof(text));
	assert_int_equal(load(path, &error), POLICY_OK);
	write_file(path, "", 0);
	assert_int_equal(load(path, &error), POLICY_INVALID);
	assert_non_null(strstr(error.text, "/p.yaml:1:1: the policy is empty"));
	assert_int_equal(truncate(path, (4 << 20) + 1), 0);
	assert_int_equal(load(path, &error), POLICY_INVALID);
	assert_non_null(strstr(error.text, "larger than 4 MiB"));

	/* A path through a file is missing; a folder, and a pipe nobody writes to, are no policy.
	 */
	snprintf(text, sizeof(text), "%s/x", path);
	assert_int_equal(load(text, &error), POLICY_MISSING);
	assert_int_equal(load(folder, &error), POLICY_INVALID);
	assert_non_null(strstr(error.text, "not a regular file"));
	assert_int_equal(error.line, 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(load(path, &error), POLICY_INVALID);
	assert_non_null(strstr(error.text, "not a regular file"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("p.yaml", path), 0);
	assert_int_equal(load(path, &error), POLICY_INVALID);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void test_example(void **state)
{
	static const char *env[] = {"SENDONCE_SCOPE", "demo", "SENDONCE_RUN", "1", NULL};
	struct policy_target target = {span_of("POST"), span_of("http"), span_of("127.0.0.1"), 4711,
	                               span_of("/orders")};
	char path[PATH_MAX];
	struct policy_error error;
	struct policy *p;

	(void)state;
	snprintf(path, sizeof(path), "%s", __FILE__);
	*strrchr(path, '/') = '\0';
	strcat(path, "/../../policy/example.yaml");
	if (policy_load(path, table_env, env, &p, &error))
		fail_msg("%s", error.text);
	assert_string_equal(p->scope, "demo");
	assert_string_equal(p->run, "1");
	assert_null(p->ledger_path);
	assert_non_null(policy_match(p, &target));
	assert_string_equal(policy_match(p, &target)->operation, "orders.create");
	policy_free(p);
}

static void test_modes(void **state)
{
	static const char *const names[] = {"off", "audit", "inject", "enforce", "replay"};

	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(policy_mode_parse(names[i]), i);
		assert_string_equal(policy_mode_name((enum policy_mode)i), names[i]);
	}
	assert_int_equal(policy_mode_parse("on"), -1);
	assert_int_equal(policy_mode_parse("Off"), -1);
	assert_int_equal(policy_mode_parse(""), -1);
	assert_int_equal(policy_mode_parse(NULL), -1);
}

static void test_free_nothing(void **state)
{
	(void)state;
	policy_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_policy_defaults),  cmocka_unit_test(test_rule_defaults),
	        cmocka_unit_test(test_written_defaults), cmocka_unit_test(test_policy_values),
	        cmocka_unit_test(test_policy_audit),     cmocka_unit_test(test_rule_values),
	        cmocka_unit_test(test_more_rule_values), cmocka_unit_test(test_durations),
	        cmocka_unit_test(test_expansion),        cmocka_unit_test(test_default_expansion),
	        cmocka_unit_test(test_path_expansion),   cmocka_unit_test(test_form_before_values),
	        cmocka_unit_test(test_bad_files),        cmocka_unit_test(test_bad_bytes),
	        cmocka_unit_test(test_good_bytes),       cmocka_unit_test(test_hostile_sizes),
	        cmocka_unit_test(test_shown_values),     cmocka_unit_test(test_long_values),
	        cmocka_unit_test(test_long_names),       cmocka_unit_test(test_long_default_names),
	        cmocka_unit_test(test_long_path),        cmocka_unit_test(test_load),
	        cmocka_unit_test(test_example),          cmocka_unit_test(test_modes),
	        cmocka_unit_test(test_free_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
