"""An answer that says "still in progress": the same request goes out again with its key, whoever sends it.

Everything here is asked of the courier and of a handle in place, by curl_easy_perform and in a loop: the ledger,
the event and what the program sees are the same.
"""
import os
import signal
import time

import pytest

from harness import PROVIDER, SLOW, client, parallel
from server import Listener, OrderServer

SERVED = {"courier": [], "in-place": ["--in-place"]}
WAYS = {"easy": [], "poll": ["--loop", "poll"], "epoll": ["--loop", "epoll"]}
KINDS = ["fields", "empty", "read", "upload", "mime"]
ALL = [(x, y) for x in SERVED for y in WAYS]
BOTH = ALL if os.environ.get("SENDONCE_SOAK") else [("courier", "easy"), ("in-place", "epoll")]


@pytest.fixture(params=BOTH, ids="-".join)
def both(request):
    return request.param


@pytest.fixture
def served(both):
    return both[0]


@pytest.fixture
def way(both):
    return WAYS[both[1]]


def rule(world, **more):
    answers = {"in_progress": [409]}
    return world.policy(match="POST,PUT http://127.0.0.1:*/orders", **dict({"provider": PROVIDER, "answers": answers}, **more))


def write(world, served, way, url, *args, **env):
    return world.post(*SERVED[served], *way, *args, url, **env)


def told(world):
    return [(e["verdict"], e.get("outcome"), e.get("status", 0), e.get("curlcode", 0), e.get("wire_sends"), e.get("served"))
            for e in world.events("write")]


@pytest.mark.san
@pytest.mark.parametrize("both", ALL, ids="-".join)
def test_it_is_asked_again_until_there_is_an_answer(world, server, served, way):
    rule(world)
    url = server.base + "/orders?status=409&exec=0&times=2"

    def one(kind):
        first, second = write(world, served, way, url + "&kind=" + kind, "--kind", kind, "--tries", "2")
        assert (first.rc, first.status, first.err) == (0, 201, ""), (kind, first)
        assert second.replayed and second.order == first.order, kind
        sent = [r for r in server.writes() if r.spec["kind"] == kind]
        assert len(sent) == 3 and len({r.key for r in sent}) == 1 and sent[0].key, kind
        assert len({(r.method, r.content) for r in sent}) == 1, kind

    parallel(*[lambda kind=kind: one(kind) for kind in KINDS])
    assert server.executions == len(KINDS) and world.states() == ["done"] * len(KINDS)
    firsts = [x for x in told(world) if x[0] == "execute"]
    assert firsts == [("execute", "done", 201, 0, 3, served)] * len(KINDS)


@pytest.mark.san
def test_the_programs_deadline_ends_it_and_the_next_try_asks_again(world, server, served, way):
    """Nothing of the answers is shown, the record is in doubt, and the key that was sent is the way out."""
    rule(world)
    url = server.base + "/orders?status=409&exec=0&times=%d" % (3 if SLOW == 1 else 4)
    slow = 1200 * SLOW
    first, second = write(world, served, way, url, "--tries", "2", "--gap-ms", "300", "--timeout-ms", "%d,0" % slow)
    assert (first.rc, first.status, first.body) == (28, 0, ""), first
    assert first.err.startswith("Operation timed out after %d" % (slow // 1000)) and "0 bytes received" in first.err
    assert first.seconds < 1.2 * SLOW + 0.5 * SLOW
    assert (second.rc, second.order) == (0, "ord-1")
    assert server.executions == 1 and len(set(server.keys())) == 1
    assert told(world)[0][:4] == ("execute", "in-progress", 409, 28), told(world)
    assert told(world)[1][:4] == ("resend", "done", 201, 0)
    assert world.states() == ["done"]


def test_the_record_is_in_doubt_in_between(world, server, served, way):
    rule(world)
    url = server.base + "/orders?status=409&exec=0"
    first, = write(world, served, way, url, "--timeout-ms", str(600 * SLOW))
    assert first.rc == 28 and world.states() == ["unknown"]
    rule(world, on_unknown="refuse")
    second, = write(world, served, way, url)
    assert second.rc == 56 and second.err.startswith("sendonce: unknown-outcome"), second


def test_a_provider_that_forgets_the_key_is_not_asked_again(world, server, served, way):
    """Then that answer is the answer, and the program gets it as it came."""
    rule(world, provider={"dedups": True, "key_ttl": "61s", "stores": ["2xx"]})
    url = server.base + "/orders?status=409&exec=0"
    native, = write(world, served, way, url, preload=False)
    server.reset()
    first, = write(world, served, way, url)
    assert (first.rc, first.status, first.body, first.err) == (native.rc, native.status, native.body, native.err)
    assert 2 <= len(server.writes()) <= 4 and len(set(server.keys())) == 1
    assert world.states() == ["unknown"] and told(world)[0][:4] == ("execute", "in-progress", 409, 0)


def test_so_it_is_with_failonerror(world, server, served, way):
    rule(world)
    url = server.base + "/orders?status=409&exec=0&times=2"
    first, = write(world, served, way, url, "--fail")
    assert (first.rc, first.status, first.err) == (0, 201, "") and server.executions == 1
    server.reset()
    rule(world, provider={"dedups": True, "key_ttl": "61s", "stores": ["2xx"]})
    url = server.base + "/orders?status=409&exec=0"
    native, = write(world, served, way, url, "--fail", "--body", "b", preload=False)
    ours, = write(world, served, way, url, "--fail", "--body", "b")
    assert (ours.rc, ours.status, ours.body, ours.err) == (native.rc, native.status, native.body, native.err)
    assert ours.rc == 22 and told(world)[-1][:4] == ("execute", "in-progress", 409, 22)


def test_retry_after_says_when(world, server, served, way):
    rule(world)
    first, = write(world, served, way, server.base + "/orders?status=409&exec=0&times=1&retry_after=1")
    assert first.status == 201 and 0.9 < first.seconds < 2 * SLOW
    one, two = server.writes()
    assert two.at - one.at >= 0.9


def test_a_connection_that_is_lost_meanwhile_leaves_a_doubt(world, served, way):
    """Nothing listens any more when the request is to go out again."""
    rule(world)
    with OrderServer() as server:
        process = world.start([client("post"), *SERVED[served], *way, server.base + "/orders?status=409&exec=0&retry_after=1"])
        assert server.wait_for(lambda s: s.writes())
        server.close()
    line = world.finish(process).out
    answer = world.post_answer(line.strip())
    assert (answer.rc, answer.status, answer.body) == (7, 0, ""), answer
    assert world.states() == ["unknown"] and told(world)[0][:2] == ("execute", "unknown")


def test_a_write_of_a_killed_program(world, server, served, way):
    """It is still under way at the provider."""
    rule(world)
    url = server.base + "/orders?keys=honour&times=1&late=1.5"
    process = world.start([client("post"), *SERVED[served], *way, url])
    assert server.wait_for(lambda s: s.writes())
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    answer, = write(world, served, way, url)
    assert (answer.status, answer.order) == (201, "ord-1")
    assert server.executions == 1 and len(set(server.keys())) == 1 and world.states() == ["done"]
    assert told(world)[0][:2] == ("resend", "done")


def test_who_waits_in_another_process_goes_on_asking(world, server, served, way):
    """The one that asked first gives up; the other one still waits."""
    rule(world)
    url = server.base + "/orders?status=409&exec=0&times=3"
    leader = world.start([client("post"), *SERVED[served], *way, "--timeout-ms", str(1000 * SLOW), url])
    assert server.wait_for(lambda s: s.writes())
    answer, = write(world, served, way, url)
    assert "rc=28" in world.finish(leader).out
    assert (answer.status, answer.order) == (201, "ord-1"), answer
    assert server.executions == 1 and len(set(server.keys())) == 1


# --- in place: what the program's own handle shows of it

class Seen:
    """What the C client's callbacks were given."""

    def __init__(self, line):
        head, error, text = line.split("\t")
        self.facts = dict(x.split("=", 1) for x in head.split(" ")[1:])
        self.error, self.text = error, text.split("text=", 1)[1]


def seen(world, url, *words, **env):
    result = world.run([client("inplace"), url, "sockopt", *words], **env)
    assert result.rc == 0 and result.err == "", result
    return [Seen(x) for x in result.out.splitlines() if "\t" in x]


@pytest.mark.san
@pytest.mark.parametrize("words", [[], ["include"], ["failonerror"]], ids=str)
def test_callbacks_see_the_last_answer_alone(world, server, words):
    rule(world)
    native, = seen(world, server.base + "/orders", *words, preload=False)
    server.reset()
    ours, = seen(world, server.base + "/orders?status=409&exec=0&times=1", *words)
    assert int(ours.facts.pop("sockopt")) - int(native.facts.pop("sockopt")) == ("failonerror" in words)  # its connections end
    assert ours.facts == native.facts and ours.error == native.error
    assert [x.split(" ")[:2] for x in (ours.text, native.text)] == [native.text.split(" ")[:2]] * 2
    assert "409" not in ours.text and server.executions == 1


@pytest.mark.san
@pytest.mark.parametrize("words", [[], ["include"], ["failonerror"], ["include", "failonerror"]], ids=str)
def test_or_this_one_if_it_is_the_last(world, server, words):
    rule(world, provider={"dedups": True, "key_ttl": "61s", "stores": ["2xx"]})
    url = server.base + "/orders?status=409&exec=0&retry_after=1"
    native, = seen(world, url, *words, preload=False)
    ours, = seen(world, url, *words)
    del native.facts["timed"], ours.facts["timed"], native.facts["opensocket"], ours.facts["opensocket"]
    native.facts["sockopt"] = ours.facts["sockopt"]  # a connection that FAILONERROR has ended is made anew
    assert ours.facts == native.facts and ours.error == native.error
    assert ours.text.split("req-")[0] == native.text.split("req-")[0] and len(server.writes()) >= 3


@pytest.mark.san
def test_the_same_write_from_a_callback_meanwhile_is_refused(world, server):
    """The handle is at rest, but its call is not over."""
    rule(world)
    code = ("import pycurl, sys\nc, inner, got = pycurl.Curl(), pycurl.Curl(), []\n"
            "def again(*_):\n"
            "    if len(got) < 1:\n"
            "        got.append(0)\n"
            "        inner.perform()\n"
            "        got[0] = inner.getinfo(inner.RESPONSE_CODE)\n"
            "        try:\n            c.perform()\n        except pycurl.error as e:\n            got.append(e.args[0])\n"
            "for h in c, inner:\n"
            "    h.setopt(h.URL, sys.argv[1])\n    h.setopt(h.POSTFIELDS, 'n=1')\n    h.setopt(h.WRITEFUNCTION, lambda b: None)\n"
            "c.setopt(c.SOCKOPTFUNCTION, lambda fd, purpose: 0)\n"
            "seen = [0]\n"
            "def tick(*_):\n    seen[0] += 1\n    if seen[0] > 3: again()\n"
            "c.setopt(c.NOPROGRESS, 0)\nc.setopt(c.XFERINFOFUNCTION, tick)\n"
            "c.perform()\nprint(c.getinfo(c.RESPONSE_CODE), got[0])\n")
    result = world.run(["/usr/bin/python3", "-c", code, server.base + "/orders?status=409&exec=0&times=1&retry_after=3"])
    assert result.rc == 0 and result.out == "201 409\n", result
    assert server.executions == 1 and "in-progress" in [e["reason"] for e in world.events("refusal")]


REMOVED = """
import pycurl, sys, time
m, c = pycurl.CurlMulti(), pycurl.Curl()
c.setopt(c.URL, sys.argv[1])
c.setopt(c.POSTFIELDS, "n=1")
c.setopt(c.WRITEFUNCTION, lambda b: None)
c.setopt(c.SOCKOPTFUNCTION, lambda fd, purpose: 0)
m.add_handle(c)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    m.perform()
    m.select(0.05)
if sys.argv[3] == "remove":
    m.remove_handle(c)
    print(c.getinfo(c.RESPONSE_CODE))
elif sys.argv[3] == "cleanup":
    c.close()
else:
    m.close()
"""


@pytest.mark.san
@pytest.mark.parametrize("end", ["remove", "cleanup", "close"])
def test_a_handle_that_is_removed_meanwhile(world, server, end):
    rule(world)
    url = server.base + "/orders?status=409&exec=0&times=1&retry_after=30"
    result = world.run(["/usr/bin/python3", "-c", REMOVED, url, str(0.5 * SLOW), end])
    assert result.rc == 0 and result.err == "" and result.out in ("0\n", ""), result
    assert world.states() == ["unknown"] and told(world)[0][:2] == ("execute", "in-progress")
    assert told(world)[0][2] == 409 and len(server.writes()) == 1
    later = world.curl("-d", "n=1", url)
    assert later.order == "ord-1" and len(set(server.keys())) == 1 and told(world)[1][:2] == ("resend", "done")


class Talkative(Listener):
    """Says "in progress" at length, `times` times, and then that it is done."""

    def __init__(self, times, pause=0):
        super().__init__()
        self.left, self.asked, self.pause = times, 0, pause

    def serve(self, sock, number):
        while True:
            head = b""
            while not head.endswith(b"n=1"):
                data = sock.recv(65536)
                if not data:
                    return
                head += data
            self.asked += 1
            self.left -= 1
            body = b"x" * (3 << 20) if self.left >= 0 else b"done"
            sock.sendall(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n" % (b"409 Wait" if self.left >= 0 else b"201 Made", len(body)) + body[:9])
            time.sleep(self.pause)
            sock.sendall(body[9:])


@pytest.mark.san
def test_an_answer_too_large_to_be_kept_is_not_waited_for(world):
    rule(world)
    with Talkative(2) as server:
        answer, = write(world, "in-place", [], "http://127.0.0.1:%d/orders" % server.port, "--body", "n=1")
    assert (answer.status, answer.body, answer.err, server.asked) == (201, "done", "", 3)
    rule(world, provider={"dedups": True, "key_ttl": "61s", "stores": ["2xx"]})
    with Talkative(9, 1.2) as server:  # until the key is forgotten
        answer, = write(world, "in-place", [], "http://127.0.0.1:%d/orders?again" % server.port, "--body", "n=1")
    assert answer.rc == 56 and "in progress" in answer.err and "too large" in answer.err, answer
