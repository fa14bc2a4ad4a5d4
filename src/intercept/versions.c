/* See versions.h. The number is asked for each time, since a flavour is the preload's and never
 * written to; curl_version_info makes its texts anew, which takes a microsecond or two, so whoever
 * asks does it where it matters only. Not promised: anything of a libcurl whose distributor has
 * changed what a version does. */
#include "intercept/versions.h"

#include "base/curlapi.h"

enum {
	EXPECTS_BY_SIZE = 0x080700,
	REFUSES_UPKEEP = 0x080a00,
	MEASURES_ANEW = 0x081200,
	TICKS_LATE = 0x081400
};

static unsigned number(const struct flavour *fl)
{
	const curl_version_info_data *info =
	        CURL_HAS(fl, version_info) ? CURL_FN(fl, version_info)(CURLVERSION_FIRST) : NULL;

	return info ? info->version_num : 0;
}

/* curl_multi_get_handles came with 8.4. */
bool versions_expect_by_size(const struct flavour *fl)
{
	return CURL_HAS(fl, multi_get_handles) && number(fl) >= EXPECTS_BY_SIZE;
}

bool versions_refuse_upkeep(const struct flavour *fl)
{
	return number(fl) >= REFUSES_UPKEEP;
}

/* multi_notify_enable came with 8.17: older ones need not be asked. */
bool versions_measure_anew(const struct flavour *fl)
{
	return CURL_HAS(fl, multi_notify_enable) && number(fl) >= MEASURES_ANEW;
}

bool versions_tick_late(const struct flavour *fl)
{
	return CURL_HAS(fl, multi_notify_enable) && number(fl) >= TICKS_LATE;
}
