/* How far the program has come in the answer that is being played to it.
 *
 * The courier may be much further: its snapshot of getinfo can be the final one while the program
 * is given the first header line. What libcurl would have answered at this point is counted here,
 * from the pieces as they are fed. */
#ifndef SENDONCE_INTERCEPT_MOMENT_H
#define SENDONCE_INTERCEPT_MOMENT_H

#include "courier/tape.h"
#include "player/player.h"

/* All zero: nothing has come. */
struct moment {
	long header_size;
	unsigned request; /* which request is being answered */
	bool encoded;     /* the body is counted before it is decoded: not by us */
	curl_off_t before_piece;
	struct buf type, method, url; /* empty: not told */
	char type_room[64];           /* of most types */
};

/* Before a piece is fed to the player, and after. */
void moment_begin(struct moment *m, const struct player *p, const struct tape_piece *piece);
void moment_end(struct moment *m, const struct player *p, const struct tape_piece *piece);
/* Put what is known over a snapshot. */
void moment_show(const struct moment *m, const struct player *p, struct info *info);
void moment_free(struct moment *m);

#endif
