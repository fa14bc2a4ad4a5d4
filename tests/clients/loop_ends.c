/* How writes in a curl_multi end before their time, and who joins whom, a case each, as a
 * transcript to be compared with a native one.
 *
 *     loop_ends CASE poll|wait|fdset|epoll URL */
#include "loops.h"

#include <poll.h>
#include <sys/wait.h>

/* As GStreamer: the descriptor caught at its opening is what is waited for. */
static struct pollfd caught = {.fd = -1, .events = POLLIN};

static int catch_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
	(void)ctx, (void)purpose;
	caught.fd = fd;
	return CURL_SOCKOPT_OK;
}

/* The descriptor is all it waits for, so the first call has to open it. */
static void caught_read(void)
{
	struct transfer t;

	transfer_open(&t, "caught", url, "?late=0.3");
	t.size = 40;
	curl_easy_setopt(t.easy, CURLOPT_POST, 1L);
	curl_easy_setopt(t.easy, CURLOPT_POSTFIELDSIZE, (long)t.size);
	curl_easy_setopt(t.easy, CURLOPT_READFUNCTION, transfer_read);
	curl_easy_setopt(t.easy, CURLOPT_READDATA, &t);
	curl_easy_setopt(t.easy, CURLOPT_SOCKOPTFUNCTION, catch_socket);
	loop_add(&loop, &t);
	loop_drive(&loop);
	printf("caught=%d\n", caught.fd >= 0);
	loop_run(&loop);
	loop_remove(&loop, &t);
	finish(&t);
}

static void caught_socket(void)
{
	struct transfer t;
	int slow = 0;

	transfer_post(&t, "caught", url, "?late=0.3");
	curl_easy_setopt(t.easy, CURLOPT_SOCKOPTFUNCTION, catch_socket);
	loop_add(&loop, &t);
	if (loop.kind != LOOP_EPOLL)
		loop_perform(&loop);
	while (loop.running != 0 && slow < 20) {
		slow += caught.fd >= 0 && loop.turns > 5 && poll(&caught, 1, 3000) == 0;
		loop_turn(&loop, 1);
	}
	printf("caught=%d slow=%d\n", caught.fd >= 0, slow);
	loop_remove(&loop, &t);
	finish(&t);
}

/* A write of this multi that only this thread drives, being served in place, and the same one by
 * curl_easy_perform. */
static void own_join(void)
{
	struct transfer t, same;
	double start;

	transfer_post(&t, "joined", url, "?late=1&times=1");
	curl_easy_setopt(t.easy, CURLOPT_SOCKOPTFUNCTION, catch_socket);
	loop_add(&loop, &t);
	for (int i = 0; i < 5; i++)
		loop_turn(&loop, 20);
	transfer_post(&same, "joined", url, "?late=1&times=1");
	start = now_ms();
	same.code = curl_easy_perform(same.easy);
	printf("took %s\n", now_ms() - start < 500 ? "no time" : "long");
	finish(&same);
	loop_run(&loop);
	loop_remove(&loop, &t);
	finish(&t);
}

/* The same, where the write is the courier's: it goes on by itself. */
static void courier_join(void)
{
	struct transfer t, same;

	transfer_post(&t, "joined", url, "?late=0.6&times=1");
	loop_add(&loop, &t);
	for (int i = 0; i < 5; i++)
		loop_turn(&loop, 20);
	transfer_post(&same, "joined", url, "?late=0.6&times=1");
	same.code = curl_easy_perform(same.easy);
	finish(&same);
	loop_run(&loop);
	loop_remove(&loop, &t);
	finish(&t);
}

/* Both of one multi. */
static void twins(void)
{
	struct transfer t[2];

	for (int i = 0; i < 2; i++) {
		transfer_post(&t[i], "twin", url, "?late=0.4&times=1");
		loop_add(&loop, &t[i]);
	}
	loop.silent = true;
	loop_run(&loop);
	for (int i = 0; i < 2; i++) {
		loop_remove(&loop, &t[i]);
		finish(&t[i]);
	}
}

/* Removed before anything could leave; the program then waits for what the server may see. */
static void withdrawn(void)
{
	struct transfer t;

	transfer_post(&t, "withdrawn", url, "");
	curl_easy_setopt(t.easy, CURLOPT_SSL_VERIFYPEER, 0L);
	loop_add(&loop, &t);
	for (int i = 0; i < 5; i++)
		loop_turn(&loop, 20);
	loop_remove(&loop, &t);
	finish(&t);
	sleep(1);
}

static void timed(void)
{
	struct transfer t;

	transfer_post(&t, "timed", url, "?late=1&times=1");
	curl_easy_setopt(t.easy, CURLOPT_TIMEOUT_MS, 300L);
	run_alone(&t);
	transfer_report(&t);
	curl_easy_setopt(t.easy, CURLOPT_TIMEOUT_MS, 5000L);
	t.body[0] = t.error[0] = 0;
	run_alone(&t);
	finish(&t);
}

/* Nothing comes for longer than the program bears. */
static void low_speed(void)
{
	struct transfer t;

	transfer_post(&t, "slow", url, "?late=6");
	curl_easy_setopt(t.easy, CURLOPT_LOW_SPEED_LIMIT, 1000L);
	curl_easy_setopt(t.easy, CURLOPT_LOW_SPEED_TIME, 1L);
	run_alone(&t);
	finish(&t);
}

/* A connection that is refused, and a name that is none. */
static void unreachable(void)
{
	struct transfer t[2];

	for (int i = 0; i < 2; i++) {
		transfer_post(
		        &t[i], i ? "nowhere" : "refused",
		        i ? "http://no.such.host.invalid/orders" : "http://127.0.0.1:1/orders", "");
		loop_add(&loop, &t[i]);
	}
	loop.silent = true; /* which of them ends first is anybody's guess */
	loop_run(&loop);
	for (int i = 0; i < 2; i++) {
		loop_remove(&loop, &t[i]);
		finish(&t[i]);
	}
}

/* Deadlines that end while the connection is still being made. */
static void hanging(void)
{
	struct transfer t[2];

	for (int i = 0; i < 2; i++) {
		transfer_post(&t[i], i ? "timeout" : "connect-timeout", url, "");
		curl_easy_setopt(t[i].easy, i ? CURLOPT_TIMEOUT_MS : CURLOPT_CONNECTTIMEOUT_MS,
		                 i ? 600L : 300L);
		loop_add(&loop, &t[i]);
	}
	loop_run(&loop);
	for (int i = 0; i < 2; i++) {
		loop_remove(&loop, &t[i]);
		finish(&t[i]);
	}
}

/* A child is born and ends while the write is under way. */
static void forked(void)
{
	struct transfer t;
	int status = -1;
	pid_t child;

	transfer_post(&t, "parent", url, "?late=0.6");
	loop_add(&loop, &t);
	for (int i = 0; i < 4; i++)
		loop_turn(&loop, 50);
	child = fork();
	if (child == 0)
		_exit(0);
	waitpid(child, &status, 0);
	printf("child %d\n", status);
	loop_run(&loop);
	loop_remove(&loop, &t);
	finish(&t);
}

/* The program ends in the middle of it and cleans up nothing. */
static void left_behind(void)
{
	struct transfer t;

	transfer_post(&t, "left", url, "?late=1&times=1");
	loop_add(&loop, &t);
	for (int i = 0; i < 5; i++)
		loop_turn(&loop, 50);
	exit(0);
}

static const struct loop_case cases[] = {
        {"caught-socket", caught_socket},
        {"caught-read", caught_read},
        {"own-join", own_join},
        {"courier-join", courier_join},
        {"twins", twins},
        {"withdrawn", withdrawn},
        {"timed", timed},
        {"low-speed", low_speed},
        {"unreachable", unreachable},
        {"hanging", hanging},
        {"forked", forked},
        {"left-behind", left_behind},
};

int main(int argc, char **argv)
{
	return loop_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
