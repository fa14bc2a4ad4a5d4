"""Who is hooked, and which libcurl the call goes on to: linked programs, extensions, foreign function interfaces,
two libcurls in one process. A counting core stands in for the real one."""
import os
import shutil

import pytest

PYTHON = "/usr/bin/python3"
OPENSSL, GNUTLS = "libcurl", "libcurl-gnutls"

PYCURL = """
import pycurl, sys
c = pycurl.Curl()
c.setopt(c.URL, sys.argv[1])
c.perform()
c.close()
"""

CTYPES = """
import ctypes, sys
curl = ctypes.CDLL("libcurl.so.4")
curl.curl_easy_init.restype = ctypes.c_void_p
c = ctypes.c_void_p(curl.curl_easy_init())
curl.curl_easy_setopt(c, 10002, sys.argv[1].encode())
assert curl.curl_easy_perform(c) == 0
curl.curl_easy_cleanup(c)
"""

PHP = "$c = curl_init($argv[1]); curl_exec($c); curl_close($c);"

LINKED = r"""
#include <curl/curl.h>
int main(int argc, char **argv)
{
	CURL *easy = curl_easy_init();
	CURLM *multi = curl_multi_init();
	int running = 1;
	(void)argc;
	curl_easy_setopt(easy, CURLOPT_URL, argv[1]);
	if (curl_easy_perform(easy) != CURLE_OK)
		return 1;
	if (curl_multi_add_handle(multi, easy) != CURLM_OK)
		return 2;
	while (running && curl_multi_perform(multi, &running) == CURLM_OK)
		curl_multi_poll(multi, NULL, 0, 100, NULL);
	curl_multi_remove_handle(multi, easy);
	curl_easy_cleanup(easy);
	curl_multi_cleanup(multi);
	return 0;
}
"""


def test_linked_program(faked, web):
    result = faked.run("curl", "-sS", web.url)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"ok\n", b"")
    assert faked.called("perform") == [OPENSSL]
    assert set(faked.called("init") + faked.called("setopt")) == {OPENSSL}


def test_extension_with_local_scope(faked, web):
    result = faked.run(PYTHON, "-c", PYCURL, web.url)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"ok\n", b"")
    assert faked.called("perform") == [GNUTLS]


def test_foreign_function_interface(faked, web):
    result = faked.run(PYTHON, "-c", CTYPES, web.url)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"ok\n", b"")
    assert faked.called("init") == faked.called("perform") == [OPENSSL]


def test_php_loads_with_deepbind(faked, web):
    result = faked.run("php", "-r", PHP, web.url)
    assert (result.returncode, result.stdout) == (0, b"ok\n"), result.stderr
    assert faked.called("perform") == [OPENSSL]


@pytest.mark.parametrize("order", [(PYCURL, CTYPES), (CTYPES, PYCURL)], ids=["pycurl-first", "ctypes-first"])
def test_two_libcurls_in_one_process(faked, web, order):
    result = faked.run(PYTHON, "-c", "".join(order) * 2, web.url)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"ok\n" * 4, b"")
    expected = [GNUTLS if part is PYCURL else OPENSSL for part in order * 2]
    assert faked.called("perform") == faked.called("init") == faked.called("cleanup") == expected


def test_vendored_libcurl_under_another_name(faked, web, tmp_path):
    """Found by what it defines: wheels rename theirs."""
    shutil.copy("/usr/lib/%s-linux-gnu/libcurl.so.4" % os.uname().machine, tmp_path / "libvendor-9f3a.so")
    script = CTYPES.replace('"libcurl.so.4"', "sys.argv[2]")
    result = faked.run(PYTHON, "-c", script, web.url, tmp_path / "libvendor-9f3a.so")
    assert (result.returncode, result.stdout, result.stderr) == (0, b"ok\n", b"")
    assert faked.called("perform") == ["libvendor-9f3a"]


def test_libcurl_calling_itself_is_not_hooked(faked, web, compiled):
    """curl_easy_perform drives a multi of its own, and curl_multi_init makes a handle: neither is the program's."""
    program = compiled("linked", LINKED, "-lcurl")
    result = faked.run(program, web.url)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"ok\nok\n", b"")
    assert [len(faked.called(name)) for name in ("init", "setopt", "perform", "add", "cleanup")] == [1, 1, 1, 1, 1]


def test_library_constructor_that_uses_libcurl(faked, web, compiled, tmp_path):
    """Its constructor may run before ours: everything is lazy."""
    source = r"""
#include <curl/curl.h>
__attribute__((constructor)) static void early(void)
{
	CURL *easy = curl_easy_init();
	curl_easy_cleanup(easy);
}
int early_is_linked(void) { return 0; }
"""
    library = compiled("libearly.so", source, "-shared", "-fPIC", "-lcurl")
    program = compiled("main", "int early_is_linked(void); int main(void) { return early_is_linked(); }",
                       str(library), "-Wl,-rpath," + str(tmp_path))
    assert faked.run(program, SENDONCE_SCOPE="tenant-7").returncode == 0
    assert faked.called("init") == faked.called("cleanup") == [OPENSSL]
    assert "tenant-7 ?" in faked.calls.read_text()


def test_environment_survives_being_overwritten(faked, compiled):
    """setproctitle and php-fpm write over the bytes that the kernel put there."""
    source = r"""
#include <curl/curl.h>
#include <string.h>
extern char **environ;
int main(void)
{
	for (char **variable = environ; *variable; variable++)
		if (!strncmp(*variable, "SENDONCE_", 9))
			memset(*variable, 'x', strlen(*variable));
	curl_easy_cleanup(curl_easy_init());
	return 0;
}
"""
    assert faked.run(compiled("title", source, "-lcurl"), SENDONCE_SCOPE="tenant-7").returncode == 0
    assert "tenant-7 ?" in faked.calls.read_text()


def test_disabled_means_absent(faked, web):
    assert faked.run("curl", "-sS", "-d", "x", web.url, SENDONCE_DISABLE="1").stdout == b"ok\n"
    assert faked.run("php", "-r", PHP, web.url, SENDONCE_DISABLE="1").stdout == b"ok\n"
    assert faked.run(PYTHON, "-c", CTYPES, web.url, SENDONCE_DISABLE="1").stdout == b"ok\n"
    assert not faked.calls.exists()
    assert faked.run("curl", "-sS", web.url, SENDONCE_DISABLE="0").stdout == b"ok\n"
    assert faked.called("perform") == [OPENSSL]


def test_preloaded_twice_under_two_names(faked, web):
    second = shutil.copy(faked.preload, faked.folder / "libsecond.so")
    both = "%s:%s" % (faked.preload, second)
    for command in (["curl", "-sS"], [PYTHON, "-c", CTYPES], [PYTHON, "-c", PYCURL]):
        result = faked.run(*command, web.url, preload=both)
        assert (result.returncode, result.stdout, result.stderr) == (0, b"ok\n", b"")
    assert faked.called("perform") == [OPENSSL, OPENSSL, GNUTLS]


def test_loaded_by_a_relative_name(faked, web):
    """The program may change its directory before its first call."""
    script = "import os; os.chdir('/')\n" + CTYPES
    result = faked.run("env", "-C", faked.folder, "LD_PRELOAD=./libsendonce.so", PYTHON,
                       "-c", script, web.url, preload="")
    assert (result.returncode, result.stdout, result.stderr) == (0, b"ok\n", b"")
    assert faked.called("perform") == [OPENSSL]


def test_loaded_through_a_link(faked, web, tmp_path):
    """The core lies beside the file, not beside the link."""
    link = tmp_path / "elsewhere.so"
    link.symlink_to(faked.preload)
    assert faked.run("curl", "-sS", "-d", "x", web.url, preload=str(link)).stdout == b"ok\n"
    assert faked.called("perform") == [OPENSSL]


def test_libcurl_stays_loaded(faked, web, tmp_path, compiled):
    """Opened, used and closed three times: what we remember of it must stay true."""
    source = r"""
#include <dlfcn.h>
#include <stddef.h>
int main(int argc, char **argv)
{
	(void)argc;
	for (int i = 0; i < 3; i++) {
		void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
		void *(*init)(void) = (void *(*)(void))dlsym(library, "curl_easy_init");
		int (*setopt)(void *, int, ...) = (int (*)(void *, int, ...))dlsym(library, "curl_easy_setopt");
		int (*perform)(void *) = (int (*)(void *))dlsym(library, "curl_easy_perform");
		void (*cleanup)(void *) = (void (*)(void *))dlsym(library, "curl_easy_cleanup");
		void *easy = init();
		setopt(easy, 10002, argv[1]);
		if (perform(easy) != 0)
			return 1;
		cleanup(easy);
		dlclose(library);
	}
	return 0;
}
"""
    result = faked.run(compiled("reopen", source), web.url)
    assert (result.returncode, result.stdout) == (0, b"ok\n" * 3)
    assert faked.called("perform") == [OPENSSL] * 3
