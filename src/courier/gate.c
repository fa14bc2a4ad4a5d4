/* The callbacks of a courier handle: the gate, and what comes back.
 *
 * CURLOPT_PREREQFUNCTION runs once per wire send, right before its bytes leave; that is where the
 * plan's gate is asked. Whether a further send follows an answer is read from the header lines,
 * never from getinfo, which still reports the previous status. A header block is CONNECT's, not the
 * origin's, when a socket was opened since the last pass: a tunnel is set up between the two, and
 * an answer of the origin can only come after a pass.
 *
 * All of it runs on the thread that drives, inside curl_multi_perform. */
#include "courier/inside.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *gate_scheme(const char *url, char *out, size_t room)
{
	const char *mark = strstr(url, "://");
	size_t n = mark ? (size_t)(mark - url) : 0;

	if (!mark || n >= room || memchr(url, '/', n) || memchr(url, '?', n)) {
		memcpy(out, "http", 5); /* libcurl's guess for a URL without a scheme */
		return url;
	}
	memcpy(out, url, n);
	out[n] = '\0';
	return mark + 3;
}

/* False: no host can be read from it. */
bool gate_url_authority(const char *url, struct authority *out)
{
	const char *p = gate_scheme(url, out->scheme, sizeof out->scheme);
	const char *end = p + strcspn(p, "/?#"), *host = p, *port;
	size_t n;

	for (const char *c = p; c < end; c++)
		host = *c == '@' ? c + 1 : host;
	port = host < end && *host == '[' ? memchr(host, ']', (size_t)(end - host)) : host;
	port = port ? memchr(port, ':', (size_t)(end - port)) : NULL;
	n = (size_t)((port ? port : end) - host);
	if (!n || n >= sizeof out->host)
		return false;
	memcpy(out->host, host, n);
	out->host[n] = '\0';
	out->port = port ? strtol(port + 1, NULL, 10) : 0;
	if (!out->port)
		out->port = strcasecmp(out->scheme, "https") ? 80 : 443;
	return true;
}

static bool gate_same_authority(struct attempt *a, const char *url)
{
	struct authority now;

	if (a->passes == 1 || !url || !a->first_url)
		return true;
	if (strcmp(url, a->first_url) == 0)
		return true;
	if (!gate_url_authority(url, &now))
		return false;
	return !strcasecmp(now.scheme, a->first.scheme) && !strcasecmp(now.host, a->first.host) &&
	       now.port == a->first.port;
}

/* A URL's own port counts only where CURLOPT_PORT does not replace it, and that holds for the first
 * request alone: `first.port` is set by the builder when the program set one. */
static void gate_note_first(struct attempt *a, const char *url)
{
	long port = a->first.port;

	if (a->passes != 1 || !url)
		return;
	a->first_url = strdup(url);
	if (!gate_url_authority(url, &a->first))
		a->first.host[0] = '\0';
	if (port)
		a->first.port = port;
}

static int gate_ask(struct attempt *a, const char *url)
{
	__typeof__(&curl_easy_setopt) set = CURL_FN(a->courier->fl, easy_setopt);
	struct gate_pass pass;

	a->passes++;
	gate_note_first(a, url);
	pass.number = a->passes;
	pass.after_answer = a->answered;
	pass.effective_url = url;
	pass.same_authority = gate_same_authority(a, url);
	a->answered = false;
	a->opening = false;
	a->in_block = false;
	a->block_done = false;
	if (a->headers != a->bare)
		set(a->easy, CURLOPT_HTTPHEADER, pass.same_authority ? a->headers : a->bare);
	if (a->calls.gate(a->ctx, &pass))
		return -1;
	attempt_tell(a, RESOLVED | CONNECTED | GATED);
	a->stale = true;
	return 0;
}

static int gate_prereq(void *data, char *ip, char *local_ip, int port, int local_port)
{
	struct attempt *a = data;
	char *url = NULL;

	(void)ip, (void)local_ip, (void)port, (void)local_port;
	attempt_tell(a, RESOLVED | CONNECTED);
	CURL_FN(a->courier->fl, easy_getinfo)(a->easy, CURLINFO_EFFECTIVE_URL, &url);
	return gate_ask(a, url) ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

int gate_before_add(struct attempt *a)
{
	return a->old_gate ? gate_ask(a, a->url) : 0;
}

static long gate_status_of(const char *line, size_t n)
{
	const char *space = memchr(line, ' ', n);
	long status = 0;

	for (const char *c = space ? space + 1 : line + n; c < line + n && *c >= '0' && *c <= '9';
	     c++)
		if (status < 1000)
			status = status * 10 + (*c - '0');
	return status;
}

static void gate_block_end(struct attempt *a)
{
	long s = a->block_status;

	a->in_block = false;
	a->stale = a->stale_head = true;
	if (a->opening || s < 200)
		return;
	a->block_done = true;
	a->status = s;
	if (s / 100 == 3 || s == 401 || s == 407 || s == 417)
		a->answered = true;
}

static void gate_header_line(struct attempt *a, const char *line, size_t n)
{
	bool http = n >= 5 && memcmp(line, "HTTP/", 5) == 0;

	if (http || (!a->in_block && !a->block_done)) {
		/* no PREREQ to count by: a status line after a final answer is the next request's
		 */
		if (a->old_gate && a->block_done && !a->in_block) {
			a->request++;
			a->block_done = false;
		}
		a->in_block = true;
		a->block_status = http ? gate_status_of(line, n) : 200;
	} else if (a->in_block && (line[0] == '\r' || line[0] == '\n')) {
		gate_block_end(a);
	}
}

static size_t gate_header(char *line, size_t size, size_t count, void *data)
{
	struct attempt *a = data;
	size_t n = size * count;
	struct tape_piece p = {.kind = TAPE_HEADER, .data = line, .n = n};

	if (!n)
		return 0;
	gate_header_line(a, line, n);
	p.connect = a->opening;
	p.request = a->old_gate ? a->request : (a->passes ? a->passes - 1 : 0);
	if (tape_add(a->tape, &p))
		return 0;
	attempt_tell(a, 0);
	return n;
}

static size_t gate_body(char *bytes, size_t size, size_t count, void *data)
{
	struct attempt *a = data;
	size_t n = size * count;
	struct tape_piece p = {.kind = TAPE_BODY, .data = bytes, .n = n};

	if (tape_full(a->tape)) {
		/* relaxed: a hint for readers to wake the driver; the driver itself set it */
		atomic_store_explicit(&a->paused, true, memory_order_relaxed);
		return CURL_WRITEFUNC_PAUSE;
	}
	p.request = a->old_gate ? a->request : (a->passes ? a->passes - 1 : 0);
	if (n && tape_add(a->tape, &p))
		return 0;
	a->stale = true;
	attempt_tell(a, 0);
	return n;
}

static int gate_debug(CURL *easy, curl_infotype type, char *bytes, size_t n, void *data)
{
	struct attempt *a = data;
	struct tape_piece p = {.kind = TAPE_DEBUG, .debug = (int)type, .data = bytes, .n = n};

	(void)easy;
	if (a->old_gate && type == CURLINFO_HEADER_OUT)
		a->opening = n > 8 && memcmp(bytes, "CONNECT ", 8) == 0;
	if (a->verbose && !tape_add(a->tape, &p))
		attempt_tell(a, 0);
	return 0;
}

static int gate_progress(void *data, curl_off_t dt, curl_off_t dn, curl_off_t ut, curl_off_t un)
{
	struct attempt *a = data;

	(void)dt, (void)dn, (void)ut;
	/* relaxed: a number for progress callbacks, nothing hangs on it */
	if (atomic_exchange_explicit(&a->uploaded, un, memory_order_relaxed) != un)
		attempt_tell(a, 0);
	return 0;
}

/* A POST that libcurl has to send again after a redirect or a Digest round is rewound by itself,
 * since the body is one block of memory: no read or seek callback is ever used. */
static size_t gate_no_read(char *to, size_t size, size_t count, void *data)
{
	(void)to, (void)size, (void)count, (void)data;
	return 0;
}

static int gate_no_seek(void *data, curl_off_t offset, int origin)
{
	(void)data, (void)offset, (void)origin;
	return CURL_SEEKFUNC_CANTSEEK;
}

/* Not inherited by what the program runs, and never taken for its stdin, stdout or stderr. */
static curl_socket_t gate_open(void *data, curlsocktype purpose, struct curl_sockaddr *addr)
{
	struct attempt *a = data;
	int fd = held_above_stdio(
	        socket(addr->family, addr->socktype | SOCK_CLOEXEC, addr->protocol));

	(void)purpose;
	if (fd >= 0 && !held_add_socket(a->courier, fd)) {
		close(fd);
		fd = -1;
	}
	if (fd < 0)
		return CURL_SOCKET_BAD;
	a->opening = !a->old_gate;
	attempt_tell(a, RESOLVED);
	return fd;
}

static int gate_close(void *data, curl_socket_t fd)
{
	return held_close_socket(data, fd);
}

int gate_install(struct attempt *a)
{
	__typeof__(&curl_easy_setopt) set = CURL_FN(a->courier->fl, easy_setopt);
	CURL *e = a->easy;
	int bad = 0;

	bad |= (int)set(e, CURLOPT_WRITEFUNCTION, gate_body) | (int)set(e, CURLOPT_WRITEDATA, a);
	bad |= (int)set(e, CURLOPT_HEADERFUNCTION, gate_header) |
	       (int)set(e, CURLOPT_HEADERDATA, a);
	bad |= (int)set(e, CURLOPT_READFUNCTION, gate_no_read) | (int)set(e, CURLOPT_READDATA, a);
	bad |= (int)set(e, CURLOPT_SEEKFUNCTION, gate_no_seek) | (int)set(e, CURLOPT_SEEKDATA, a);
	bad |= (int)set(e, CURLOPT_DEBUGFUNCTION, gate_debug) | (int)set(e, CURLOPT_DEBUGDATA, a);
	bad |= (int)set(e, CURLOPT_XFERINFOFUNCTION, gate_progress) |
	       (int)set(e, CURLOPT_XFERINFODATA, a);
	bad |= (int)set(e, CURLOPT_OPENSOCKETFUNCTION, gate_open) |
	       (int)set(e, CURLOPT_OPENSOCKETDATA, a);
	if (!courier_keeps_connections())
		bad |= (int)set(e, CURLOPT_FORBID_REUSE, 1L);
	/* a connection outlives its attempt */
	bad |= (int)set(e, CURLOPT_CLOSESOCKETFUNCTION, gate_close) |
	       (int)set(e, CURLOPT_CLOSESOCKETDATA, a->courier);
	bad |= (int)set(e, CURLOPT_ERRORBUFFER, a->error) | (int)set(e, CURLOPT_NOSIGNAL, 1L);
	if (set(e, CURLOPT_PREREQFUNCTION, gate_prereq) || set(e, CURLOPT_PREREQDATA, a)) {
		a->old_gate = true;
		bad |= (int)set(e, CURLOPT_FRESH_CONNECT, 1L) |
		       (int)set(e, CURLOPT_FORBID_REUSE, 1L);
		bad |= (int)set(e, CURLOPT_VERBOSE,
		                1L); /* its request lines tell CONNECT's blocks */
	}
	return bad ? COURIER_CANNOT : COURIER_OK;
}
