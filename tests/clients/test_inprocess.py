"""Inside one process: what libcurl says to a program is what it would have said natively."""
import os
import re
import time
from urllib.parse import quote

import pytest

from harness import SLOW, client
from pki import Pki
from server import ConnectProxy, OrderServer, UnixFront

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
    "timeout-in-body": ("timeout-seconds", "trickle=0.6"), "pause-chunked": ("pause", "chunked=1&size=60000"), "gzip-raw": ("plain", "gzip=1"),
    "nothing-listens": ("plain", None), "file-large": ("file", "size=3000"),
}
ALL = {**{name: (name, spec) for name, spec in CASES.items()}, **MORE}


# case: (what diff.c does, what the server is asked to do, where)
OPTIONS = {
    "https": ("cainfo", "", "https"), "https-bad-ca": ("no-cainfo", "", "https"), "https-wrong-host": ("cainfo", "", "elsewhere"),
    "https-no-verify": ("no-verify", "", "elsewhere"), "proxy": ("proxy", "", "proxy"), "connect": ("connect", "", "connect"),
    "connect-refused": ("connect", "", "connect-refused"), "no-dns": ("plain", "", "no-dns"), "bad-scheme": ("plain", "", "bad-scheme"),
    "cookies-again": ("again", "cookie=1", "http"), "digest-again": ("digest-again", "auth=digest", "http"),
    "cookie-text": ("cookie-text", "", "http"), "cookie-engine": ("cookie-engine", "hdr=Set-Cookie:%20a=1;Path=/", "http"),
    "301": ("follow", "redirect=301&to=/orders/2", "http"), "302": ("follow", "redirect=302&to=/orders/2", "http"),
    "303": ("follow", "redirect=303&to=/orders/2", "http"), "307": ("follow", "redirect=307&to=/orders/2", "http"),
    "308": ("follow", "redirect=308&to=/orders/2", "http"), "postredir": ("postredir", "redirect=301&to=/orders/2", "http"),
    "maxredirs": ("maxredirs", "redirect=307&to=" + quote("/orders/2?redirect=307&to=/orders/3"), "http"),
    "autoreferer": ("autoreferer", "redirect=303&to=/orders/2", "http"), "unix-socket": ("unix-socket", "", "http"),
    "digest-then": ("digest-then", "auth=digest", "http"), "curlu-space": ("curlu-space", "", "http"),
    "curlu": ("curlu", "", "http"), "resolve": ("resolve", "", "named"), "connect-to": ("connect-to", "", "named"),
    "trailers": ("header", "trailer=1", "http"), "trailers-api": ("plain", "trailer=1", "http"), "102": ("info", "early=102", "http"),
    "http10-answer": ("plain", "http10=1", "http"), "aliases": ("aliases", "proto=ICY", "http"),
    "no-alias": ("plain", "proto=ICY", "http"), "ignore-length": ("ignore-length", "http10=1", "http"),
    "retry-after": ("plain", "status=503&retry_after=7", "http"), "expect": ("expect", "", "http"),
    "expect-ignored": ("expect", "expect=ignore", "http"), "expect-refused": ("expect", "expect=417", "http"),
    "info": ("info", "size=3000", "http"), "info-chunked": ("info", "chunked=1&size=3000", "http"),
    "info-redirect": ("info", "redirect=307&to=" + quote("/orders/2?size=3000"), "http"),
    "info-early": ("info", "early=103&gzip=1", "http"), "debug": ("debug", "", "http"),
    "debug-redirect": ("debug", "redirect=307&to=/orders/2", "http"), "debug-https": ("debug", "", "https"),
    "debug-refused": ("debug", "", "refused"), "verbose": ("verbose", "", "http"), "debug-auth": ("debug", "auth=basic", "http"),
    "debug-connect": ("debug", "", "tunnel"), "debug-proxy-env": ("debug", "", "proxy-env"),
    "verbose-proxy-env": ("verbose", "", "proxy-env"), "debug-late": ("debug", "late=0.3&chunked=1", "http"),
    "debug-trailer": ("debug", "trailer=1", "http"), "debug-early": ("debug", "early=103", "http"),
    "info-connect": ("info", "", "tunnel"), "expect-chunked": ("expect", "chunked=1", "http"),
    "filetime": ("filetime", "hdr=Last-Modified:%20Thu,%2001%20Jan%202004%2000:00:00%20GMT", "http"),
    "undecoded": ("undecoded", "gzip=1", "http"), "raw": ("raw", "chunked=1", "http"), "interface-none": ("interface-none", "", "http"),
    "port": ("port", "", "http"), "protocols": ("protocols", "", "http"), "path-as-is": ("path-as-is", "", "http"),
    "read-put-ignored": ("read-put", "expect=ignore", "http"),
    **{name: (name, "", "http") for name in (
        "read-put", "read-put-chunked", "read-put-at-once", "read-put-old", "read-post", "read-post-chunked", "read-post-asked",
        "interface", "range", "referer", "useragent", "transfer-encoding", "buffersize", "nodelay", "keepalive", "delete", "patch", "empty",
        "size-zero", "size-short", "http10", "target", "fresh", "forbid-reuse", "bearer", "http-only", "ipv6", "keep-sending", "http09",
        "connect-timeout", "speed", "resume", "pause-header", "nested", "headers", "time-condition", "nobody-custom", "nul-bytes", "no-data")},
}


NOT_LISTED = {"bad-scheme"}


def differences():
    """{case: [pattern of lines that may differ, ...]}; every line of the file has a reason."""
    found = {}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "differences")) as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                case, pattern, reason = line.rstrip("\n").split("\t")
                assert reason.strip()
                for name in case.split(","):
                    found.setdefault(name, []).append(pattern)
    return found


DIFFERENCES = differences()


def normal(name, text):
    """What may differ between two native runs, or because the URL does."""
    text = re.sub(r"req-\d+|\bs\d{6,}", "N", text)
    text = re.sub(r"after \d+ (milliseconds|ms)", r"after N \1", text)
    if "\nrc 0\n" not in text or re.search(r"\ninfo redirects [1-9]", text):  # natively times of hops overlap
        text = re.sub(r"info times \w+", "info times any", text)
    text = re.sub(r'nonce="n\d+"', 'nonce="N"', text)
    text = re.sub(r"port \d+( failed)", r"port N\1", text)
    text = re.sub(r"(from \S+ port )\d+", r"\1N", text)  # libcurl 8.16 and later name our end of a connection
    text = re.sub(r"0x[0-9a-f]+", "ADDRESS", text)
    text = re.sub(r"#\d+", "#N", re.sub(r"\d+ bytes data|date: .* GMT", "N", text))
    text = re.sub(r"(?i)^idempotency-key: [-\w]+\r?\n", "", text, flags=re.M)  # the one header that is added
    allowed = [re.compile(x) for case in (name, "*") for x in DIFFERENCES.get(case, [])]
    lines = text.replace("/direct", "/orders").replace("\r", "").splitlines()
    return [x for x in lines if not any(p.match(x) for p in allowed)]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Where the cases go: their servers, and the environment that tells diff.c of them."""
    folder = tmp_path_factory.mktemp("places")
    pki = Pki(folder)
    with OrderServer() as plain, OrderServer(tls=pki.server) as https, OrderServer(tls=pki.elsewhere) as elsewhere, \
            ConnectProxy() as proxy:
        front = UnixFront(str(folder / "socket"), plain.port)
        env = {"CA": pki.ca, "SOCKET": front.path, "RESOLVE": "shop.example:80:127.0.0.1", "CONNECT_TO": "::127.0.0.1:%d" % plain.port}
        connect = "http://127.0.0.1:%d" % proxy.port
        shop = {"PROXY": plain.base, "RESOLVE": "shop.example:%d:127.0.0.1" % plain.port}
        yield env, {
            "http": (plain, plain.base, {}), "https": (https, https.base, {}), "elsewhere": (elsewhere, elsewhere.base, {}),
            "proxy": (plain, "http://shop.example", shop), "named": (plain, "http://shop.example:%d" % plain.port, shop),
            "connect": (plain, plain.base, {"PROXY": connect}), "connect-refused": (plain, "http://shop.example", {"PROXY": connect}),
            "tunnel": (https, https.base, {"https_proxy": connect, "CURL_CA_BUNDLE": pki.ca}),
            "proxy-env": (plain, "http://shop.example", {"http_proxy": plain.base}),
            "no-dns": (plain, "http://nonexistent.invalid", {}), "bad-scheme": (plain, "bogus://127.0.0.1", {}),
            "refused": (plain, "http://127.0.0.1:1", {}),
        }
        front.close()


def transcript(world, places, name, path, times=1, **env):
    common, servers = places
    case, spec, place = ALL[name] if len(ALL[name]) == 3 else ALL[name] + ("http",)
    server, base, own = servers[place if spec is not None else "refused"]
    server.reset()
    url = base + path + ("?" + spec if spec else "")
    result = world.run([client("diff"), case, url, str(times)], **{**common, "no_proxy": None, "TARGET": path + "?asked", **own, **env})
    assert result.rc == 0 and result.err == "", result
    return normal(name, result.out)


ALL.update(OPTIONS)


@pytest.mark.san
@pytest.mark.parametrize("name", ALL)
def test_differential(world, places, name):
    host = re.sub(r"^.*//|:.*$", "", places[1][ALL[name][2] if len(ALL[name]) == 3 else "http"][1])
    scheme = "https" if ALL[name][2:] in (("https",), ("elsewhere",), ("tunnel",)) else "http"
    world.policy(match="POST,PUT,PATCH,DELETE %s://%s:*/orders%s" % (scheme, host, "/a%20b" if name == "curlu-space" else ""),
                 exit_wait="0s")
    native = transcript(world, places, name, "/orders", preload=False)
    unlisted = transcript(world, places, name, "/direct")
    ours = transcript(world, places, name, "/orders")
    assert unlisted == native
    assert ours == native
    assert bool(world.events("write")) == (name not in NOT_LISTED)
    assert not world.events("unprotected") or name == "nested"  # curl_easy_send is told of wherever it is called


def test_few_differences_and_many_cases():
    assert sum(len(x) for x in DIFFERENCES.values()) <= 8 and len(ALL) >= 60


ADDED = re.compile(r"(header|next \S+) (Idempotent-Replayed|Sendonce-Verdict)[:=]", re.I)
DROPPED = re.compile(r"(header|next \S+) (Set-Cookie|Date|X-Request-Id)[:=]", re.I)
OWN = re.compile(r"info (header_size|connects|local_ip|times|errno) ")


def comparable(lines):
    return [x for x in lines if not ADDED.match(x) and not DROPPED.match(x) and not OWN.match(x)]


@pytest.mark.parametrize("name", ["plain", "header-file", "fail-ok", "large", "chunked", "cookie", "pause", "put", "duphandle", "file-large"])
def test_a_replay_is_told_like_the_first_answer(world, places, name):
    world.policy(match="POST,PUT,PATCH,DELETE http://127.0.0.1:*/orders")
    first = transcript(world, places, name, "/orders")
    server = places[1]["http"][0]
    executed = server.executions
    second = transcript(world, places, name, "/orders")
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


# --- what callbacks and threads may do. Each answer trickles in, so that a callback comes before its end.
TRICKLE = "trickle=0.1"


@pytest.mark.san
@pytest.mark.parametrize("query", ["", TRICKLE])
@pytest.mark.parametrize("case", ["jump", "jump-reset"])
def test_longjmp_out_of_a_callback(world, server, case, query):
    rc, lines, seconds = life(world, server, case, query)
    assert rc == 0 and "first" not in lines, lines
    assert "rc=0 status=201" in lines["again"] and "ord-1" in lines["again"]
    assert case != "jump" or "rc=0 status=201" in lines["other"] and "ord-2" in lines["other"]
    assert server.executions == (2 if case == "jump" else 1)
    assert world.states() == ["done"] * server.executions and world.cli("ledger", "verify").rc == 0
    assert seconds < 8 * SLOW


@pytest.mark.san
@pytest.mark.parametrize("case, ends_with", [("jump-exit", 0), ("exit-in-callback", 7)])
@pytest.mark.parametrize("query", ["", TRICKLE])
def test_exit_with_a_half_played_answer(world, server, case, ends_with, query):
    rc, lines, seconds = life(world, server, case, query)
    assert rc == ends_with and not lines and seconds < 5 * SLOW
    assert world.states() == ["done"] and server.executions == 1


@pytest.mark.san
def test_fork_in_a_callback(world, server):
    rc, lines, seconds = life(world, server, "fork-in-callback", TRICKLE)
    assert rc == 0 and "rc=0 status=201" in lines["parent"] and "ord-1" in lines["parent"]
    assert "rc=0 status=201" in lines["child"] and "ord-2" in lines["child"] and lines["child-status"].endswith(" 0")
    assert world.states() == ["done", "done"] and server.executions == 2 and seconds < 10 * SLOW


@pytest.mark.san
def test_a_child_that_goes_on_in_a_callback(world, server):
    rc, lines, seconds = life(world, server, "fork-goes-on", TRICKLE)
    assert rc == 0 and "rc=0 status=201" in lines["parent"]
    assert world.states() == ["done"] and server.executions == 1 and len(server.writes()) == 1 and seconds < 8 * SLOW


# The next two are not for sanitizers, whose runtimes do not know how a cancelled thread is unwound.
def test_a_thread_cancelled_while_it_waits(world, server):
    rc, lines, seconds = life(world, server, "cancel", "late=1.5")
    assert rc == 0 and lines["cancelled"] == "cancelled 1" and "rc=0 status=201" in lines["again"]
    assert world.states() == ["done"] and server.executions == 1 and seconds < 5 * SLOW


def test_exit_after_a_thread_was_cancelled(world, server):
    rc, _, seconds = life(world, server, "cancel-exit", "late=1.5")
    assert rc == 0 and seconds < 5 * SLOW
    assert world.states() == ["done"] and server.executions == 1
