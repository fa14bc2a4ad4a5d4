/* What the files of the player share with each other and with nobody else. */
#ifndef SENDONCE_PLAYER_INNER_H
#define SENDONCE_PLAYER_INNER_H

#include "player/player.h"

/* End the playing with libcurl's code and text, unless it has ended. Returns the code it ended
 * with. Runs the program's debug callback. */
CURLcode player_fail(struct player *p, CURLcode code, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* One progress callback, whatever the time. CURLE_OK, or how the playing ended. */
CURLcode player_progress(struct player *p);

/* The time keeping of LOW_SPEED starts again, as libcurl does it when a pause ends. */
void player_speed_again(struct player *p);

#endif
