"""The program gives up after one second, the answer comes later: the retry gets the first order."""
import time

import pytest

from harness import PROVIDER

URL = "/orders?late=2.5&times=1"


def first_and_last(world, server, late=URL, **again):
    """Two curl processes; the first one times out. What the second one got."""
    first = world.curl("-m", "1", "-d", "x", server.base + late)
    assert first.rc == 28, first
    return lambda **env: world.curl("-m", "1", "-d", "x", server.base + late, **env)


@pytest.mark.san
@pytest.mark.parametrize("fresh", [[], ["--new"]], ids=["same-handle", "new-handle"])
def test_at_once_in_the_same_process(world, server, fresh):
    first, second = world.post(*fresh, "--tries", "2", "--timeout-ms", "1000,20000", server.base + URL)
    assert (first.rc, first.status) == (28, 0)
    assert (second.rc, second.status, second.order) == (0, 201, "ord-1")
    assert server.executions == 1 and len(server.writes()) == 1


def test_at_once_in_the_same_process_after_the_answer_is_there(world, server):
    answers = world.post("--tries", "2", "--gap-ms", "2500", "--timeout-ms", "1000", server.base + URL)
    assert [a.rc for a in answers] == [28, 0]
    assert answers[1].order == "ord-1" and answers[1].replayed
    assert len(server.writes()) == 1


def test_curl_retry(world, server):
    answer = world.curl("-m", "1", "--retry", "3", "--retry-delay", "1", "-d", "x", server.base + URL)
    assert (answer.rc, answer.status, answer.order) == (0, 201, "ord-1")
    assert len(server.writes()) == 1


def test_at_once_from_a_new_process(world, server):
    again = first_and_last(world, server)  # the exit waited for the answer
    answer = again()
    assert (answer.rc, answer.order, answer.replayed) == (0, "ord-1", True)
    assert server.executions == 1 and len(server.writes()) == 1


def test_ten_seconds_later(world, server):
    again = first_and_last(world, server)
    time.sleep(10)
    answer = again()
    assert (answer.rc, answer.order, answer.replayed) == (0, "ord-1", True)
    assert server.executions == 1 and len(server.writes()) == 1


def test_in_another_run(world, server):
    again = first_and_last(world, server)
    answer = again(run="run-2")
    assert (answer.rc, answer.order, answer.replayed) == (0, "ord-1", True)
    assert server.executions == 1 and len(server.writes()) == 1
    assert [e["run"] for e in world.events() if "replay-late" in (e["event"], e.get("reason"))] == ["run-2"]


def test_without_any_run(world, server):
    world.curl("-m", "1", "-d", "x", server.base + URL, run=None)
    answer = world.curl("-m", "1", "-d", "x", server.base + URL, run=None)
    assert (answer.rc, answer.order) == (0, "ord-1")
    assert len(server.writes()) == 1


@pytest.mark.parametrize("wait,run", [(0, "run-1"), (3, "run-1"), (10, "run-1"), (0, "run-2")],
                         ids=["at-once", "3s-later", "10s-later", "another-run"])
def test_with_a_provider_that_deduplicates(world, server, wait, run):
    world.policy(provider=PROVIDER)
    late = URL + "&keys=honour&busy=wait"
    first = world.curl("-m", "1", "-d", "x", server.base + late)
    assert first.rc == 28 and first.seconds < 2.4  # exit_wait is 0: the key makes a retry harmless
    time.sleep(wait)
    answer = world.curl("-m", "10", "-d", "x", server.base + late, run=run)
    assert (answer.rc, answer.status, answer.order) == (0, 201, "ord-1")
    assert server.executions == 1 and 1 <= len(server.writes()) <= 2
    assert len(set(server.keys())) == 1


def test_exit_is_bounded_and_the_doubt_is_said(world, server):
    world.policy(exit_wait="2s")
    first = world.curl("-m", "1", "-d", "x", server.base + "/orders?late=20")
    assert first.rc == 28 and 2.5 < first.seconds < 5
    assert world.states() == ["unknown"]
    second = world.curl("-m", "1", "-d", "x", server.base + "/orders?late=20")
    assert second.rc == 56 and "not" in second.err  # the first one ended with a CURLcode: so does this
    assert server.executions == 1 and len(server.writes()) == 1
