"""dlsym, dlvsym and dlopen with our filters in front: whoever relies on who the caller is must not notice."""
import os

import pytest

FIRST = r"""
#include <dlfcn.h>
#include <stdio.h>
int puts(const char *text)
{
	int (*next)(const char *) = (int (*)(const char *))LOOKUP;
	printf("%s>", WHO);
	return next(text);
}
"""


LIBC_VERSION = {"x86_64": "GLIBC_2.2.5", "aarch64": "GLIBC_2.17"}[os.uname().machine]
LOOKUPS = {  # a question with a version goes past libraries that have none
    'dlsym(RTLD_NEXT, "puts")': b"one>two>end\n",
    'dlvsym(RTLD_NEXT, "puts", "%s")' % LIBC_VERSION: b"one>end\n",
}


@pytest.mark.parametrize("lookup", LOOKUPS, ids=["dlsym", "dlvsym"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_interposers_find_the_next_one(alone, compiled, place, lookup):
    """Two preloads that override puts, ours before, between and behind them."""
    flags = ("-shared", "-fPIC", "-D_GNU_SOURCE", "-fno-builtin")
    flags += ("-DLOOKUP=" + lookup,)
    others = [str(compiled(name, FIRST, *flags, '-DWHO="%s"' % name)) for name in ("one", "two")]
    others.insert(place, str(alone.preload))
    program = compiled("main", '#include <stdio.h>\nint main(void) { puts("end"); return 0; }', "-fno-builtin")
    result = alone.run(program, preload=":".join(others))
    assert (result.returncode, result.stdout) == (0, LOOKUPS[lookup])


def test_runpath_of_the_caller(alone, compiled, tmp_path):
    """An executable with $ORIGIN in its RUNPATH opens a library by its bare name, and so does a library."""
    (tmp_path / "inner").mkdir()
    plugin = compiled("libplugin.so", "int answer(void) { return 42; }", "-shared", "-fPIC")
    plugin.rename(tmp_path / "inner" / "libplugin.so")
    opening = r"""
#include <dlfcn.h>
#include <stddef.h>
int try_it(void)
{
	void *plugin = dlopen("libplugin.so", RTLD_NOW | 0x8);
	int (*answer)(void) = plugin ? (int (*)(void))dlsym(plugin, "answer") : NULL;
	return answer ? answer() : 1;
}
"""
    origin = "-Wl,-rpath,$ORIGIN/inner,--enable-new-dtags"
    program = compiled("direct", opening + "int main(void) { return try_it(); }", origin)
    assert alone.run(program).returncode == 42
    library = compiled("libopening.so", opening, "-shared", "-fPIC", origin)
    program = compiled("through", "int try_it(void); int main(void) { return try_it(); }", str(library),
                       "-Wl,-rpath," + str(tmp_path))
    assert alone.run(program).returncode == 42


DLERROR = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
	void *library = dlopen("libcurl.so.4", RTLD_NOW);
	dlerror();
	void *found = dlsym(library, "curl_easy_perform");
	printf("%d %d\n", found != NULL, dlerror() == NULL);
	dlsym(library, "curl_no_such_name");
	printf("%d\n", strstr(dlerror(), "undefined symbol: curl_no_such_name") != NULL);
	printf("%d\n", dlerror() == NULL);
	dlsym(library, "curl_no_such_name");
	dlsym(library, "curl_easy_perform");
	printf("%d\n", dlerror() == NULL);
	printf("%d\n", dlopen("/no/such/file", RTLD_NOW) == NULL);
	printf("%d\n", strstr(dlerror(), "/no/such/file") != NULL);
	return 0;
}
"""


def test_dlerror_stays_true(alone, compiled):
    program = compiled("errors", DLERROR)
    with_it, without = alone.run(program), alone.run(program, preload="")
    assert with_it.stdout == without.stdout != b""
    assert with_it.stdout.startswith(b"1 1\n1\n1\n")


def test_missing_libcurl_stays_missing(alone, compiled):
    """A program that asks whether libcurl is there must hear the truth."""
    source = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
	printf("%p ", dlsym(RTLD_DEFAULT, "curl_easy_init"));
	printf("%s ", dlerror() ? "error" : "silent");
	printf("%p ", dlsym(dlopen(NULL, RTLD_NOW), "curl_easy_init"));
	printf("%s\n", dlerror() ? "error" : "silent");
	return 0;
}
"""
    program = compiled("probe", source, "-D_GNU_SOURCE")
    with_it, without = alone.run(program), alone.run(program, preload="")
    assert with_it.stdout == without.stdout == b"(nil) error (nil) error\n"


def test_other_function_of_the_same_name(alone, compiled, tmp_path):
    """A library that is no libcurl may define such a name; it gets its own function."""
    compiled("libother.so", "int curl_easy_perform(void *x) { return x ? 1 : 77; }", "-shared", "-fPIC")
    source = r"""
#include <dlfcn.h>
#include <stddef.h>
int main(int argc, char **argv)
{
	(void)argc;
	return ((int (*)(void *))dlsym(dlopen(argv[1], RTLD_NOW), "curl_easy_perform"))(NULL);
}
"""
    assert alone.run(compiled("asks", source), tmp_path / "libother.so").returncode == 77


def test_looking_up_other_names_loads_no_core(faked, compiled):
    """Most processes never call libcurl and pay nothing."""
    source = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
	for (int i = 0; i < 20000; i++)
		if (!dlsym(RTLD_DEFAULT, "printf"))
			return 1;
	puts("fine");
	return 0;
}
"""
    assert faked.run(compiled("many", source, "-D_GNU_SOURCE")).stdout == b"fine\n"
    assert not faked.calls.exists()


THREADS = r"""
#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static void *call(void *unused)
{
	for (int i = 0; i < 200; i++)
		curl_easy_cleanup(curl_easy_init());
	return unused;
}
static void *load(void *unused)
{
	for (int i = 0; i < 200; i++) {
		void *library = dlopen("libz.so.1", RTLD_NOW);
		dlsym(library, "curl_easy_perform");
		dlclose(library);
	}
	return unused;
}
int main(void)
{
	pthread_t threads[6];
	curl_global_init(CURL_GLOBAL_ALL);
	for (int i = 0; i < 6; i++)
		pthread_create(&threads[i], NULL, i % 2 ? load : call, NULL);
	for (int i = 0; i < 20; i++) {
		pid_t child = fork();
		int status = 1;
		if (child == 0) {
			alarm(10);
			curl_easy_cleanup(curl_easy_init());
			_exit(0);
		}
		if (waitpid(child, &status, 0) != child || status != 0)
			return 1;
	}
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	puts("done");
	return 0;
}
"""


def test_threads_that_load_call_and_fork(faked, compiled):
    """The first calls come all at once, while others load libraries and the process forks."""
    program = compiled("threads", THREADS, "-lcurl", "-lpthread")
    for _ in range(5):
        result = faked.run(program)
        assert (result.returncode, result.stdout) == (0, b"done\n")
    assert set(faked.called("init")) == {"libcurl"}
