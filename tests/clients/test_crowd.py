"""A thousand protected writes under way at once in one curl_multi: no busy loop, no heap of memory, no descriptor left.

Both sides take turns against one server, which is a process of its own and in none of the figures. It answers one
write after the other within a second. Processor time is compared where the program's loop looks at every transfer at
each turn, as the courier does; a loop of epoll and socket_action natively does not, and is not compared."""
import os
import re
import statistics
import subprocess

import pytest

from harness import SAN, client

COUNT = 1000
SPREAD_MS = 1000
TURNS = 5 if os.environ.get("SENDONCE_SOAK") else 2


@pytest.fixture(scope="module")
def port():
    server = subprocess.Popen([client("crowd"), "serve", str(COUNT), str(SPREAD_MS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield int(server.stdout.readline())
    server.stdin.close()
    server.wait()
    server.stdout.close()


def once(world, kind, port, **env):
    result = world.run([client("crowd"), kind, "http://127.0.0.1:%d/orders" % port, str(COUNT), "1"], **env)
    assert result.rc == 0 and result.err == "", result
    seen = {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", result.out)}
    assert seen["created"] == COUNT and seen["after"] == seen["before"], seen
    assert 0 < seen["kib"] <= 64 * COUNT, seen
    return seen["cpu_ms"]


def test_poll(world, port):
    if SAN:
        return  # figures of an instrumented build are none
    world.policy(ledger={"size": "64MiB"})
    pairs = [(once(world, "poll", port, preload=False), once(world, "poll", port)) for _ in range(TURNS)]
    native, ours = [statistics.median(side) for side in zip(*pairs)]
    assert ours <= 1.5 * native, pairs
    assert world.states() == ["done"] * (2 * COUNT * TURNS)


def test_epoll(world, port):
    if SAN:
        return
    world.policy(ledger={"size": "64MiB"})
    once(world, "epoll", port)
    assert world.states() == ["done"] * (2 * COUNT)
