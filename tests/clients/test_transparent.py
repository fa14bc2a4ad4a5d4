"""What no rule names is untouched, byte for byte; what a rule names differs by what has to be."""
import os
import re

import pytest

from test_bodies import without_key

REQUESTS = {
    "get": [],
    "head": ["-I"],
    "post": ["-d", "a=1"],
    "post-headers": ["-d", "a=1", "-H", "X-One: 1", "-H", "Accept:", "-A", "me", "-e", "there", "-b", "c=1"],
    "json": ["--json", '{"a":1}'],
    "upload": ["-T", "/etc/hostname"],
    "form": ["-F", "a=1", "-H", "Content-Type: multipart/form-data; boundary=fixed"],
    "put": ["-X", "PUT", "-d", "x"],
    "delete": ["-X", "DELETE"],
    "basic": ["-u", "u:p", "-d", "x"],
    "get-with-body": ["-X", "GET", "-d", "x"],
    "include": ["-i", "-d", "x"],
    "compressed": ["--compressed", "-d", "x"],
    "two": ["-d", "x", "--next", "-sS", "-d", "y"],
    "own-key": ["-H", "Idempotency-Key: mine", "-d", "x"],
}
SPECS = ["", "chunked=1&gzip=1", "early=103&cookie=1", "status=500", "status=404&exec=0"]


def output(world, server, args, url, **env):
    server.reset()
    args = [x for a in args for x in ([url, a] if a == "--next" else [a])]
    result = world.run(["curl", "-q", "-sS", *args, url], text=False, **env)
    return [r.raw for r in server.requests], re.sub(rb"req-\d+|s\d{6,}", b"N", result.out), result.err, result.rc


def boundary(raws):
    """curl makes a random boundary: it is no difference."""
    return [re.sub(rb"-{20,}[0-9a-zA-Z]+", b"BOUNDARY", r) for r in raws]


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_no_rule_names(world, server, name):
    for spec in SPECS:
        url = server.base + "/other" + ("?" + spec if spec else "")
        native = output(world, server, REQUESTS[name], url, preload=False)
        ours = output(world, server, REQUESTS[name], url)
        assert boundary(ours[0]) == boundary(native[0])
        assert ours[1:] == native[1:]
    assert world.events() == []


@pytest.mark.san
@pytest.mark.parametrize("first", [1, 12, 24, 30, 60])
def test_a_head_in_two_segments(world, server, first):
    """curl -i asks for the scheme at every header line, so it must be known at the first one."""
    world.policy()
    url = server.base + "/orders?split=%d" % first
    native = output(world, server, ["-i", "-d", "x"], url, preload=False)
    ours = output(world, server, ["-i", "-d", "x"], url)
    assert ours[1:] == native[1:] and ours[1].startswith(b"HTTP/1.1 201")


def test_verbose_output_is_the_same(world, server):
    text = lambda **env: re.sub(rb"req-\d+|port \d+|after \d+ ms", b"N", world.run(
        ["curl", "-q", "-sv", "-d", "x", server.base + "/other"], text=False, **env).err)
    assert text(preload=False) == text()


@pytest.mark.parametrize("name", ["no_proxy", "NO_PROXY"])
def test_verbose_output_of_a_write_differs_by_its_key(world, server, name):
    """Also what is said before the transfer begins: hosts without a proxy, from the environment."""
    world.policy()
    env = {"no_proxy": None, name: "localhost,127.0.0.1"}

    def text(**more):
        found = world.run(["curl", "-q", "-sv", "-d", "x", server.base + "/orders"], text=False, **env, **more).err
        lines = re.sub(rb"req-\d+|port \d+|after \d+ ms", b"N", found).splitlines()
        return [x for x in lines if not x.startswith(b"> Idempotency-Key: ")]

    native = text(preload=False)
    assert native[0] == b"* Uses proxy env variable %s == 'localhost,127.0.0.1'" % name.encode()
    assert text() == native


def test_the_built_in_meter_is_drawn(world, server):
    """curl with its answer in a file: heading, first and last row, speeds and times aside."""
    world.policy(match="POST http://127.0.0.1:*/orders")
    body = world.write("body", "x" * 9000)

    def rows(n, **env):
        result = world.run(["curl", "-q", "-o", "answer", "-d", "@" + body, "%s/orders?size=300&n=%d" % (server.base, n)],
                           text=False, **env)
        head, *rows = result.err.split(b"\r")
        assert result.rc == 0 and rows and [r.endswith(b"\n") for r in rows] == [False] * (len(rows) - 1) + [True]
        return head, rows[0][:31], rows[-1][:31]

    native = rows(1, preload=False)
    assert native[2].startswith(b"100  9") and native[2].endswith(b"100  9000")
    assert rows(2) == native                # executed
    assert rows(2)[0::2] == native[0::2]    # replayed


def test_the_meters_last_row(world, server):
    """Its speeds are those of all that went, over the time it took, also where nothing came for long."""
    def row(preload):
        result = world.run(["curl", "-q", "-d", "x" * 3000, "-o", "out", server.base + "/orders?size=3000&late=1.3"], preload=preload)
        last = re.split(r"[\r\n]+", result.err.strip())[-1].split()
        return result.seconds, last[:6], [int(n) for n in (last[6], last[7], last[11])]
    (took, columns, speeds), (natively, same, native) = row(True), row(False)
    assert columns == same
    for ours, theirs in zip(speeds, native):
        assert abs(ours * took / (theirs * natively) - 1) < 0.15, (speeds, native)


@pytest.mark.parametrize("name", [n for n in REQUESTS if n not in ("get", "head", "upload", "form", "own-key", "get-with-body", "two")])
def test_a_protected_write_differs_by_its_key_only(world, server, name):
    world.policy(match="POST,PUT,PATCH,DELETE http://127.0.0.1:*/orders")
    url = server.base + "/orders"
    native = output(world, server, REQUESTS[name], url, preload=False)
    ours = output(world, server, REQUESTS[name], url)
    assert [without_key(r) for r in ours[0]] == native[0]
    assert ours[2:] == native[2:] and without_verdict(ours[1]) == native[1]


def test_stdin_that_is_not_ready(world, server):
    """`curl -T .` pauses where nothing is there, and goes on in its progress callback. Nobody knows how much will come."""
    world.policy(match="PUT http://127.0.0.1:*/orders")
    line = "(echo a; sleep 0.2; echo b; sleep 0.2; echo c) | curl -q -v -T . %s/orders" % server.base

    def run(preload):
        server.reset()
        result = world.run(["sh", "-c", line], preload=preload)
        return result.seconds, re.split(r"[\r\n]+", result.err.strip())[-1].split()[:6], [r.body for r in server.requests]
    (took, *ours), (natively, *native) = run(True), run(False)
    assert ours == native and server.executions == 1
    assert took < natively + 0.5


def without_verdict(out):
    return b"\n".join(x for x in out.split(b"\n") if not x.startswith(b"Sendonce-Verdict: "))


def test_the_programs_own_key_is_trusted_and_unchanged(world, server):
    native = output(world, server, REQUESTS["own-key"], server.base + "/orders", preload=False)
    assert output(world, server, REQUESTS["own-key"], server.base + "/orders") == native


def test_the_programs_own_key_is_replayed_in_any_run_and_a_new_one_is_new_intent(world, server):
    send = lambda key, **env: world.curl("-H", "Idempotency-Key: " + key, "-d", "x", server.base + "/orders", **env)
    first = send("one")
    assert send("one", run="run-2").order == first.order
    second = send("two")
    assert second.order != first.order and server.keys() == ["one", "two"]


def test_multi_that_no_rule_names_says_nothing(world, server):
    world.post("--loop", "poll", server.base + "/other")
    assert world.events() == []


def test_events_carry_no_body_no_query_and_no_credential(world, server):
    world.curl("-u", "someone:pa55word", "-H", "Authorization: Bearer s3cr3t-token", "-d", '{"card":"4242424242424242"}',
               server.base + "/orders?token=q-secret")
    world.curl("-d", '{"card":"4242424242424242"}', server.base + "/orders?status=500&token=q-secret")
    world.curl("-d", '{"card":"4242424242424242"}', server.base + "/orders?status=500&token=q-secret")
    for name in ("events.jsonl", "log", "ledger"):
        if os.path.exists(world.path(name)):
            data = open(world.path(name), "rb").read()
            for secret in (b"4242424242", b"pa55word", b"s3cr3t", b"q-secret"):
                assert secret not in data, (name, secret)
    assert len(world.events()) >= 3


def test_events_have_the_fields(world, server):
    world.curl("-d", "x", server.base + "/orders", run="r-7", scope="s-7")
    event = world.events("write")[0]
    assert {k: event[k] for k in ("run", "scope", "mode", "operation", "method", "path", "verdict", "outcome", "status", "wire_sends",
                                  "generation", "served")} == {
        "run": "r-7", "scope": "s-7", "mode": "enforce", "operation": "orders.create", "method": "POST", "path": "/orders",
        "verdict": "execute", "outcome": "done", "status": 201, "wire_sends": 1, "generation": 1, "served": "courier"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", event["time"])
    assert len(event["key"]) == 8 and len(event["fingerprint"]) == 16 and server.keys()[0].startswith(event["key"])
    assert event["exe"].endswith("curl") and event["pid"] > 0


def test_without_a_scope_there_is_one_warning(world, server):
    for body in "xy":
        assert world.curl("-d", body, server.base + "/orders", scope=None).status == 201
    assert server.executions == 2
    assert 1 <= len(world.events("warning")) <= 2  # one a process
    assert not world.curl("-d", "x", server.base + "/other", scope=None).err
