"""libsendonce.so in programs that have nothing to do with it: it must load everywhere and change nothing."""
import os
import re
import subprocess

import pytest

EVERYDAY = [
    ["true"], ["false"], ["echo", "a", "b"], ["ls", "-la", "/usr/bin/env", "/etc/passwd"], ["cat", "/etc/passwd"],
    ["head", "-n", "3", "/etc/passwd"], ["tail", "-n", "3", "/etc/passwd"], ["wc", "/etc/passwd"],
    ["sort", "-r", "/etc/passwd"], ["cut", "-d:", "-f1", "/etc/passwd"], ["grep", "-c", "root", "/etc/passwd"],
    ["sed", "-n", "1p", "/etc/passwd"], ["awk", "-F:", "{n += $3} END {print n}", "/etc/passwd"],
    ["tr", "a", "b"], ["uniq", "/etc/passwd"], ["md5sum", "/etc/passwd"], ["sha256sum", "/etc/passwd"],
    ["stat", "-c", "%s", "/etc/passwd"], ["find", "/etc/apt", "-maxdepth", "1", "-name", "*.list"], ["id"], ["uname", "-a"],
    ["sh", "-c", "echo $(true | cat; echo x) >&2; exit 3"], ["bash", "-c", "printf '%s\\n' {1..3}; exit 4"],
    ["git", "--version"], ["gcc", "--version"], ["make", "--version"], ["perl", "-e", "print 1 + 1, $!"],
    ["/usr/bin/python3", "-c", "import json, ssl, ctypes; print(json.dumps([1]))"],
    ["php", "-n", "-r", "echo strrev('abc');"], ["curl", "--version"], ["tar", "-cf", "-", "-C", "/etc", "passwd"],
    ["gzip", "-nc", "/etc/passwd"], ["dpkg-query", "-W", "libc6"], ["openssl", "version"],
    ["env", "-i", "sh", "-c", "echo $0"], ["ls", "/does/not/exist"],
]
CLOSED = {"all": "<&- >&- 2>&-", "stdin": "<&-", "stdout": ">&-", "stderr": "2>&-"}

TINY = r"""
static long call(long n, long a, long b, long c)
{
	long r;
	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return r;
}
void _start(void)
{
	call(1, 1, (long)"tiny\n", 5);
	call(60, 7, 0, 0);
}
"""


def test_everyday_list_is_long_enough():
    assert len(EVERYDAY) >= 30


def results(host, command, **env):
    with_it = host.run(*command, **env)
    without = host.run(*command, preload="", **env)
    # how long a refused connection took is the machine's
    return [(r.returncode, r.stdout, re.sub(rb"after \d+ ms", b"after N ms", r.stderr)) for r in (with_it, without)]


@pytest.mark.parametrize("command", EVERYDAY, ids=lambda c: "-".join(c)[:24].replace("/", "_"))
def test_everyday_program_is_unchanged(alone, command):
    with_it, without = results(alone, command, LANG="C")
    assert with_it == without
    assert not alone.log.exists()


@pytest.mark.parametrize("which", CLOSED)
def test_closed_standard_descriptors(alone, tmp_path, which):
    """Nothing of ours may land on 0, 1 or 2."""
    for number, command in enumerate(["echo text", "cat /etc/passwd", "ls /does/not/exist", "curl -s file:///etc/passwd",
                                      "curl -sS -d x http://127.0.0.1:9/"]):
        line = "%s %s" % (command, CLOSED[which])
        with_it, without = results(alone, ["sh", "-c", line], LANG="C", SENDONCE_FAIL="open")
        assert with_it == without, line
    text = alone.log.read_text()
    assert text.count("\n") == text.count("sendonce: pid ") > 0


def syscalls(path):
    return [re.sub(r"0x[0-9a-f]+", "ADDRESS", re.sub(r"^\d+ +", "", line)) for line in path.read_text().splitlines()]


def test_no_system_call_of_its_own(alone, tmp_path):
    """Beside an empty preload it makes not one call more, but for what its own size changes."""
    empty = tmp_path / "libempty.so"
    subprocess.run(["gcc", "-shared", "-nostdlib", "-o", str(empty), "-x", "c", "/dev/null"], check=True, timeout=60)
    names = []
    for preload in (alone.preload, empty):
        trace = tmp_path / "trace"
        subprocess.run(["strace", "-o", str(trace), "-E", "LD_PRELOAD=%s" % preload, "true"],
                       env={"PATH": os.environ["PATH"]}, check=True, timeout=60)
        lines = syscalls(trace)
        opened = next(i for i, line in enumerate(lines) if str(preload) in line and "openat" in line)
        closed = next(i for i in range(opened, len(lines)) if lines[i].startswith("close"))
        # Between open and close the loader maps the file; how often depends on its segments.
        ours = lines[:opened] + lines[closed:]
        names.append([line.split("(")[0] for line in ours])
        mapping = {line.split("(")[0] for line in lines[opened:closed]}
        assert mapping <= {"openat", "read", "pread64", "fstat", "newfstatat", "mmap", "mprotect", "munmap", "close"}
    without_protect = [[n for n in calls if n not in ("mprotect", "munmap")] for calls in names]
    assert without_protect[0] == without_protect[1]
    # The loader seals one more relocation area; nothing else may differ.
    assert names[0].count("mprotect") - names[1].count("mprotect") <= 1


def test_errno_is_clean_at_main(alone, compiled):
    source = '#include <errno.h>\n#include <stdio.h>\nint main(void) { printf("%d\\n", errno); return 0; }'
    assert alone.run(compiled("errno", source)).stdout == b"0\n"


def test_musl_program(alone, compiled):
    source = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
	void *self = dlopen(NULL, RTLD_NOW);
	puts(dlsym(self, "puts") ? "found" : "missing");
	dlerror();
	puts(dlsym(self, "curl_easy_init") ? "curl" : "no curl");
	puts(dlerror() ? "error" : "no error");
	puts(dlsym(RTLD_NEXT, "no_such_name") ? "?" : "none");
	puts(getenv("SENDONCE_LOG") ? "env" : "no env");
	return 0;
}
"""
    program = compiled("musl", source, cc="musl-gcc")
    result = alone.run(program)
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.split(b"\n")[:5] == [b"found", b"no curl", b"error", b"none", b"env"]


def test_program_without_libc(alone, compiled):
    program = compiled("tiny", TINY, "-nostdlib", "-pie", "-fPIE", "-O1", "-fno-stack-protector",
                       "-Wl,--dynamic-linker=/lib64/ld-linux-x86-64.so.2")
    result = alone.run(program, LD_BIND_NOW="1")
    assert (result.returncode, result.stdout, result.stderr) == (7, b"tiny\n", b"")


@pytest.mark.parametrize("command", [["true"], ["curl", "--version"], ["/usr/bin/python3", "-c", "print(1)"]],
                         ids=["true", "curl", "python"])
def test_bind_now(alone, command):
    with_it, without = results(alone, command, LD_BIND_NOW="1")
    assert with_it == without and with_it[0] == 0


def test_secure_mode_ignores_our_environment(alone, compiled, tmp_path):
    """The loader drops LD_PRELOAD for such programs, but not what /etc/ld.so.preload names; linking shows the same."""
    source = r"""
#include <curl/curl.h>
int main(void)
{
	CURL *easy = curl_easy_init();
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "x");
	curl_easy_setopt(easy, CURLOPT_URL, "http://127.0.0.1:9/");
	return curl_easy_perform(easy);
}
"""
    if os.geteuid() != 0:
        pytest.skip("only root can make a program run with other rights")
    program = compiled("secure", source, "-Wl,--no-as-needed", str(alone.preload), "-lcurl")
    assert alone.run(program, preload="").returncode == 42
    os.chmod(tmp_path, 0o755)
    for folder in tmp_path.parents:
        if str(folder).startswith("/tmp/"):
            os.chmod(folder, 0o755)
    os.chmod(program, 0o6755)
    os.chown(program, 65534, 65534)
    os.chmod(program, 0o6755)
    alone.log.unlink()
    assert alone.run(program, preload="").returncode == 7  # nobody listens: libcurl itself was reached
    assert not alone.log.exists()
