"""Experiments A to G: one order server, unmodified curl, and what an operator expects."""
import os
import signal
import time

import pytest

from harness import parallel

JSON = ["-H", "Content-Type: application/json"]


def charge(world, server, body='{"amount":500,"customer":"c1"}', query="", **env):
    return world.curl(*JSON, "-d", body, server.base + "/orders" + query, **env)


def test_a_without_sendonce_a_timeout_and_a_retry_are_two_orders(world, server):
    url = server.base + "/orders?late=1.5&times=1"
    first = world.curl("-m", "1", "-d", "x", url, preload=False)
    second = world.curl("-m", "1", "-d", "x", url, preload=False)
    assert (first.rc, second.rc) == (28, 0)
    assert server.executions == 2


def test_b_key_order_does_not_matter(world, server):
    first = charge(world, server, '{"amount":500,"customer":"c1"}')
    second = charge(world, server, '{ "customer": "c\\u0031", "amount": 5e2 }')
    assert (first.status, second.status) == (201, 201)
    assert second.replayed and second.order == first.order
    assert server.executions == 1
    keys = {e["key"] for e in world.events("write")}
    assert len(keys) == 1 and server.keys()[0].startswith(keys.pop())


def test_b_another_scope_is_another_key(world, server):
    first = charge(world, server)
    second = charge(world, server, scope="somebody-else")
    assert first.order != second.order and not second.replayed
    assert server.executions == 2 and len(set(server.keys())) == 2


def test_c_three_times_in_one_run_is_one_order(world, server):
    answers = [charge(world, server) for _ in range(3)]
    assert server.executions == 1
    assert [a.status for a in answers] == [201] * 3
    assert len({a.body for a in answers}) == 1
    assert [a.replayed for a in answers] == [False, True, True]
    for again in answers[1:]:
        assert again.header("Sendonce-Verdict").startswith("replay; first=")
        assert "attempts=" in again.header("Sendonce-Verdict")


def test_c_another_run_means_it(world, server):
    first = charge(world, server, run="run-1")
    second = charge(world, server, run="run-2")
    assert first.order != second.order and not second.replayed
    assert server.executions == 2 and len(set(server.keys())) == 2


def test_c_without_a_run_replay_for_decides(world, server):
    world.policy(replay_for="2s")
    first = charge(world, server, run=None)
    second = charge(world, server, run=None)
    assert second.replayed and second.order == first.order
    time.sleep(2.2)
    third = charge(world, server, run=None)
    assert third.order != first.order and not third.replayed
    assert server.executions == 2 and len(set(server.keys())) == 2


def test_d_another_amount_is_another_order(world, server):
    first = charge(world, server, '{"amount":500}')
    second = charge(world, server, '{"amount":501}')
    assert first.order != second.order and not second.replayed
    assert server.executions == 2 and len(set(server.keys())) == 2


def test_d_big_numbers_are_not_rounded(world, server):
    first = charge(world, server, '{"to":9007199254740992}')
    second = charge(world, server, '{"to":9007199254740993}')
    assert first.order != second.order and server.executions == 2


@pytest.mark.san
def test_e_five_processes_at_once_are_one_order(world, server):
    job = lambda: charge(world, server, query="?late=2.5")
    answers = parallel(*[job] * 5)
    assert server.executions == 1 and len(server.writes()) == 1
    assert [(a.rc, a.status, a.order) for a in answers] == [(0, 201, "ord-1")] * 5
    verdicts = sorted(e["verdict"] for e in world.events("write"))
    assert verdicts == ["execute"] + ["join"] * 4
    assert world.stats()["joined"] == 4


def killed(world, server):
    """A charge whose process dies after its bytes left; the answer would have come much later."""
    process = world.curl_start(*JSON, "-d", '{"amount":1}', server.base + "/orders?late=30")
    assert server.wait_for(lambda s: any("late" in r.target for r in s.writes()))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return lambda: world.curl(*JSON, "-d", '{"amount":1}', server.base + "/orders?late=30")


def test_f_only_the_killed_one_is_in_doubt(world, server):
    good = [charge(world, server, '{"amount":%d}' % n) for n in (7, 8)]
    retry = killed(world, server)
    assert server.executions == 3
    doubt = [r for r in world.records() if r["state"] != "done"]
    assert len(doubt) == 1 and len(world.records()) == 3
    refused = retry()
    assert refused.status == 424 and refused.reason == "unknown-outcome"
    detail = refused.problem["detail"]
    assert "curl" in detail and "--not-executed" not in detail
    assert server.executions == 3 and len(server.writes()) == 3
    for n, before in zip((7, 8), good):
        again = charge(world, server, '{"amount":%d}' % n)
        assert again.replayed and again.order == before.order


def resolve(world, how):
    key = [r["key"] for r in world.records() if r["state"] != "done"][0]
    return world.cli("ledger", "resolve", key, *how, "--operator", "ada", "--evidence", "looked at the provider's list")


def test_f_resolved_as_not_executed_it_is_sent_again_with_the_same_key(world, server):
    retry = killed(world, server)
    assert retry().status == 424
    assert resolve(world, ["--not-executed"]).rc == 0
    process = world.curl_start(*JSON, "-d", '{"amount":1}', server.base + "/orders?late=30")
    assert server.wait_for(lambda s: s.executions == 2)
    os.killpg(process.pid, signal.SIGKILL)
    assert len(set(server.keys())) == 1


def test_f_resolved_as_executed_with_its_answer_it_is_replayed(world, server):
    retry = killed(world, server)
    assert retry().status == 424
    answer = world.write("answer.json", '{"id": "ord-1"}')
    assert resolve(world, ["--executed", "--answer", answer]).rc == 0
    after = retry()
    assert after.rc == 0 and after.order == "ord-1" and after.replayed
    assert server.executions == 1


def test_f_resolved_as_executed_without_an_answer(world, server):
    retry = killed(world, server)
    assert resolve(world, ["--executed"]).rc == 0
    after = retry()
    assert (after.status, after.reason) == (409, "answer-not-kept")
    assert server.executions == 1


def test_f_resolve_wants_a_person(world, server):
    retry = killed(world, server)
    key = [r["key"] for r in world.records()][0]
    without = world.cli("ledger", "resolve", key, "--not-executed")  # no terminal, no operator
    assert without.rc != 0 and without.err
    assert retry().status == 424 and server.executions == 1


def test_g_over_the_ttl_it_is_executed_under_another_key(world, server):
    world.policy(ttl="2s", replay_for="1s")
    first = charge(world, server)
    assert charge(world, server).replayed
    time.sleep(2.3)
    second = charge(world, server)
    assert second.status == 201 and second.order != first.order and not second.replayed
    assert server.executions == 2 and len(set(server.keys())) == 2


def test_g_over_the_ttl_with_on_expired_refuse(world, server):
    world.policy(ttl="2s", replay_for="1s", on_expired="refuse")
    charge(world, server)
    time.sleep(2.3)
    second = charge(world, server)
    assert (second.status, second.reason) == (403, "expired")
    assert second.problem and server.executions == 1
