/* Copies of what CURLINFO_CERTINFO gives. */
#ifndef SENDONCE_PLAYER_CERTS_H
#define SENDONCE_PLAYER_CERTS_H

#include "base/curlapi.h"

/* 0, or -1 out of memory: `to` is then as before. */
int certs_copy(struct curl_certinfo *to, const struct curl_certinfo *from);
void certs_free(struct curl_certinfo *certs);

#endif
