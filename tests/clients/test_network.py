"""What lies between a write and its server: TLS, HTTP/2, proxies, authentication, cookies, redirects, and the
forms of answers. Each is served by the courier, once, and says to the program what it says natively."""
import json
import os
import re
import socket
import stat
import subprocess
import time
from urllib.parse import quote

import pytest

from harness import client
from pki import Pki
from server import ConnectProxy, OrderServer

BODY = '{"amount":5}'


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    return Pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def tls(pki, world):
    world.policy(match="POST https://127.0.0.1:*/orders")
    with OrderServer(tls=pki.server) as s:
        yield s


def served_once(world, server, answer, order="ord-1"):
    assert answer.rc == 0 and answer.status == 201 and answer.order == order, answer
    assert server.executions == 1
    assert world.events("write")[-1]["served"] == "courier" and not world.events("unprotected")


def write(world, url, *args, **env):
    return world.curl("-d", BODY, *args, url, **env)


# --- TLS
@pytest.mark.parametrize("how", ["cainfo", "capath", "insecure", "pinned"])
def test_https(world, tls, pki, how):
    args = {"cainfo": ["--cacert", pki.ca], "capath": ["--capath", pki.capath], "insecure": ["-k"],
            "pinned": ["--cacert", pki.ca, "--pinnedpubkey", pki.pin(pki.server[0])]}[how]
    served_once(world, tls, write(world, tls.base + "/orders", *args))
    again = write(world, tls.base + "/orders", *args)
    assert again.replayed and tls.executions == 1


@pytest.mark.parametrize("args", [[], ["--pinnedpubkey", "sha256//" + "A" * 43 + "="]], ids=["unknown-ca", "other-pin"])
def test_https_refused_is_not_executed(world, tls, pki, args):
    args = ["--cacert", pki.ca] + args if args else args
    native = write(world, tls.base + "/orders", *args, preload=False)
    ours = write(world, tls.base + "/orders", *args)
    assert ours.rc == native.rc in (60, 90) and ours.err == native.err
    assert tls.executions == 0 and world.events("write")[-1]["outcome"] == "not-executed"
    served_once(world, tls, write(world, tls.base + "/orders", "--cacert", pki.ca))


def test_a_certificate_for_another_host(world, pki):
    world.policy(match="POST https://127.0.0.1:*/orders")
    with OrderServer(tls=pki.elsewhere) as server:
        native = write(world, server.base + "/orders", "--cacert", pki.ca, preload=False)
        ours = write(world, server.base + "/orders", "--cacert", pki.ca)
        assert ours.rc == native.rc == 60 and ours.err == native.err and server.executions == 0


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_tls_versions(world, tls, pki, version):
    seen = write(world, tls.base + "/orders", "--cacert", pki.ca, "--tlsv" + version, "--tls-max", version, "-v")
    served_once(world, tls, seen)
    assert "SSL connection using TLSv" + version in seen.err


def test_client_certificate(world, pki):
    world.policy(match="POST https://127.0.0.1:*/orders")
    with OrderServer(tls=pki.server, client_ca=pki.ca) as server:
        without = write(world, server.base + "/orders", "--cacert", pki.ca)
        assert without.rc != 0 and server.executions == 0
        served_once(world, server, write(world, server.base + "/orders?a", "--cacert", pki.ca, "--cert", pki.client[0],
                                         "--key", pki.client[1]))


def test_blobs(world, pki):
    """CAINFO, certificate and key from memory: the courier keeps bytes of its own."""
    world.policy(match="POST https://127.0.0.1:*/orders")
    with OrderServer(tls=pki.server, client_ca=pki.ca) as server:
        result = world.run([client("net"), "blobs", server.base + "/orders", pki.ca, *pki.client])
        assert result.rc == 0 and "rc=0 status=201" in result.out, result
        assert server.executions == 1 and world.events("write")[-1]["served"] == "courier"


# --- HTTP/2
@pytest.fixture
def h2(world, pki, server, tmp_path):
    """nghttpx before the order server: HTTP/2 over TLS in, HTTP/1.1 out."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(["nghttpx", "--conf=/dev/null", "--frontend=127.0.0.1,%d" % port, "--backend=127.0.0.1,%d" % server.port,
                                "--workers=1", "--no-ocsp", "--accesslog-file=/dev/null", "--errorlog-file=/dev/null",
                                pki.server[1], pki.server[0]], cwd=str(tmp_path), stderr=subprocess.DEVNULL)
    try:
        assert wait_for_port(port)
        world.policy(match="POST https://127.0.0.1:*/orders")
        yield "https://127.0.0.1:%d" % port
    finally:
        process.terminate()
        process.wait(20)


def wait_for_port(port, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            time.sleep(0.05)
    return False


def test_http2(world, server, pki, h2):
    def status_line():
        return open(world.path("headers-%d" % world.count)).readline()

    native = write(world, h2 + "/orders?n", "--cacert", pki.ca, preload=False)
    assert native.status == 201 and status_line().startswith("HTTP/2 201")
    server.reset()
    ours = write(world, h2 + "/orders", "--cacert", pki.ca)
    assert ours.status == 201 and status_line().startswith("HTTP/2 201") and server.executions == 1
    assert server.writes()[0].key and [x for x, _ in ours.headers] == [x for x, _ in native.headers]
    late = write(world, h2 + "/orders?late=1.5", "--cacert", pki.ca, "-m", "0.5")
    assert late.rc == 28
    again = write(world, h2 + "/orders?late=1.5", "--cacert", pki.ca)
    assert again.order == "ord-2" and server.executions == 2


# --- proxies
@pytest.mark.parametrize("how", ["option", "http_proxy", "all_proxy", "ALL_PROXY"])
def test_http_proxy(world, server, how):
    """The order server is its own proxy: it is asked for a host that does not exist."""
    world.policy(match="POST http://shop.invalid/orders")
    env = {"no_proxy": None} if how == "option" else {how: server.base, "no_proxy": None}
    args = ["-x", server.base] if how == "option" else []
    served_once(world, server, write(world, "http://shop.invalid/orders", *args, **env))
    assert server.writes()[0].target == "http://shop.invalid/orders"


def test_no_proxy(world, server):
    answer = write(world, server.base + "/orders", http_proxy="http://127.0.0.1:1", no_proxy="127.0.0.1")
    served_once(world, server, answer)
    assert server.writes()[0].target == "/orders"
    refused = write(world, server.base + "/orders?x", http_proxy="http://127.0.0.1:1", no_proxy=None)
    assert refused.rc == 7 and server.executions == 1


def test_a_proxy_variable_changed_after_the_write_began(world, server):
    """The program changes its environment while the courier still has to connect for the next one."""
    world.policy(match="POST http://shop.invalid/orders")
    result = world.run([client("net"), "environ", "http://shop.invalid/orders", server.base], no_proxy=None)
    assert result.out.splitlines() == ["rc=0 status=201", "rc=7 status=0", "rc=0 status=201"], result
    assert server.executions == 2


@pytest.mark.parametrize("how", ["option", "https_proxy", "HTTPS_PROXY"])
def test_connect_proxy(world, tls, pki, how):
    with ConnectProxy() as proxy:
        base = "http://127.0.0.1:%d" % proxy.port
        env = {"no_proxy": None} if how == "option" else {how: base, "no_proxy": None}
        args = ["-x", base] if how == "option" else []
        native = write(world, tls.base + "/orders?n", "--cacert", pki.ca, *args, preload=False, **env)
        native_dump = open(world.path("headers-1")).read()
        tls.reset()
        served_once(world, tls, write(world, tls.base + "/orders", "--cacert", pki.ca, *args, **env))
        dump = open(world.path("headers-2")).read()
        assert native.status == 201 and proxy.connections == 2
        assert dump.startswith("HTTP/1.1 200 Connection established\n\nHTTP/1.1 201")
        assert re.sub(r"req-\d+", "", dump) == re.sub(r"req-\d+", "", native_dump)
        late = write(world, tls.base + "/orders?late=1.5", "--cacert", pki.ca, "-m", "0.6", *args, **env)
        assert late.rc == 28
        again = write(world, tls.base + "/orders?late=1.5", "--cacert", pki.ca, *args, **env)
        assert again.order == "ord-2" and tls.executions == 2


def test_a_proxy_that_refuses_connect(world, tls, pki):
    with ConnectProxy() as proxy:
        args = ["--cacert", pki.ca, "-x", "http://127.0.0.1:%d" % proxy.port, "--connect-to", "::elsewhere.invalid:1"]
        native = write(world, tls.base + "/orders", *args, preload=False, no_proxy=None)
        ours = write(world, tls.base + "/orders", *args, no_proxy=None)
        assert ours.rc == native.rc and native.rc in (56, 7) and ours.err == native.err  # 7: libcurl 8.20 and later
        assert world.states() == ["free"] or not world.records() or world.events("write")[-1]["outcome"] == "not-executed"
        served_once(world, tls, write(world, tls.base + "/orders", "--cacert", pki.ca))


# --- authentication
def test_digest_asks_once_a_handle(world, server):
    """The nonce lives in the easy handle: a second write of the same handle is not challenged again."""
    url = server.base + "/orders?auth=digest"
    native = world.run([client("net"), "digest", url], preload=False)
    seen = [(r.method, r.body, bool(r.header("Authorization"))) for r in server.requests]
    server.reset()
    ours = world.run([client("net"), "digest", url])
    assert ours.out == native.out and "rc=0 status=201" in ours.out
    assert [(r.method, r.body, bool(r.header("Authorization"))) for r in server.requests] == seen
    assert len(seen) == 5 and server.executions == 3  # challenged when first asked, and when the user changes


def needs(feature):
    """Debian's libcurl has all of them; another one that the tests are run with may not."""
    if feature not in subprocess.run(["curl", "-q", "-V"], capture_output=True, text=True, check=True).stdout.split():
        pytest.skip("this libcurl is built without " + feature)


def test_negotiate_is_not_carried(world, server):
    needs("SPNEGO")
    answer = write(world, server.base + "/orders", "--negotiate", "-u", ":")
    assert answer.status == 201 and world.events("write")[-1]["served"] == "in-place" and server.writes()[0].key


def test_ntlm(world, server):
    """Three legs on one connection; the body goes with the last."""
    needs("NTLM")
    url = server.base + "/orders?auth=ntlm"
    native = write(world, url, "--ntlm", "-u", "u:p", preload=False)
    legs = [(len(r.body), (r.header("Authorization") or "")[:5], r.connection) for r in server.requests]
    server.reset()
    ours = write(world, url, "--ntlm", "-u", "u:p")
    assert native.status == 201
    served_once(world, server, ours)
    assert [x[:2] for x in legs] == [(len(r.body), (r.header("Authorization") or "")[:5]) for r in server.requests]


# --- netrc
@pytest.fixture
def netrc(world):
    def make(user, password="p", name=".netrc"):
        path = world.write(name, "machine 127.0.0.1 login %s password %s\n" % (user, password))
        os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
        return path
    return make


@pytest.mark.parametrize("how", ["home", "file", "optional", "beside-url"])
def test_netrc(world, server, netrc, how):
    path = netrc("u", name=".netrc" if how in ("home", "optional") else "elsewhere")
    args = {"home": ["--netrc"], "optional": ["--netrc-optional"], "file": ["--netrc-file", path],
            "beside-url": ["--netrc-file", path]}[how]
    base = server.base.replace("//", "//u@") if how == "beside-url" else server.base
    served_once(world, server, write(world, base + "/orders?auth=basic", *args))


def test_netrc_is_the_account(world, server, netrc):
    """Another user's .netrc is another account; a changed password of the same file is one too."""
    netrc("u")
    assert write(world, server.base + "/orders", "--netrc").order == "ord-1"
    assert write(world, server.base + "/orders", "--netrc").replayed
    netrc("other")
    assert write(world, server.base + "/orders", "--netrc").order == "ord-2"
    netrc("u")
    assert write(world, server.base + "/orders", "--netrc").replayed and server.executions == 2


# --- cookies
def cookies(server, n=-1):
    return server.requests[n].header("Cookie")


def hdr(*lines):
    return "hdr=" + quote("|".join(lines))


def test_cookies_from_file_to_jar(world, server):
    jar = world.write("jar", "# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\told\t1\n127.0.0.1\tFALSE\t/\tFALSE\t0\tgone\t1\n")
    spec = hdr("Set-Cookie: new=2; Path=/", "Set-Cookie: gone=; Path=/; Expires=Thu, 01 Jan 1970 00:00:01 GMT")
    files = []
    for preload in (False, True):
        out = world.path("out-%d" % preload)
        answer = write(world, server.base + "/orders?" + spec, "-b", jar, "-c", out, "-b", "own=3", preload=preload)
        assert answer.status == 201 and sorted(cookies(server).split("; ")) == ["gone=1", "old=1", "own=3"]
        files.append(sorted(x for x in open(out).read().splitlines() if x and not x.startswith("# ")))
    assert files[0] == files[1] and [x.split("\t")[5] for x in files[1]] == ["new", "old"]


def test_cookie_options_in_one_process(world, server):
    """Memory engine, COOKIELIST, a cookie the server deletes, SHARE: what each handle sends and knows."""
    def run(preload):
        server.reset()
        result = world.run([client("net"), "cookies", server.base + "/orders"], preload=preload)
        assert result.rc == 0 and result.err == "", result
        return result.out, [r.header("Cookie") for r in server.requests]

    native, ours = run(False), run(True)
    assert ours == native
    assert not world.events("unprotected")


def test_a_share_without_cookies_makes_no_engine(world, server):
    def run(preload):
        server.reset()
        world.run([client("net"), "share-other", server.base + "/orders"], preload=preload)
        return [r.header("Cookie") for r in server.requests]

    assert run(True) == run(False) == [None, None]


# --- redirects
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("post", ["plain", "keep"])
def test_redirects(world, server, status, post):
    args = ["-L"] + (["--post301", "--post302", "--post303"] if post == "keep" else [])
    url = server.base + "/orders?redirect=%d&to=/orders/2" % status

    def run(preload):
        server.reset()
        answer = write(world, url, *args, preload=preload)
        return answer.status, [(r.method, r.path, r.body, r.header("Content-Type")) for r in server.requests]

    native, ours = run(False), run(True)
    assert ours == native
    assert all(r.key for r in server.requests)


def test_the_key_stays_at_its_authority(world, server):
    with OrderServer() as other:
        to = other.base + "/elsewhere"
        answer = write(world, server.base + "/orders?redirect=307&to=" + quote(to), "-L", "-H", "X-Mine: 1")
        assert answer.order == "ord-1" and server.writes()[0].key and other.writes()[0].key is None
        assert other.writes()[0].header("X-Mine") == "1"


@pytest.mark.parametrize("trusted", [False, True])
def test_credentials_at_another_authority(world, server, trusted):
    with OrderServer() as other:
        url = server.base + "/orders?redirect=307&to=" + quote(other.base + "/elsewhere")
        seen = []
        for preload in (False, True):
            other.reset()
            write(world, url, "--location-trusted" if trusted else "-L", "-u", "u:p", preload=preload)
            seen.append(other.writes()[0].header("Authorization"))
        assert seen[0] == seen[1] and (seen[1] is not None) == trusted


def test_too_many_redirects(world, server):
    url = server.base + "/orders?redirect=307&to=" + quote("/orders?redirect=307&to=/orders")
    native = write(world, url, "-L", "--max-redirs", "1", preload=False)
    ours = write(world, url, "-L", "--max-redirs", "1")
    assert ours.rc == native.rc == 47 and ours.err == native.err and server.executions == 0


def test_redirected_into_rule(world, server):
    """An unlisted request is led to a listed target: it is stopped before it is sent."""
    url = server.base + "/entry?redirect=307&to=/orders"
    answer = write(world, url, "-L")
    assert answer.rc == 0 and answer.status == 403 and answer.reason == "redirected-into-rule" and answer.problem
    assert server.executions == 0 and [r.path for r in server.requests] == ["/entry"]
    assert world.events("refusal")[-1]["reason"] == "redirected-into-rule"
    assert write(world, url, "-L", "-w", "%{url_effective}\n%{http_code}").out.endswith(server.base + "/orders\n403")
    for harmless in ("/entry?redirect=303&to=/orders", "/entry?redirect=307&to=/other", "/entry"):
        assert write(world, server.base + harmless, "-L").status in (200, 201)


def test_redirected_into_rule_with_a_prereq_of_the_programs_own(world, server):
    result = world.run([client("net"), "prereq", server.base + "/entry?redirect=307&to=/orders", server.base + "/entry"])
    assert result.out.splitlines() == ["mine", "rc=0 status=403", "mine", "rc=0 status=201"], result
    assert server.executions == 1


# --- forms of an answer
@pytest.mark.parametrize("how", ["answered", "ignored", "refused"])
def test_expect_100_continue(world, server, how):
    big = world.write("big", json.dumps({"fill": "x" * (1 << 20)}))
    spec = {"answered": "", "ignored": "?expect=ignore", "refused": "?expect=417"}[how]
    args = ["-d", "@" + big, server.base + "/orders" + spec] + (["--expect100-timeout", "0.3"] if how == "ignored" else [])

    def run(preload):
        server.reset()
        answer = world.curl(*args, preload=preload)
        dump = re.sub(r"req-\d+", "", open(world.path("headers-%d" % world.count)).read())
        return answer.rc, answer.order, dump, [len(r.body) for r in server.writes()]

    native, ours = run(False), run(True)
    assert ours == native and ours[3] == [len(open(big).read())]
    assert server.executions == 1


@pytest.mark.parametrize("spec", ["trailer=1", "early=103", "early=102", "http10=1", "chunked=1", "gzip=1&trailer=1"])
def test_forms_of_answers(world, server, spec):
    def run(preload):
        server.reset()
        answer = write(world, server.base + "/orders?" + spec, "--compressed", preload=preload)
        return answer.rc, answer.body, re.sub(r"req-\d+", "", open(world.path("headers-%d" % world.count)).read())

    native, ours = run(False), run(True)
    assert ours == native and ours[0] == 0
    assert world.states() == ["done"]
    assert write(world, server.base + "/orders?" + spec, "--compressed").replayed


@pytest.mark.parametrize("option", ["--hsts", "--alt-svc"])
def test_stores_of_libcurl_are_not_carried(world, server, option):
    """HSTS and alt-svc change where a request goes, and write the program's files."""
    answer = write(world, server.base + "/orders", option, world.path("store"))
    assert answer.status == 201 and server.executions == 1
    assert world.events("write")[-1]["served"] == "in-place" and server.writes()[0].key
