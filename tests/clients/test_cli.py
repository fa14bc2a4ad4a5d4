"""The command line without any write: exit codes, help, what goes to which stream, and what `run` leaves to its command."""
import json
import os
import re
import subprocess

import pytest

from harness import build

COMMANDS = [["run"], ["check"], ["explain"], ["init"], ["ledger"], ["ledger", "list"], ["ledger", "show"], ["ledger", "resolve"], ["ledger", "forget"],
            ["ledger", "verify"], ["ledger", "export"], ["ledger", "import"], ["ledger", "resize"], ["ledger", "recover"], ["stats"], ["events"]]


def started(world, *args, **env):
    """`run` something that leaves a file behind; did it?"""
    mark = world.path("started")
    result = world.cli("run", *args, "--", "touch", mark, **env)
    return result, os.path.exists(mark)


# --- help and usage
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_is_data(world, command):
    result = world.cli(*command, "--help")
    assert result.rc == 0 and result.err == ""
    assert result.out.startswith("Usage: sendonce " + command[0])


def test_help_and_version_of_the_whole(world):
    result = world.cli("--help")
    assert result.rc == 0 and result.err == ""
    for name in ("run", "check", "explain", "init", "ledger", "stats", "events", "report"):
        assert re.search("^  %s +[a-z]" % name, result.out, re.M)
    assert re.fullmatch(r"sendonce \d+\.\d+\.\d+\n", world.cli("--version").out)


@pytest.mark.parametrize("args", [
    [], ["explain"], ["doctor"], ["--nonsense"],
    ["ledger"], ["ledger", "burn"], ["ledger", "list", "x"], ["ledger", "list", "--nonsense"], ["ledger", "list", "--ledger"],
    ["ledger", "show"], ["ledger", "show", "a", "b"],
    ["ledger", "resolve"], ["ledger", "resolve", "abcd"], ["ledger", "resolve", "abcd", "--executed", "--not-executed"],
    ["ledger", "resolve", "abcd", "--not-executed", "--answer", "f"], ["ledger", "forget", "abcd", "--executed"],
    ["stats", "x"], ["events", "x"],
    ["run"], ["run", "--"], ["run", "--nonsense", "--", "true"], ["run", "--policy"],
    ["run", "--report"], ["run", "--summary=x", "--", "true"],
], ids=" ".join)
def test_bad_usage(world, args):
    result = world.cli(*args)
    assert result.rc == 2 and result.out == "" and result.err.strip()


def test_an_unknown_command_is_told_which_there_are(world):
    result = world.cli("explode")
    assert "`explode`" in result.err and "ledger" in result.err and "events" in result.err


@pytest.mark.parametrize("mode", ["off", "audit", "inject", "enforce", "replay"])
def test_run_knows_every_mode(world, mode):
    result = world.cli("run", "--mode", mode, "--", "sh", "-c", "echo $SENDONCE_MODE")
    assert (result.rc, result.out.strip()) == (0, mode)


def test_run_knows_no_other_mode(world):
    result = world.cli("run", "--mode", "record", "--", "true")
    assert result.rc == 2 and "off, audit, inject, enforce or replay" in result.err


# --- a ledger or a log that is not there
@pytest.mark.parametrize("args", [["ledger", "list"], ["ledger", "verify"], ["ledger", "show", "abcd"], ["stats"], ["events"],
                                  ["ledger", "resolve", "abcd", "--executed"]], ids=" ".join)
def test_without_a_ledger(world, args):
    result = world.cli(*args)
    assert result.rc == 3 and result.out == ""
    assert world.folder in result.err, "names the place"
    assert not os.path.exists(world.ledger), "looking makes nothing"


def test_a_file_that_is_no_ledger(world):
    content = "something else " * 1000
    world.write("ledger", content)
    os.chmod(world.ledger, 0o600)
    for args in (["ledger", "list"], ["stats"], ["ledger", "resolve", "abcd", "--executed"]):
        result = world.cli(*args)
        assert result.rc == 3 and world.ledger in result.err
    with open(world.ledger) as f:
        assert f.read() == content


def test_the_ledger_is_found_by_the_policy(world):
    assert world.cli("run", "--", "true", SENDONCE_LEDGER=None).rc == 0
    assert os.path.exists(world.ledger)
    for ledger in (None, ""):
        assert json.loads(world.cli("stats", "--json", SENDONCE_LEDGER=ledger).out)["executed"] == 0
    assert world.cli("stats", SENDONCE_LEDGER=None, SENDONCE_POLICY=world.path("missing")).rc == 3
    assert world.cli("stats", "--ledger", "ledger", SENDONCE_LEDGER=None, SENDONCE_POLICY=world.path("missing")).rc == 0
    assert world.cli("stats", "--policy", "policy.yaml", SENDONCE_LEDGER=None, SENDONCE_POLICY=None).rc == 0


def test_an_empty_ledger(world):
    assert world.cli("run", "--", "true").rc == 0
    assert world.records() == []
    result = world.cli("ledger", "list")
    assert result.rc == 0 and result.out.split() == ["TIME", "STATE", "OPERATION", "KEY", "GEN", "STATUS", "ATTEMPTS", "WHO"]
    assert world.cli("ledger", "verify").rc == 0
    missing = world.cli("ledger", "show", "abcd")
    assert missing.rc == 1 and "abcd" in missing.err and missing.out == ""
    assert world.cli("ledger", "show", "abc").rc == 2
    stats = world.stats()
    assert stats["replayed"] == 0 and stats["records"]["done"] == 0 and stats["records"]["in_doubt"] == 0
    assert re.search(r"^wire_resends_blocked +0$", world.cli("stats").out, re.M)


def test_a_relative_path_in_the_environment_is_refused(world):
    result = world.cli("stats", SENDONCE_LEDGER="ledger")
    assert result.rc == 3 and "relative" in result.err


# --- run
def test_run_is_the_command(world):
    assert world.cli("run", "--", "sh", "-c", "exit 7").rc == 7
    assert world.cli("run", "sh", "-c", "kill -TERM $$").rc == -15
    result = world.cli("run", "--", "echo", "--policy", "x")
    assert result.rc == 0 and result.out == "--policy x\n" and result.err == ""


def test_run_sets_the_environment(world):
    result = world.cli("run", "--policy", "policy.yaml", "--ledger", "other", "--scope", "s 1", "--run", "r/1", "--mode", "enforce",
                       "--", "env", SENDONCE_POLICY=None)
    env = dict(line.split("=", 1) for line in result.out.splitlines())
    assert env["SENDONCE_POLICY"] == world.policy_file and env["SENDONCE_LEDGER"] == world.path("other")
    assert (env["SENDONCE_SCOPE"], env["SENDONCE_RUN"], env["SENDONCE_MODE"]) == ("s 1", "r/1", "enforce")
    assert env["LD_PRELOAD"] == os.path.realpath(os.path.join(build(), "libsendonce.so"))
    assert os.path.exists(world.path("other")) and not os.path.exists(world.ledger)


def test_run_goes_before_what_is_preloaded_already(world):
    mine = os.path.realpath(os.path.join(build(), "libsendonce.so"))
    result = world.cli("run", "--", "sh", "-c", "echo $LD_PRELOAD", LD_PRELOAD="libc.so.6")
    assert result.out == mine + ":libc.so.6\n"


def test_run_new_is_another_each_time(world):
    names = {world.cli("run", "--run", "new", "--", "sh", "-c", "echo $SENDONCE_RUN").out for _ in range(3)}
    assert len(names) == 3 and all(re.fullmatch(r"run-\d{8}T\d{6}-[0-9a-f]{8}\n", x) for x in names)


def test_run_what_cannot_be_run(world):
    result = world.cli("run", "--", "no-such-command-here")
    assert result.rc == 127 and "no-such-command-here" in result.err and result.out == ""
    plain = world.write("plain", "text")
    os.chmod(plain, 0o644)
    assert world.cli("run", "--", plain).rc == 126


def test_run_starts_nothing_without_a_policy(world):
    result, did = started(world, SENDONCE_POLICY=world.path("missing.yaml"))
    assert result.rc == 3 and not did and "missing.yaml" in result.err
    result, did = started(world, SENDONCE_POLICY="policy.yaml")
    assert result.rc == 3 and not did and "relative" in result.err


def test_run_starts_nothing_under_a_broken_policy(world):
    broken = world.write("broken.yaml", "version: 1\nwrites:\n  - operation: x\n    metch: y\n")
    result, did = started(world, "--policy", broken)
    assert result.rc == 3 and not did and "broken.yaml:4:" in result.err


def test_run_starts_nothing_without_a_usable_ledger(world):
    world.write("ledger", "something else " * 1000)
    os.chmod(world.ledger, 0o600)
    result, did = started(world)
    assert result.rc == 3 and not did and world.ledger in result.err
    result, did = started(world, "--ledger", world.path("no/such/folder/ledger"))
    assert result.rc == 3 and not did and "no/such/folder" in result.err
    assert not os.path.exists(world.path("no"))


def test_run_off_needs_no_ledger(world):
    world.write("ledger", "something else " * 1000)
    result, did = started(world, "--mode", "off")
    assert result.rc == 0 and did


def test_run_makes_the_folder_of_the_default_ledger(world):
    plain = world.write("plain.yaml", "version: 1\nwrites:\n  - operation: x\n    match: POST http://127.0.0.1/x\n")
    result = world.cli("run", "--policy", plain, "--", "true", SENDONCE_LEDGER=None, SENDONCE_POLICY=None, XDG_STATE_HOME=None)
    assert result.rc == 0, result
    folder = world.path(".local/state/sendonce")
    assert os.path.exists(folder + "/ledger") and os.stat(folder).st_mode & 0o777 == 0o700


# --- check and include
def test_check_names_the_file_a_warning_or_an_error_is_in(world):
    part = world.write("part.yaml", "version: 1\nwrites:\n  - operation: a\n    match: POST https://h/p\n    ttl: 1s\n")
    policy = world.write("policy.yaml", "version: 1\nscope: s\ninclude: [%s]\n" % part)
    warning, result = [json.loads(line) for line in world.cli("check", "--json", policy).out.splitlines()]
    assert (warning["file"], warning["line"], warning["column"]) == (part, 3, 5) and result["warnings"] == 1
    world.write("part.yaml", "version: 1\nwrites:\n  - {operation: a, match: POST https://h/p}\n")
    world.write("policy.yaml", "version: 1\nscope: s\ninclude: [%s]\nwrites:\n  - {operation: b, match: POST https://h/**}\n" % part)
    assert "`a` is never reached: `b` of %s:5 comes first" % policy in world.cli("check", policy).err
    world.write("part.yaml", "version: 1\nwrites:\n  - operation: a\n    metch: POST https://h/p\n")
    checked = world.cli("check", "--json", policy)
    error = json.loads(checked.out)
    assert checked.rc == 1 and (error["file"], error["line"], error["column"]) == (part, 4, 5)
    assert "did you mean `match`" in error["text"]


# --- check --ledger
@pytest.mark.san
def test_check_lists_doubts_under_other_settings(world, server):
    assert world.curl("-d", "x", server.base + "/orders?cut=1").rc != 0
    assert world.curl("-d", "y", server.base + "/orders").status == 201
    assert world.cli("check", "--ledger", world.policy_file, SENDONCE_SCOPE="s").rc == 0
    world.policy(identity={"ignore": ["query:_"]})
    result = world.cli("check", world.policy_file, SENDONCE_SCOPE="s")
    assert result.rc == 0, "without --ledger the policy alone is looked at"
    for env in ({}, {"SENDONCE_LEDGER": None}):
        result = world.cli("check", "--ledger", "--json", world.policy_file, SENDONCE_SCOPE="s", **env)
        doubt, said = [json.loads(line) for line in result.out.splitlines()]
        assert result.rc == 1 and doubt["in_doubt"] and said["level"] == "result"
        assert "1 writes in doubt" in result.err and "other identity settings" in result.err
    result = world.cli("check", "--ledger=" + world.ledger, world.policy_file, SENDONCE_SCOPE="s", SENDONCE_LEDGER=None)
    assert result.rc == 1 and "orders.create" in result.out
    assert world.curl("-d", "x", server.base + "/orders?cut=1").reason == "settings-changed"
    assert world.cli("ledger", "resolve", doubt["key"], "--executed").rc == 0
    assert world.cli("check", "--ledger", world.policy_file, SENDONCE_SCOPE="s").rc == 0


def test_check_tells_of_tombstones_that_go_too_early(world, server):
    assert world.curl("-d", "x", server.base + "/orders").status == 201
    world.policy(provider={"dedups": True, "key_ttl": "3d", "stores": ["2xx"]})
    result = world.cli("check", "--ledger", world.policy_file, SENDONCE_SCOPE="s")
    assert result.rc == 1 and "1 records will be forgotten before provider.key_ttl" in result.err
    world.policy(provider={"dedups": True, "key_ttl": "1d", "stores": ["2xx"]})
    assert world.cli("check", "--ledger", world.policy_file, SENDONCE_SCOPE="s").rc == 0


def test_check_of_a_ledger_that_is_not_there(world):
    assert world.cli("check", "--ledger", world.policy_file).rc == 0
    result = world.cli("check", "--ledger=" + world.path("nowhere"), world.policy_file)
    assert result.rc == 3 and "nowhere" in result.err


# --- events
LOG = [
    '{"time":"2026-11-30T14:05:11.000001Z","event":"write","pid":7,"exe":"curl","operation":"orders.create","key":"1f2e3d4c",'
    '"verdict":"execute","outcome":"done","status":201,"wire_sends":1}\n',
    '{"time":"2026-11-30T14:05:12.000001Z","event":"warning","pid":8,"exe":"a\\u001b[31m","text":"say \\"hi\\"\\n"}\n',
]


def test_events_as_a_table(world):
    with open(world.event_log, "w") as f:
        f.writelines(LOG)
    result = world.cli("events")
    lines = result.out.splitlines()
    assert result.rc == 0 and result.err == "" and len(lines) == 3
    assert lines[0].split()[:3] == ["TIME", "EVENT", "OPERATION"]
    assert lines[1].split() == ["2026-11-30T14:05:11.000001Z", "write", "orders.create", "1f2e3d4c", "execute", "done", "201", "1",
                                "curl", "(pid", "7)"]
    assert 'say "hi"' in lines[2] and "\x1b" not in result.out


def test_events_as_they_are(world):
    with open(world.event_log, "w") as f:
        f.writelines(LOG)
    result = world.cli("events", "--json")
    assert result.rc == 0 and result.out == "".join(LOG)


@pytest.mark.parametrize("bad", ["{", '{"event":', '{"event":"x"', '{"event":"x"} y', '{"event" "x"}', "[1]", "null", '{"a":"\\u12"}', '{"a":"\\'])
def test_a_damaged_line_is_counted(world, bad):
    with open(world.event_log, "w") as f:
        f.writelines([LOG[0], bad + "\n", LOG[1]])
    for args in (["events"], ["events", "--json"]):
        result = world.cli(*args)
        assert result.rc == 1 and "1 lines" in result.err
        assert len(result.out.splitlines()) == (2 if args[1:] else 3)


def test_a_closed_reader_is_a_failure(world):
    with open("/dev/full", "w") as full:
        done = subprocess.run([os.path.join(build(), "sendonce"), "--help"], stdout=full, stderr=subprocess.PIPE, env=world.env(preload=False))
    assert done.returncode == 1 and b"standard output" in done.stderr
