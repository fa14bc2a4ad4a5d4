/* Three reads and six writes in one curl_multi, by any of the four kinds of loop, as a transcript.
 *
 *     loops poll|wait|fdset|epoll URL [unread]     the writes are called w0 .. w5
 *     loops lead URL                               only w4, by curl_easy_perform, to be joined
 *
 * One write is removed midway, one is paused by its write callback and resumed, one times out, one
 * may be joined to another process. Everything ends at another moment, so the order is the same in
 * every run. Printed are the changes of running_handles, the messages, what happened at which
 * transfer, and last, as `cost`, what varies from run to run. With `unread` messages are read when
 * all is over. */
#include "loops.h"

enum { READS = 3, WRITES = 6, ALL = READS + WRITES, UNIT_MS = 250 };

/* When each is answered, in units: the server is told so. */
static const struct plan {
	const char *name;
	int at;
	bool write;
} plans[ALL] = {
        {"r0", 1, false}, {"w0", 2, true},  {"r1", 5, false}, {"w1", 20, true}, {"w2", 6, true},
        {"r2", 8, false}, {"w3", 25, true}, {"w4", 11, true}, {"w5", 13, true},
};
enum { REMOVED = 3, PAUSED = 4, TIMED = 6, JOINED = 7 };

static struct transfer transfers[ALL];

static void make_one(struct transfer *t, const struct plan *p)
{
	char query[32];

	snprintf(query, sizeof(query), "?%s=%.2f", p->write ? "late" : "pre",
	         p->at * UNIT_MS / 1000.0);
	if (p->write)
		transfer_post(t, p->name, url, query);
	else
		transfer_open(t, p->name, url, query);
}

static void make(void)
{
	for (int i = 0; i < ALL; i++)
		make_one(&transfers[i], &plans[i]);
	transfers[PAUSED].pauses = 1;
	curl_easy_setopt(transfers[TIMED].easy, CURLOPT_TIMEOUT_MS, 95L * UNIT_MS / 10);
}

/* What the program does by itself: w1 is removed once r0 and w0 have ended, w2 resumed once it has
 * paused. */
static void act(struct loop *l, int *done)
{
	CURLcode code;

	if (*done == 0 && l->running == ALL - 2) {
		printf("remove w1\n");
		loop_remove(l, &transfers[REMOVED]);
		loop_drive(l);
		*done = 1;
	} else if (*done == 1 && transfers[PAUSED].pauses == 0) {
		code = curl_easy_pause(transfers[PAUSED].easy, CURLPAUSE_CONT);
		printf("resume w2: %d\n", (int)code);
		*done = 2;
	}
}

static int run(const char *kind, bool unread)
{
	int done = 0;

	loop_open(&loop, kind);
	loop.unread = unread;
	make();
	for (int i = 0; i < ALL; i++)
		loop_add(&loop, &transfers[i]);
	if (loop.kind != LOOP_EPOLL)
		loop_perform(&loop);
	do {
		loop_turn(&loop, UNIT_MS);
		act(&loop, &done);
	} while (loop.running != 0);
	loop.unread = false;
	loop_read(&loop);
	for (int i = 0; i < ALL; i++) {
		loop_remove(&loop, &transfers[i]);
		transfer_report(&transfers[i]);
	}
	printf("cost turns=%d timers=%d sockets=%d lost=%d\n", loop.turns, loop.timers,
	       loop.sockets, loop.lost);
	for (int i = 0; i < ALL; i++)
		transfer_close(&transfers[i]);
	loop_close(&loop);
	return 0;
}

/* Says so when it may have left, and what came of it. */
static int lead(void)
{
	struct transfer t;

	make_one(&t, &plans[JOINED]);
	t.code = curl_easy_perform(t.easy);
	t.ended = true;
	transfer_report(&t);
	transfer_close(&t);
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	curl_global_init(CURL_GLOBAL_ALL);
	url = argc > 2 ? argv[2] : "";
	if (argc == 3 && strcmp(argv[1], "lead") == 0)
		return lead();
	if (argc < 3)
		return 64;
	return run(argv[1], argc > 3 && strcmp(argv[3], "unread") == 0);
}
