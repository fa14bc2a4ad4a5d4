"""A ledger in memory and one of a group, through real clients and the command line."""
import os
import stat

import pytest

LOOKING = [["ledger", "list"], ["ledger", "show", "abcd"], ["ledger", "verify"], ["ledger", "resolve", "abcd", "--executed"], ["stats"]]


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_memory_replays_within_the_program_and_leaves_nothing(world, server):
    world.policy(ledger={"path": "memory"})
    before = set(os.listdir(world.folder))
    first, second = world.post("--tries", "2", server.base + "/orders")
    assert first.status == second.status == 201 and first.order == second.order
    assert second.replayed and not first.replayed and server.executions == 1
    assert set(os.listdir(world.folder)) - before == {"events.jsonl"}


def test_memory_ends_with_the_program(world, server):
    world.policy(ledger={"path": "memory"})
    for expected in (1, 2):
        assert world.post(server.base + "/orders")[0].status == 201
        assert server.executions == expected


@pytest.mark.parametrize("args", LOOKING, ids=" ".join)
def test_nobody_can_look_into_memory(world, args):
    world.policy(ledger={"path": "memory"})
    for env in ({"SENDONCE_LEDGER": None}, {"SENDONCE_LEDGER": "memory"}):
        result = world.cli(*args, **env)
        assert result.rc == 3 and result.out == ""
        assert "no file to look at" in result.err
    assert not os.path.exists(world.path("memory"))


def test_memory_without_a_log_says_so(world, server):
    world.policy(top={"events": "beside the ledger"}, ledger={"path": "memory"})
    assert world.cli("run", "--", "true", SENDONCE_LEDGER=None).rc == 0
    assert world.cli("check", world.policy_file, SENDONCE_LEDGER=None).rc == 0
    assert world.post(server.base + "/orders")[0].status == 201
    result = world.cli("events", SENDONCE_LEDGER=None)
    assert result.rc == 3 and "no event is kept" in result.err
    assert set(os.listdir(world.folder)) == {"policy.yaml"}


def test_a_groups_ledger_and_log_are_its_groups(world, server):
    world.policy(ledger={"group": True})
    refused = world.post(server.base + "/orders")[0]
    assert refused.reason == "ledger-unavailable" and "chmod 2770" in refused.problem["detail"]
    assert server.executions == 0
    os.chmod(world.folder, 0o2770)
    os.remove(world.event_log)
    assert world.post(server.base + "/orders")[0].status == 201
    assert mode(world.ledger) == mode(world.event_log) == 0o660
    assert world.states() == ["done"]
    world.policy()
    refused = world.post(server.base + "/orders")[0]
    assert refused.reason == "ledger-unavailable" and "ledger.group: true" in refused.problem["detail"]
    assert "ledger.group: true" in world.cli("ledger", "list").err
