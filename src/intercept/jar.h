/* The program's cookies: out of its handle before a write, and back into it afterwards. */
#ifndef SENDONCE_INTERCEPT_JAR_H
#define SENDONCE_INTERCEPT_JAR_H

#include "intercept/shadow.h"

struct attempt;

/* What is in the program's jar, as COOKIELIST lines; null: nothing, or no cookie engine. The caller
 * frees it with the flavour's slist_free_all. */
struct curl_slist *jar_take(struct shadow *s);
/* What the transfer changed: new and changed cookies, and those that are gone. Nothing before it
 * has ended. */
void jar_return(struct shadow *s, struct attempt *attempt);

#endif
