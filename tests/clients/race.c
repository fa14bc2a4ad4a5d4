/* Many processes, each of many threads, make the same write at the same moment, round after round.
 *
 *     race URL PROCESSES THREADS ROUNDS
 *
 * Everybody meets at a barrier in shared memory, sends {"round":N}, and notes what came back there.
 * The parent compares and prints one line a round: how many got 201, how many of these the first
 * one's answer. It makes no libcurl call itself, so that every child starts clean. */
#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER = 120 };

struct result {
	long status;
	int rc;
	char answer[ANSWER];
};

struct shared {
	pthread_barrier_t barrier;
	struct result result[]; /* [round][process * threads + thread] */
};

static struct {
	const char *url;
	int processes, threads, rounds;
	struct shared *shared;
} race;

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct result *r = ctx;
	size_t have = strlen(r->answer);
	size_t take = size * n < ANSWER - 1 - have ? size * n : ANSWER - 1 - have;
	memcpy(r->answer + have, data, take);
	return size * n;
}

static void one_round(CURL *curl, int round, int who)
{
	char body[64];
	struct result *r = &race.shared->result[round * race.processes * race.threads + who];
	snprintf(body, sizeof(body), "{\"round\":%d}", round);
	curl_easy_setopt(curl, CURLOPT_COPYPOSTFIELDS, body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, r);
	pthread_barrier_wait(&race.shared->barrier);
	r->rc = (int)curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &r->status);
}

static void *one_thread(void *ctx)
{
	int who = *(int *)ctx;
	CURL *curl = curl_easy_init();
	curl_easy_setopt(curl, CURLOPT_URL, race.url);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 60000L);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	for (int round = 0; round < race.rounds; round++)
		one_round(curl, round, who);
	curl_easy_cleanup(curl);
	return NULL;
}

static void one_process(int process)
{
	pthread_t ids[64];
	int who[64];
	curl_global_init(CURL_GLOBAL_ALL);
	for (int i = 0; i < race.threads; i++) {
		who[i] = process * race.threads + i;
		if (pthread_create(&ids[i], NULL, one_thread, &who[i]) != 0)
			exit(70);
	}
	for (int i = 0; i < race.threads; i++)
		pthread_join(ids[i], NULL);
	exit(0);
}

static void print_round(int round)
{
	int all = race.processes * race.threads, created = 0, equal = 0;
	const struct result *r = &race.shared->result[round * all];
	for (int i = 0; i < all; i++) {
		created += r[i].rc == 0 && r[i].status == 201;
		equal += strcmp(r[i].answer, r[0].answer) == 0;
	}
	printf("round=%d created=%d equal=%d answer=%s\n", round, created, equal, r[0].answer);
	for (int i = 0; i < all; i++)
		if (r[i].rc != 0 || r[i].status != 201)
			printf("# who=%d rc=%d status=%ld answer=%s\n", i, r[i].rc, r[i].status,
			       r[i].answer);
}

static int make_shared(void)
{
	size_t results = (size_t)(race.processes * race.threads * race.rounds);
	size_t size = sizeof(struct shared) + results * sizeof(struct result);
	pthread_barrierattr_t attr;
	race.shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (race.shared == MAP_FAILED)
		return -1;
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	return pthread_barrier_init(&race.shared->barrier, &attr,
	                            (unsigned)(race.processes * race.threads));
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 64;
	race.url = argv[1];
	race.processes = atoi(argv[2]);
	race.threads = atoi(argv[3]);
	race.rounds = atoi(argv[4]);
	if (race.threads < 1 || race.threads > 64 || race.processes < 1 || make_shared() != 0)
		return 64;
	for (int i = 0; i < race.processes; i++)
		if (fork() == 0)
			one_process(i);
	int failed = 0, status;
	while (wait(&status) > 0)
		failed += status != 0;
	for (int round = 0; round < race.rounds; round++)
		print_round(round);
	return failed ? 1 : 0;
}
