"""The core is missing: reads pass, writes are refused, and one line says why."""
import shutil
import stat

import pytest

READS = [[], ["-I"], ["-X", "OPTIONS"], ["-G", "-d", "a=b"], ["-X", "GET", "-d", "x"], ["-X", "TRACE"]]
WRITES = [["-d", "x"], ["-X", "POST"], ["-X", "DELETE"], ["-X", "PATCH", "-d", "x"], ["-F", "a=b"],
          ["-T", "/etc/passwd"], ["-X", "get"], ["--json", "{}"]]
REFUSED = 42


@pytest.mark.parametrize("options", READS, ids="_".join)
def test_read_passes(alone, web, options):
    result = alone.run("curl", "-sS", "--max-time", "10", *options, web.url)
    assert (result.returncode, len(web.methods)) == (0, 0 if "TRACE" in options else 1), result.stderr


@pytest.mark.parametrize("options", WRITES, ids=lambda o: "_".join(o).replace("/", "-"))
def test_write_is_refused(alone, web, options):
    result = alone.run("curl", "-sS", "--max-time", "10", *options, web.url)
    assert (result.returncode, result.stdout, web.methods) == (REFUSED, b"", [])
    assert b"sendonce: write refused" in result.stderr


@pytest.mark.parametrize("env", [{"SENDONCE_FAIL": "open"}, {"SENDONCE_MODE": "audit"}, {"SENDONCE_MODE": "off"}],
                         ids=lambda e: "-".join(e.values()))
def test_open_lets_writes_pass(alone, web, env):
    result = alone.run("curl", "-sS", "-d", "x", web.url, **env)
    assert (result.returncode, result.stdout, web.methods) == (0, b"ok\n", ["POST"])
    assert "UNPROTECTED" in alone.log.read_text()


def test_closed_is_the_default_whatever_else_it_says(alone, web):
    for value in ("closed", "", "OPEN", "1"):
        assert alone.run("curl", "-sS", "-d", "x", web.url, SENDONCE_FAIL=value).returncode == REFUSED
    assert web.methods == []


def test_one_line_a_process(alone, web):
    assert alone.run("curl", "-sS", "-d", "x", web.url, web.url, web.url).returncode == REFUSED
    text = alone.log.read_text()
    assert text.count("\n") == 1 and text.startswith("sendonce: pid ")
    for part in ("writes are refused", "SENDONCE_FAIL=open", "libsendonce-core.so: cannot open"):
        assert part in text
    assert stat.S_IMODE(alone.log.stat().st_mode) == 0o600
    assert alone.run("curl", "-sS", "-d", "x", web.url).returncode == REFUSED
    assert alone.log.read_text().count("\n") == 2


def test_log_that_may_not_grow_ends_nothing(alone, web):
    result = alone.run("sh", "-c", 'ulimit -f 0; exec "$@"', "sh", "curl", "-sS", "-d", "x", web.url)
    assert (result.returncode, web.methods) == (REFUSED, [])
    assert alone.log.read_bytes() == b""


def test_core_of_another_version(faked, web):
    result = faked.run("curl", "-sS", "-d", "x", web.url, FAKE_CORE_STALE="1")
    assert (result.returncode, web.methods) == (REFUSED, [])
    assert "another version" in faked.log.read_text()


def test_core_that_is_no_library(alone, web):
    shutil.copy("/etc/passwd", alone.folder / "libsendonce-core.so")
    assert alone.run("curl", "-sS", "-d", "x", web.url).returncode == REFUSED
    assert "invalid ELF header" in alone.log.read_text()


METHODS = r"""
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

static char text[CURL_ERROR_SIZE];
static const char *url;

static void perform(const char *what, CURL *easy)
{
	text[0] = '\0';
	CURLcode code = curl_easy_perform(easy);
	printf("%s %d %s\n", what, code, strncmp(text, "sendonce: ", 10) ? "-" : "told");
}

static CURL *fresh(void)
{
	CURL *easy = curl_easy_init();
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_NOBODY, 0L);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, text);
	return easy;
}

int main(int argc, char **argv)
{
	CURL *kept[300];
	(void)argc;
	url = argv[1];
	CURL *easy = fresh();
	perform("fresh", easy);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "x");
	perform("post", easy);
	CURL *copy = curl_easy_duphandle(easy);
	perform("duplicate", copy);
	curl_easy_cleanup(copy);
	curl_easy_setopt(easy, CURLOPT_POST, 0L);
	perform("post-off", easy);
	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
	perform("httpget", easy);
	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	perform("nobody", easy);
	curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "DELETE");
	perform("nobody-delete", easy);
	curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, NULL);
	perform("custom-off", easy);
	curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
	CURLM *multi = curl_multi_init();
	printf("add %d\n", curl_multi_add_handle(multi, easy));
	curl_easy_reset(easy);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	perform("reset", easy);
	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_cleanup(easy);
	perform("new", easy = fresh());
	for (int i = 0; i < 300; i++)
		curl_easy_setopt(kept[i] = fresh(), CURLOPT_POST, 1L);
	perform("overfull", kept[299]);
	return 0;
}
"""


def test_method_follows_the_last_option(alone, web, compiled):
    program = compiled("methods", METHODS, "-lcurl")
    lines = alone.run(program, web.url).stdout.decode().replace("ok\n", "").splitlines()
    assert lines == ["fresh 0 -", "post 42 told", "duplicate 42 -", "post-off 0 -", "httpget 0 -", "nobody 0 -",
                     "nobody-delete 42 told", "custom-off 0 -", "add 4", "reset 0 -", "new 0 -", "overfull 42 -"]
    assert set(web.methods) == {"GET", "HEAD"}


def test_process_without_libcurl_gets_errors(alone, compiled):
    """A program may find our entries by dlsym's default search; then they behave like a failed libcurl."""
    source = r"""
#include <stddef.h>
#include <stdio.h>
extern void *curl_easy_init(void) __attribute__((weak));
extern int curl_easy_perform(void *) __attribute__((weak));
extern int curl_multi_add_handle(void *, void *) __attribute__((weak));
extern int curl_easy_header(void *) __attribute__((weak));
extern void curl_easy_cleanup(void *) __attribute__((weak));
int main(void)
{
	curl_easy_cleanup(NULL);
	printf("%p %d %d %d\n", curl_easy_init(), curl_easy_perform(NULL), curl_multi_add_handle(NULL, NULL),
	       curl_easy_header(NULL));
	return 0;
}
"""
    result = alone.run(compiled("orphan", source, "-fPIE", "-pie"))
    assert (result.returncode, result.stdout) == (0, b"(nil) 2 4 7\n")
