"""The ready-made rules of policy/: each passes `check` without a warning, and does to the requests in policy/tests what
the table beside it says, by the words of `explain`."""
import glob
import json
import os
import re
import shlex
import subprocess

import pytest

from harness import ROOT

PACKS = sorted(os.path.basename(p)[:-5] for p in glob.glob(ROOT + "/policy/*.yaml") if not p.endswith("example.yaml"))
ENV = {"SENDONCE_SCOPE": "tests", "SENDONCE_RUN": "run-1", "PAYPAL_CLIENT_ID": "client-1"}
RELATIONS = {"same": 0, "different": 1, "same content, another own key": 1, "conflict": 1}


def pack(name):
    return os.path.join(ROOT, "policy", name + ".yaml")


def table(name):
    """(columns before the last, arguments) of each line that says something."""
    with open(os.path.join(ROOT, "policy", "tests", name + ".txt")) as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                *columns, request = [x.strip() for x in line.split(" | ")]
                yield [c.strip("| ") for c in columns], shlex.split(request.strip("| "))


LINES = [(name, columns, request) for name in PACKS for columns, request in table(name)]


def test_there_are_packs_and_every_table_belongs_to_one():
    assert len(PACKS) >= 21
    tables = {os.path.basename(p)[:-4] for p in glob.glob(ROOT + "/policy/tests/*.txt")}
    assert tables == set(PACKS)


@pytest.mark.parametrize("name", PACKS)
def test_check_has_nothing_to_say(world, name):
    result = world.cli("check", pack(name), **ENV)
    assert result.rc == 0 and result.err == "" and "warnings: 0" in result.out, result


@pytest.mark.parametrize("name", PACKS)
def test_facts_have_a_source_and_a_day(name):
    with open(pack(name)) as f:
        head = f.read().split("version: 1")[0]
    assert re.search(r"Looked up on \d{4}-\d{2}-\d{2}:", head)
    assert re.search(r"^# +https://\S+", head, re.M)


@pytest.mark.parametrize("name", PACKS)
def test_a_table_says_what_is_a_write_and_what_is_not(name):
    first = [columns for columns, _ in table(name)]
    assert any(c[0] == "-" for c in first), "one request that is left alone"
    assert name == "kubernetes" or sum(c[0] not in RELATIONS and c[0] != "-" for c in first) >= 1


def look(world, policy, columns, request_):
    """What `explain` says against what the line says."""
    common = ["--json", "--policy", policy, "--ledger", world.path("none")]
    if columns[0] in RELATIONS:
        result = world.cli("explain", "--diff", *common, *request_, **ENV)
        assert result.rc == RELATIONS[columns[0]], result
        assert json.loads(result.out)["relation"] == columns[0]
        return
    operation, verdict, doubt, expired, carrier = columns
    result = world.cli("explain", *common, *request_, **ENV)
    assert result.rc == 0, result
    said = json.loads(result.out)
    assert (said["rule"] or {}).get("operation", "-") == operation, said["others"]
    assert said["verdict"] == verdict
    if operation != "-":
        assert (said["if_in_doubt"], said["if_expired"], said["key"]["carrier"]) == (doubt, expired, carrier)


@pytest.mark.parametrize("name, columns, request_", LINES, ids=["%s-%d" % (x[0], i) for i, x in enumerate(LINES)])
def test_table(world, name, columns, request_):
    look(world, pack(name), columns, request_)


def test_several_are_included_in_one_policy(world):
    """All of them at once, and rules of one's own before: no rule of one hides one of another."""
    own = "version: 1\nscope: s\ninclude:\n" + "".join("  - %s\n" % pack(name) for name in PACKS)
    own += "writes:\n  - {operation: mine, match: POST https://api.stripe.com/v1/tokens}\n"
    policy = world.write("policy.yaml", own)
    checked = world.cli("check", policy, **ENV)
    assert checked.rc == 0 and checked.err == "" and "warnings: 0" in checked.out, checked
    for _, columns, request_ in LINES[::3]:
        look(world, policy, columns, request_)
    look(world, policy, ["mine", "execute", "refuse", "execute", "header:Idempotency-Key"], ["-d", "x", "https://api.stripe.com/v1/tokens"])


def test_mcp_end_to_end(world, server):
    """Two tries of one tool call, with the ids a client gives them; the list of tools is asked for each time."""
    world.write("policy.yaml", "version: 1\nledger: {path: %s, size: 8MiB, durability: process}\nevents: %s\ninclude: [%s]\n" % (
        world.ledger, world.event_log, pack("mcp")))

    def call(number, method, **params):
        body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return world.curl("-d", body, "-H", "Content-Type: application/json", "-H", "Accept: application/json, text/event-stream",
                          server.base + "/mcp")
    first = call(7, "tools/call", name="send_mail", arguments={"to": "a"})
    again = call(8, "tools/call", name="send_mail", arguments={"to": "a"})
    assert first.status == again.status == 201 and again.replayed and server.executions == 1
    assert again.document()["id"] == 8, "a client drops an answer with the id of another request"
    for number in (9, 10):
        assert not call(number, "tools/list").replayed
    assert not call(11, "tools/call", name="send_mail", arguments={"to": "b"}).replayed
    assert server.executions == 4


def test_what_check_knows_of_a_provider_names_its_pack():
    with open(ROOT + "/src/policy/known.c") as f:
        named = set(re.findall(r'\.pack = "([a-z]+)"', f.read()))
    assert set(PACKS) - named <= {"kubernetes", "mcp"}


def test_install_brings_them(tmp_path):
    subprocess.run(["make", "-s", "-C", ROOT, "install-policy", "DESTDIR=%s" % tmp_path, "PREFIX=/p"], check=True, timeout=60, capture_output=True)
    installed = {p.name for p in (tmp_path / "p/share/sendonce/policy").iterdir()}
    assert installed == {name + ".yaml" for name in PACKS} | {"example.yaml"}


def test_the_page_lists_each_of_them_once():
    with open(ROOT + "/docs/providers.md") as f:
        listed = re.findall(r"^\| `([a-z]+)\.yaml` \|", f.read(), re.M)
    assert listed == PACKS
