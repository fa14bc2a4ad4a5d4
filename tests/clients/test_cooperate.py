"""Programs that cooperate: the functions of include/sendonce.h, from C and through ctypes, and the same programs without
sendonce."""
import os
import shutil
import subprocess

import pytest

from harness import HERE, ROOT, build, client

ABSENT, OFF, UNAVAILABLE, INVALID = -1, -2, -3, -4


def cooperate(world, server, *actions, **env):
    result = world.run([client("cooperate"), server.base + "/orders", *actions], **env)
    assert result.rc == 0 and result.err == "", result
    return result.out.splitlines()


def codes(world, server, *actions, **env):
    return [int(line) for line in cooperate(world, server, *actions, **env)]


# --- what they are for
@pytest.mark.san
def test_a_run_of_the_program_s_own(world, server):
    lines = cooperate(world, server, "run=a", "post=x", "post=x", "run=b", "post=x", "run=a", "post=x", "run=", "post=x", run="a")
    assert lines[0] == lines[3] == "0"
    first, again, other, back, env = [lines[i] for i in (1, 2, 4, 6, 8)]
    assert first == again == back == env != other, "\"\" is the environment's run again"
    assert server.executions == 2
    assert {e["run"] for e in world.events("write")} == {"a", "b"}


def test_a_scope_of_the_program_s_own(world, server):
    lines = cooperate(world, server, "scope=acme", "post=x", "scope=other", "post=x", "scope=acme", "post=x")
    assert lines[1] == lines[5] != lines[3] and server.executions == 2
    assert [e["scope"] for e in world.events("write")] == ["acme", "other", "acme"]


def test_steps(world, server):
    lines = cooperate(world, server, "enter=plan", "post=x", "enter=pay", "post=x", "leave", "post=x", "leave", "post=x")
    plan, pay, plan_again, none = lines[1], lines[3], lines[5], lines[7]
    assert len({plan, pay, none}) == 3 and plan == plan_again and server.executions == 3


def test_a_step_stands_behind_the_policy_s_own(world, server):
    world.policy(top={"step": "plan"})
    first = cooperate(world, server, "enter=pay", "post=x")[1]
    world.policy(top={"step": "plan/pay"})
    assert cooperate(world, server, "post=x") == [first], "plan/pay, however it came about"
    assert server.executions == 1


def test_a_child_inherits(world, server):
    parent = cooperate(world, server, "run=a", "enter=s", "post=x")
    child = cooperate(world, server, "run=a", "enter=s", "fork", "post=x")
    assert child == parent and server.executions == 1


def test_steps_are_the_thread_s(world, server):
    """Through ctypes, without any binding."""
    result = world.run(["/usr/bin/python3", os.path.join(HERE, "scripts", "steps.py"), server.base + "/orders"])
    assert result.rc == 0 and result.err == "", result
    run, pay, tip, none = result.out.splitlines()
    pay, tip, none = [eval(x) for x in (pay, tip, none)]
    assert run == "0" and pay[2:] == tip[2:] == [0, 0]
    assert pay[0] == pay[1] and tip[0] == tip[1] and none[0] == none[1]
    assert len({pay[0], tip[0], none[0]}) == 3 and server.executions == 3
    assert {e["run"] for e in world.events("write")} == {"task-9"}


@pytest.mark.parametrize("mode", ["audit", "inject"])
def test_in_the_modes_that_do_not_hold_back(world, server, mode):
    cooperate(world, server, "run=a", "scope=s", "enter=one", "post=x", "enter=two", "post=x", SENDONCE_MODE=mode)
    events = world.events("write")
    assert [(e["run"], e["scope"]) for e in events] == [("a", "s")] * 2
    if mode == "inject":
        assert len(set(server.keys())) == 2


# --- what is turned away
@pytest.mark.parametrize("action, code", [
    ("scope=" + "x" * 255, 0), ("scope=" + "x" * 256, INVALID), ("run=" + "x" * 256, INVALID), ("run=a\nb", INVALID), ("scope=\x7f", INVALID),
    ("enter=", INVALID), ("enter=a/b", INVALID), ("enter=" + "x" * 255, 0), ("enter=" + "x" * 256, INVALID), ("enter=a\tb", INVALID),
    ("leave", INVALID), ("enter=caf\u00e9", 0)], ids=range(12))
def test_bad_names(world, server, action, code):
    assert codes(world, server, action) == [code]


def test_steps_have_an_end(world, server):
    assert codes(world, server, *["enter=s"] * 17, *["leave"] * 17) == [0] * 16 + [INVALID] + [0] * 16 + [INVALID]
    assert codes(world, server, "enter=" + "x" * 200, "enter=" + "y" * 60, "leave", "leave") == [0, INVALID, 0, INVALID]


# --- without it
ALL = ["scope=s", "run=r", "enter=e", "leave"]


def test_the_program_runs_without_sendonce(world, server):
    assert cooperate(world, server, *ALL, "post=x", preload=False)[:4] == [str(ABSENT)] * 4
    assert server.executions == 1
    result = world.run(["/usr/bin/python3", os.path.join(HERE, "scripts", "steps.py"), server.base + "/orders"], preload=False)
    assert result.rc == 0 and result.out.startswith("-1\n")


def test_switched_off(world, server):
    assert codes(world, server, *ALL, SENDONCE_DISABLE="1") == [OFF] * 4


def test_without_a_core(world, server, tmp_path):
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(os.path.join(build(), "libsendonce.so"), alone)
    world.preload_from = str(alone)
    lines = cooperate(world, server, *ALL, "post=x", SENDONCE_FAIL="open")
    assert lines[:4] == [str(UNAVAILABLE)] * 4 and server.executions == 1


@pytest.mark.parametrize("compiler, flags", [("gcc", []), ("clang", []), ("gcc", ["-no-pie", "-fPIE"])],
                         ids=["gcc", "clang", "no-pie"])
def test_any_program_can_be_built_against_the_header(world, server, tmp_path, compiler, flags):
    program = str(tmp_path / "program")
    subprocess.run([compiler, "-std=c99", "-D_GNU_SOURCE", "-Wall", "-Werror", "-I", ROOT + "/include", *flags, "-o", program,
                    os.path.join(HERE, "cooperate.c"), "-lcurl"], check=True, timeout=60)
    url = server.base + "/orders"
    assert world.run([program, url, "run=a"]).out == "0\n"
    assert world.run([program, url, "run=a"], preload=False).out == "-1\n"


def test_the_header_is_cxx_too(tmp_path):
    source = tmp_path / "x.cc"
    source.write_text('#include "sendonce.h"\nint main() { return sendonce_run("a") == SENDONCE_ABSENT ? 0 : 1; }\n')
    subprocess.run(["clang++" if shutil.which("clang++") else "g++", "-Wall", "-Werror", "-I", ROOT + "/include", "-fsyntax-only", str(source)],
                   check=True, timeout=60)
