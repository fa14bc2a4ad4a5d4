/* See tried.h. The server is a child that answers every request with an empty object and counts the
 * writes and those that carry an Idempotency-Key; the policy names every write to it, and the
 * ledger is one in memory, so nothing is left behind. What arrived with a key was seen by sendonce,
 * what arrived without one was not: there is no other way for that header to get there. */
#include "cli/tried.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

enum { HEAD_MAX = 65536, ARGS_MAX = 64 };

/* Shared with the server. */
struct seen {
	volatile int writes, with_key;
};

/* --- the server --- */

static bool has_key(const char *head)
{
	for (const char *line = strchr(head, '\n'); line; line = strchr(line + 1, '\n'))
		if (strncasecmp(line + 1, "Idempotency-Key:", 16) == 0)
			return true;
	return false;
}

static bool is_write(const char *head)
{
	static const char *const reads[] = {"GET ", "HEAD ", "OPTIONS ", "TRACE ", NULL};

	for (int i = 0; reads[i]; i++)
		if (strncmp(head, reads[i], strlen(reads[i])) == 0)
			return false;
	return true;
}

static size_t body_length(const char *head)
{
	const char *at = strcasestr(head, "\nContent-Length:");

	return at ? strtoul(at + 16, NULL, 10) : 0;
}

/* The request's head, terminated; how much of its body came with it. 0: there is none. */
static size_t read_head(int fd, char *head, size_t *extra)
{
	size_t n = 0;
	ssize_t got;
	char *end;

	while (n < HEAD_MAX - 1 && (got = read(fd, head + n, HEAD_MAX - 1 - n)) > 0) {
		n += (size_t)got;
		head[n] = '\0';
		end = strstr(head, "\r\n\r\n");
		if (end) {
			*extra = n - (size_t)(end + 4 - head);
			return n;
		}
	}
	return 0;
}

static void answer(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) < 0)
		return; /* the program is gone */
}

static void serve_one(int fd, struct seen *seen)
{
	static char head[HEAD_MAX], rest[4096];
	size_t extra = 0, left;
	ssize_t got;

	if (read_head(fd, head, &extra) == 0)
		return;
	if (is_write(head)) {
		seen->writes++;
		seen->with_key += has_key(head);
	}
	if (strcasestr(head, "\nExpect: 100-continue"))
		answer(fd, "HTTP/1.1 100 Continue\r\n\r\n");
	for (left = body_length(head); left > extra; left -= (size_t)got) {
		got = read(fd, rest, sizeof(rest));
		if (got <= 0 || (size_t)got > left - extra)
			break;
	}
	answer(fd, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
	           "Connection: close\r\n\r\n{}");
}

static int listen_here(unsigned *port)
{
	struct sockaddr_in here = {.sin_family = AF_INET,
	                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(here);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&here, n) != 0 || listen(fd, 16) != 0 ||
	    getsockname(fd, (struct sockaddr *)&here, &n) != 0)
		return -1;
	*port = ntohs(here.sin_port);
	return fd;
}

static pid_t start_server(int fd, struct seen *seen)
{
	pid_t pid = fork();
	int one;

	if (pid != 0)
		return pid;
	signal(SIGPIPE, SIG_IGN);
	for (;;) {
		one = accept(fd, NULL, NULL);
		if (one < 0)
			continue;
		serve_one(one, seen);
		close(one);
	}
}

/* --- recipes --- */

static const struct {
	const char *program;
	const char *argument[8];
} recipes[] = {
        {"curl", {"-q", "-sS", "-o", "/dev/null", "-d", "a=1", "{url}"}},
        {"php",
         {"-r", "$c=curl_init('{url}'); curl_setopt($c,CURLOPT_POSTFIELDS,'a=1'); "
                "curl_setopt($c,CURLOPT_RETURNTRANSFER,1); curl_exec($c);"}},
        {"python3",
         {"-c",
          "import pycurl\nc=pycurl.Curl()\nc.setopt(c.URL,'{url}')\n"
          "c.setopt(c.POSTFIELDS,'a=1')\nc.setopt(c.WRITEFUNCTION,lambda b:None)\nc.perform()"}},
        {"ruby",
         {"-e", "require 'ethon'; e=Ethon::Easy.new; e.http_request('{url}',:post,body:'a=1'); "
                "e.perform"}},
        {"perl",
         {"-e", "use WWW::Curl::Easy; my $c=WWW::Curl::Easy->new; "
                "$c->setopt(CURLOPT_URL,'{url}'); $c->setopt(CURLOPT_POSTFIELDS,'a=1'); "
                "my $b; $c->setopt(CURLOPT_WRITEDATA,\\$b); $c->perform;"}},
        {"wget", {"-q", "-O", "/dev/null", "--post-data=a=1", "{url}"}},
        {"busybox", {"wget", "-q", "-O", "/dev/null", "--post-data=a=1", "{url}"}},
        {"git", {"ls-remote", "{url}"}},
};

static int recipe_of(const char *command)
{
	const char *slash = strrchr(command, '/'), *name = slash ? slash + 1 : command;

	for (int i = 0; i < (int)(sizeof(recipes) / sizeof(*recipes)); i++)
		if (strncmp(name, recipes[i].program, strlen(recipes[i].program)) == 0)
			return i;
	return -1;
}

static char *with_url(const char *text, const char *url)
{
	const char *mark = strstr(text, "{url}");
	char *out = NULL;

	if (!mark)
		return strdup(text);
	if (asprintf(&out, "%.*s%s%s", (int)(mark - text), text, url, mark + 5) < 0)
		return NULL;
	return out;
}

/* The command with its arguments; null-terminated, owned. False: too many, or no memory. */
static bool make_arguments(char **argv, const char *url, char **out)
{
	int recipe = argv[1] ? -1 : recipe_of(argv[0]), n = 0;

	out[n++] = strdup(argv[0]);
	for (int i = 1; recipe < 0 && argv[i] && n < ARGS_MAX - 1; i++)
		out[n++] = with_url(argv[i], url);
	for (int i = 0; recipe >= 0 && i < 8 && recipes[recipe].argument[i]; i++)
		out[n++] = with_url(recipes[recipe].argument[i], url);
	out[n] = NULL;
	for (int i = 0; i < n; i++)
		if (!out[i])
			return false;
	return true;
}

static void free_arguments(char **list)
{
	for (int i = 0; i < ARGS_MAX && list[i]; i++)
		free(list[i]);
}

/* --- the program --- */

/* Names the server's writes; in the environment of the program alone. */
static bool write_policy(const char *folder, unsigned port)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/policy.yaml", folder);
	f = fopen(path, "we");
	if (!f)
		return false;
	fprintf(f,
	        "version: 1\nscope: doctor\nledger: {path: memory}\nevents: %s/events\nwrites:\n"
	        "  - operation: doctor\n    match: POST,PUT,PATCH,DELETE http://127.0.0.1:%u/**\n",
	        folder, port);
	return fclose(f) == 0 && setenv("SENDONCE_POLICY", path, 1) == 0;
}

static int run_program(char **argv, const char *folder, unsigned port)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		unsetenv("SENDONCE_MODE");
		unsetenv("SENDONCE_LEDGER");
		unsetenv("SENDONCE_DISABLE");
		dup2(STDERR_FILENO, STDOUT_FILENO);
		if (write_policy(folder, port) && cli_set_preload("doctor") == 0)
			execvp(argv[0], argv);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return pid > 0 ? status : -1;
}

static void judge(const struct seen *seen, int status, struct diagnosis *out)
{
	const char *ended = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "" : " (and it failed)";

	out->sight = seen->writes == 0                ? SIGHT_NOT
	             : seen->with_key == seen->writes ? SIGHT_PROTECTED
	             : seen->with_key                 ? SIGHT_PARTLY
	                                              : SIGHT_NOT;
	snprintf(out->why, sizeof(out->why), "run: of %d writes that arrived %d carried a key%s",
	         seen->writes, seen->with_key, ended);
	snprintf(out->advice, sizeof(out->advice), "%s",
	         seen->writes ? "" : "give it arguments that make it write, with {url} in them");
}

static void clean(const char *folder)
{
	static const char *const files[] = {"policy.yaml", "events"};
	char path[128];

	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		unlink(path);
	}
	rmdir(folder);
}

static int try_against(int fd, unsigned port, char **argv, struct seen *seen, struct diagnosis *out)
{
	char folder[] = "/tmp/sendonce-doctor-XXXXXX", url[64];
	char *arguments[ARGS_MAX] = {NULL};
	int status = -1;
	pid_t server;

	if (!mkdtemp(folder))
		return cli_fail(CLI_CANNOT, "doctor", "%s: %s", folder, strerror(errno));
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/doctor", port);
	server = start_server(fd, seen);
	if (server > 0 && make_arguments(argv, url, arguments))
		status = run_program(arguments, folder, port);
	if (server > 0) {
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
	free_arguments(arguments);
	clean(folder);
	if (status < 0)
		return cli_fail(CLI_CANNOT, "doctor", "%s could not be run", argv[0]);
	judge(seen, status, out);
	return 0;
}

int cli_try(char **argv, struct diagnosis *out)
{
	struct seen *seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE,
	                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned port = 0;
	int fd, rc;

	if (seen == MAP_FAILED)
		return cli_fail(CLI_CANNOT, "doctor", "%s", strerror(errno));
	fd = listen_here(&port);
	if (fd < 0)
		rc = cli_fail(CLI_CANNOT, "doctor", "no local server: %s", strerror(errno));
	else
		rc = try_against(fd, port, argv, seen, out);
	if (fd >= 0)
		close(fd);
	munmap(seen, sizeof(*seen));
	return rc;
}
