/* Habits of programs around curl_multi that its documentation allows and its examples do not show,
 * a case each, as a transcript to be compared with a native one.
 *
 *     loop_habits CASE poll|wait|fdset|epoll URL */
#define CURL_DISABLE_DEPRECATION
#include "loops.h"

#include <pthread.h>
#include <sys/wait.h>

enum { SOME = 5 };

static void remove_all(struct transfer *t, int count)
{
	for (int i = 0; i < count; i++) {
		loop_remove(&loop, &t[i]);
		finish(&t[i]);
	}
}

static const char *const names[SOME] = {"first", "second", "third", "fourth", "fifth"};

static void add_some(struct transfer *t, int count, const char *query)
{
	for (int i = 0; i < count; i++) {
		transfer_post(&t[i], names[i], url, query);
		loop_add(&loop, &t[i]);
	}
}

/* No more than so many connections to one server, or at all: the others wait for their turn. */
static void limited(CURLMoption option, long limit, int turns)
{
	struct transfer t[SOME];
	double start = now_ms();

	curl_multi_setopt(loop.multi, option, limit);
	loop.silent = true;
	add_some(t, SOME, "?late=0.2");
	loop_run(&loop);
	printf("in %d turns: %d\n", turns, now_ms() - start > 200 * turns - 10);
	remove_all(t, SOME);
}

static void host_limit(void)
{
	limited(CURLMOPT_MAX_HOST_CONNECTIONS, 1L, 5);
}

static void total_limit(void)
{
	limited(CURLMOPT_MAX_TOTAL_CONNECTIONS, 2L, 3);
}

/* The time to connect does not run for those that wait for their turn. */
static void host_limit_connecting(void)
{
	struct transfer t[SOME];

	curl_multi_setopt(loop.multi, CURLMOPT_MAX_HOST_CONNECTIONS, 1L);
	loop.silent = true;
	for (int i = 0; i < SOME; i++) {
		transfer_post(&t[i], names[i], url, "?late=0.3");
		curl_easy_setopt(t[i].easy, CURLOPT_CONNECTTIMEOUT_MS, 500L);
		loop_add(&loop, &t[i]);
	}
	loop_run(&loop);
	remove_all(t, SOME);
}

/* One that ends by its deadline makes room at once, whatever its server does then. */
static void host_limit_late(void)
{
	struct transfer t[3];
	double start = now_ms();

	curl_multi_setopt(loop.multi, CURLMOPT_MAX_HOST_CONNECTIONS, 1L);
	for (int i = 0; i < 3; i++) {
		transfer_post(&t[i], names[i], url, i == 0 ? "?late=2" : "?late=0.15");
		curl_easy_setopt(t[i].easy, CURLOPT_TIMEOUT_MS, i == 0 ? 300L : 4000L);
		loop_add(&loop, &t[i]);
	}
	loop_run(&loop);
	printf("took %s\n", now_ms() - start < 1500 ? "little" : "long");
	remove_all(t, 3);
}

/* As `curl -Z --retry`: all wait for the first one to say whether it can be shared, and end by
 * their deadline; then the same handles again. */
static void waiting_again(void)
{
	struct transfer t[3];

	loop.silent = true;
	for (int i = 0; i < 3; i++) {
		transfer_post(&t[i], names[i], url, "?late=1&times=1");
		curl_easy_setopt(t[i].easy, CURLOPT_PIPEWAIT, 1L);
		curl_easy_setopt(t[i].easy, CURLOPT_BUFFERSIZE, 30000L);
		curl_easy_setopt(t[i].easy, CURLOPT_TIMEOUT_MS, i == 0 ? 400L : 250L);
		loop_add(&loop, &t[i]);
	}
	loop_run(&loop);
	for (int i = 0; i < 3; i++) {
		printf("%s: %d\n", names[i], (int)t[i].code);
		loop_remove(&loop, &t[i]);
		curl_easy_setopt(t[i].easy, CURLOPT_TIMEOUT_MS, 5000L);
		loop_add(&loop, &t[i]);
	}
	loop_run(&loop);
	remove_all(t, 3);
}

static void max_connects(void)
{
	limited(CURLMOPT_MAXCONNECTS, 1L, 1);
}

static void pipelining(void)
{
	for (long i = 0; i < 4; i++)
		printf("pipelining %ld: %d\n", i,
		       (int)curl_multi_setopt(loop.multi, CURLMOPT_PIPELINING, i));
	limited(CURLMOPT_PIPELINING, CURLPIPE_NOTHING, 1);
}

/* What a timer or socket callback asks of its multi. */
static CURL *asked;
static int questions;

static void ask(CURLM *multi, const char *where)
{
	int running = 0, left = 0;
	CURL *other;

	if (!asked || questions++ > 0)
		return;
	other = curl_easy_init();
	printf("%s: remove %d", where, (int)curl_multi_remove_handle(multi, asked));
	printf(" add %d", (int)curl_multi_add_handle(multi, other));
	printf(" perform %d", (int)curl_multi_perform(multi, &running));
	printf(" action %d",
	       (int)curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running));
	printf(" read %d", curl_multi_info_read(multi, &left) != NULL);
	printf(" cleanup %d\n", (int)curl_multi_cleanup(multi));
	curl_easy_cleanup(other);
}

static int asking_timer(CURLM *multi, long ms, void *ctx)
{
	ask(multi, "timer");
	return loop_on_timer(multi, ms, ctx);
}

static int asking_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *assigned)
{
	ask(loop.multi, "socket");
	return loop_on_socket(easy, fd, what, ctx, assigned);
}

static void timer_calls(void)
{
	struct transfer t;

	loop.silent = true;
	transfer_post(&t, "asked", url, "?late=0.2");
	curl_multi_setopt(loop.multi, CURLMOPT_TIMERFUNCTION, asking_timer);
	curl_multi_setopt(loop.multi, CURLMOPT_TIMERDATA, &loop);
	asked = t.easy;
	run_alone(&t);
	asked = NULL;
	finish(&t);
}

static void socket_calls(void)
{
	struct transfer t;

	loop.silent = true;
	transfer_post(&t, "asked", url, "?late=0.2");
	if (loop.kind == LOOP_EPOLL)
		curl_multi_setopt(loop.multi, CURLMOPT_SOCKETFUNCTION, asking_socket);
	asked = t.easy;
	run_alone(&t);
	asked = NULL;
	finish(&t);
}

/* Each message's handle goes in again at once, with another body, four times. */
static void readded(void)
{
	struct transfer t[2];
	char body[2][40];
	int rounds[2] = {0}, good = 0, left;
	CURLMsg *msg;

	add_some(t, 2, "?late=0.05");
	loop.unread = loop.silent = true;
	while (rounds[0] + rounds[1] < 8) {
		loop_turn(&loop, 200);
		while ((msg = curl_multi_info_read(loop.multi, &left))) {
			CURL *easy = msg->easy_handle;
			int i = easy == t[1].easy;

			good += msg->data.result == CURLE_OK;
			curl_multi_remove_handle(loop.multi, easy);
			snprintf(body[i], sizeof(body[i]), "{\"by\":%d,\"round\":%d}", i,
			         ++rounds[i]);
			curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body[i]);
			if (rounds[i] < 4)
				curl_multi_add_handle(loop.multi, easy);
		}
	}
	loop_run(&loop);
	printf("good %d\n", good);
	for (int i = 0; i < 2; i++) {
		curl_multi_remove_handle(loop.multi, t[i].easy);
		transfer_close(&t[i]);
	}
}

/* Two threads with a multi each, and one share for both. */
static pthread_mutex_t share_locks[CURL_LOCK_DATA_LAST];
static CURLSH *share;

static void share_lock(CURL *easy, curl_lock_data data, curl_lock_access how, void *ctx)
{
	(void)easy, (void)how, (void)ctx;
	pthread_mutex_lock(&share_locks[data]);
}

static void share_unlock(CURL *easy, curl_lock_data data, void *ctx)
{
	(void)easy, (void)ctx;
	pthread_mutex_unlock(&share_locks[data]);
}

struct sharer {
	pthread_t thread;
	struct loop loop;
	struct transfer t[4];
	char body[4][40];
	int number, good;
};

static const char *kind_name;

static void *sharing(void *ctx)
{
	struct sharer *s = ctx;

	loop_open(&s->loop, kind_name);
	s->loop.silent = true;
	for (int i = 0; i < 4; i++) {
		transfer_post(&s->t[i], "shared", url, "?late=0.05");
		snprintf(s->body[i], sizeof(s->body[i]), "{\"by\":%d,\"write\":%d}", s->number, i);
		curl_easy_setopt(s->t[i].easy, CURLOPT_COPYPOSTFIELDS, s->body[i]);
		curl_easy_setopt(s->t[i].easy, CURLOPT_SHARE, share);
		curl_easy_setopt(s->t[i].easy, CURLOPT_COOKIEFILE, "");
		loop_add(&s->loop, &s->t[i]);
	}
	loop_run(&s->loop);
	for (int i = 0; i < 4; i++) {
		s->good += s->t[i].ended && s->t[i].code == CURLE_OK;
		loop_remove(&s->loop, &s->t[i]);
		transfer_close(&s->t[i]);
	}
	loop_close(&s->loop);
	return NULL;
}

static void shared(void)
{
	static const curl_lock_data what[] = {CURL_LOCK_DATA_COOKIE, CURL_LOCK_DATA_DNS,
	                                      CURL_LOCK_DATA_SSL_SESSION};
	struct sharer s[2];

	memset(s, 0, sizeof(s));
	share = curl_share_init();
	for (int i = 0; i < CURL_LOCK_DATA_LAST; i++)
		pthread_mutex_init(&share_locks[i], NULL);
	for (int i = 0; i < 3; i++)
		curl_share_setopt(share, CURLSHOPT_SHARE, what[i]);
	curl_share_setopt(share, CURLSHOPT_LOCKFUNC, share_lock);
	curl_share_setopt(share, CURLSHOPT_UNLOCKFUNC, share_unlock);
	for (int i = 0; i < 2; i++) {
		s[i].number = i;
		pthread_create(&s[i].thread, NULL, sharing, &s[i]);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(s[i].thread, NULL);
		printf("thread %d: %d good\n", i, s[i].good);
	}
	printf("share: %d\n", (int)curl_share_cleanup(share));
}

/* Made in one thread, run in another, put away in a third. */
static struct transfer handed[2];

static void *run_handed(void *ctx)
{
	(void)ctx;
	loop_run(&loop);
	return NULL;
}

static void *close_handed(void *ctx)
{
	(void)ctx;
	remove_all(handed, 2);
	return NULL;
}

static void other_thread(void)
{
	pthread_t thread;

	transfer_post(&handed[0], "first", url, "?late=0.1");
	transfer_post(&handed[1], "second", url, "?late=0.3");
	loop_add(&loop, &handed[0]);
	loop_add(&loop, &handed[1]);
	pthread_create(&thread, NULL, run_handed, NULL);
	pthread_join(thread, NULL);
	pthread_create(&thread, NULL, close_handed, NULL);
	pthread_join(thread, NULL);
}

/* Added, nothing more, when the process doubles itself; the child drives what it inherited. */
static void fork_child(void)
{
	struct transfer t;
	int status = -1;
	pid_t child;

	transfer_post(&t, "inherited", url, "?late=0.2");
	loop_add(&loop, &t);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		loop_run(&loop);
		loop_remove(&loop, &t);
		finish(&t);
		fflush(stdout);
		_exit(3);
	}
	waitpid(child, &status, 0);
	printf("child %d\n", WEXITSTATUS(status));
	loop_remove(&loop, &t);
	transfer_close(&t);
}

/* The same, and both drive. */
static void fork_both(void)
{
	struct transfer t;
	int status = -1;
	pid_t child;

	loop_close(&loop); /* a descriptor of epoll would be one for both */
	loop_open(&loop, "poll");
	transfer_post(&t, "both", url, "?late=0.4");
	loop_add(&loop, &t);
	loop.silent = true;
	child = fork();
	loop_run(&loop);
	loop_remove(&loop, &t);
	if (child == 0)
		_exit(t.ended && t.code == CURLE_OK ? 3 : 4);
	waitpid(child, &status, 0);
	printf("child %d\n", WEXITSTATUS(status));
	finish(&t);
}

/* A connection only, in the multi, beside a write; its bytes are the program's affair. */
static void connect_only(void)
{
	static const char head[] = "GET /orders HTTP/1.1\r\nHost: x\r\n\r\n";
	struct transfer t, bare;
	char answer[16] = "";
	size_t n = 0;
	CURLcode code = CURLE_AGAIN;

	transfer_open(&bare, "bare", url, "");
	curl_easy_setopt(bare.easy, CURLOPT_CONNECT_ONLY, 1L);
	loop_add(&loop, &bare);
	transfer_post(&t, "beside", url, "?late=0.2");
	loop_add(&loop, &t);
	loop_run(&loop);
	printf("send %d", (int)curl_easy_send(bare.easy, head, sizeof(head) - 1, &n));
	printf(" %zu\n", n);
	for (int i = 0; i < 100 && code == CURLE_AGAIN; i++) {
		code = curl_easy_recv(bare.easy, answer, 12, &n);
		usleep(10000);
	}
	printf("recv %d %.12s\n", (int)code, answer);
	loop_remove(&loop, &bare);
	loop_remove(&loop, &t);
	transfer_close(&bare);
	finish(&t);
}

/* Everything is stopped, and goes on later. */
static void pause_all(void)
{
	struct transfer t[SOME];
	double start;
	int codes = 0;

	add_some(t, SOME, "?late=0.3");
	loop.silent = true;
	if (loop.kind != LOOP_EPOLL)
		loop_perform(&loop);
	for (int i = 0; i < 6; i++)
		loop_turn(&loop, 20);
	for (int i = 0; i < SOME; i++)
		codes += (int)curl_easy_pause(t[i].easy, CURLPAUSE_ALL);
	printf("paused %d\n", codes);
	for (start = now_ms(); now_ms() - start < 600; usleep(20 * 1000)) /* wait may not wait */
		loop_turn(&loop, 30);
	for (int i = 0; i < SOME; i++)
		printf("%s: %d %d\n", t[i].name, t[i].ended, t[i].bodies);
	for (int i = 0; i < SOME; i++)
		codes += (int)curl_easy_pause(t[i].easy, CURLPAUSE_CONT);
	printf("resumed %d\n", codes);
	loop_run(&loop);
	remove_all(t, SOME);
}

/* Before there is anything to stop. */
static void pause_early(void)
{
	struct transfer t;

	transfer_post(&t, "early", url, "?late=0.1");
	printf("alone %d\n", (int)curl_easy_pause(t.easy, CURLPAUSE_ALL));
	loop_add(&loop, &t);
	printf("added %d\n", (int)curl_easy_pause(t.easy, CURLPAUSE_ALL));
	printf("go on %d\n", (int)curl_easy_pause(t.easy, CURLPAUSE_CONT));
	loop_run(&loop);
	printf("ended %d\n", (int)curl_easy_pause(t.easy, CURLPAUSE_ALL));
	printf("go on %d\n", (int)curl_easy_pause(t.easy, CURLPAUSE_CONT));
	loop_remove(&loop, &t);
	finish(&t);
}

/* The options are set when the handle is inside already. */
static void set_after(void)
{
	static char body[] = "{\"write\":\"late\"}", other[] = "{\"write\":\"kind\"}";
	struct transfer t, u, follows;

	transfer_open(&t, "late", url, "?nothing=1");
	loop_add(&loop, &t);
	curl_easy_setopt(t.easy, CURLOPT_POSTFIELDS, body);
	transfer_open(&follows, "follows", url, "?late=0.4");
	curl_easy_setopt(follows.easy, CURLOPT_FOLLOWLOCATION, 1L);
	loop_add(&loop, &follows);
	curl_easy_setopt(follows.easy, CURLOPT_COPYPOSTFIELDS, "{\"write\":\"follows\"}");
	transfer_post(&u, "kind", url, "?pre=0.2");
	loop_add(&loop, &u);
	curl_easy_setopt(u.easy, CURLOPT_HTTPGET, 1L);
	loop_run(&loop);
	loop_remove(&loop, &t);
	curl_easy_setopt(u.easy, CURLOPT_POSTFIELDS, other);
	loop_remove(&loop, &u);
	finish(&t);
	loop_remove(&loop, &follows);
	finish(&follows);
	run_alone(&u);
	finish(&u);
}

/* The body is changed in place when the handle is inside already. */
static void changed_after(void)
{
	static char body[] = "{\"write\":\"before\"}";
	struct transfer t;

	transfer_open(&t, "changed", url, "");
	curl_easy_setopt(t.easy, CURLOPT_POSTFIELDS, body);
	loop_add(&loop, &t);
	memcpy(body, "{\"write\":\"behind\"}", sizeof(body));
	loop_run(&loop);
	loop_remove(&loop, &t);
	finish(&t);
}

/* Cleaned up where its message is read, without being removed. */
static void cleaned_in_reading(void)
{
	struct transfer t[3];
	int left, gone = 0;
	CURLMsg *msg;

	add_some(t, 3, "?late=0.1");
	loop.unread = loop.silent = true;
	if (loop.kind != LOOP_EPOLL)
		loop_perform(&loop);
	while (gone < 3) {
		loop_turn(&loop, 200);
		while ((msg = curl_multi_info_read(loop.multi, &left))) {
			printf("message %d %d\n", (int)msg->msg, (int)msg->data.result);
			gone++;
			curl_easy_cleanup(msg->easy_handle);
		}
	}
	for (int i = 0; i < 3; i++)
		curl_slist_free_all(t[i].list);
}

/* Put away at exit, with handles inside. */
static struct transfer last[2];

static void at_exit(void)
{
	printf("cleanup %d\n", (int)curl_multi_cleanup(loop.multi));
	for (int i = 0; i < 2; i++) {
		printf("%s ended=%d code=%d\n", last[i].name, last[i].ended, (int)last[i].code);
		curl_easy_cleanup(last[i].easy);
	}
	curl_global_cleanup();
	printf("cost turns=0 timers=0 sockets=0 lost=0\n");
}

static void atexit_cleanup(void)
{
	atexit(at_exit);
	transfer_post(&last[0], "ended", url, "");
	transfer_post(&last[1], "running", url, "?late=0.6");
	loop_add(&loop, &last[0]);
	loop_add(&loop, &last[1]);
	if (loop.kind != LOOP_EPOLL)
		loop_perform(&loop);
	for (double start = now_ms(); now_ms() - start < 300;)
		loop_turn(&loop, 50);
	exit(0);
}

/* Driven by perform alone, without a wait, as the oldest programs do. */
static void perform_only(void)
{
	struct transfer t[2];
	int running = 1;

	loop.silent = true;
	add_some(t, 2, "?late=0.2");
	for (int i = 0; i < 3000 && running; i++) {
		loop_ran(&loop, curl_multi_perform(loop.multi, &running), running);
		usleep(1000);
	}
	loop_read(&loop);
	remove_all(t, 2);
}

/* An easy handle is performed by itself between two times in the multi. */
static void in_between(void)
{
	struct transfer t;
	char body[40];

	transfer_post(&t, "between", url, "?late=0.1");
	for (int i = 0; i < 4; i++) {
		snprintf(body, sizeof(body), "{\"time\":%d}", i);
		curl_easy_setopt(t.easy, CURLOPT_COPYPOSTFIELDS, body);
		if (i % 2) {
			printf("perform %d\n", (int)curl_easy_perform(t.easy));
			continue;
		}
		loop_add(&loop, &t);
		printf("perform inside %d\n", (int)curl_easy_perform(t.easy));
		loop_run(&loop);
		loop_remove(&loop, &t);
	}
	finish(&t);
}

/* As RCurl: who gets the body is said when the header has ended, and where the rest of it goes once
 * a part has come. The deadline is put off meanwhile. */
static int plain_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
	(void)ctx, (void)fd, (void)purpose;
	return CURL_SOCKOPT_OK;
}

static struct transfer *chosen;
static size_t parts[2];

static size_t part_write(char *data, size_t size, size_t n, void *ctx)
{
	(void)data;
	if (ctx == &parts[0] && parts[0] + size * n > 20000)
		curl_easy_setopt(chosen->easy, CURLOPT_WRITEDATA, &parts[1]);
	*(size_t *)ctx += size * n;
	return size * n;
}

static size_t choosing_header(char *data, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;

	t->headers++;
	if (*data == '\r') {
		curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, part_write);
		curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, &parts[0]);
		curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, transfer_header);
	}
	return size * n;
}

static int patient_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	(void)a, (void)b, (void)c, (void)d;
	curl_easy_setopt(((struct transfer *)ctx)->easy, CURLOPT_TIMEOUT_MS, 5000L);
	return 0;
}

static void choose(const char *name, bool in_place)
{
	struct transfer t;

	transfer_post(&t, name, url, "?late=0.4&size=60000");
	curl_easy_setopt(t.easy, CURLOPT_WRITEFUNCTION, NULL);
	curl_easy_setopt(t.easy, CURLOPT_HEADERFUNCTION, choosing_header);
	curl_easy_setopt(t.easy, CURLOPT_TIMEOUT_MS, 200L);
	curl_easy_setopt(t.easy, CURLOPT_XFERINFOFUNCTION, patient_progress);
	if (in_place)
		curl_easy_setopt(t.easy, CURLOPT_SOCKOPTFUNCTION, plain_socket);
	chosen = &t;
	parts[0] = parts[1] = 0;
	run_alone(&t);
	printf("parts %d %zu\n", parts[0] > 0, parts[0] + parts[1]);
	finish(&t);
}

static void set_in_callback(void)
{
	choose("chosen", false);
	choose("in-place", true);
}

static const struct loop_case cases[] = {
        {"set-in-callback", set_in_callback},
        {"host-limit", host_limit},
        {"host-limit-connecting", host_limit_connecting},
        {"host-limit-late", host_limit_late},
        {"total-limit", total_limit},
        {"waiting-again", waiting_again},
        {"max-connects", max_connects},
        {"pipelining", pipelining},
        {"timer-calls", timer_calls},
        {"socket-calls", socket_calls},
        {"readded", readded},
        {"shared", shared},
        {"other-thread", other_thread},
        {"fork-child", fork_child},
        {"fork-both", fork_both},
        {"connect-only", connect_only},
        {"pause-all", pause_all},
        {"pause-early", pause_early},
        {"set-after", set_after},
        {"changed-after", changed_after},
        {"cleaned-in-reading", cleaned_in_reading},
        {"atexit-cleanup", atexit_cleanup},
        {"perform-only", perform_only},
        {"in-between", in_between},
};

int main(int argc, char **argv)
{
	kind_name = argc > 2 ? argv[2] : "";
	return loop_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
