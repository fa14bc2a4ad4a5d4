"""Records that leave a machine and come into another one: export and import through real clients."""
import json
import os

import pytest

from harness import World

AT = "/orders"


@pytest.fixture
def other(tmp_path):
    """Another machine: its own folder, policy and ledger."""
    folder = tmp_path / "other"
    folder.mkdir()
    w = World(folder).policy()
    yield w
    w.close()


@pytest.fixture
def shared_secret(world, other):
    """One secret for both, as an operator of several machines sets it."""
    path = world.write("secret", "one secret for all machines\n")
    return {"SENDONCE_SECRET_FILE": path}


def export(world, *args, **env):
    result = world.cli("ledger", "export", *args, **env)
    assert result.rc == 0, result
    return world.write("export.jsonl", result.out), [json.loads(line) for line in result.out.splitlines()]


def bring(world, path, **env):
    result = world.cli("ledger", "import", path, "--json", **env)
    assert result.rc == 0, result
    return json.loads(result.out)


def write(world, server, body="a=1", **env):
    return world.curl("-d", body, "-m", "20", server.base + AT, **env)


# --- the scenario of a checkpointing agent
def test_an_agent_goes_on_elsewhere_hours_later_under_its_run(world, other, server, shared_secret):
    """It wrote, was checkpointed with its records, and is resumed on another machine: it repeats its last steps."""
    first = write(world, server, "a=1", run="task-7", **shared_secret)
    write(world, server, "a=2", run="other-task", **shared_secret)
    assert first.status == 201 and server.executions == 2
    path, lines = export(world, "--run", "task-7", **shared_secret)
    assert [line.get("sendonce") for line in lines] == ["ledger", None, "end"]
    os.remove(world.ledger)  # that machine is no more
    assert bring(other, path, **shared_secret) == {"records": 1, "kept": 0, "merged": 0, "replaced": 0, "new": 1}
    again = write(other, server, "a=1", run="task-7", **shared_secret)
    assert again.replayed and again.order == first.order and again.body == first.body
    assert server.executions == 2
    # what was not carried along, and another task's same write, are written as ever
    assert write(other, server, "a=2", run="task-7", **shared_secret).status == 201
    assert write(other, server, "a=1", run="task-8", **shared_secret).status == 201
    assert server.executions == 4


def test_a_doubt_is_a_doubt_elsewhere(world, other, server, shared_secret):
    lost = world.curl("-d", "a=1", server.base + AT + "?cut=1", run="task-7", **shared_secret)
    assert lost.rc != 0 and server.executions == 1
    path, _ = export(world, **shared_secret)
    bring(other, path, **shared_secret)
    assert [r["in_doubt"] for r in other.records()] == [True]
    refused = other.curl("-d", "a=1", server.base + AT + "?cut=1", run="task-7", **shared_secret)
    assert refused.rc == 56 and server.executions == 1
    settled = other.cli("ledger", "resolve", other.records()[0]["key"], "--not-executed", "--operator", "ada",
                        "--evidence", "not in the list", **shared_secret)
    assert settled.rc == 0
    # the old file does not bring the doubt back
    assert bring(other, path, **shared_secret)["kept"] == 1
    assert other.states() == ["freed"]


def test_the_key_stays_the_same(world, other, server, shared_secret):
    """A doubt that may be sent again goes out with the key the provider knows, from wherever it is sent."""
    rule = {"provider": {"dedups": True, "key_ttl": "24h", "stores": ["2xx"]}}
    world.policy(**rule)
    other.policy(**rule)
    world.curl("-d", "a=1", server.base + AT + "?cut=1", run="task-7", **shared_secret)
    path, _ = export(world, **shared_secret)
    bring(other, path, **shared_secret)
    other.curl("-d", "a=1", server.base + AT + "?cut=1", run="task-7", **shared_secret)
    assert len(set(server.keys(AT))) == 1 and len(server.keys(AT)) == 2


# --- never over a newer state
def test_importing_into_the_same_ledger_changes_nothing(world, server):
    write(world, server, "a=1")
    write(world, server, "a=2")
    path, _ = export(world)
    before = world.records()
    write(world, server, "a=1", run="run-2")
    result = bring(world, path)
    assert result["new"] == result["replaced"] == 0 and result["records"] == 2
    after = {r["key"]: r for r in world.records()}
    for record in before:
        assert after[record["key"]]["state"] == record["state"]
    assert write(world, server, "a=1").replayed and server.executions == 3


def test_twice_is_once(world, other, server, shared_secret):
    write(world, server, **shared_secret)
    path, _ = export(world, **shared_secret)
    bring(other, path, **shared_secret)
    before = other.records()
    assert bring(other, path, **shared_secret)["merged"] == 1
    assert [dict(r, record=0) for r in other.records()] == [dict(r, record=0) for r in before]


# --- secrets
def test_another_secret_is_an_error_that_says_what_to_do(world, other, server):
    write(world, server)
    path, lines = export(world)
    assert "secret_value" not in lines[0]
    for _ in range(2):  # no ledger there, and one of its own
        result = other.cli("ledger", "import", path)
        assert result.rc == 3 and "SENDONCE_SECRET_FILE" in result.err and "--with-secret" in result.err
        assert other.cli("run", "--", "true").rc == 0
    assert other.records() == []


def test_the_secret_leaves_only_when_asked_and_with_a_warning(world, other, server):
    write(world, server, run="task-7")
    result = world.cli("ledger", "export", "--with-secret")
    assert result.rc == 0 and "warning" in result.err
    path = world.write("with-secret", result.out)
    assert bring(other, path)["new"] == 1
    assert write(other, server, run="task-7").replayed and server.executions == 1
    # a ledger that is there has a secret already
    third = World(os.path.join(other.folder)).policy(ledger={"path": other.path("third")})
    third.ledger = other.path("third")
    assert third.cli("run", "--", "true").rc == 0
    assert third.cli("ledger", "import", path).rc == 3


def test_a_secret_file_is_copied_not_exported(world, server, shared_secret):
    write(world, server, **shared_secret)
    result = world.cli("ledger", "export", "--with-secret", **shared_secret)
    assert result.rc == 3 and "copy that file" in result.err and "secret_value" not in result.out


def test_a_secret_that_does_not_fit_its_fingerprint(world, other, server):
    write(world, server)
    lines = world.cli("ledger", "export", "--with-secret").out.splitlines()
    head = json.loads(lines[0])
    head["secret_value"] = "00" * 32
    result = other.cli("ledger", "import", world.write("forged", "\n".join([json.dumps(head)] + lines[1:]) + "\n"))
    assert result.rc == 3 and not os.path.exists(other.ledger)


# --- files that are not what they should be
@pytest.fixture
def lines(world, server, shared_secret):
    write(world, server, **shared_secret)
    return export(world, **shared_secret)[1]


@pytest.mark.parametrize("name, change, word", [
    ("no first line", lambda x: x[1:], "first line"),
    ("two first lines", lambda x: [x[0]] + x, "second first line"),
    ("no last line", lambda x: x[:-1], "is cut"),
    ("a record missing", lambda x: [x[0], x[2]], "is cut"),
    ("something behind", lambda x: x + [x[1]], "follows"),
    ("another version", lambda x: [dict(x[0], version=2)] + x[1:], "version"),
    ("unknown kind", lambda x: [x[0], {"sendonce": "poem"}] + x[1:], "kind"),
    ("no such state", lambda x: [x[0], dict(x[1], state="happy"), x[2]], "state"),
    ("a short hash", lambda x: [x[0], dict(x[1], content="ab"), x[2]], "hash"),
    ("not hex", lambda x: [x[0], dict(x[1], content="zz" * 32), x[2]], "hex"),
    ("generation 0", lambda x: [x[0], dict(x[1], generation=0), x[2]], "bounds"),
    ("half a number", lambda x: [x[0], dict(x[1], attempts=1.5), x[2]], "whole"),
    ("a long key", lambda x: [x[0], dict(x[1], key="k" * 300), x[2]], "text"),
    ("a key with a line feed", lambda x: [x[0], dict(x[1], key="k\r\nX: y"), x[2]], "text"),
    ("a key beyond bytes", lambda x: [x[0], dict(x[1], key="k\u0100"), x[2]], "text"),
    ("a key with a zero", lambda x: [x[0], dict(x[1], key="k\u0000"), x[2]], "text"),
    ("no key", lambda x: [x[0], {k: v for k, v in x[1].items() if k != "key"}, x[2]], "text"),
    ("nine runs", lambda x: [x[0], dict(x[1], runs=x[1]["runs"] * 9), x[2]], "runs"),
    ("no base64", lambda x: [x[0], dict(x[1], answer="*"), x[2]], "base64"),
    ("an array", lambda x: [x[0], [], x[2]], "JSON object"),
], ids=lambda x: x if isinstance(x, str) else "")
def test_a_file_that_is_not_an_export(world, other, shared_secret, lines, name, change, word):
    text = "".join(json.dumps(x) + "\n" for x in change(lines))
    result = other.cli("ledger", "import", other.write("bad", text), **shared_secret)
    assert result.rc == 1 and word in result.err, result
    assert "/bad" in result.err


def test_standard_input_and_what_is_no_json(world, other, shared_secret, lines):
    path = world.path("export.jsonl")
    argv = ["sh", "-c", '"$0" ledger import - < "$1"', os.path.join(world.preload_from, "sendonce"), path]
    result = other.run(argv, preload=False, SENDONCE_POLICY=other.policy_file, **shared_secret)
    assert result.rc == 0 and "1 new" in result.err
    assert other.cli("ledger", "import", other.write("x", "not json\n")).rc == 1
    assert other.cli("ledger", "import", other.path("missing")).rc == 3
    assert other.cli("ledger", "import", other.write("x", "")).rc == 1


def test_members_that_are_not_known_are_passed_over(other, shared_secret, lines):
    text = "".join(json.dumps(dict(x, later=[1, {"a": None}])) + "\n" for x in lines)
    assert bring(other, other.write("later", text), **shared_secret)["new"] == 1


def test_names_are_bytes_and_come_back_as_they_were(world, other, server, shared_secret):
    """Also through a program that writes the JSON anew."""
    world.policy(operation="bestellung.anlägen \"x\"")
    other.policy(operation="bestellung.anlägen \"x\"")
    write(world, server, **shared_secret)
    path, lines = export(world, **shared_secret)
    with open(path) as f:
        assert f.read().isascii()
    bring(other, other.write("anew", "".join(json.dumps(x, ensure_ascii=False) + "\n" for x in lines)), **shared_secret)
    assert other.records()[0]["operation"] == world.records()[0]["operation"] == "bestellung.anlägen \"x\""
