/* Reading `key`: how a key travels, and what it looks like. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "policy/rule.h"
#include "policy/values.h"

/* `<operation>`, as the schema shows the default, must not become one id for all rules. */
static int read_id(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	if (value->kind == NODE_SCALAR && span_is(value->text, "<operation>"))
		return 0;
	return reader_text(r, f, value, at);
}

/* Headers that mean something else to HTTP or to libcurl; a key in them would break the request. */
static bool is_reserved_header(struct span name)
{
	static const char *const reserved[] = {"Authorization",
	                                       "Connection",
	                                       "Content-Encoding",
	                                       "Content-Length",
	                                       "Content-Type",
	                                       "Cookie",
	                                       "Expect",
	                                       "Host",
	                                       "Proxy-Authorization",
	                                       "TE",
	                                       "Trailer",
	                                       "Transfer-Encoding",
	                                       "Upgrade"};

	for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++) {
		if (span_is_nocase(name, reserved[i]))
			return true;
	}
	return false;
}

static int set_carrier(struct reader *r, struct rule *rule, enum key_carrier carrier,
                       struct span name)
{
	rule->carrier = carrier;
	if (name.n)
		return reader_copy(r, name, &rule->carrier_name);
	free(rule->carrier_name);
	rule->carrier_name = NULL;
	return 0;
}

static int read_header(struct reader *r, const struct field *f, const struct node *value,
                       struct span name, struct rule *rule)
{
	if (!value_is_token(name))
		return reader_fail_value(r, f, value, "does not name a header: write header:NAME");
	if (is_reserved_header(name))
		return reader_fail_value(r, f, value,
		                         "names a header that cannot carry a key: its value has a "
		                         "meaning of its own in HTTP");
	return set_carrier(r, rule, CARRIER_HEADER, name);
}

static int read_carrier(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	struct span text, name;
	bool there;
	int rc = reader_scalar(r, f, value, &text);

	if (rc)
		return rc;
	if (span_is(text, "none"))
		return set_carrier(r, at, CARRIER_NONE, (struct span){0});
	name = value_after(text, "json:", &there);
	if (there && value_pointer(name))
		return reader_fail_value(r, f, value, value_pointer(name));
	if (there)
		return set_carrier(r, at, CARRIER_JSON, name);
	name = value_after(text, "query:", &there);
	if (there && name.n == 0)
		return reader_fail_value(r, f, value, "names no parameter: write query:NAME");
	if (there)
		return set_carrier(r, at, CARRIER_QUERY, name);
	name = value_after(text, "header:", &there);
	if (there)
		return read_header(r, f, value, name, at);
	return reader_fail_value(r, f, value,
	                         "is no carrier: write header:NAME, query:NAME, json:/pointer or "
	                         "none, as in header:Idempotency-Key");
}

static int read_first_sent(struct reader *r, const struct field *f, const struct node *value,
                           void *at)
{
	char **name = at;
	struct span text, header;
	bool there;
	int rc = reader_scalar(r, f, value, &text);

	if (rc)
		return rc;
	free(*name);
	*name = NULL;
	if (span_is(text, "none"))
		return 0;
	header = value_after(text, "header:", &there);
	if (!there || !value_is_token(header))
		return reader_fail_value(r, f, value, "is neither none nor header:NAME");
	if (is_reserved_header(header))
		return reader_fail_value(r, f, value,
		                         "names a header that has a meaning of its own in HTTP");
	return reader_copy(r, header, name);
}

static const struct choice formats[] = {{"uuid", FORMAT_UUID, CHOICE_ON},
                                        {"uuid-nodash", FORMAT_UUID_NODASH, CHOICE_ON},
                                        {"hex", FORMAT_HEX, CHOICE_ON},
                                        {"sf-string", FORMAT_SF_STRING, CHOICE_ON},
                                        {NULL, 0, CHOICE_ON}};
static const struct choice app_keys[] = {{"trust", APP_KEY_TRUST, CHOICE_ON},
                                         {"alias", APP_KEY_ALIAS, CHOICE_ON},
                                         {NULL, 0, CHOICE_ON}};

#define AT(member) offsetof(struct rule, member)

static const struct field key_fields[] = {{"key.carrier", read_carrier, 0, NULL},
                                          {"key.format", reader_choice, AT(format), formats},
                                          {"key.first_sent", read_first_sent, AT(first_sent), NULL},
                                          {"key.app_key", reader_choice, AT(app_key), app_keys},
                                          {"key.required", reader_bool, AT(key_required), NULL},
                                          {"key.id", read_id, AT(key_id), NULL},
                                          {NULL, NULL, 0, NULL}};

const struct section rule_key_section = {"`key`", key_fields};
