"""An agent asks a person, is put aside, and goes on three hours later on another machine: it begins its task anew, as
checkpointed agents do, under the same run and with an imported ledger, and nothing is written twice."""
import json
import os
import subprocess

import pytest

from harness import HERE, World

HOURS = 3 * 3600


@pytest.fixture(scope="session")
def moved(tmp_path_factory):
    """The clock of whoever preloads it stands ahead."""
    so = str(tmp_path_factory.mktemp("moved") / "moved.so")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", so, os.path.join(HERE, "parts", "moved.c")], check=True, timeout=60)
    return so


RULES = """version: 1
run: "${SENDONCE_RUN}"
ledger: {path: %s, size: 8MiB, durability: process}
events: %s
writes:
  - operation: order
    match: POST http://127.0.0.1:*/v1/orders
    ttl: 24h
  - operation: ask
    match: POST http://127.0.0.1:*/v1/asks
    ttl: 24h
  - operation: payment
    match: POST http://127.0.0.1:*/v1/payments
    provider: %s
    ttl: 24h
    on_expired: refuse
"""


class Machine(World):
    """A world whose clock may stand ahead."""

    def __init__(self, folder, moved, ahead=0, provider="{dedups: false}"):
        os.makedirs(str(folder))
        super().__init__(folder)
        self.moved, self.ahead = moved, ahead
        self.write("policy.yaml", RULES % (self.ledger, self.event_log, provider))

    def env(self, preload=True, **extra):
        env = super().env(preload=preload, **extra)
        if self.ahead:
            env["LD_PRELOAD"] = ":".join(x for x in (env.get("LD_PRELOAD"), self.moved) if x)
            env["MOVED_SECONDS"] = str(self.ahead)
        return env

    def agent(self, server, approved, cut="", run="task-7"):
        """All steps from the first one on; the payment only when a person has said yes."""
        answers = [self.curl("-d", "item=book&count=2", server.base + "/v1/orders", run=run),
                   self.curl("-d", "May I pay 30 EUR for order 1?", server.base + "/v1/asks" + cut, run=run)]
        if approved:
            answers.append(self.curl("-d", "amount=3000&order=1", server.base + "/v1/payments", run=run))
        return answers


@pytest.fixture
def machines(tmp_path, moved):
    made = []

    def make(name, **more):
        made.append(Machine(tmp_path / name, moved, **more))
        return made[-1]
    yield make
    for machine in made:
        machine.close()


def carry(a, b, run="task-7"):
    exported = a.cli("ledger", "export", "--run", run, "--with-secret")
    assert exported.rc == 0, exported
    b.write("export.jsonl", exported.out)
    result = b.cli("ledger", "import", "export.jsonl")
    assert result.rc == 0, result


def test_nothing_is_written_twice(machines, server):
    a, b = machines("a"), machines("b", ahead=HOURS)
    first = a.agent(server, approved=False)
    assert [x.status for x in first] == [201, 201] and server.executions == 2
    carry(a, b)
    again = b.agent(server, approved=True)
    assert [x.status for x in again] == [201, 201, 201]
    assert [x.replayed for x in again] == [True, True, False]
    assert [x.body for x in again[:2]] == [x.body for x in first], "the answers of before"
    assert server.executions == 3 and [r.path for r in server.writes()] == ["/v1/orders", "/v1/asks", "/v1/payments"]
    third = b.agent(server, approved=True)
    assert [x.replayed for x in third] == [True, True, True] and server.executions == 3


def test_the_clock_did_move(machines, server):
    """The same six hours later, in two steps, and then past the time a write is remembered."""
    a, b, c = machines("a"), machines("b", ahead=HOURS), machines("c", ahead=25 * 3600)
    a.agent(server, approved=True)
    carry(a, b)
    carry(b, c)
    late = c.agent(server, approved=True)
    assert [x.replayed for x in late[:2]] == [False, False], "an order that is a day old is a new one"
    assert late[2].reason == "expired", "a payment is not"
    assert server.executions == 5


def test_without_the_import_it_would_be_twice(machines, server):
    machines("a").agent(server, approved=False)
    machines("b", ahead=HOURS).agent(server, approved=True)
    assert server.executions == 5


def test_another_task_means_it(machines, server):
    a, b = machines("a"), machines("b", ahead=HOURS)
    a.agent(server, approved=False)
    carry(a, b)
    assert not any(x.replayed for x in b.agent(server, approved=True, run="task-8"))
    assert server.executions == 5


def test_a_question_whose_answer_got_lost_is_not_asked_again(machines, server):
    a, b = machines("a"), machines("b", ahead=HOURS)
    assert a.agent(server, approved=False, cut="?cut=1")[1].rc != 0
    carry(a, b)
    again = b.agent(server, approved=False, cut="?cut=1")
    assert again[0].replayed and server.executions == 2
    assert again[1].rc != 0 or again[1].reason == "unknown-outcome"
    said = json.loads(b.cli("explain", "--json", "-d", "May I pay 30 EUR for order 1?", server.base + "/v1/asks?cut=1",
                            SENDONCE_SCOPE="tests", SENDONCE_RUN="task-7").out)
    assert (said["verdict"], said["reason"]) == ("refuse", "unknown-outcome")


def test_a_lost_payment_is_asked_about_with_its_key(machines, server):
    """The provider knows the key for a day: three hours later the answer is still to be had."""
    provider = "{dedups: true, key_ttl: 24h, stores: [2xx]}"
    a, b = machines("a", provider=provider), machines("b", provider=provider, ahead=HOURS)
    url = server.base + "/v1/payments?keys=honour&cut=1&times=1"
    assert a.curl("-d", "amount=3000", url, run="task-7").rc != 0 and server.executions == 1
    carry(a, b)
    answer = b.curl("-d", "amount=3000", url, run="task-7")
    assert answer.status == 201 and server.executions == 1
    assert len(set(server.keys())) == 1
