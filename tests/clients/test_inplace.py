"""In place: handles with callbacks that only their own transfer can run are protected on themselves."""
import re

import pytest

from harness import PROVIDER, SLOW, client, parallel
from server import ConnectProxy, OrderServer

UNMOVABLE = ["sockopt", "opensocket", "closesocket", "prereq"]
REASON = {"sockopt": "SOCKOPTFUNCTION", "opensocket": "OPENSOCKETFUNCTION", "closesocket": "CLOSESOCKETFUNCTION",
          "prereq": "PREREQFUNCTION"}
COUNTER = {"sockopt": "in_place_socket", "opensocket": "in_place_socket", "closesocket": "in_place_socket",
           "prereq": "in_place_prereq"}


class Line:
    """One perform of the C client."""

    def __init__(self, text):
        head, self.error, self.text = text.split("\t")
        self.error, self.text = self.error.split("=", 1)[1], self.text.split("=", 1)[1]
        self.name, *pairs = head.split(" ")
        for pair in pairs:
            name, value = pair.split("=", 1)
            setattr(self, name, int(value) if value.lstrip("-").isdigit() else value)

    @property
    def order(self):
        found = re.search(r'"id": ?"([^"]+)', self.text)
        return found.group(1) if found else None


def inplace(world, url, *words, **env):
    result = world.run([client("inplace"), url, *words], **env)
    assert result.rc == 0 and result.err == "", result
    return [Line(x) for x in result.out.splitlines() if "\t" in x]


def write_events(world):
    return world.events("write")


@pytest.mark.san
@pytest.mark.parametrize("why", UNMOVABLE)
def test_once_and_then_replayed(world, server, why):
    first, second = inplace(world, server.base + "/orders", why, "times=2")
    assert (first.rc, first.status, second.rc, second.status) == (0, 201, 0, 201)
    assert getattr(first, why) == (why != "closesocket"), "its own callback ran; the connection stays open"
    assert second.order == first.order and server.executions == 1
    third, = inplace(world, server.base + "/orders", why)
    assert third.order == first.order and server.executions == 1
    assert getattr(third, why) == 0, "a replay opens no connection"
    assert server.keys() == [world.records()[0]["key"]]
    events = write_events(world)
    assert [e["verdict"] for e in events] == ["execute", "replay", "replay"]
    assert (events[0]["served"], events[0]["reason"], events[0]["wire_sends"]) == ("in-place", REASON[why], 1)
    assert (events[0]["outcome"], events[0]["status"], events[0]["curlcode"]) == ("done", 201, 0)
    assert "served" not in events[1]
    stats = world.stats()
    assert (stats["executed"], stats["in_place"], stats[COUNTER[why]], stats["unprotected"]) == (1, 1, 1, 0)


@pytest.mark.san
def test_a_timeout_leaves_it_unknown_and_a_retry_is_refused(world, server):
    url = server.base + "/orders?late=1.5&times=1"
    first, = inplace(world, url, "opensocket", "timeout=%d" % (400 * SLOW))
    assert (first.rc, first.status) == (28, 0)
    second, = inplace(world, url, "opensocket")
    assert second.rc == 56 and "unknown" in second.error, second.error
    assert server.executions == 1 and world.states() == ["unknown"]
    assert [e["outcome"] for e in write_events(world)] == ["unknown"]
    assert world.events("refusal")[0]["reason"] == "unknown-outcome"


@pytest.mark.san
def test_a_provider_that_knows_the_key_is_asked_again(world, server):
    world.policy(provider=PROVIDER)
    url = server.base + "/orders?late=1.5&times=1&keys=honour&busy=wait"
    first, = inplace(world, url, "sockopt", "timeout=%d" % (400 * SLOW))
    second, = inplace(world, url, "sockopt")
    assert (first.rc, second.rc, second.status) == (28, 0, 201)
    assert server.executions == 1
    assert len(server.keys()) == 2 and len(set(server.keys())) == 1
    assert [e["verdict"] for e in write_events(world)] == ["execute", "resend"]
    assert world.states() == ["done"]


def test_the_programs_own_key_is_left_alone(world, server):
    line, = inplace(world, server.base + "/orders", "opensocket", "header=idempotency-key: mine-1", "header=X-Other: 1")
    assert line.status == 201
    request = server.writes()[0]
    assert [v.strip() for k, v in request.headers if k.lower() == "idempotency-key"] == ["mine-1"]
    assert request.header("X-Other") == "1"


def test_another_process_joins_it(world, server):
    url = server.base + "/orders?late=1.2"

    def slow():
        return inplace(world, url, "opensocket")[0]

    def late():
        server.wait_for(lambda s: s.requests)
        return inplace(world, url, "opensocket")[0]

    first, second = parallel(slow, late)
    assert (first.status, second.status, first.order) == (201, 201, second.order)
    assert second.opensocket == 0 and server.executions == 1
    assert sorted(e["verdict"] for e in write_events(world)) == ["execute", "join"]


BODIES = """
import io, pycurl, sys
kind, url, tries, timeout = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
c = pycurl.Curl()
c.setopt(c.SOCKOPTFUNCTION, lambda fd, purpose: 0)
got = []
c.setopt(c.WRITEFUNCTION, got.append)
for n in range(tries):
    c.setopt(c.TIMEOUT_MS, 0 if n else timeout)
    body = io.BytesIO(b"body " * 2000)
    c.setopt(c.URL, url)
    if kind == "form":
        c.setopt(c.HTTPPOST, [("a", "1"), ("f", (c.FORM_BUFFER, "x.txt", c.FORM_BUFFERPTR, b"content " * 500))])
    elif kind == "fields":
        c.setopt(c.POSTFIELDS, "a=1")
    else:
        c.setopt(c.UPLOAD, 1)
        c.setopt(c.CUSTOMREQUEST, "POST")
        c.setopt(c.READFUNCTION, body.read)
        c.setopt(c.INFILESIZE, 10000 if kind == "known" else -1)
    try:
        c.perform()
        print(c.getinfo(c.RESPONSE_CODE), b"".join(got).decode())
    except pycurl.error as e:
        print("error", e.args[0])
    del got[:]
# and the handle is the program's again
c.setopt(c.URL, url.split("/orders")[0] + "/free")
if kind not in ("form", "fields"):
    c.setopt(c.READFUNCTION, io.BytesIO(b"last " * 2000).read)
c.setopt(c.TIMEOUT_MS, 0)
c.perform()
"""


@pytest.mark.san
@pytest.mark.parametrize("kind", ["fields", "known", "chunked", "form"])
def test_bodies_of_every_kind(world, server, kind):
    world.policy(provider=PROVIDER)

    def sent(fault, tries, timeout, **env):
        server.reset()
        result = world.run(["/usr/bin/python3", "-c", BODIES, kind, server.base + "/orders?keys=honour&busy=wait" + fault, tries, timeout],
                           **env)
        assert result.rc == 0 and result.err == "", result
        return result.out.splitlines(), server.writes("/orders"), server.writes("/free")

    native, orders, free = sent("", "1", "0", preload=False)
    bare = [re.sub(rb"-{20}\w+", b"B", x.raw) for x in orders]
    ours, orders, again = sent("&late=1.5&times=1", "3", str(500 * SLOW))
    assert ours[0] == "error 28" and ours[1] == ours[2] == native[0]
    assert server.executions == 2 and len(orders) == 2 and len({x.key for x in orders}) == 1, "the order, and the free one"
    for request in orders:
        raw = re.sub(rb"-{20}\w+", b"B", request.raw)
        raw = raw.replace(b"&late=1.5&times=1", b"").replace(b"Idempotency-Key: " + request.key.encode() + b"\r\n", b"")
        assert raw == bare[0]
    assert [re.sub(rb"-{20}\w+", b"B", x.raw) for x in free] == [re.sub(rb"-{20}\w+", b"B", x.raw) for x in again]
    assert [e["verdict"] for e in write_events(world)] == ["execute", "resend", "replay"]


def test_the_courier_and_a_handle_in_place_know_each_other(world, server):
    url = server.base + "/orders"
    first, = inplace(world, url, "body=n=1", "sockopt", "header=Content-Type: application/x-www-form-urlencoded")
    again = world.curl("-d", "n=1", url)
    assert again.replayed and again.order == first.order and server.executions == 1


@pytest.mark.san
def test_libcurls_own_resend_is_stopped(world, server):
    world.policy(match="POST http://127.0.0.1:*/orders/**")
    lines = inplace(world, server.base + "/orders/warm", "opensocket", "then=" + server.base + "/orders/new?die=1")
    assert [x.name for x in lines] == ["perform", "then"]
    assert lines[1].rc == 56 and "was not sent again" in lines[1].error
    assert len([o for o in server.orders if o["path"] == "/orders/new"]) == 1
    assert world.stats()["wire_resends_blocked"] == 1
    event = write_events(world)[-1]
    assert (event["outcome"], event["wire_sends"], event["curlcode"]) == ("unknown", 1, 56)


def test_libcurls_own_resend_passes_where_the_provider_dedups(world, server):
    world.policy(match="POST http://127.0.0.1:*/orders/**", provider=PROVIDER)
    lines = inplace(world, server.base + "/orders/warm", "opensocket", "then=" + server.base + "/orders/new?die=1&keys=honour")
    assert (lines[1].rc, lines[1].status) == (0, 201)
    assert len([o for o in server.orders if o["path"] == "/orders/new"]) == 1
    assert write_events(world)[-1]["wire_sends"] == 2


@pytest.mark.parametrize("words", [[], ["verbose"], ["progress"], ["include"], ["change"], ["failonerror"]], ids=str)
def test_callbacks_see_what_they_see_natively(world, server, words):
    """And afterwards the handle is the program's again: a request that no rule names is byte for byte its own."""
    spec = "?status=422&exec=0" if words == ["failonerror"] else ""
    runs = []
    for preload in (False, True):
        server.reset()
        lines = inplace(world, server.base + "/orders" + spec, "opensocket", "prereq", *words, "then=" + server.base + "/free",
                        preload=preload)
        runs.append([{k: v for k, v in vars(x).items() if k != "text"} | {"text": re.sub(r"req-\d+", "", x.text)} for x in lines])
        last = server.writes("/free")[0]
        runs[-1].append(last.raw)
        assert last.key is None
    # the added header is echoed nowhere, so all else is equal; native reuses the connection, as we do
    assert runs[0] == runs[1]


@pytest.mark.san
def test_its_own_prereq_may_say_no_and_nothing_was_sent(world, server):
    line, = inplace(world, server.base + "/orders", "prereq", "stop")
    assert line.rc == 42 and line.prereq == 1
    assert server.executions == 0 and world.states() in (["freed"], [])
    assert write_events(world)[0]["outcome"] == "not-executed"
    again, = inplace(world, server.base + "/orders", "prereq")
    assert again.status == 201 and server.executions == 1


@pytest.mark.san
def test_the_same_write_from_its_own_callback_is_in_progress(world, server):
    result = world.run([client("inplace"), server.base + "/orders", "opensocket", "nested"])
    assert "nested rc=0 status=409" in result.out, result
    assert server.executions == 1


@pytest.mark.san
def test_a_callback_that_jumps_out(world, server):
    result = world.run([client("inplace"), server.base + "/orders", "opensocket", "jump"])
    assert result.rc == 0 and "jumped" in result.out, result
    after = Line(result.out.splitlines()[-1])
    assert after.name == "after" and after.rc == 56 and "unknown" in after.error, after.error
    assert server.executions == 1 and world.states() == ["unknown"]


@pytest.mark.san
def test_a_copy_made_during_the_perform_is_the_programs(world, server):
    lines = inplace(world, server.base + "/orders", "opensocket", "dup", "verbose")
    assert [(x.name, x.status) for x in lines] == [("perform", 201), ("copy", 201)]
    assert lines[0].order == lines[1].order and server.executions == 1


def test_a_handle_reset_in_a_callback(world, server):
    native = world.run([client("inplace"), server.base + "/orders?size=40000", "opensocket", "reset"], preload=False)
    ours = world.run([client("inplace"), server.base + "/orders?size=40000", "opensocket", "reset"])
    assert (native.rc, ours.rc) == (0, 0)
    assert server.executions == 2 and world.states() == ["unknown"]


def test_tls_set_up_by_the_program_itself(world):
    world.policy(match="POST https://127.0.0.1:*/orders")
    with OrderServer(tls=True) as server:
        first, second = inplace(world, server.base + "/orders", "sslctx", "ca=" + server.cafile, "times=2")
        assert (first.status, first.sslctx, second.status, second.sslctx) == (201, 1, 201, 0)
        assert first.order == second.order and server.executions == 1 and server.keys()[0]
    assert world.stats()["in_place_ssl_ctx"] == 1


class AskingProxy(ConnectProxy):
    """Wants a digest with a nonce of each connection's own."""
    asked = 0

    def serve(self, sock, number):
        head = b""
        while b"\r\n\r\n" not in head:
            head += sock.recv(65536)
        self.asked += 1
        sock.sendall(b'HTTP/1.1 407 Who\r\nProxy-Authenticate: Digest realm="p", nonce="n%d", stale=true\r\nContent-Length: 0\r\n\r\n' % number)
        super().serve(sock, number)


def test_through_a_proxys_tunnel_a_second_send_is_still_told_from_a_resend(world):
    """CONNECT's answers are none of the origin's: 407 and 200 come before the gate, and again for a resend."""
    world.policy(match="POST http://127.0.0.1:*/orders/**")
    with OrderServer() as server, AskingProxy() as proxy:
        code = ("import pycurl, sys\nc = pycurl.Curl()\nc.setopt(c.SOCKOPTFUNCTION, lambda fd, purpose: 0)\n"
                "c.setopt(c.WRITEFUNCTION, lambda b: None)\nc.setopt(c.PROXY, %r)\nc.setopt(c.HTTPPROXYTUNNEL, 1)\n"
                "c.setopt(c.NOPROXY, '')\nc.setopt(c.PROXYUSERPWD, 'u:p')\nc.setopt(c.PROXYAUTH, c.HTTPAUTH_DIGEST)\nc.setopt(c.POSTFIELDS, 'n=1')\n"
                "for url in sys.argv[1:]:\n c.setopt(c.URL, url)\n try:\n  c.perform()\n  print(c.getinfo(c.RESPONSE_CODE))\n"
                " except pycurl.error as e:\n  print('error', e.args[0])\n" % ("http://127.0.0.1:%d" % proxy.port))
        result = world.run(["/usr/bin/python3", "-c", code, server.base + "/orders/warm", server.base + "/orders/new?die=1"])
        assert result.out.splitlines() == ["201", "error 56"], result
        assert server.executions == 2 and proxy.asked == 2
    assert world.stats()["wire_resends_blocked"] == 1


def test_redirects_take_the_key_off_elsewhere(world, server):
    with OrderServer() as other:
        world.policy(match="POST http://127.0.0.1:%d/orders" % server.port)
        code = ("import pycurl\nc = pycurl.Curl()\nc.setopt(c.URL, %r)\nc.setopt(c.POSTFIELDS, 'n=1')\n"
                "c.setopt(c.FOLLOWLOCATION, True)\nc.setopt(c.POSTREDIR, 7)\nc.setopt(c.WRITEFUNCTION, lambda b: None)\n"
                "c.setopt(c.SOCKOPTFUNCTION, lambda fd, purpose: 0)\nc.perform()\nprint(c.getinfo(c.RESPONSE_CODE))\n"
                % ("%s/orders?redirect=307&to=%s/orders" % (server.base, other.base)))
        result = world.run(["/usr/bin/python3", "-c", code])
        assert result.out == "201\n", result
        assert server.keys()[0] and other.keys() == [None]


THREADS = """
import pycurl, sys, threading
def write(n, out):
    c = pycurl.Curl()
    c.setopt(c.URL, sys.argv[1])
    c.setopt(c.POSTFIELDS, "n=1")
    c.setopt(c.NOSIGNAL, 1)
    c.setopt(c.WRITEFUNCTION, lambda b: out.append(b))
    c.setopt(c.SOCKOPTFUNCTION, lambda fd, purpose: 0)
    c.perform()
outs = [[] for _ in range(4)]
threads = [threading.Thread(target=write, args=(n, out)) for n, out in enumerate(outs)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len({b"".join(out) for out in outs}), b"".join(outs[0]).decode())
"""


def test_threads_of_one_process_join_in_the_ledger(world, server):
    result = world.run(["/usr/bin/python3", "-c", THREADS, server.base + "/orders?late=0.5"])
    assert result.out == '1 {"id": "ord-1"}\n', result
    assert server.executions == 1
    assert sorted(e["verdict"] for e in write_events(world)) == ["execute", "join", "join", "join"]


PYCURL = """
import pycurl, socket, sys
got = []
c = pycurl.Curl()
c.setopt(c.URL, sys.argv[1])
c.setopt(c.POSTFIELDS, "n=1")
c.setopt(c.WRITEFUNCTION, got.append)
def opened(purpose, address):
    got.append(b"[socket]")
    return socket.socket(address[0], address[1], address[2])
c.setopt(c.OPENSOCKETFUNCTION, opened)
for _ in range(2):
    c.perform()
    print(c.getinfo(c.RESPONSE_CODE), b"".join(got).decode().replace("\\n", " "))
    del got[:]
"""


def test_pycurl_with_its_own_sockets(world, server):
    result = world.run(["/usr/bin/python3", "-c", PYCURL, server.base + "/orders"])
    first, second = result.out.splitlines()
    assert first.startswith("201 [socket]") and second.startswith("201 ") and "[socket]" not in second, result
    assert first.replace("[socket]", "") == second
    assert server.executions == 1 and world.stats()["in_place_socket"] == 1
