"""Whatever way libcurl comes into a process, and whenever it is called there, a write is made once.

The programs are compiled from parts/: a host without libcurl, a plugin with one, and a program that writes at odd
moments of its life. Each makes the same write twice; natively that is two orders."""
import glob
import os
import re
import shutil
import subprocess

import pytest

from harness import HERE

LIBCURL = os.path.realpath(glob.glob("/usr/lib/*/libcurl.so.4")[0])
GNUTLS = os.path.realpath(glob.glob("/usr/lib/*/libcurl-gnutls.so.4")[0])
FLAGS = ["-O2", "-Wall", "-Werror", "-Wno-unused-function", "-D_GNU_SOURCE", "-DCURL_DISABLE_TYPECHECK"]


def compile_part(target, *args):
    subprocess.run(["gcc", *FLAGS, "-o", str(target), *map(str, args)], check=True, timeout=60, cwd=os.path.join(HERE, "parts"))
    return str(target)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """What is compiled, by name: host, moments and three plugins, of which one brings a libcurl of its own name."""
    folder = tmp_path_factory.mktemp("parts")
    vendored = shutil.copy(LIBCURL, folder / "libvendor-7f3a.so.1")
    subprocess.run(["patchelf", "--set-soname", "libvendor-7f3a.so.1", vendored], check=True, timeout=60)
    made = {"vendored": str(vendored), "libcurl": LIBCURL, "gnutls": GNUTLS}
    made["host"] = compile_part(folder / "host", "host.c")
    made["moments"] = compile_part(folder / "moments", "moments.c", "-lcurl")
    shared = ["-shared", "-fPIC", "plugin.c"]
    made["plugin"] = compile_part(folder / "plugin.so", *shared, "-lcurl")
    made["plugin-gnutls"] = compile_part(folder / "plugin-gnutls.so", *shared, GNUTLS)
    made["plugin-vendored"] = compile_part(folder / "plugin-vendored.so", *shared, vendored, "-Wl,-rpath," + str(folder))
    made["library"] = compile_part(folder / "libmoments.so", "-shared", "-fPIC", "-Dmain=unused_main", "moments.c", "-lcurl")
    (folder / "bare.c").write_text("int main(void) { return 0; }\n")
    made["bare"] = compile_part(folder / "bare", folder / "bare.c", "-Wl,--no-as-needed", made["library"],
                                "-Wl,-rpath," + str(folder))
    return made


def seen(result):
    """(code, status, order id) of each write that was told of."""
    assert result.err == "", result
    lines = re.findall(r'body=(\{.*?\})? ?code=(\d+) status=(\d+)|code=(\d+) status=(\d+) body=(.*)', result.out)
    found = []
    for a, b, c, d, e, f in lines:
        body = a or f
        order = re.search(r'"id": "([^"]+)"', body)
        found.append((int(b or d), int(c or e), order and order[1]))
    return found


ONCE = [(0, 201, "ord-1"), (0, 201, "ord-1")]
TWICE = [(0, 201, "ord-1"), (0, 201, "ord-2")]

# name: how the host loads, what it loads
WAYS = {
    "local": ("local", ["plugin"]),
    "global": ("global", ["plugin"]),
    "deepbind": ("deepbind", ["plugin"]),
    "dlsym": ("dlsym", ["libcurl"]),
    "dlvsym": ("dlvsym", ["libcurl"]),
    "dlsym-gnutls": ("dlsym", ["gnutls"]),
    "dlsym-other-name": ("dlsym", ["vendored"]),
    "other-name": ("local", ["plugin-vendored"]),
    "other-name-deepbind": ("deepbind", ["plugin-vendored"]),
    "gnutls": ("local", ["plugin-gnutls"]),
    "tail": ("tail", ["plugin"]),
    "tail-other-name": ("tail", ["plugin-vendored"]),
}


def marked(name):
    """A sanitizer's runtime ends whoever binds deeply."""
    return name if WAYS[name][0] == "deepbind" else pytest.param(name, marks=pytest.mark.san)


@pytest.mark.parametrize("name", [marked(n) for n in WAYS])
def test_ways_of_loading(world, server, parts, name):
    how, what = WAYS[name]
    args = [parts["host"], how, server.base + "/orders", *[parts[w] for w in what]]
    native = world.run(args, preload=False)
    assert native.rc == 0 and seen(native) == TWICE
    server.reset()
    result = world.run(args)
    assert result.rc == 0 and seen(result) == ONCE, result
    assert server.executions == 1


@pytest.mark.parametrize("how", ["local", "tail"])
@pytest.mark.parametrize("order", [["plugin", "plugin-gnutls", "plugin-vendored"], ["plugin-vendored", "plugin-gnutls", "plugin"]],
                         ids=["system-first", "vendored-first"])
def test_three_libcurls_in_one_process(world, server, parts, order, how):
    """Whichever comes first: the write is the same, and each plugin has its own libcurl. Where libcurl is to return to a
    program that has none, nobody can tell which one is meant; there it is enough that a handle stays with one of them."""
    result = world.run([parts["host"], how, server.base + "/orders", *[parts[p] for p in order]])
    assert result.rc == 0 and seen(result) == ONCE * 3, result
    assert server.executions == 1
    if how == "tail":
        return
    native = world.run([parts["host"], how, server.base + "/orders", *[parts[p] for p in order]], preload=False)
    assert re.findall("tls=.", result.out) == re.findall("tls=.", native.out) != []


@pytest.mark.san
@pytest.mark.parametrize("plugin", ["plugin", "plugin-gnutls", "plugin-vendored"])
def test_unloaded_and_loaded_again(world, server, parts, plugin):
    result = world.run([parts["host"], "reload", server.base + "/orders", parts[plugin]])
    assert result.rc == 0 and [x[1:] for x in seen(result)] == [(201, "ord-1"), (201, "ord-2"), (201, "ord-1")], result
    assert server.executions == 2


@pytest.mark.parametrize("lib", ["libcurl", "gnutls", "vendored"])
def test_ctypes(world, server, parts, lib):
    args = ["/usr/bin/python3", os.path.join(HERE, "scripts", "ctypes_write.py"), parts[lib], server.base + "/orders"]
    assert world.run(args, preload=False).rc == 0 and server.executions == 2
    server.reset()
    result = world.run(args)
    assert result.rc == 0 and result.out.count('{"id": "ord-1"}') == 2, result
    assert server.executions == 1


# --- before main and after its end
AFTER_US = {"exit-registered-first", "destructor-again"}  # when we have waited for all that was under way

LATE = ["exit-registered-first", "exit-registered-last", "destructor", "destructor-again", "quick-exit"]


@pytest.mark.san
@pytest.mark.parametrize("when", ["main", *LATE])
def test_moments(world, server, parts, when):
    """The same program twice in one run: the odd write is made once, or refused in words, and the process ends as it would."""
    args = [parts["moments"], when, server.base + "/orders"]
    native = world.run(args, preload=False)
    assert native.rc == 0
    server.reset()
    results = [world.run(args, timeout=20), world.run(args, timeout=20)]
    assert [r.rc for r in results] == [0, 0], results
    bodies = [r.body for r in server.writes()]
    assert bodies.count(b"a=1") == 1, results
    odd = [x for r in results for x in seen(r)[-1:]]
    assert odd[0] == odd[1] and odd[0][:2] == (0, 201), results
    served = [(e["served"], e.get("reason")) for e in world.events("write") if e["verdict"] == "execute"]
    assert served[-1] == (("in-place", "the process is ending") if when in AFTER_US else ("courier", None))


@pytest.mark.san
@pytest.mark.parametrize("place", ["linked", "preloaded"])
def test_constructor(world, server, parts, place):
    """A library whose constructor writes, in front of a program and behind our preload."""
    env = {"MOMENT_URL": server.base + "/orders"}
    if place == "preloaded":
        env["LD_PRELOAD"] = world.env()["LD_PRELOAD"] + ":" + parts["library"]
    command = ["/bin/true"] if place == "preloaded" else [parts["bare"]]
    results = [world.run(command, timeout=20, **env) for _ in range(2)]
    assert [r.rc for r in results] == [0, 0], results
    assert [x for r in results for x in seen(r)] == ONCE, results
    assert server.executions == 1


@pytest.mark.san
def test_a_thread_that_writes_while_the_process_ends(world, server, parts):
    """The write has left: the exit waits for its answer, and it is there for the next try.

    Nobody waits for the thread itself, so OpenSSL's own end at exit is at odds with what it did last, as without us."""
    args = [parts["moments"], "thread", server.base + "/orders?late=1"]
    told = "%s:suppressions=%s" % (world.env()["TSAN_OPTIONS"], world.write("tsan", "race:CRYPTO_THREAD_lock_free\n"))
    assert world.run(args, timeout=20, TSAN_OPTIONS=told).rc == 0
    assert world.states() == ["done"] and server.executions == 1
    answer = world.curl("-d", "a=1", server.base + "/orders?late=1")
    assert answer.replayed and answer.order == "ord-1"
