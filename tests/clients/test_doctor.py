"""doctor says how a program will be seen; each of its verdicts is checked by running the program.

What is protected is run against doctor's own server, and the write has to arrive with a key. What is not is run with the
preload and the loader's own trace: no libcurl may be loaded (or, of privileged programs, no trace may come at all).
"""
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time

import pytest

from harness import build

SENDONCE = os.path.join(build(), "sendonce")
C_STATIC = 'int main(int n, char **v) { return n > 9 && v[0] == (void *)0; }\n'
C_CURL_INSIDE = '''#include <stdio.h>
int curl_easy_perform(void *h) { return h != 0; }
int main(int n, char **v) { printf("libcurl/8.5.0 %d\\n", curl_easy_perform(n > 9 ? v : 0)); return 0; }
'''
C_OPENS = '''#include <dlfcn.h>
#include <stdio.h>
typedef void *init_f(void); typedef int set_f(void *, int, ...); typedef int go_f(void *);
int main(int n, char **v) {
	void *so = dlopen("libcurl.so.4", RTLD_NOW);
	void *h = ((init_f *)dlsym(so, "curl_easy_init"))();
	((set_f *)dlsym(so, "curl_easy_setopt"))(h, 10002, v[1]);
	((set_f *)dlsym(so, "curl_easy_setopt"))(h, 10015, "a=1");
	return ((go_f *)dlsym(so, "curl_easy_perform"))(h);
}
'''

CMAKE = 'file(UPLOAD "${CMAKE_CURRENT_LIST_FILE}" "$ENV{URL}" STATUS s)'


def doctor(world, *args, **env):
    env.setdefault("SENDONCE_POLICY", None)
    return world.run([SENDONCE, "doctor", *args], preload=False, timeout=60, **env)


def sight(world, program):
    result = doctor(world, "--json", program)
    said = json.loads(result.out)
    assert result.rc == (0 if said["sight"] == "protected" else 1) and result.err == "" and said["why"]
    return said["sight"], said["why"]


def compiled(world, name, text, *flags, compiler="gcc"):
    source = world.write(name + ".c", text)
    subprocess.run([compiler, "-o", world.path(name), source, *flags], check=True, capture_output=True)
    return world.path(name)


# --- protected: a write arrives with a key
WRITERS = {"curl": [], "php": [], "/usr/bin/python3": [], "ruby": [], "perl": []}


@pytest.mark.parametrize("program", WRITERS)
def test_what_is_protected_writes_with_a_key(world, program):
    assert sight(world, program)[0] == "protected"
    result = doctor(world, "--run", program)
    assert result.rc == 0 and "of 1 writes that arrived 1 carried a key" in result.out, result
    assert not [name for name in os.listdir("/tmp") if name.startswith("sendonce-doctor-") and os.path.isdir("/tmp/" + name)
                and os.stat("/tmp/" + name).st_mtime > time.time() - 0.01]


def test_cmake_and_scripts(world):
    assert sight(world, "cmake")[0] == "protected"
    script = world.write("up.cmake", CMAKE)
    result = doctor(world, "--run", "sh", "-c", 'URL="{url}" exec cmake -P ' + script)
    assert result.rc == 0 and "arrived 1 carried a key" in result.out, result
    hello = world.write("hello", "#!/usr/bin/env -S php -n -d extension=curl\n<?php $c=curl_init($argv[1]); curl_setopt($c,CURLOPT_POSTFIELDS,'a'); curl_exec($c);")
    os.chmod(hello, 0o755)
    verdict, why = sight(world, hello)
    assert verdict == "protected" and why.startswith("a script for /")
    assert doctor(world, "--run", hello, "{url}").rc == 0


def test_one_that_opens_libcurl_by_name(world):
    program = compiled(world, "opens", C_OPENS, "-ldl")
    verdict, why = sight(world, program)
    assert verdict == "protected" and "by name" in why
    assert doctor(world, "--run", program, "{url}").rc == 0


def test_git_writes_through_a_helper(world):
    verdict, why = sight(world, "git")
    assert verdict == "protected" and "git-remote-http" in why and "libcurl-gnutls" in why


# --- not: no libcurl is ever loaded
PLAIN = ["ls", "cat", "grep", "sed", "mawk", "tar", "gzip", "find", "xargs", "env", "date", "sort", "make", "gcc", "as", "objdump", "strace",
         "patchelf", "openssl", "valgrind", "tinyproxy", "nghttpx", "dpkg", "apt-get", "id", "stat", "head", "diff", "true"]


@pytest.mark.parametrize("program", PLAIN)
def test_what_has_no_libcurl_loads_none(world, program):
    verdict, why = sight(world, program)
    assert verdict in ("not", "partly"), why
    if verdict == "partly":
        assert "script" in why or "shell" in why
    trace = world.path("trace")
    world.run([program, "--version"], LD_DEBUG="libs", LD_DEBUG_OUTPUT=trace)
    text = "".join(open(world.path(name), errors="replace").read() for name in os.listdir(world.folder) if name.startswith("trace"))
    assert "calling init" in text and not re.search(r"calling init: \S*libcurl", text), program


@pytest.mark.parametrize("name", ["passwd", "su", "mount", "umount", "chsh", "newgrp", "gpasswd", "chage"])
def test_what_is_setuid_drops_the_preload(world, name):
    path = shutil.which(name)
    if not path or not os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID):
        pytest.skip("no setuid %s here" % name)
    verdict, why = sight(world, name)
    assert verdict == "not" and "LD_PRELOAD" in why
    argv = [path, "--help"]
    if os.geteuid() == 0:
        argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *argv]
    # the loader of a privileged program ignores the environment, so its own trace never comes
    code = ("import os,subprocess,sys; p=subprocess.run(sys.argv[2:],env=dict(os.environ,LD_DEBUG='libs'),capture_output=True,text=True); "
            "print('initialize program: ' + sys.argv[1] in p.stderr)")
    result = world.run([sys.executable, "-c", code, path, *argv])
    assert result.out == "False\n", result
    control = world.run([sys.executable, "-c", code, "/usr/bin/id", "/usr/bin/id"])
    assert control.out == "True\n", control


# --- made for it
def test_static_programs(world):
    plain = compiled(world, "plain", C_STATIC, "-static")
    assert sight(world, plain) == ("not", "statically linked: nothing can be preloaded")
    inside = compiled(world, "inside", C_CURL_INSIDE, "-static")
    verdict, why = sight(world, inside)
    assert verdict == "not" and "libcurl/8.5.0" in why
    linked = compiled(world, "linked", C_CURL_INSIDE)
    verdict, why = sight(world, linked)
    assert verdict == "not" and "statically" in why and "libcurl/8.5.0" in why
    for program in (plain, inside, linked):
        assert world.run([program]).rc == 0
    go = world.path("go")
    mark = world.write("mark", "x" * 32)
    subprocess.run(["objcopy", "--add-section", ".go.buildinfo=" + mark, plain, go], check=True)
    verdict, why = sight(world, go)
    assert verdict == "not" and why.startswith("a Go program")


def test_musl(world):
    program = compiled(world, "musl", C_STATIC, compiler="musl-gcc")
    verdict, why = sight(world, program)
    assert verdict == "partly" and "musl" in why and world.run([program]).rc == 0


def test_another_machine_and_broken_files(world):
    program = compiled(world, "here", C_STATIC)
    data = bytearray(open(program, "rb").read())
    for name, change in (("machine", {18: 40, 19: 0}), ("class", {4: 1}), ("order", {5: 2})):
        other = bytearray(data)
        for at, value in change.items():
            other[at] = value
        with open(world.path(name), "wb") as f:
            f.write(other)
        os.chmod(world.path(name), 0o755)
        verdict, why = sight(world, world.path(name))
        assert verdict == "not" and "architecture" in why, name
    for size in list(range(0, 1500, 37)) + [4096, 8191]:
        with open(world.path("cut"), "wb") as f:
            f.write(data[:size])
        assert sight(world, world.path("cut"))[0] == "not"
    for seed in range(200):
        broken = bytearray(data)
        for k in range(8):
            broken[(seed * 2654435761 + k * 40503) % 1024] = (seed * 31 + k * 97) % 256
        with open(world.path("broken"), "wb") as f:
            f.write(broken)
        assert doctor(world, world.path("broken")).rc in (0, 1)


def test_a_text_is_no_program(world):
    assert sight(world, world.write("text", "hello\n")) == ("not", "neither an ELF program nor a script")
    assert doctor(world, "no-such-program").rc == 3
    loop = world.path("loop")
    with open(loop, "w") as f:
        f.write("#!%s\n" % loop)
    assert sight(world, loop)[0] == "not"


@pytest.mark.parametrize("args", [[], ["--all", "ls"], ["--pid", "x"], ["--pid", "1", "--all"], ["--run"], ["--nonsense"]], ids=" ".join)
def test_bad_usage(world, args):
    result = doctor(world, *args)
    assert result.rc == 2 and result.out == "" and "doctor --help" in result.err


# --- processes
SLEEPER = "import ctypes,sys,time; c=ctypes.CDLL('libcurl.so.4') if sys.argv[1]=='curl' else None; print('up',flush=True); time.sleep(60)"


@pytest.mark.parametrize("what, preload, verdict", [("curl", True, "protected"), ("curl", False, "not"), ("none", True, "partly"), ("none", False, "not")])
def test_processes(world, what, preload, verdict):
    world.policy()
    process = world.start([sys.executable, "-c", SLEEPER, what], preload=preload)
    assert process.stdout.readline() == "up\n"
    result = doctor(world, "--json", "--pid", str(process.pid))
    said = json.loads(result.out)
    assert (said["sight"], said["pid"]) == (verdict, process.pid), said
    listed = {p["pid"]: p for p in map(json.loads, doctor(world, "--json", "--all").out.splitlines())}
    assert (process.pid in listed) == (what == "curl" or preload)
    if what == "curl" and not preload:
        assert "LD_PRELOAD was lost" in said["why"] and listed[process.pid]["sight"] == "not"


def test_a_process_that_has_used_it(world, server):
    world.policy()
    program = ("import pycurl,sys,time; c=pycurl.Curl(); c.setopt(c.URL,sys.argv[1]); c.setopt(c.WRITEFUNCTION,lambda b:None); c.perform(); "
               "print('up',flush=True); time.sleep(60)")
    process = world.start(["/usr/bin/python3", "-c", program, server.base + "/x"])
    assert process.stdout.readline() == "up\n"
    assert "its core are loaded" in doctor(world, "--pid", str(process.pid)).out
    process.kill()
    process.wait()
    assert doctor(world, "--pid", str(process.pid)).rc == 3
