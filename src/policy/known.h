/* What is known about some providers, for warnings only: a policy that says otherwise works. */
#ifndef SENDONCE_POLICY_KNOWN_H
#define SENDONCE_POLICY_KNOWN_H

#include "base/bytes.h"
#include "policy/policy.h"

struct known {
	const char *host; /* this host, and all below it */
	const char *name;
	const char *pack; /* its file in policy/, without .yaml; null: there is none */
	int key_max;      /* characters of a key; 0: no limit is published */
	bool plain_key;   /* quotes are no part of one */
	bool uuid_only;   /* nothing but a UUID is a key */
	bool no_keys;     /* it does not deduplicate by any key */
	bool rotating;    /* its access tokens are opaque and short-lived */
	int64_t key_ttl;  /* the longest it remembers a key; 0: not published */
	const char *page; /* where that stands */
};

/* By a host; null: it is none of them. */
const struct known *known_host(struct span host);
/* By the host of the rule's pattern; null: it is none of them. */
const struct known *known_provider(const struct rule *rule);

/* Characters of a key in this format. */
int known_key_length(enum key_format format);

#endif
