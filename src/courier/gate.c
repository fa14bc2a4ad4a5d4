/* The callbacks of a courier handle: the gate, and what comes back.
 *
 * CURLOPT_PREREQFUNCTION runs once per wire send, right before its bytes leave; that is where the
 * plan's gate is asked (passes.c counts). A header block is CONNECT's, not the origin's, when a
 * socket was opened since the last pass: a tunnel is set up between the two.
 *
 * All of it runs on the thread that drives, inside curl_multi_perform. */
#include "courier/inside.h"

#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

static int gate_ask(struct attempt *a, const char *url)
{
	__typeof__(&curl_easy_setopt) set = CURL_FN(a->courier->fl, easy_setopt);
	struct gate_pass pass;

	passes_begin(&a->passes, url, &pass);
	if (a->lines.headers != a->lines.bare)
		set(a->easy, CURLOPT_HTTPHEADER,
		    pass.same_authority ? a->lines.headers : a->lines.bare);
	if (a->calls.gate(a->ctx, &pass))
		return -1;
	attempt_tell(a, RESOLVED | CONNECTED | GATED);
	a->stale = true;
	attempt_fresh(a);
	return 0;
}

/* Told to readers, who may be behind. */
static void gate_note_request(struct attempt *a, const char *url)
{
	const char *method = NULL;
	struct buf text = {0};
	struct tape_piece p = {.kind = TAPE_REQUEST, .request = passes_answering(&a->passes)};

	CURL_FN(a->courier->fl, easy_getinfo)(a->easy, CURLINFO_EFFECTIVE_METHOD, &method);
	if (!method || !url)
		return;
	buf_add_text(&text, method);
	buf_add_char(&text, ' ');
	buf_add_text(&text, url);
	p.data = text.data;
	p.n = text.n;
	if (!text.failed)
		(void)tape_add(a->tape, &p);
	a->unshown = true;
	attempt_fresh(a);
	buf_free(&text);
}

static int gate_prereq(void *data, char *ip, char *local_ip, int port, int local_port)
{
	struct attempt *a = data;
	char *url = NULL;

	(void)ip, (void)local_ip, (void)port, (void)local_port;
	attempt_tell(a, RESOLVED | CONNECTED);
	CURL_FN(a->courier->fl, easy_getinfo)(a->easy, CURLINFO_EFFECTIVE_URL, &url);
	if (gate_ask(a, url))
		return CURL_PREREQFUNC_ABORT;
	if (a->follows)
		gate_note_request(a, url);
	return CURL_PREREQFUNC_OK;
}

int gate_before_add(struct attempt *a)
{
	return a->passes.by_lines ? gate_ask(a, a->url) : 0;
}

/* A redirect to the other scheme: libcurl would ask the environment again, on this thread. */
static void gate_note_location(struct attempt *a, const char *line, size_t n)
{
	static const char name[] = "Location:";
	enum { NAME = sizeof(name) - 1 };
	struct span value;
	bool secure;

	if (!a->proxy[0] || a->passes.block_status / 100 != 3 || n < NAME ||
	    strncasecmp(line, name, NAME) != 0)
		return;
	value = span_trim((struct span){line + NAME, n - NAME});
	secure = value.n > 8 && strncasecmp(value.p, "https://", 8) == 0;
	if (secure || (value.n > 7 && strncasecmp(value.p, "http://", 7) == 0))
		CURL_FN(a->courier->fl, easy_setopt)(a->easy, CURLOPT_PROXY, a->proxy[secure]);
}

/* A header block has ended. */
static void gate_block(struct attempt *a)
{
	if (!a->lines.tail || a->passes.opening || !passes_drops_body(&a->passes, a->keep_post))
		return;
	lines_cut(&a->lines);
	CURL_FN(a->courier->fl, easy_setopt)(a->easy, CURLOPT_HTTPHEADER, a->lines.headers);
}

static size_t gate_header(char *line, size_t size, size_t count, void *data)
{
	struct attempt *a = data;
	size_t n = size * count;
	struct tape_piece p = {.kind = TAPE_HEADER, .data = line, .n = n};

	bool block;

	if (!n)
		return 0;
	block = passes_header(&a->passes, line, n);
	p.connect = a->passes.opening;
	p.request = passes_answering(&a->passes);
	if (again_holds(a, &p))
		return n;
	if (block)
		gate_block(a);
	else
		gate_note_location(a, line, n);
	if (tape_add(a->tape, &p))
		return 0;
	a->stale = a->stale_head = a->unshown = true;
	attempt_fresh(a);
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
		a->courier->pausing = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	p.request = passes_answering(&a->passes);
	if (again_holds(a, &p))
		return n;
	if (n && tape_add(a->tape, &p))
		return 0;
	a->stale = a->unshown = true;
	attempt_fresh(a);
	return n;
}

static int gate_debug(CURL *easy, curl_infotype type, char *bytes, size_t n, void *data)
{
	struct attempt *a = data;
	struct tape_piece p = {.kind = TAPE_DEBUG, .debug = (int)type, .data = bytes, .n = n};

	(void)easy;
	if (a->passes.by_lines && type == CURLINFO_HEADER_OUT)
		passes_request(&a->passes, bytes, n);
	if (a->verbose && !tape_add(a->tape, &p)) {
		a->unshown = true;
		attempt_fresh(a);
	}
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

/* Fields are one block of memory that libcurl sends and rewinds by itself; a payload is read and
 * rewound here, in the pieces it came in. */
static size_t gate_read(char *to, size_t size, size_t count, void *data)
{
	struct attempt *a = data;
	size_t n = a->payload ? payload_piece(a->payload, a->read_at) : 0;

	if (n > size * count)
		n = size * count;
	if (n)
		memcpy(to, payload_bytes(a->payload).p + a->read_at, n);
	a->read_at += n;
	a->stale = true; /* how much has been sent */
	attempt_fresh(a);
	return n;
}

static int gate_seek(void *data, curl_off_t offset, int origin)
{
	struct attempt *a = data;

	if (!a->payload || origin != SEEK_SET || offset < 0 ||
	    (size_t)offset > payload_size(a->payload))
		return CURL_SEEKFUNC_CANTSEEK;
	a->read_at = (size_t)offset;
	return CURL_SEEKFUNC_OK;
}

/* Not inherited by what the program runs, and never taken for its stdin, stdout or stderr. */
static curl_socket_t gate_open(void *data, curlsocktype purpose, struct curl_sockaddr *addr)
{
	struct attempt *a = data;
	int fd =
	        fd_above_stdio(socket(addr->family, addr->socktype | SOCK_CLOEXEC, addr->protocol));

	(void)purpose;
	if (fd >= 0 && !held_add_socket(a->courier, fd)) {
		close(fd);
		fd = -1;
	}
	if (fd < 0)
		return CURL_SOCKET_BAD;
	a->passes.opening = !a->passes.by_lines;
	attempt_tell(a, RESOLVED);
	return fd;
}

static int gate_close(void *data, curl_socket_t fd)
{
	ready_drop(data, fd);
	return held_close_socket(data, fd);
}

static int gate_look_up(void *resolver, void *reserved, void *data)
{
	(void)resolver, (void)reserved;
	attempt_tell(data, STARTED);
	return 0;
}

/* A libcurl before 7.59 does not say when it begins. */
static void gate_note_start(struct attempt *a)
{
	__typeof__(&curl_easy_setopt) set = CURL_FN(a->courier->fl, easy_setopt);

	if (a->courier->bounded && !set(a->easy, CURLOPT_RESOLVER_START_FUNCTION, gate_look_up))
		set(a->easy, CURLOPT_RESOLVER_START_DATA, a);
}

int gate_install(struct attempt *a)
{
	__typeof__(&curl_easy_setopt) set = CURL_FN(a->courier->fl, easy_setopt);
	CURL *e = a->easy;
	int bad = 0;

	bad |= (int)set(e, CURLOPT_WRITEFUNCTION, gate_body) | (int)set(e, CURLOPT_WRITEDATA, a);
	bad |= (int)set(e, CURLOPT_HEADERFUNCTION, gate_header) |
	       (int)set(e, CURLOPT_HEADERDATA, a);
	bad |= (int)set(e, CURLOPT_READFUNCTION, gate_read) | (int)set(e, CURLOPT_READDATA, a);
	bad |= (int)set(e, CURLOPT_SEEKFUNCTION, gate_seek) | (int)set(e, CURLOPT_SEEKDATA, a);
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
		a->passes.by_lines = true;
		bad |= (int)set(e, CURLOPT_FRESH_CONNECT, 1L) |
		       (int)set(e, CURLOPT_FORBID_REUSE, 1L);
		bad |= (int)set(e, CURLOPT_VERBOSE,
		                1L); /* its request lines tell CONNECT's blocks */
	}
	/* what is given up does not wait for its look-up, and all others with it (7.87) */
	(void)set(e, CURLOPT_QUICK_EXIT, 1L);
	gate_note_start(a);
	return bad ? COURIER_CANNOT : COURIER_OK;
}
