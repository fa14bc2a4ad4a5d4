"""`sendonce init`: the policy it writes is good, and what audit saw becomes rules that fit what was seen."""
import json
import os
import shutil

import pytest

from harness import ROOT, build

ENV = {"SENDONCE_SCOPE": "tests"}


def test_writes_a_good_policy_once(world):
    result = world.cli("init", "new.yaml")
    assert result.rc == 0 and "new.yaml" in result.out and result.err == ""
    checked = world.cli("check", "new.yaml", **ENV)
    assert checked.rc == 0 and "warnings: 0" in checked.out and checked.err == ""
    with open(world.path("new.yaml")) as f:
        text = f.read()
    assert sum(line.lstrip().startswith("#") for line in text.splitlines()) >= 10, "every key is explained"
    again = world.cli("init", "new.yaml")
    assert again.rc == 1 and "new.yaml" in again.err and "already" in again.err
    with open(world.path("new.yaml")) as f:
        assert f.read() == text


def test_default_name_and_standard_output(world):
    os.unlink(world.policy_file)
    assert world.cli("init").rc == 0 and os.path.exists(world.path("policy.yaml"))
    printed = world.cli("init", "-")
    with open(world.path("policy.yaml")) as f:
        assert printed.rc == 0 and printed.out == f.read()


def test_never_through_a_link(world):
    os.symlink(world.path("elsewhere"), world.path("link.yaml"))
    assert world.cli("init", "link.yaml").rc == 1
    assert not os.path.exists(world.path("elsewhere"))


@pytest.mark.parametrize("args, rc", [(["a", "b"], 2), (["--nonsense"], 2), (["--from-events"], 2), (["--from-events", "missing", "x"], 3),
                                      (["no/such/folder/x"], 1)], ids=lambda a: " ".join(a) if isinstance(a, list) else None)
def test_bad_usage(world, args, rc):
    result = world.cli("init", *args)
    assert result.rc == rc and result.out == "" and result.err
    assert not os.path.exists(world.path("x"))


def test_rules_from_what_audit_saw(world, server):
    """Under a policy that names nothing, a program writes; the proposed rules name exactly that."""
    world.write("policy.yaml", "version: 1\nunlisted: audit\nledger: {path: %s}\nevents: %s\n" % (world.ledger, world.event_log))
    json_type = ["-H", "Content-Type: application/json"]
    for number in range(3):
        sent = "2026-11-30T10:00:0%dZ" % number
        assert world.curl(*json_type, "-d", json.dumps({"amount": 5, "sent_at": sent}), server.base + "/v1/orders").rc == 0
    assert world.curl("-X", "DELETE", server.base + "/v1/orders/12345/lines/7").rc == 0
    assert world.curl(server.base + "/v1/orders").rc == 0
    result = world.cli("init", "--from-events", world.event_log, "made.yaml")
    assert result.rc == 0, result
    with open(world.path("made.yaml")) as f:
        text = f.read()
    assert text.index("orders.create") < text.index("orders.lines.delete"), "the most frequent first"
    assert "seen 3 times, last answer 201" in text and "seen 1 times" in text
    assert "ignore: [/sent_at]" in text and "/amount" not in text
    checked = world.cli("check", "--json", "made.yaml", **ENV)
    assert checked.rc == 0 and json.loads(checked.out.splitlines()[-1])["rules"] == 2, checked

    def rule(*args):
        said = json.loads(world.cli("explain", "--json", "--policy", "made.yaml", "--ledger", "other", *args, **ENV).out)
        return said["rule"] and said["rule"]["operation"]
    assert rule("-d", "x", server.base + "/v1/orders") == "orders.create"
    assert rule("-X", "DELETE", server.base + "/v1/orders/9/lines/8") == "orders.lines.delete"
    assert rule(server.base + "/v1/orders") is None


def log(world, *events):
    return world.write("log", "".join(json.dumps(dict({"time": "2026-11-30T14:05:11.000001Z", "event": "unlisted"}, **e)) + "\n" for e in events))


def test_a_log_is_not_trusted(world):
    made = log(world, {"method": "POST", "host": "h'\n  - operation: evil", "path": "/a"}, {"method": "GE T", "host": "h", "path": "/a"},
               {"method": "POST", "host": "h", "path": "/it's/{id}"}, {"method": "POST", "host": "h", "path": "relative"},
               {"event": "warning", "text": "x"}, {"method": "POST", "host": "h", "path": "/ok\n"})
    with open(made, "a") as f:
        f.write('{"event":"unlisted","method":"POST"\nnothing\n')
    result = world.cli("init", "--from-events", made, "-")
    assert result.rc == 0 and "evil" not in result.out
    world.write("made.yaml", result.out)
    assert world.cli("check", "made.yaml", **ENV).rc == 0, result.out
    assert "left out" in result.err


def test_known_providers_are_included(world):
    """Installed as `make install` does; where it is not, the file is named."""
    made = log(world, *[{"method": "POST", "host": h, "path": p} for h, p in
                        (("api.stripe.com", "/v1/charges"), ("api.stripe.com", "/v1/refunds"), ("slack.com", "/api/chat.postMessage"),
                         ("slack.com", "/api/files.upload"), ("h", "/own"))])
    plain = world.cli("init", "--from-events", made, "-").out
    assert plain.count("policy/stripe.yaml") == 1 and "include:" not in plain and "charges.create" in plain
    os.makedirs(world.path("p/bin"))
    shutil.copy(os.path.join(build(), "sendonce"), world.path("p/bin"))
    shutil.copytree(os.path.join(ROOT, "policy"), world.path("p/share/sendonce/policy"))
    result = world.run([world.path("p/bin/sendonce"), "init", "--from-events", made, "installed.yaml"], preload=False)
    assert result.rc == 0, result
    with open(world.path("installed.yaml")) as f:
        text = f.read()
    assert "charges.create" not in text and "chat.postMessage" not in text and "own.create" in text
    assert "files.upload.create" in text, "what no rule of the file names is still proposed"
    checked = world.cli("check", "--json", "installed.yaml", **ENV)
    assert checked.rc == 0 and json.loads(checked.out.splitlines()[-1])["warnings"] == 0, checked
    said = world.cli("explain", "--json", "--policy", "installed.yaml", "-d", "a=1", "https://api.stripe.com/v1/charges", **ENV)
    assert json.loads(said.out)["rule"]["operation"] == "stripe.charge"
    only = log(world, {"method": "POST", "host": "slack.com", "path": "/api/chat.postMessage"})
    assert world.run([world.path("p/bin/sendonce"), "init", "--from-events", only, "only.yaml"], preload=False).rc == 0
    assert world.cli("check", "only.yaml", **ENV).rc == 0


def test_a_log_without_writes(world):
    result = world.cli("init", "--from-events", log(world, {"event": "warning"}), "x")
    assert result.rc == 1 and "no write" in result.err and not os.path.exists(world.path("x"))


def test_a_part_that_was_the_same_once_is_no_noise(world):
    made = log(world, *[{"method": "POST", "host": "h", "path": "/a", "parts": p} for p in
                        ({"/ts": "v11111111", "/id": "v1"}, {"/ts": "v22222222", "/id": "s2"}, {"/ts": "v3", "/id": "v3"})])
    out = world.cli("init", "--from-events", made, "-").out
    assert "ignore: [/ts]" in out and "seen 3 times" in out
