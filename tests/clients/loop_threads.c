/* Threads with a curl_multi each, that make writes of their own and one that all of them make.
 *
 *     loop_threads URL THREADS WRITES ROUNDS
 *
 * In every round each thread starts WRITES writes that nobody else makes and one that is the same
 * for all, half of the threads by epoll, half by poll. Some transfers are taken out midway. Prints
 * a line a round: how many got 201, and how many answers to the common write were the same. */
#include "loops.h"

#include <pthread.h>

enum { THREADS_MAX = 32, WRITES_MAX = 64 };

static struct worker {
	pthread_t thread;
	int number, created;
	char common[64];
} workers[THREADS_MAX];
static const char *base;
static int threads, writes, rounds;
static pthread_barrier_t barrier;

static void start(struct loop *l, struct transfer *t, int who, int round, int i)
{
	char body[96];

	transfer_post(t, "w", base, i == 0 ? "?late=0.1" : i % 8 == 7 ? "?late=1" : "");
	snprintf(body, sizeof(body), "{\"round\":%d,\"by\":%d,\"write\":%d}", round,
	         i == 0 ? -1 : who, i);
	curl_easy_setopt(t->easy, CURLOPT_COPYPOSTFIELDS, body);
	loop_add(l, t);
}

/* Every eighth is taken out while it is under way, as soon as all others ended. */
static void one_round(struct worker *w, int round)
{
	struct transfer *t = calloc((size_t)writes + 1, sizeof(*t));
	struct loop l;
	int slow = 0;

	loop_open(&l, w->number % 2 ? "poll" : "epoll");
	l.silent = true;
	for (int i = 0; i <= writes; i++) {
		slow += i > 0 && i % 8 == 7;
		start(&l, &t[i], w->number, round, i);
	}
	if (l.kind != LOOP_EPOLL)
		loop_perform(&l);
	do
		loop_turn(&l, 200);
	while (l.running > slow);
	w->created = 0;
	for (int i = 0; i <= writes; i++) {
		w->created += t[i].ended && t[i].code == CURLE_OK;
		loop_remove(&l, &t[i]);
	}
	snprintf(w->common, sizeof(w->common), "%.60s", t[0].body);
	for (int i = 0; i <= writes; i++)
		transfer_close(&t[i]);
	loop_close(&l);
	free(t);
}

static void report(int round)
{
	int created = 0, equal = 0;

	for (int i = 0; i < threads; i++) {
		created += workers[i].created;
		equal += strcmp(workers[i].common, workers[0].common) == 0;
	}
	printf("round=%d created=%d equal=%d common=%s\n", round, created, equal,
	       workers[0].common);
}

static void *work(void *ctx)
{
	struct worker *w = ctx;

	for (int round = 0; round < rounds; round++) {
		pthread_barrier_wait(&barrier);
		one_round(w, round);
		if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
			report(round);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 64;
	base = argv[1];
	threads = atoi(argv[2]);
	writes = atoi(argv[3]);
	rounds = atoi(argv[4]);
	if (threads < 1 || threads > THREADS_MAX || writes > WRITES_MAX)
		return 64;
	curl_global_init(CURL_GLOBAL_ALL);
	pthread_barrier_init(&barrier, NULL, (unsigned)threads);
	for (int i = 0; i < threads; i++) {
		workers[i].number = i;
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (int i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	return 0;
}
