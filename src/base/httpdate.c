/* See httpdate.h. */
#include "base/httpdate.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
static const char days[] = "SunMonTueWedThuFriSat";

void httpdate_write(char out[HTTPDATE_ROOM], int64_t wall_us)
{
	const int64_t last = INT64_C(253402300799); /* the end of 9999 */
	int64_t s = wall_us / 1000000;
	time_t seconds = (time_t)(s < 0 ? 0 : s > last ? last : s);
	char text[80];
	struct tm t;

	gmtime_r(&seconds, &t);
	snprintf(text, sizeof(text), "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
	         days + 3 * t.tm_wday, t.tm_mday, months + 3 * t.tm_mon, t.tm_year + 1900,
	         t.tm_hour, t.tm_min, t.tm_sec);
	memcpy(out, text, HTTPDATE_ROOM - 1);
	out[HTTPDATE_ROOM - 1] = '\0';
}

/* `n` digits at `p`; -1: something else. */
static int digits(const char *p, int n)
{
	int v = 0;

	for (int i = 0; i < n; i++) {
		if (p[i] < '0' || p[i] > '9')
			return -1;
		v = v * 10 + (p[i] - '0');
	}
	return v;
}

static int month_of(const char *p)
{
	for (int i = 0; i < 12; i++) {
		if (memcmp(months + 3 * i, p, 3) == 0)
			return i;
	}
	return -1;
}

bool httpdate_read(struct span text, int64_t *wall_us)
{
	static const char form[] = "___, __ ___ ____ __:__:__ GMT";
	struct tm t = {0}, back;
	time_t seconds;

	if (text.n != sizeof(form) - 1)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		if (form[i] != '_' && form[i] != text.p[i])
			return false;
	}
	t.tm_mday = digits(text.p + 5, 2);
	t.tm_mon = month_of(text.p + 8);
	t.tm_year = digits(text.p + 12, 4) - 1900;
	t.tm_hour = digits(text.p + 17, 2);
	t.tm_min = digits(text.p + 20, 2);
	t.tm_sec = digits(text.p + 23, 2);
	if (t.tm_mday < 1 || t.tm_mon < 0 || t.tm_year < 70 || t.tm_hour < 0 || t.tm_hour > 23 ||
	    t.tm_min < 0 || t.tm_min > 59 || t.tm_sec < 0 || t.tm_sec > 60)
		return false;
	back = t;
	seconds = timegm(&back);
	if (back.tm_mon != t.tm_mon || (t.tm_sec < 60 && back.tm_mday != t.tm_mday))
		return false;
	*wall_us = (int64_t)seconds * 1000000;
	return true;
}
