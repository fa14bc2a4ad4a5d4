"""A thousand protected writes under way at once in one curl_multi: no busy loop, no heap of memory, no descriptor left.

Both sides take turns against one server, which is a process of its own and in none of the figures. It answers all
writes at once, or one after the other within half a second. Processor time is compared for a loop that looks at every
transfer at each turn, and for one of epoll and socket_action, which does not: there libcurl itself takes 70 us a write,
and what a write costs beyond that (its identity, its record, its events, a second handle, a second thread that makes
each allocation take a lock) is half of it. The bound is 1.5; where the figure lies too near it for two short runs, a
wider one stands beside it and `make soak` asks for the bound itself."""
import os
import re
import subprocess

import pytest

from harness import SAN, client

COUNT = 1000
KIB = 64  # of memory for a write under way
LEAST, MOST = (7, 7) if os.environ.get("SENDONCE_SOAK") else (2, 7)  # pairs of runs; more where few were disturbed

# loop, milliseconds over which the answers come, how much of native time it may take
SOAK = bool(os.environ.get("SENDONCE_SOAK"))
LOOPS = [("poll", 500, 1.5), ("poll", 0, 1.5), ("epoll", 500, 1.5 if SOAK else 1.9), ("epoll", 0, 1.5 if SOAK else 1.9)]


@pytest.fixture
def port(request):
    spread_ms = request.node.callspec.params["spread_ms"]
    server = subprocess.Popen([client("crowd"), "serve", str(COUNT), str(spread_ms)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield int(server.stdout.readline())
    server.stdin.close()
    server.wait()
    server.stdout.close()


def once(world, kind, port, **env):
    result = world.run([client("crowd"), kind, "http://127.0.0.1:%d/orders" % port, str(COUNT), "1"], **env)
    assert result.rc == 0 and result.err == "", result
    seen = {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", result.out)}
    assert seen["created"] == COUNT and seen["after"] == seen["before"], seen
    assert seen["kib"] > 0, seen
    return seen


@pytest.mark.parametrize("kind,spread_ms", [("poll", 0), ("epoll", 0)])
def test_asked_on_the_way(world, port, kind, spread_ms):
    """Snapshots of a crowd are taken when somebody asks: what getinfo says while nothing is answered is what it says
    natively."""
    world.policy(ledger={"size": "64MiB"})
    for preload in (False, True):
        argv = [client("crowd"), kind, "http://127.0.0.1:%d/orders" % port, str(COUNT), "1", "ask"]
        result = world.run(argv, preload=preload)
        assert result.rc == 0 and "created=%d " % COUNT in result.out and "told=%d\n" % COUNT in result.out, result


@pytest.mark.parametrize("kind,spread_ms,most", LOOPS)
def test_processor_time(world, port, kind, spread_ms, most):
    if SAN:
        return  # figures of an instrumented build are none
    world.policy(ledger={"size": "64MiB"})
    pairs, native, ours = [], 0, 1
    while len(pairs) < LEAST or (ours > most * native and len(pairs) < MOST):
        pairs.append((once(world, kind, port, preload=False), once(world, kind, port)))
        # what else the machine does is added to both, never taken away: the least of each side is the figure
        native, ours = [min(x["cpu_ms"] for x in side) for side in zip(*pairs)]
    assert ours <= most * native, pairs
    # 7.88 alone takes 20 KiB; 8.7 and later take 54 to 73, and then it is our part of the 64 that is bounded
    alone, together = [max(x["kib"] for x in side) for side in zip(*pairs)]
    assert together <= max(KIB * COUNT, alone + (KIB - 20) * COUNT), pairs
    assert world.states() == ["done"] * (2 * COUNT * len(pairs))
