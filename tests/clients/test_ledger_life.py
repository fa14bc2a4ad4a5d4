"""A ledger that is damaged, recovered or resized, under programs that use it."""
import glob
import json
import os
import time

import pytest

from harness import client

PAGE = 4096
SECRET_AT = 64  # somewhere in the part of the header that never changes


def damage(path, at, data=b"damage!"):
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(data)


def order(world, server, body="a=1", path="/orders", **env):
    return world.curl("-d", body, "-m", "20", server.base + path, **env)


def aside(world):
    return glob.glob(world.ledger + ".damaged-*")


# --- damage
def test_a_damaged_ledger_is_set_aside_and_refuses_until_a_person_recovers_it(world, server):
    first = order(world, server)
    damage(world.ledger, SECRET_AT)
    for _ in range(2):
        refused = order(world, server, "a=2")
        assert refused.reason == "ledger-unavailable" and "set aside" in refused.problem["detail"]
    assert len(aside(world)) == 1 and server.executions == 1
    with open(world.ledger) as f:
        assert aside(world)[0] in f.read()
    for args in (["ledger", "list"], ["stats"], ["run", "--", "true"]):
        result = world.cli(*args)
        assert result.rc == 3 and "recover" in result.err
    result = world.cli("ledger", "recover", "--json")
    assert result.rc == 0
    report = json.loads(result.out)
    assert report["records"] == 1 and report["unreadable"] == 0 and not report["lost_range"]
    assert report["old"] == aside(world)[0] and os.path.exists(report["old"])
    again = order(world, server)
    assert again.replayed and again.order == first.order and server.executions == 1
    assert order(world, server, "a=2").status == 201


def lose_facts(world):
    """A byte falls over in what the only record was written with: neither its key nor its fingerprint is shown any more."""
    record = world.records()[0]
    with open(world.ledger, "rb") as f:
        held = f.read()
    at = held.index(record["key"].encode()) - 60
    damage(world.ledger, at, bytes([held[at] ^ 1]))
    assert not world.records()[0].get("key")
    return record["content"]


WHO = ["--operator", "ada", "--evidence", "looked at the provider's list"]


@pytest.mark.parametrize("said, answered", [(None, (424, "unknown-outcome")), (["--executed"], (409, "answer-not-kept")),
                                            (["--executed", "--answer"], (200, "ord-1")), (["--not-executed"], (201, "ord-2"))],
                         ids=str)
def test_a_write_whose_fingerprint_is_lost_is_no_other_write(world, server, said, answered):
    """It cannot be compared any more, so it does not differ: the same write is in doubt, and what a person says counts."""
    assert order(world, server).order == "ord-1"
    name = lose_facts(world)
    assert (order(world, server).status, order(world, server).reason) == (424, "unknown-outcome")
    if said:
        said = [*said, world.write("answer", '{"id": "ord-1"}')] if "--answer" in said else said
        resolved = world.cli("ledger", "resolve", name, *said, *WHO)
        assert resolved.rc == 0, resolved
    again = order(world, server)
    assert (again.status, again.order if again.status < 300 else again.reason) == answered
    assert server.executions == 1 + ("--not-executed" in (said or []))


def test_a_lost_fingerprint_and_must_match(world, server):
    """Whether the amount is the same nobody knows: no answer is given for it, and nothing is sent."""
    world.policy(identity={"fields": ["a"], "must_match": ["amount"]})
    assert order(world, server, "a=1&amount=5").order == "ord-1"
    assert order(world, server, "a=1&amount=6").reason == "key-conflict"
    name = lose_facts(world)
    for amount in (5, 6):
        assert order(world, server, "a=1&amount=%d" % amount).reason == "unknown-outcome"
    assert world.cli("ledger", "resolve", name, "--executed", "--answer", world.write("answer", "{}"), *WHO).rc == 0
    for amount in (5, 6):
        assert order(world, server, "a=1&amount=%d" % amount).reason == "answer-not-kept"
    assert server.executions == 1


def test_run_finds_it_before_anything_starts(world, server):
    order(world, server)
    damage(world.ledger, SECRET_AT)
    result = world.cli("run", "--", "touch", world.path("started"))
    assert result.rc == 3 and "set aside" in result.err and not os.path.exists(world.path("started"))
    assert len(aside(world)) == 1


def test_who_only_looks_moves_nothing(world, server):
    order(world, server)
    damage(world.ledger, SECRET_AT)
    for args in (["ledger", "list"], ["ledger", "verify"], ["stats"], ["check", world.policy_file]):
        result = world.cli(*args)
        assert result.rc == 3 and "recover" in result.err
    assert not aside(world)


def test_a_sound_ledger_is_not_recovered(world, server):
    order(world, server)
    result = world.cli("ledger", "recover")
    assert result.rc == 0 and "no damage" in result.err and not aside(world)


def test_a_foreign_file_is_set_aside_unchanged(world, server):
    text = "the only copy of something else\n" * 500
    os.chmod(world.write("ledger", text), 0o600)
    refused = order(world, server)
    assert refused.reason == "ledger-unavailable" and server.executions == 0
    with open(aside(world)[0]) as f:
        assert f.read() == text


def test_a_program_that_has_it_mapped_is_told(world, server):
    """It wrote once; then its ledger is found damaged by somebody else."""
    process = world.start([client("post"), "--tries", "2", "--gap-ms", "1500", "--vary", server.base + "/orders"])
    first = world.post_answer(process.stdout.readline().rstrip("\n"))
    assert first.status == 201
    damage(world.ledger, SECRET_AT)
    assert order(world, server, "other=1").reason == "ledger-unavailable"
    second = world.post_answer(process.stdout.readline().rstrip("\n"))
    assert second.reason == "ledger-unavailable" and "restart the program" in second.problem["detail"]
    assert process.wait(20) == 0 and server.executions == 1


# --- what was lost
@pytest.fixture
def lost(world, server):
    """A ledger whose one page of records is gone, recovered."""
    order(world, server, "a=1")
    with open(world.ledger, "rb") as f:
        at = f.read().index(bytes.fromhex(world.records()[0]["content"]))
    damage(world.ledger, at // PAGE * PAGE, b"\0" * PAGE)
    result = world.cli("ledger", "recover", "--json")
    assert result.rc == 0, result
    report = json.loads(result.out)
    assert report["unreadable"] >= 1 and report["lost_range"]
    return world


def test_a_write_that_may_have_been_lost_is_in_doubt(lost, server):
    for body in ("a=1", "a=new"):
        refused = order(lost, server, body)
        assert refused.rc == 56 and "lost to damage" in refused.err, refused
    assert server.executions == 1
    events = lost.events("refusal")
    assert events and events[-1]["reason"] == "unknown-outcome"
    assert "lost to damage" in lost.cli("ledger", "list").err
    # a rule that was not in use then has lost nothing
    lost.policy(operation="another.create")
    assert order(lost, server, "a=new").status == 201 and server.executions == 2


def test_a_person_settles_it(lost, server):
    refused = lost.cli("ledger", "resolve", "lost-range", "--not-executed")
    assert refused.rc == 1 and "person at a terminal" in refused.err
    assert lost.cli("ledger", "resolve", "lost-range", "--executed").rc == 2
    assert order(lost, server, "a=new").rc == 56
    who = ["--operator", "ada", "--evidence", "no other orders in the list"]
    assert lost.cli("ledger", "resolve", "lost-range", "--not-executed", *who).rc == 0
    assert lost.events("resolve")[-1]["operation"] == "lost-range"
    assert order(lost, server, "a=new").status == 201 and server.executions == 2
    assert lost.cli("ledger", "list").err == ""
    assert lost.cli("ledger", "resolve", "lost-range", "--not-executed", *who).rc == 1


def test_unknown_ttl_ends_it(lost, server):
    lost.policy(unknown_ttl="1s")
    assert order(lost, server, "a=new").rc == 56
    time.sleep(1.2)
    assert order(lost, server, "a=new").status == 201
    assert lost.events("doubt-dropped")


def test_it_stays_through_a_resize(lost, server):
    assert lost.cli("ledger", "resize", "2MiB").rc == 0
    assert order(lost, server, "a=new").rc == 56 and server.executions == 1


# --- resize
def test_a_program_goes_on_in_the_resized_ledger_once_it_is_restarted(world, server):
    process = world.start([client("post"), "--tries", "2", "--gap-ms", "1500", "--vary", server.base + "/orders"])
    assert world.post_answer(process.stdout.readline().rstrip("\n")).status == 201
    first = order(world, server)
    result = world.cli("ledger", "resize", "2MiB", "--json")
    assert result.rc == 0
    report = json.loads(result.out)
    assert report["records"] == 2 and os.path.getsize(world.ledger) == report["size"] == 2 << 20
    assert os.path.getsize(report["old"]) == 8 << 20
    second = world.post_answer(process.stdout.readline().rstrip("\n"))
    assert second.reason == "ledger-unavailable" and "another size" in second.problem["detail"]
    assert process.wait(20) == 0
    assert order(world, server).order == first.order and server.executions == 2
    assert world.events("resize")
    # what was kept can be looked at, not written
    assert world.cli("ledger", "list", "--ledger", report["old"]).rc == 0
    assert world.cli("ledger", "resolve", "abcd", "--executed", "--ledger", report["old"]).rc == 3


def test_resize_is_refused_while_a_write_is_under_way(world, server):
    process = world.curl_start("-d", "a=1", server.base + "/orders?late=2")
    assert server.wait_for(lambda s: s.executions == 1)
    result = world.cli("ledger", "resize", "2MiB")
    assert result.rc == 3 and "is sending orders.create" in result.err and str(process.pid) in result.err
    assert world.curl_finish(process).status == 201
    assert world.cli("ledger", "resize", "2MiB").rc == 0
    assert os.path.getsize(world.ledger) == 2 << 20


@pytest.mark.parametrize("size, rc", [("1KiB", 3), ("65GiB", 3), ("much", 2), ("", 2), ("-1", 2)])
def test_sizes_no_ledger_has(world, server, size, rc):
    order(world, server)
    result = world.cli("ledger", "resize", size)
    assert result.rc == rc and result.err.strip()
    assert order(world, server).replayed


@pytest.mark.parametrize("args", [["resize", "2MiB"], ["recover"]], ids=" ".join)
def test_where_there_is_no_ledger(world, args):
    result = world.cli("ledger", *args)
    assert result.rc == 3 and "no ledger here" in result.err and not os.path.exists(world.ledger)
    world.policy(ledger={"path": "memory"})
    result = world.cli("ledger", *args, SENDONCE_LEDGER=None)
    assert result.rc == 3 and "no file to look at" in result.err
