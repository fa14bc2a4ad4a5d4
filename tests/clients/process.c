/* What a process can do to itself around a write: fork, exec, close everything, drop its user, run
 * on a small stack, live under limits and filters, end in every way there is.
 *
 *     process MODE URL [N]
 *
 * Each write is printed as `CODE STATUS BODY`, so that a run under the preload can be compared with
 * a native one. */
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static const char *url, *argument;

struct text {
	char data[4096];
	size_t n;
};

static size_t keep(char *data, size_t size, size_t n, void *ctx)
{
	struct text *t = ctx;
	size_t room = sizeof(t->data) - 1 - t->n, take = size * n < room ? size * n : room;

	memcpy(t->data + t->n, data, take);
	t->n += take;
	return size * n;
}

/* POST `body`; the handle is made and cleaned up. `timeout_ms` 0: none. */
static void post(const char *body, const char *query, long timeout_ms)
{
	struct text answer = {.n = 0};
	CURL *curl = curl_easy_init();
	char whole[1024];
	long status = 0;
	CURLcode code;

	snprintf(whole, sizeof(whole), "%s%s", url, query);
	curl_easy_setopt(curl, CURLOPT_URL, whole);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	if (getenv("SSL_CERT_FILE"))
		curl_easy_setopt(curl, CURLOPT_CAINFO, getenv("SSL_CERT_FILE"));
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
	code = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	answer.data[answer.n] = '\0';
	for (char *p = answer.data; (p = strchr(p, '\n')) != NULL;)
		*p = ' ';
	printf("%d %ld %s\n", (int)code, status, answer.data);
	fflush(stdout);
	curl_easy_cleanup(curl);
}

static void *post_late(void *ctx)
{
	post(ctx, "?late=1", 0);
	return NULL;
}

/* A write is on its way in another thread when this returns. */
static pthread_t start_late(char *body)
{
	pthread_t thread;

	pthread_create(&thread, NULL, post_late, body);
	usleep(300 * 1000);
	return thread;
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* --- children --- */

/* In flight in a thread of the parent; the child writes something else. */
static int fork_in_flight(void)
{
	pthread_t thread = start_late("n=parent");
	pid_t pid = fork();

	if (pid == 0) {
		post("n=child", "", 0);
		_exit(0);
	}
	if (wait_for(pid) != 0)
		return 1;
	pthread_join(thread, NULL);
	post("n=after", "", 0);
	return 0;
}

/* Prefork: libcurl is used before, and then by four children at once. */
static int prefork(void)
{
	pid_t pid[4];

	post("n=master", "", 0);
	for (int i = 0; i < 4; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			char body[32];

			for (int k = 0; k < 5; k++) {
				snprintf(body, sizeof(body), "n=%d-%d", i, k);
				post(body, "", 0);
			}
			_exit(0);
		}
	}
	for (int i = 0; i < 4; i++)
		if (wait_for(pid[i]) != 0)
			return 1;
	return 0;
}

static int vfork_and_spawn(void)
{
	pthread_t thread = start_late("n=parent");
	char *const argv[] = {"true", NULL};
	pid_t pid;

	for (int i = 0; i < 100; i++) {
		pid = vfork();
		if (pid == 0) {
			execv("/bin/true", argv);
			_exit(9);
		}
		if (wait_for(pid) != 0)
			return 1;
		if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) != 0 ||
		    wait_for(pid) != 0)
			return 2;
	}
	pthread_join(thread, NULL);
	return 0;
}

static int exec_in_flight(void)
{
	char *const argv[] = {"true", NULL};

	start_late("n=1");
	execv("/bin/true", argv);
	return 1;
}

static int become_daemon(void)
{
	post("n=before", "", 0);
	if (fork() > 0)
		_exit(0);
	setsid();
	if (chdir("/") != 0)
		return 1;
	post("n=after", "", 0);
	return 0;
}

/* --- descriptors, users, roots --- */

static int close_all(void)
{
	post("n=1", "", 0);
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	post("n=1", "", 0);
	post("n=2", "", 0);
	return 0;
}

/* As daemons do: started as root, the first write before the drop. */
static int drop_user(void)
{
	uid_t user = (uid_t)atoi(argument);

	post("n=1", "", 0);
	if (setgroups(0, NULL) != 0 || setgid(user) != 0 || setuid(user) != 0)
		return 1;
	post("n=1", "", 0);
	post("n=2", "", 0);
	return 0;
}

static int drop_first(void)
{
	uid_t user = (uid_t)atoi(argument);

	if (setgroups(0, NULL) != 0 || setgid(user) != 0 || setuid(user) != 0)
		return 1;
	post("n=1", "", 0);
	return 0;
}

static int change_root(void)
{
	post("n=1", "", 0);
	if (chroot(argument) != 0 || chdir("/") != 0)
		return 1;
	post("n=1", "", 0);
	post("n=2", "", 0);
	return 0;
}

/* --- limits --- */

static void *post_once(void *ctx)
{
	post(ctx, "", 0);
	return NULL;
}

/* On a stack of `argument` kilobytes, where everything is done for the first time. */
static int cold_stack(void)
{
	static char memory[1 << 20] __attribute__((aligned(4096)));
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	if (pthread_attr_setstack(&attr, memory, (size_t)atoi(argument) * 1024) != 0 ||
	    pthread_create(&thread, &attr, post_once, "n=1") != 0)
		return 1;
	pthread_join(thread, NULL);
	return 0;
}

static int small_stack(void)
{
	post("n=warm", "", 0);
	return cold_stack();
}

static int limit_memory(void)
{
	struct rlimit limit = {(rlim_t)atoi(argument) << 20, (rlim_t)atoi(argument) << 20};

	if (setrlimit(RLIMIT_AS, &limit) != 0)
		return 1;
	post("n=1", "", 0);
	return 0;
}

static int many_descriptors(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	post("n=1", "", 0);
	post("n=2", "", 0);
	return 0;
}

/* What the multi of libcurl 8.5 and of 8.14 wakes itself by; the argument may name one. */
static int wakes_by(void)
{
	if (strcmp(argument, "pipe2") == 0)
		return SYS_pipe2;
	return strcmp(argument, "eventfd2") == 0 ? SYS_eventfd2 : -1;
}

/* Any other call ends the process. */
static int strict_filter(void)
{
	/* what the C library and libcurl call here by themselves, and the last line: what we add
	 * where the ledger is there already */
	static const int allowed[] = {
	        SYS_access,         SYS_brk,           SYS_close,
	        SYS_connect,        SYS_execve,        SYS_fcntl,
	        SYS_futex,          SYS_getpeername,   SYS_getrandom,
	        SYS_getsockname,    SYS_getsockopt,    SYS_ioctl,
	        SYS_mmap,           SYS_mprotect,      SYS_munmap,
	        SYS_newfstatat,     SYS_openat,        SYS_poll,
	        SYS_pread64,        SYS_prlimit64,     SYS_read,
	        SYS_recvfrom,       SYS_rseq,          SYS_rt_sigaction,
	        SYS_rt_sigprocmask, SYS_sendto,        SYS_set_robust_list,
	        SYS_setsockopt,     SYS_socket,        SYS_socketpair,
	        SYS_sysinfo,        SYS_write,         SYS_lseek,
	        SYS_exit_group,     SYS_fstatfs,       SYS_geteuid,
	        SYS_getpid,         SYS_madvise,       SYS_msync,
	        SYS_readlink,       SYS_rt_sigpending,
	};
	enum { COUNT = sizeof(allowed) / sizeof(*allowed) };
	static struct sock_filter code[COUNT * 2 + 4];
	struct sock_fprog filter = {.filter = code};
	unsigned short n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
	                                         offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < COUNT; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
		                                         (unsigned)allowed[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	code[n++] =
	        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)wakes_by(), 0, 1);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	filter.len = n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
		return 1;
	post("n=1", "", 0);
	post("n=1", "", 0);
	return 0;
}

/* --- ends --- */

static int end(void)
{
	start_late("n=1");
	if (strcmp(argument, "exit") == 0)
		exit(3);
	if (strcmp(argument, "quick_exit") == 0)
		quick_exit(3);
	if (strcmp(argument, "_exit") == 0)
		_exit(3);
	if (strcmp(argument, "abort") == 0)
		abort();
	if (strcmp(argument, "term") == 0)
		raise(SIGTERM);
	return 3; /* from main */
}

/* The program gave up on its write, and ends. */
static int timed_out(void)
{
	post("n=1", "?late=2", 300);
	return 4;
}

static void note(int signal)
{
	(void)signal;
}

/* Its handlers only note the signal. */
static int timed_out_with_handlers(void)
{
	struct sigaction act = {.sa_handler = note};

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	return timed_out();
}

static int once_late(void)
{
	post("n=1", "?late=2", 0);
	return 0;
}

static int timed_out_twice(void)
{
	post("n=1", "?late=2", 300);
	post("n=2", "?late=2", 300);
	return 4;
}

/* Its handler for SIGTERM and SIGINT stays in place, its mask and its pending signals too. */
static int signal_state(void)
{
	struct sigaction before[65], after;
	sigset_t mask, now;

	for (int i = 1; i < 65; i++)
		sigaction(i, NULL, &before[i]);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	errno = 0;
	post("n=1", "", 0);
	post("n=1", "", 0);
	for (int i = 1; i < 65; i++) {
		if (sigaction(i, NULL, &after) == 0 && after.sa_handler != before[i].sa_handler)
			printf("signal %d has another handler\n", i);
	}
	sigprocmask(SIG_SETMASK, NULL, &now);
	if (memcmp(&mask, &now, sizeof(long)) != 0)
		puts("another mask");
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} modes[] = {
        {"fork", fork_in_flight},
        {"prefork", prefork},
        {"spawn", vfork_and_spawn},
        {"exec", exec_in_flight},
        {"daemon", become_daemon},
        {"close", close_all},
        {"drop", drop_user},
        {"drop-first", drop_first},
        {"chroot", change_root},
        {"stack", small_stack},
        {"cold-stack", cold_stack},
        {"memory", limit_memory},
        {"descriptors", many_descriptors},
        {"filter", strict_filter},
        {"end", end},
        {"timeout", timed_out},
        {"timeouts", timed_out_twice},
        {"one", once_late},
        {"handlers", timed_out_with_handlers},
        {"signals", signal_state},
};

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	url = argv[2];
	argument = argc > 3 ? argv[3] : "";
	curl_global_init(CURL_GLOBAL_ALL);
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (strcmp(argv[1], modes[i].name) == 0)
			return modes[i].run();
	return 2;
}
