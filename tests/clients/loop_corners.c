/* What programs do with curl_multi besides the ordinary, a case each, as a transcript to be
 * compared with a native one.
 *
 *     loop_corners CASE poll|wait|fdset|epoll URL
 *
 * Every write is a POST to URL with its own body; the query says what the server makes of it. */
#include "loops.h"

#include <pthread.h>
#include <stdatomic.h>

/* As GDAL: no message is ever read, the status says it. */
static void never_read(void)
{
	struct transfer t[2];

	loop.unread = true;
	transfer_post(&t[0], "kept", url, "?late=0.1");
	transfer_post(&t[1], "cut", url, "?cut=1&late=0.3");
	for (int i = 0; i < 2; i++)
		loop_add(&loop, &t[i]);
	loop_run(&loop);
	for (int i = 0; i < 2; i++) {
		loop_remove(&loop, &t[i]);
		finish(&t[i]);
	}
}

/* As Symfony: a handle that ended is added once more, and one that had not. */
static void again(void)
{
	struct transfer t;

	transfer_post(&t, "again", url, "?late=0.2");
	run_alone(&t);
	transfer_report(&t);
	t.body[0] = 0;
	run_alone(&t);
	finish(&t);
}

static void again_midway(void)
{
	struct transfer t;
	double start = now_ms();

	transfer_post(&t, "midway", url, "?late=0.6");
	loop_add(&loop, &t);
	if (loop.kind != LOOP_EPOLL)
		loop_perform(&loop);
	while (now_ms() - start < 300)
		loop_turn(&loop, 100);
	loop_remove(&loop, &t);
	run_alone(&t);
	finish(&t);
}

/* As PHP: the multi goes with one handle running and one ended inside, its message unread. */
static void cleanup_inside(void)
{
	struct transfer t[2];
	double start = now_ms();

	loop.unread = true;
	transfer_post(&t[0], "ended", url, "");
	transfer_post(&t[1], "running", url, "?late=1.5");
	for (int i = 0; i < 2; i++)
		loop_add(&loop, &t[i]);
	if (loop.kind != LOOP_EPOLL)
		loop_perform(&loop);
	while (now_ms() - start < 400)
		loop_turn(&loop, 100);
	loop_close(&loop);
	for (int i = 0; i < 2; i++)
		finish(&t[i]);
	loop_open(&loop, "poll");
}

/* The other way about: the handles are cleaned up first, while they are inside. */
static void easy_first(void)
{
	struct transfer t[2];
	double start = now_ms();

	transfer_post(&t[0], "ended", url, "");
	transfer_post(&t[1], "running", url, "?late=1.5");
	for (int i = 0; i < 2; i++)
		loop_add(&loop, &t[i]);
	if (loop.kind != LOOP_EPOLL)
		loop_perform(&loop);
	while (now_ms() - start < 400)
		loop_turn(&loop, 100);
	transfer_report(&t[0]);
	for (int i = 0; i < 2; i++)
		transfer_close(&t[i]);
	loop_turn(&loop, 10);
}

static int look(const struct transfer *t)
{
	static const CURLINFO longs[] = {CURLINFO_RESPONSE_CODE, CURLINFO_HEADER_SIZE,
	                                 CURLINFO_NUM_CONNECTS,  CURLINFO_OS_ERRNO,
	                                 CURLINFO_HTTP_VERSION,  CURLINFO_LOCAL_PORT};
	static const CURLINFO sizes[] = {CURLINFO_TOTAL_TIME_T, CURLINFO_SIZE_UPLOAD_T,
	                                 CURLINFO_STARTTRANSFER_TIME_T};
	static const CURLINFO texts[] = {CURLINFO_EFFECTIVE_URL, CURLINFO_PRIMARY_IP,
	                                 CURLINFO_CONTENT_TYPE};
	int wrong = 0;
	long number;
	char *text;
	curl_off_t size;

	for (int i = 0; i < 6; i++)
		wrong += curl_easy_getinfo(t->easy, longs[i], &number) != CURLE_OK;
	for (int i = 0; i < 3; i++) {
		wrong += curl_easy_getinfo(t->easy, sizes[i], &size) != CURLE_OK || size < 0;
		wrong += curl_easy_getinfo(t->easy, texts[i], &text) != CURLE_OK;
	}
	return wrong;
}

/* As Symfony and Typhoeus: getinfo all along. */
static void getinfo(void)
{
	struct transfer t;
	curl_off_t took = 0, last = 0;
	int wrong = 0, back = 0;
	double start = now_ms();

	transfer_post(&t, "looked-at", url, "?late=0.4&chunked=1");
	loop_add(&loop, &t);
	if (loop.kind != LOOP_EPOLL)
		loop_perform(&loop);
	while (loop.running != 0) {
		for (int i = 0; i < 100; i++) {
			wrong += look(&t);
			curl_easy_getinfo(t.easy, CURLINFO_TOTAL_TIME_T, &took);
			back += took < last;
			last = took;
		}
		loop_turn(&loop, 5);
	}
	curl_easy_getinfo(t.easy, CURLINFO_TOTAL_TIME_T, &took);
	printf("wrong=%d back=%d time=%s\n", wrong, back,
	       took > 390000 && (double)took < (now_ms() - start) * 1000 + 10000 ? "fits"
	                                                                         : "does not fit");
	loop_remove(&loop, &t);
	finish(&t);
}

/* One handle: by the multi, by curl_easy_perform, by the multi again, each time another write. */
static void moved(void)
{
	struct transfer t;

	transfer_post(&t, "moved", url, "?late=0.1");
	run_alone(&t);
	transfer_report(&t);
	curl_easy_setopt(t.easy, CURLOPT_COPYPOSTFIELDS, "{\"second\":2}");
	t.body[0] = 0;
	t.code = curl_easy_perform(t.easy);
	transfer_report(&t);
	curl_easy_setopt(t.easy, CURLOPT_COPYPOSTFIELDS, "{\"third\":3}");
	t.body[0] = 0;
	run_alone(&t);
	finish(&t);
}

/* Calls that libcurl answers with a code of its own. */
static void wrong_calls(void)
{
	struct transfer t;
	CURLM *second = curl_multi_init();
	CURLcode code;

	transfer_post(&t, "wrong", url, "?late=0.2");
	printf("remove %d\n", (int)curl_multi_remove_handle(loop.multi, t.easy));
	loop_add(&loop, &t);
	printf("add %d other %d\n", (int)curl_multi_add_handle(loop.multi, t.easy),
	       (int)curl_multi_add_handle(second, t.easy));
	code = curl_easy_perform(t.easy);
	printf("perform %d %s\n", (int)code, t.error);
	printf("assign %d\n", (int)curl_multi_assign(loop.multi, 1000, &t));
	printf("bad multi %d easy %d\n", (int)curl_multi_add_handle(NULL, t.easy),
	       (int)curl_multi_add_handle(loop.multi, NULL));
	t.error[0] = 0;
	loop_run(&loop);
	loop_remove(&loop, &t);
	printf("remove twice %d\n", (int)curl_multi_remove_handle(loop.multi, t.easy));
	curl_multi_cleanup(second);
	finish(&t);
}

/* What curl_multi_timeout and curl_multi_fdset say before, while and after. */
static void timeouts(void)
{
	struct transfer t;
	long ms = -5;
	int last = -5;
	fd_set in, out, err;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_ZERO(&err);
	curl_multi_timeout(loop.multi, &ms);
	curl_multi_fdset(loop.multi, &in, &out, &err, &last);
	printf("before: timeout %ld last %d\n", ms, last);
	transfer_post(&t, "timed", url, "?late=0.3");
	loop_add(&loop, &t);
	curl_multi_timeout(loop.multi, &ms);
	printf("added: timeout %ld\n", ms);
	if (loop.kind != LOOP_EPOLL)
		loop_perform(&loop);
	while (loop.turns < 3)
		loop_turn(&loop, 50);
	curl_multi_fdset(loop.multi, &in, &out, &err, &last);
	printf("under way: descriptors %s\n", last >= 0 ? "some" : "none");
	loop_run(&loop);
	loop_remove(&loop, &t);
	ms = -5;
	curl_multi_timeout(loop.multi, &ms);
	printf("after: timeout %s\n", ms < 0 ? "none" : "some");
	finish(&t);
}

static atomic_bool woken;

static void *waker(void *ctx)
{
	usleep(200 * 1000);
	woken = true;
	curl_multi_wakeup(ctx);
	return NULL;
}

static void wakeup(void)
{
	struct transfer t;
	pthread_t thread;
	double start;
	int ready = 0;

	transfer_post(&t, "woken", url, "?late=4");
	loop_add(&loop, &t);
	for (int i = 0; i < 5; i++)
		loop_turn(&loop, 10);
	pthread_create(&thread, NULL, waker, loop.multi);
	start = now_ms();
	while (!woken) /* libcurl has timers of its own */
		curl_multi_poll(loop.multi, NULL, 0, 20000, &ready);
	printf("woken %s\n", now_ms() - start < 3000 ? "in time" : "not in time");
	pthread_join(thread, NULL);
	loop_run(&loop);
	loop_remove(&loop, &t);
	finish(&t);
}

/* As git: the handle that works is a duplicate of one that has the settings. */
static void duplicate(void)
{
	struct transfer first, second;

	transfer_post(&first, "model", url, "?late=0.1");
	/* of a copied body without a size 7.88 makes no duplicate */
	curl_easy_setopt(first.easy, CURLOPT_POSTFIELDS, "{\"write\":\"model\"}");
	memset(&second, 0, sizeof(second));
	second.name = "copy";
	second.easy = curl_easy_duphandle(first.easy);
	curl_easy_setopt(second.easy, CURLOPT_PRIVATE, &second);
	curl_easy_setopt(second.easy, CURLOPT_WRITEDATA, &second);
	curl_easy_setopt(second.easy, CURLOPT_HEADERDATA, &second);
	curl_easy_setopt(second.easy, CURLOPT_XFERINFODATA, &second);
	curl_easy_setopt(second.easy, CURLOPT_ERRORBUFFER, second.error);
	run_alone(&second);
	finish(&second);
	finish(&first);
}

/* A message stays what it was until its handle is removed, whatever else is read meanwhile. The
 * first answer comes late enough for all three to have connections of their own: on one that is
 * used again, what comes to nothing has another code. */
static void kept_message(void)
{
	struct transfer t[3];
	CURLMsg *kept, *other;
	int left = -1;

	for (int i = 0; i < 3; i++) {
		transfer_post(&t[i],
		              i == 0   ? "first"
		              : i == 1 ? "second"
		                       : "third",
		              url,
		              i == 0   ? "?late=0.1"
		              : i == 1 ? "?cut=1&late=0.2"
		                       : "?late=0.4");
		loop_add(&loop, &t[i]);
	}
	loop.unread = true;
	loop_run(&loop);
	kept = curl_multi_info_read(loop.multi, &left);
	printf("kept %d left %d\n",
	       kept && kept->easy_handle == t[0].easy && kept->data.result == CURLE_OK, left);
	while ((other = curl_multi_info_read(loop.multi, &left)))
		printf("other %d left %d\n", (int)other->data.result, left);
	printf("kept %d, nothing left %d\n",
	       kept && kept->easy_handle == t[0].easy && kept->data.result == CURLE_OK, left);
	for (int i = 0; i < 3; i++) {
		loop_remove(&loop, &t[i]);
		finish(&t[i]);
	}
}

/* A message that was not read goes with its handle. */
static void lost_message(void)
{
	struct transfer t[2];
	int left = -1;

	for (int i = 0; i < 2; i++) {
		transfer_post(&t[i], i ? "second" : "first", url, i ? "?late=0.2" : "");
		loop_add(&loop, &t[i]);
	}
	loop.unread = true;
	loop_run(&loop);
	loop_remove(&loop, &t[0]);
	loop.unread = false;
	loop_read(&loop);
	printf("more %d", curl_multi_info_read(loop.multi, &left) != NULL);
	printf(" left %d\n", left);
	loop_remove(&loop, &t[1]);
	for (int i = 0; i < 2; i++)
		finish(&t[i]);
}

static const struct loop_case cases[] = {
        {"never-read", never_read},
        {"again", again},
        {"again-midway", again_midway},
        {"cleanup-inside", cleanup_inside},
        {"easy-first", easy_first},
        {"getinfo", getinfo},
        {"moved", moved},
        {"wrong-calls", wrong_calls},
        {"timeouts", timeouts},
        {"wakeup", wakeup},
        {"duplicate", duplicate},
        {"kept-message", kept_message},
        {"lost-message", lost_message},
};

int main(int argc, char **argv)
{
	return loop_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
