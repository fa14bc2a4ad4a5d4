"""repeat: ordinal. Equal writes of one process are writes of their own; the same process once more under the same run is
answered from the ledger, in turn."""
import json
import signal
import time

import pytest

from harness import PROVIDER, SLOW


@pytest.fixture
def ordinal(world):
    return world.policy(repeat="ordinal")


def orders(world, server, n, query="", code=0, **env):
    """The ids that one curl gets for n equal POSTs."""
    url = server.base + "/orders" + query
    result = world.run(["curl", "-q", "-sS", "-w", "\n"] + [x for _ in range(n) for x in (url,)] + ["-d", "a=1"], **env)
    assert result.rc == code, result
    return [json.loads(line).get("id") for line in result.out.splitlines() if line.strip()]


def replays(world):
    return [e for e in world.events("write") if e["verdict"] == "replay"]


@pytest.mark.san
def test_three_equal_posts_are_three_and_then_three_replays(ordinal, server):
    first = orders(ordinal, server, 3)
    assert first == ["ord-1", "ord-2", "ord-3"] and len(set(server.keys())) == 3
    assert orders(ordinal, server, 3) == first
    assert (server.executions, len(server.writes()), len(replays(ordinal))) == (3, 3, 3)
    assert sorted(r["generation"] for r in ordinal.records()) == [1, 2, 3]


def test_what_was_not_made_yet_is_new(ordinal, server):
    assert orders(ordinal, server, 1) == ["ord-1"]
    assert orders(ordinal, server, 2) == ["ord-1", "ord-2"]
    assert orders(ordinal, server, 4) == ["ord-1", "ord-2", "ord-3", "ord-4"]
    assert server.executions == 4 and len(set(server.keys())) == 4


def test_runs_count_each_for_itself(ordinal, server):
    assert orders(ordinal, server, 2, run="a") == ["ord-1", "ord-2"]
    assert orders(ordinal, server, 2, run="b") == ["ord-3", "ord-4"]
    assert orders(ordinal, server, 1, run="a") == ["ord-1"]
    assert orders(ordinal, server, 3, run="a") == ["ord-1", "ord-2", "ord-5"]
    assert orders(ordinal, server, 3, run="b") == ["ord-3", "ord-4", "ord-6"]
    assert len(set(server.keys())) == 6


def test_without_a_run_each_process_is_one(ordinal, server):
    assert orders(ordinal, server, 2, run=None) == ["ord-1", "ord-2"]
    assert orders(ordinal, server, 2, run=None) == ["ord-3", "ord-4"]
    assert orders(ordinal, server, 1, run="a") == ["ord-5"]
    assert not replays(ordinal) and len(set(server.keys())) == 5


def test_other_content_is_counted_apart(ordinal, server):
    assert orders(ordinal, server, 2) == ["ord-1", "ord-2"]
    url = server.base + "/orders"
    result = ordinal.run(["curl", "-q", "-sS", "-d", "b=2", url, "--next", "-sS", "-d", "a=1", url])
    assert [x for x in ("ord-1", "ord-2", "ord-3") if '"%s"' % x in result.out] == ["ord-1", "ord-3"]
    assert server.executions == 3


def test_a_doubt_comes_first(ordinal, server):
    """The second of two is lost; the same process again is stopped by it before it is answered from any other."""
    url = server.base + "/orders"
    server.default = {"late": "0.3"}
    process = ordinal.start(["curl", "-q", "-sS", url, url, "-d", "a=1"])
    assert server.wait_for(lambda s: s.executions == 1, 10 * SLOW)
    time.sleep(0.1)
    server.default = {"cut": "1"}
    ordinal.finish(process)
    assert server.executions == 2
    server.default = {}
    for _ in range(2):
        again = ordinal.curl("-d", "a=1", "--fail", url)
        assert (again.rc, again.order) == (56, None) and server.executions == 2


def test_a_doubt_is_settled_before_the_count_goes_on(world, server):
    """The provider deduplicates: the second one, whose answer was cut, is sent again and not a third."""
    world.policy(repeat="ordinal", provider=PROVIDER)
    query = "?keys=honour"
    assert orders(world, server, 1, query) == ["ord-1"]
    server.default = {"cut": "1"}
    assert orders(world, server, 2, query, code=52) == ["ord-1"]
    server.default = {}
    assert orders(world, server, 3, query) == ["ord-2", "ord-2", "ord-3"]
    assert server.executions == 3 and len(set(server.keys())) == 3


def test_killed_between_two(ordinal, server):
    """A process that was killed when the second was answered: the next one asks for each in turn."""
    url = server.base + "/orders"
    process = ordinal.start(["curl", "-q", "-sS", "--rate", "30/m", url, url, url, "-d", "a=1"])
    end = time.monotonic() + 20 * SLOW
    while time.monotonic() < end and (server.executions < 2 or ordinal.states() != ["done", "done"]):
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert server.executions == 2
    ids = orders(ordinal, server, 3)
    assert ids == ["ord-1", "ord-2", "ord-3"] and server.executions == 3


def test_a_refused_request_was_none(ordinal, server):
    """A 422 did nothing and counts for nothing: the next call is the same generation with the same key."""
    server.default = {"status": "422", "exec": "0", "times": "1"}
    url = server.base + "/orders"
    result = ordinal.run(["curl", "-q", "-sS", url, url, url, "-d", "a=1"])
    assert result.rc == 0 and server.executions == 2
    assert server.keys()[0] == server.keys()[1] != server.keys()[2]


def test_inject_gives_each_its_key_again(world, server):
    world.policy(repeat="ordinal", top={"mode": "inject"})
    orders(world, server, 3)
    orders(world, server, 3)
    keys = server.keys()
    assert len(set(keys)) == 3 and keys[:3] == keys[3:] and server.executions == 6


def test_equal_ones_at_once_are_one(ordinal, server):
    """Two that run side by side are one write, as ever; the one after them is the second."""
    answers = ordinal.post("--threads", "2", "--tries", "2", "--gap-ms", "1500", "--body", "a=1", server.base + "/orders?late=0.5")
    assert sorted(a.order for a in answers) == ["ord-1", "ord-1", "ord-2", "ord-2"]
    assert server.executions == 2
