"""Inside one process: what libcurl says to a program is what it would have said natively."""
import re
import time

import pytest

from harness import SLOW, client

# case: what the server is asked to do
CASES = {
    "plain": "", "header": "", "fail": "status=404&exec=0", "timeout": "late=1.5", "timeout-seconds": "late=2.5",
    "low-speed": "trickle=0.3", "progress-abort": "late=3", "write-abort": "", "pause": "size=60000", "file": "", "stdout": "",
    "header-file": "", "no-error-buffer": "cut=1", "max-filesize": "size=100", "basic": "auth=basic", "digest": "auth=digest",
    "encoding": "gzip=1&chunked=1", "put": "", "reset": "", "duphandle": "",
}
MORE = {  # the same peculiarity against another server
    "fail-500": ("fail", "status=500"), "fail-401": ("fail", "auth=basic"), "fail-ok": ("fail", ""), "closed": ("plain", "cut=1"),
    "cut-body": ("plain", "cutbody=1&size=3000"), "cut-body-header": ("header", "cutbody=1&size=3000"), "103": ("plain", "early=103"),
    "chunked": ("plain", "chunked=1&size=40000"), "large": ("plain", "size=300000"), "429": ("plain", "status=429&exec=0&retry_after=3"),
    "redirect-not-followed": ("plain", "redirect=307&to=/orders?x"), "basic-wrong": ("plain", "auth=basic"), "cookie": ("plain", "cookie=1"),
    "timeout-in-body": ("timeout", "trickle=0.2"), "pause-chunked": ("pause", "chunked=1&size=60000"), "gzip-raw": ("plain", "gzip=1"),
    "nothing-listens": ("plain", None), "file-large": ("file", "size=3000"),
}
ALL = {**{name: (name, spec) for name, spec in CASES.items()}, **MORE}


def normal(text):
    """What may differ between two native runs, or because the URL does."""
    text = re.sub(r"req-\d+|\bs\d{6,}", "N", text)
    text = re.sub(r"after \d+ (milliseconds|ms)", r"after N \1", text)
    if "\nrc 0\n" not in text:
        text = re.sub(r"info times \w+", "info times any", text)
    text = re.sub(r'nonce="n\d+"', 'nonce="N"', text)
    return text.replace("/direct", "/orders").splitlines()


# What differs between two native runs of a case, or is known to differ and does no harm.
LOOSE = {
    "low-speed": r"body |info down ",  # how many of the trickling bytes had come
    "max-filesize": r"info (header_size|length_down) ",  # natively the line that is too much is not counted
}


def transcript(world, server, name, path, times=1, **env):
    case, spec = ALL[name]
    server.reset()
    base = server.base if spec is not None else "http://127.0.0.1:1"
    url = base + path + ("?" + spec if spec else "")
    result = world.run([client("diff"), case, url, str(times)], **env)
    assert result.rc == 0 and result.err == "", result
    loose = LOOSE.get(name)
    return [x for x in normal(result.out) if not loose or not re.match(loose, x)]


@pytest.mark.san
@pytest.mark.parametrize("name", ALL)
def test_differential(world, server, name):
    world.policy(match="POST,PUT,PATCH,DELETE http://127.0.0.1:*/orders", exit_wait="0s")
    native = transcript(world, server, name, "/orders", preload=False)
    unlisted = transcript(world, server, name, "/direct")
    ours = transcript(world, server, name, "/orders")
    assert unlisted == native
    assert ours == native


ADDED = re.compile(r"(header|next) (Idempotent-Replayed|Sendonce-Verdict)[:=]", re.I)
DROPPED = re.compile(r"(header|next) (Set-Cookie|Date|X-Request-Id)[:=]", re.I)
OWN = re.compile(r"info (header_size|connects|local_ip|times|errno) ")


def comparable(lines):
    return [x for x in lines if not ADDED.match(x) and not DROPPED.match(x) and not OWN.match(x)]


@pytest.mark.parametrize("name", ["plain", "header-file", "fail-ok", "large", "chunked", "cookie", "pause", "put", "duphandle", "file-large"])
def test_a_replay_is_told_like_the_first_answer(world, server, name):
    world.policy(match="POST,PUT,PATCH,DELETE http://127.0.0.1:*/orders")
    first = transcript(world, server, name, "/orders")
    executed = server.executions
    second = transcript(world, server, name, "/orders")
    assert executed == 1 and server.executions == 0 and not server.writes()
    assert [x for x in second if ADDED.match(x)] or name in ("header-file", "duphandle")
    if name in ("chunked", "header-file", "duphandle"):  # framing and header text are told in other words
        first = [x for x in first if x.startswith(("rc", "body", "error"))]
        second = [x for x in second if x.startswith(("rc", "body", "error"))]
        if name == "duphandle":
            first, second = first[:2], second[:2]
    assert comparable(second) == comparable(first)


# --- life of a process
def life(world, server, case, query, **env):
    started = time.monotonic()
    result = world.run([client("life"), case, server.base + "/orders?" + query], **env)
    assert result.err == "", result
    lines = {x.split()[0]: x for x in result.out.splitlines()}
    return result.rc, lines, time.monotonic() - started


@pytest.mark.san
def test_fork_with_a_write_in_flight(world, server):
    rc, lines, _ = life(world, server, "fork", "late=1.5")
    assert rc == 0
    assert "rc=0 status=201" in lines["thread"] and "rc=0 status=201" in lines["child"] and "rc=0 status=201" in lines["again"]
    assert lines["thread"].split("body=")[1] == lines["again"].split("body=")[1] != lines["child"].split("body=")[1]
    assert server.executions == 2 and len(server.writes()) == 2
    assert world.states() == ["done", "done"]


@pytest.mark.san
def test_fork_with_a_write_left_behind(world, server):
    rc, lines, _ = life(world, server, "fork-orphan", "late=1.5")
    assert rc == 0 and "rc=28" in lines["first"] and "rc=0 status=201" in lines["again"]
    assert server.executions == 1 and len(server.writes()) == 1
    assert world.states() == ["done"]


@pytest.mark.san
def test_a_program_that_closes_every_descriptor(world, server):
    rc, lines, _ = life(world, server, "close", "late=0.3")  # late: the answer comes while it is waited for
    assert rc == 0 and len(lines) == 3 and all("rc=0 status=201" in x for x in lines.values())
    assert "ord-1" in lines["first"] and "ord-1" in lines["second"] and "ord-2" in lines["third"]
    assert server.executions == 2


@pytest.mark.san
@pytest.mark.parametrize("case", ["exit", "cleanup"])
def test_exit_waits_for_the_answer(world, server, case):
    rc, lines, seconds = life(world, server, case, "late=1.5")
    assert rc == 0 and "rc=28" in lines["first"] and 1.4 < seconds < 3 * SLOW
    assert world.states() == ["done"]


@pytest.mark.parametrize("case", ["exit", "cleanup"])
def test_exit_is_bounded(world, server, case):
    world.policy(exit_wait="1s")
    rc, lines, seconds = life(world, server, case, "late=20")
    assert rc == 0 and "rc=28" in lines["first"] and 1.2 < seconds < 3 * SLOW
    assert world.states() == ["unknown"]


def test_exit_wait_zero(world, server):
    world.policy(exit_wait="0s")
    _, _, seconds = life(world, server, "exit", "late=20")
    assert seconds < 1.5 * SLOW and world.states() == ["unknown"]


def test_a_process_that_ends_without_goodbye_is_in_doubt(world, server):
    rc, lines, _ = life(world, server, "hard-exit", "late=20")
    assert rc == 0 and "rc=28" in lines["first"]
    answer = world.curl("-d", '{"n":1}', server.base + "/orders?late=20")
    assert answer.rc == 56 or answer.reason == "unknown-outcome"
    assert server.executions == 1
