/* A compiled `match`: METHOD[,METHOD] SCHEME://HOST[:PORT]/PATH
 *
 * * in the place of the methods = every one. {name} or * = one segment of the path, ** = its rest,
 * also an empty one; * = one label of the host, or any port, or either scheme; ** after the scheme
 * = every URL. Scheme and host are without case, a missing port is the scheme's own,
 * percent-encoded bytes of the path equal plain ones
 * (%2F stays inside its segment), case of the path counts, and so does a slash at its end. */
#ifndef SENDONCE_POLICY_MATCHER_H
#define SENDONCE_POLICY_MATCHER_H

#include "base/bytes.h"
#include "policy/policy.h"

enum matcher_scheme { SCHEME_ANY, SCHEME_HTTP, SCHEME_HTTPS, SCHEME_OTHER };
enum host_kind { HOST_ANY, HOST_LABELS, HOST_IPV6 };
enum segment_kind { SEGMENT_TEXT, SEGMENT_ONE, SEGMENT_REST };
enum { PORT_DEFAULT = 0, PORT_ANY = -1 };
enum { METHOD_MAX = 16, SEGMENT_MAX = 64 };

struct segment {
	enum segment_kind kind;
	struct span text; /* decoded */
};

struct matcher {
	char *copy; /* what the spans point into; percent-encoding is decoded in place */
	char *path;
	bool any_method; /* `*`: reads too, and methods nobody knows yet */
	struct span method[METHOD_MAX];
	size_t method_count;
	enum matcher_scheme scheme;
	enum host_kind host_kind;
	struct span host;
	unsigned char ipv6[16];
	int port;
	struct segment segment[SEGMENT_MAX];
	size_t segment_count;
};

enum { MATCHER_NOMEM = -1, MATCHER_BAD = -2 };

/* 0 and a matcher for matcher_free; else `*problem` says what is wrong and what would be right,
 * as the end of a sentence that begins with the pattern. */
int matcher_parse(struct span text, struct matcher **out, const char **problem);
void matcher_free(struct matcher *m);

/* The path as it stands in the pattern; NUL-terminated, the matcher's. */
const char *matcher_path(const struct matcher *m);

bool matcher_matches(const struct matcher *m, const struct policy_target *target);
/* For people: every part of the target the pattern does not fit, MATCH_ bits; 0 where it matches.
 */
enum { MATCH_METHOD = 1, MATCH_SCHEME = 2, MATCH_HOST = 4, MATCH_PORT = 8, MATCH_PATH = 16 };
unsigned matcher_differs(const struct matcher *m, const struct policy_target *target);
/* Does `a` match whatever `b` matches? May say no where a proof would be long, never yes wrongly.
 */
bool matcher_covers(const struct matcher *a, const struct matcher *b);

/* --- shared by compiling and matching --- */

/* The part before the first `c`, taken off `rest` together with it; all of it without a `c`. */
struct span matcher_take_until(struct span *rest, char c);
/* The next byte of a percent-encoded text, which is not empty. A % without two digits is itself. */
char matcher_take_byte(struct span *text);
/* Without the dot of the root at its end: the same host to DNS, and so to the server. */
struct span matcher_bare_host(struct span host);
/* An address without brackets; a zone is left out of it. */
bool matcher_ipv6(struct span text, unsigned char out[16]);
enum matcher_scheme matcher_scheme(struct span text);

#endif
