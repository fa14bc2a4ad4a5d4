/* What a libcurl does otherwise than 7.88, where no function that came with it tells. */
#ifndef SENDONCE_INTERCEPT_VERSIONS_H
#define SENDONCE_INTERCEPT_VERSIONS_H

#include <stdbool.h>

#include "base/flavour.h"

/* 8.7 or later: a body of an upload is announced by Expect only if it is large, as a POST's is. */
bool versions_expect_by_size(const struct flavour *fl);
/* 8.10 or later: curl_easy_upkeep inside a callback is an error. */
bool versions_refuse_upkeep(const struct flavour *fl);
/* 8.18 or later: a transfer's speed is its own, and not at first that of the one before. */
bool versions_measure_anew(const struct flavour *fl);
/* 8.20 or later: no progress is shown before there is a connection. */
bool versions_tick_late(const struct flavour *fl);

#endif
