/* What the files of the player share with each other and with nobody else. */
#ifndef SENDONCE_PLAYER_INNER_H
#define SENDONCE_PLAYER_INNER_H

#include "player/player.h"

/* End the playing with libcurl's code and text, unless it has ended. Returns the code it ended
 * with. Runs the program's debug callback. */
CURLcode player_fail(struct player *p, CURLcode code, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* One progress callback, whatever the time, and the meter if it is due. CURLE_OK, or how the
 * playing ended. `last`: nothing comes after it. */
CURLcode player_progress(struct player *p, bool last);

/* Bytes a second, as measured last. */
curl_off_t player_speed(const struct player *p);
/* Measure it: over the samples kept, or since the start where this is the first. Once a second, and
 * at the end. */
void player_measure(struct player *p, int64_t now_us, bool last);

enum { METER_SIZE = 6, METER_TIME = 9 };
/* Five and eight columns, as libcurl's meter shows a size and a time. Both return `out`. */
char *meter_size(char out[METER_SIZE], int64_t bytes);
char *meter_time(char out[METER_TIME], int64_t seconds);
void player_meter(struct player *p, bool last);

/* The time keeping of LOW_SPEED starts again, as libcurl does it when a pause ends. */
void player_speed_again(struct player *p);

#endif
