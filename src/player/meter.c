/* The progress meter libcurl draws itself, for a program that wants progress (NOPROGRESS 0) and has
 * no callback for it, or one that answers CURL_PROGRESSFUNC_CONTINUE: curl(1) with its answer in a
 * file. A row a second and one at the end, over one another, on the program's STDERR and on its
 * thread.
 *
 * Columns are those of libcurl 7.88 and of most versions before. Not promised: the same moments,
 * and with them the same numbers, which depend on when libcurl happens to look. */
#include "player/inner.h"

#include <stdio.h>
#include <string.h>

#define KIB       INT64_C(1024)
#define MIB       (KIB * 1024)
#define GIB       (MIB * 1024)
#define TIB       (GIB * 1024)
#define SECOND_US INT64_C(1000000)

char *meter_size(char out[METER_SIZE], int64_t bytes)
{
	static const struct {
		int64_t below, unit;
		const char *suffix;
		bool tenths;
	} steps[] = {
	        {100000, 1, "", false},         {10000 * KIB, KIB, "k", false},
	        {100 * MIB, MIB, "M", true},    {10000 * MIB, MIB, "M", false},
	        {100 * GIB, GIB, "G", true},    {10000 * GIB, GIB, "G", false},
	        {10000 * TIB, TIB, "T", false}, {INT64_MAX, TIB * 1024, "P", false},
	};
	char text[48];
	size_t i = 0;

	while (i + 1 < sizeof(steps) / sizeof(*steps) && bytes >= steps[i].below)
		i++;
	int64_t unit = steps[i].unit, whole = bytes / unit;
	if (steps[i].tenths)
		snprintf(text, sizeof(text), "%2lld.%lld%s", (long long)whole,
		         (long long)(bytes % unit / (unit / 10)), steps[i].suffix);
	else
		snprintf(text, sizeof(text), "%*lld%s", *steps[i].suffix ? 4 : 5, (long long)whole,
		         steps[i].suffix);
	snprintf(out, METER_SIZE, "%.*s", METER_SIZE - 1, text);
	return out;
}

char *meter_time(char out[METER_TIME], int64_t seconds)
{
	long long s = seconds, days = s / 86400;
	char text[64];

	if (s <= 0)
		strcpy(text, "--:--:--");
	else if (s / 3600 <= 99)
		snprintf(text, sizeof(text), "%2lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
	else if (days <= 999)
		snprintf(text, sizeof(text), "%3lldd %02lldh", days, s / 3600 % 24);
	else
		snprintf(text, sizeof(text), "%7lldd", days);
	snprintf(out, METER_TIME, "%.*s", METER_TIME - 1, text);
	return out;
}

/* One direction, or both together. */
struct way {
	int64_t done, total, speed, percent, seconds;
	bool known;
};

static int64_t meter_percent(int64_t part, int64_t whole)
{
	if (whole > 10000)
		return part / (whole / 100);
	return whole > 0 ? part * 100 / whole : 0;
}

static struct way meter_way(int64_t done, int64_t total, bool known, int64_t spent_us)
{
	struct way w = {.done = done, .total = known ? total : 0, .known = known};

	/* a replay takes no time: counted as a millisecond */
	w.speed = (int64_t)((double)done * 1e6 / (double)(spent_us > 1000 ? spent_us : 1000));
	if (known && w.speed > 0) {
		w.seconds = total / w.speed;
		w.percent = meter_percent(done, total);
	}
	return w;
}

static void meter_row(FILE *out, const struct way *down, const struct way *up, int64_t spent_us,
                      int64_t now)
{
	int64_t all = (up->known ? up->total : up->done) + (down->known ? down->total : down->done);
	int64_t whole = up->seconds > down->seconds ? up->seconds : down->seconds;
	int64_t spent = spent_us / SECOND_US;
	char size[6][METER_SIZE], time[3][METER_TIME];

	fprintf(out, "\r%3lld %s  %3lld %s  %3lld %s  %s  %s %s %s %s %s",
	        (long long)meter_percent(down->done + up->done, all), meter_size(size[0], all),
	        (long long)down->percent, meter_size(size[1], down->done), (long long)up->percent,
	        meter_size(size[2], up->done), meter_size(size[3], down->speed),
	        meter_size(size[4], up->speed), meter_time(time[0], whole),
	        meter_time(time[1], spent), meter_time(time[2], whole > 0 ? whole - spent : 0),
	        meter_size(size[5], now));
}

void player_meter(struct player *p, bool last)
{
	FILE *out = p->sink.stderr_file ? p->sink.stderr_file : stderr;
	int64_t second = p->seen_us / SECOND_US, spent_us = p->seen_us - p->started_us;
	bool begun = p->uploaded > 0 || p->in_head || p->in_body;

	if (!last && p->metered && second == p->metered_s)
		return;
	if (!p->metered)
		fputs("  % Total    % Received % Xferd  Average Speed   Time    Time     Time  "
		      "Current\n                                 Dload  Upload   Total   Spent    "
		      "Left  Speed\n",
		      out);
	p->metered = true;
	p->metered_s = second;
	struct way down =
	        meter_way(p->body_seen, p->body_total, p->in_body && p->body_total >= 0, spent_us);
	struct way up = meter_way(p->uploaded, p->sink.upload_size,
	                          begun && p->sink.upload_size >= 0, spent_us);
	meter_row(out, &down, &up, spent_us, player_speed(p));
	if (last && !p->sink.xferinfo && !p->sink.progress)
		fputc('\n', out);
	fflush(out);
}
