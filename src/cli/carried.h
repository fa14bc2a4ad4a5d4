/* Records as JSON lines: what `ledger export` writes and `ledger import` reads. */
#ifndef SENDONCE_CLI_CARRIED_H
#define SENDONCE_CLI_CARRIED_H

#include <stdio.h>

#include "ledger/carry.h"

enum { CARRIED_VERSION = 1, CARRIED_PRINT = 16 };

/* The first line. */
struct carried_head {
	char secret[2 * CARRIED_PRINT +
	            1];  /* fingerprint of the secret the records were made under */
	uint64_t origin; /* of the ledger: carry_origin */
	uint8_t secret_value[LEDGER_SECRET];
	bool has_secret; /* secret_value is in the file */
};
/* 16 bytes in hex that tell two secrets apart and give neither away. */
void carried_fingerprint(struct span secret, char out[2 * CARRIED_PRINT + 1]);

/* The secret that programs make keys with: SENDONCE_SECRET_FILE's, else the ledger's (`own` is then
 * set). `room` holds it where it comes from the file. 0, or an exit code after a message. */
enum { CARRIED_SECRET_MAX = 4096, CARRIED_SECRET_MIN = 16 };
int carried_secret(const char *command, const uint8_t *ledger_secret, char room[CARRIED_SECRET_MAX],
                   struct span *out, bool *own);

void carried_print_head(FILE *out, const struct carried_head *head, int64_t now_us);
void carried_print(FILE *out, const struct ledger_record *record);
void carried_print_end(FILE *out, unsigned long count);

/* What a line is. CARRIED_BAD: `why` (a literal) says what is wrong. */
enum carried_line { CARRIED_HEAD, CARRIED_RECORD, CARRIED_END, CARRIED_BAD };
/* `record` is all zero before and freed by carry_free in any case; `count` is set by the end. */
enum carried_line carried_parse(struct span line, struct carried_head *head,
                                struct ledger_record *record, unsigned long *count,
                                const char **why);

#endif
