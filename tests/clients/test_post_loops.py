"""Writes through the multi interface: each verdict in each way of waiting that programs have."""
import re
import socket

import pytest

from harness import PROVIDER, client

LOOPS = ["poll", "wait", "select", "fdset", "epoll"]


@pytest.fixture(params=LOOPS)
def loop(request):
    return ["--loop", request.param]


def test_execute_and_replay(world, server, loop):
    """Three tries, one order; a program with another timeout joins nothing."""
    answers = world.post(*loop, "--tries", "3", server.base + "/orders")
    assert [a.order for a in answers] == ["ord-1"] * 3
    assert [a.replayed for a in answers] == [False, True, True]
    assert server.executions == 1 and world.states() == ["done"]
    assert [e["verdict"] for e in world.events("write")] == ["execute", "replay", "replay"]
    assert world.events("unprotected") == []


def test_the_same_bytes_leave(world, server, loop):
    """But for the key, whose value is not compared."""
    world.post(*loop, server.base + "/orders?n=1")
    world.post(*loop, server.base + "/orders?n=1", preload=False)
    protected, native = [[line for line in r.raw.split(b"\r\n") if not line.startswith(b"Idempotency-Key:")]
                         for r in server.writes()]
    assert protected == native


def test_late_answers_are_joined_in_this_process(world, server, loop):
    """The first try gives up, the second joins the sending that goes on."""
    answers = world.post(*loop, "--timeout-ms", "300,5000", "--tries", "2", server.base + "/orders?late=1")
    assert [a.rc for a in answers] == [28, 0]
    after = "Operation timed out after " + ("1" if "fdset" in loop else "3")  # nothing tells select of a deadline
    assert answers[0].err.startswith(after) and answers[1].order == "ord-1"
    assert server.executions == 1


def test_late_answers_are_joined_from_another_process(world, server, loop):
    first = world.start([client("post"), "--loop", "poll", server.base + "/orders?late=1.5"])
    assert server.wait_for(lambda s: s.executions == 1)
    joined, = world.post(*loop, server.base + "/orders?late=1.5")
    assert joined.seconds < 2.5
    leader = world.finish(first)
    assert joined.order == "ord-1" and "ord-1" in leader.out
    assert server.executions == 1 and "join" in [e["verdict"] for e in world.events("write")]


def test_a_doubt_is_refused(world, server, loop):
    answers = world.post(*loop, "--tries", "2", server.base + "/orders?cut=1")
    assert answers[0].rc == 52
    assert answers[1].rc == 56 and answers[1].err.startswith("sendonce: unknown-outcome")
    assert server.executions == 1 and world.states() == ["unknown"]


def test_a_refusal_as_an_answer(world, server, loop):
    world.policy(refuse_as="response")
    answers = world.post(*loop, "--tries", "2", server.base + "/orders?cut=1")
    assert answers[1].status == 424 and answers[1].reason == "unknown-outcome" and answers[1].problem
    assert server.executions == 1


def test_a_doubt_is_sent_again_where_the_provider_dedups(world, server, loop):
    world.policy(provider=PROVIDER)
    url = server.base + "/orders?cut=1&times=1&keys=honour"
    answers = world.post(*loop, "--tries", "2", url)
    assert answers[0].rc == 52 and answers[1].order == "ord-1"
    assert server.executions == 1 and len(set(server.keys())) == 1 and len(server.keys()) == 2


@pytest.mark.parametrize("kind", ["read", "upload", "mime"])
def test_bodies(world, server, loop, kind):
    answers = world.post(*loop, "--method", "POST", "--kind", kind, "--tries", "2", server.base + "/orders")
    assert [a.order for a in answers] == ["ord-1"] * 2
    assert server.executions == 1 and world.events("unprotected") == []


@pytest.fixture
def dead_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        yield s.getsockname()[1]


def test_a_refused_connection_frees_the_write(world, dead_port, loop):
    answers = world.post(*loop, "--tries", "2", "http://127.0.0.1:%d/orders" % dead_port)
    assert [a.rc for a in answers] == [7, 7]
    native, = world.post(*loop, "http://127.0.0.1:%d/orders" % dead_port, preload=False)
    texts = {re.sub(r"after \d+ ms", "", a.err) for a in [native, *answers]}
    assert len(texts) == 1 and texts.pop().startswith("Failed to connect to 127.0.0.1")


def test_redirects_into_a_rule_are_refused(world, server, loop):
    answer, = world.post(*loop, "--follow", server.base + "/other?redirect=307&to=/orders")
    assert answer.status == 403 and answer.reason == "redirected-into-rule"
    assert server.executions == 0


def test_a_policy_that_cannot_be_used(world, server, loop):
    world.write("policy.yaml", "version: 7\n")
    answer, = world.post(*loop, server.base + "/orders")
    assert answer.status == 503 and answer.reason == "policy-invalid"
    assert server.requests == []


def test_audit(world, server, loop):
    answers = world.post(*loop, "--tries", "2", server.base + "/orders", SENDONCE_MODE="audit")
    assert [a.order for a in answers] == ["ord-1", "ord-2"]
    assert server.keys() == [None, None]
    first, second = world.events("write")
    assert first["fingerprint"] == second["fingerprint"] and first["wire_sends"] == 1


def test_inject(world, server, loop):
    answers = world.post(*loop, "--tries", "2", server.base + "/orders?keys=honour&busy=wait", SENDONCE_MODE="inject")
    assert [a.order for a in answers] == ["ord-1"] * 2
    assert len(set(server.keys())) == 1 and server.keys()[0] and len(server.keys()) == 2


def test_failonerror(world, server, loop):
    answer, = world.post(*loop, "--fail", server.base + "/orders?status=402")
    assert answer.rc == 22 and answer.err == "The requested URL returned error: 402"


# --- in place: in the program's own multi, by libcurl

def test_in_place(world, server, loop):
    answers = world.post(*loop, "--in-place", "--keep", "--tries", "3", server.base + "/orders")
    assert [a.order for a in answers] == ["ord-1"] * 3 and [a.replayed for a in answers] == [False, True, True]
    assert server.executions == 1 and world.states() == ["done"]
    assert [e.get("served") for e in world.events("write")] == ["in-place", None, None]


def test_in_place_a_deadline_leaves_a_doubt(world, server, loop):
    answers = world.post(*loop, "--in-place", "--timeout-ms", "300,5000", "--tries", "2", server.base + "/orders?late=1")
    assert [a.rc for a in answers] == [28, 56] and answers[1].err.startswith("sendonce: unknown-outcome")
    assert server.executions == 1 and world.states() == ["unknown"]


def test_in_place_libcurl_sends_once(world, server, loop):
    """The second write goes out on a connection that dies under it: not sent again, and not taken for success."""
    world.policy(repeat="after-answer")
    answers = world.post(*loop, "--in-place", "--keep", "--vary", "--tries", "2", server.base + "/orders?die=1")
    assert [a.rc for a in answers] == [0, 56], answers
    assert answers[1].err.startswith("sendonce: the connection died before an answer came")
    assert server.executions == 2 == len(server.writes())
    assert world.stats()["wire_resends_blocked"] == 1


def test_in_place_native_sends_twice(world, server, loop):
    """What the test before is about: libcurl alone executes the second write twice, and says all is well."""
    answers = world.post(*loop, "--in-place", "--keep", "--vary", "--tries", "2", server.base + "/orders?die=1", preload=False)
    assert [a.rc for a in answers] == [0, 0] and server.executions == 3


def test_a_redirected_resend_is_stopped_at_the_rule(world, server, loop):
    """An unlisted write that a redirect leads to a listed target, over a connection kept from before."""
    answers = world.post(*loop, "--keep", "--follow", "--tries", "2", server.base + "/other?redirect=307&to=/orders")
    assert [a.reason for a in answers] == ["redirected-into-rule"] * 2
    assert server.executions == 0


def test_curl_parallel(world, server):
    argv = ["curl", "-q", "-sS", "-Z", "-d", "x", server.base + "/orders?n=1", "--next", "-d", "y", server.base + "/orders?n=2"]
    for _ in range(2):
        result = world.run(argv)
        assert result.rc == 0 and "ord-1" in result.out and "ord-2" in result.out, result
    assert server.executions == 2 and world.events("unprotected") == []
