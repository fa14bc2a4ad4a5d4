"""A timeout that ends before the write left withdraws it: the server never sees it, not even later."""
import re
import subprocess
import sys
import time
import os

import pytest

from harness import HERE
from server import FullQueue, OrderServer, Silent

CLIENTS = {"curl": lambda w, url, **env: w.curl("-m", "1", "-k", "-d", "x", url, **env),
           "curl-connect": lambda w, url, **env: w.curl("--connect-timeout", "1", "-k", "-d", "x", url, **env)}


def said(text):
    """libcurl has two clocks for one deadline of a connection, and the one that is first chooses the words."""
    words = r"SSL connection timeout|Connection timeout after N|Failed to connect to \S+ port \d+ after N: Timeout was reached"
    return re.sub(words, "deadline", re.sub(r"\d+ ms|\d+ milli", "N", text))


def same_as_native(world, how, url):
    """The preloaded run ends like the native one: code, text but for the milliseconds, and time."""
    native, ours = how(world, url, preload=False), how(world, url)
    assert ours.rc == native.rc == 28
    assert said(ours.err) == said(native.err)
    assert ours.seconds < native.seconds + 1


@pytest.mark.parametrize("how", CLIENTS)
def test_tls_server_that_never_says_hello(world, how):
    world.policy(match="POST https://127.0.0.1:*/orders")
    with Silent() as silent:
        same_as_native(world, CLIENTS[how], "https://127.0.0.1:%d/orders" % silent.port)
        assert silent.connections == 2 and silent.seen.count(b"orders") == 0
    assert world.states() in ([], ["freed"])


@pytest.mark.san
@pytest.mark.parametrize("how", CLIENTS)
def test_tls_server_that_says_hello_too_late(world, how):
    world.policy(match="POST https://127.0.0.1:*/orders")
    with OrderServer(tls=True, hello_delay=2) as server:
        same_as_native(world, CLIENTS[how], server.base + "/orders")
        time.sleep(2.5)
        assert not server.requests
        server.hello_delay = 0
        answer = world.curl("--cacert", server.cafile, "-d", "x", server.base + "/orders")
        assert (answer.rc, answer.order, len(server.writes())) == (0, "ord-1", 1)


def test_in_one_process_and_then_it_is_sent(world):
    world.policy(match="POST https://127.0.0.1:*/orders")
    with OrderServer(tls=True, hello_delay=1.5) as server:
        args = ["--cafile", server.cafile, "--tries", "2", "--timeout-ms", "700,20000", server.base + "/orders"]
        first, second = world.post(*args)
        assert first.rc == 28 and (second.rc, second.order) == (0, "ord-1")
        time.sleep(2)
        assert len(server.writes()) == 1


@pytest.mark.parametrize("how", CLIENTS)
def test_listener_whose_queue_is_full(world, how):
    queue = FullQueue()
    try:
        same_as_native(world, CLIENTS[how], "http://127.0.0.1:%d/orders" % queue.port)
        assert b"POST" not in queue.drain(3)
    finally:
        queue.close()
    assert world.states() in ([], ["freed"])


def namespaces():
    """How to get a mount and a network namespace of our own here, or None."""
    for flags in (["-mn"], ["-rmn"]):
        if subprocess.run(["unshare", *flags, "true"], capture_output=True).returncode == 0:
            return ["unshare", *flags]
    return None


@pytest.mark.parametrize("preload", [False, True], ids=["native", "preload"])
def test_name_server_that_answers_too_late(world, preload):
    unshare = namespaces()
    if not unshare:
        pytest.skip("no namespaces: no name server of our own")
    world.policy(match="POST http://orders.test:*/orders")
    script = [sys.executable, os.path.join(HERE, "slow_names.py"), world.write("resolv.conf", "nameserver 127.0.0.1\n")]
    if preload:
        # Only the client gets the preload, not the script that serves names and orders.
        env = world.env()
        script += ["%s=%s" % (k, env[k]) for k in env if k.startswith(("SENDONCE_", "LD_PRELOAD"))]
    result = world.run([*unshare, *script], preload=False)
    assert result.rc == 0 and "asked=yes rc=28 requests=0" in result.out, result
    if preload:
        assert world.states() in ([], ["freed"])


@pytest.mark.parametrize("host,rc", [("127.0.0.1", 7), ("no.such.host.invalid", 6)])
def test_codes_that_prove_it_never_left(world, host, rc):
    world.policy(match="POST http://%s:*/orders" % host)
    for _ in range(2):  # it may be tried again: nothing is in doubt
        assert world.curl("-d", "x", "http://%s:1/orders" % host).rc == rc
    assert world.states() in ([], ["freed"])
