"""What a process does to itself around a write. Each mode of process.c natively first: what it does there, it does with us."""
import json
import os
import shutil
import signal
import tempfile
import time

import pytest

from harness import PROVIDER, SLOW, client
from server import OrderServer


def life(world, server, mode, *more, preload=True, query="", **env):
    return world.run([client("process"), mode, server.base + "/orders" + query, *map(str, more)], preload=preload, timeout=60, **env)


def lines(result):
    return [line.split(" ", 2) for line in result.out.splitlines()]


def good(result, count):
    """That many writes, each answered by an order of its own or again by the same one."""
    found = lines(result)
    assert result.rc >= 0 and len(found) == count and all(x[:2] == ["0", "201"] for x in found), result
    return [x[2] for x in found]


# --- children
@pytest.mark.parametrize("mode, writes", [("fork", 3), ("prefork", 21), ("spawn", 1), ("daemon", 2)])
def test_children(world, server, mode, writes):
    world.policy()
    for preload in (False, True):
        server.reset()
        result = life(world, server, mode, preload=preload)
        assert result.rc == 0 and len(set(good(result, writes))) == writes and server.executions == writes
    again = life(world, server, mode)
    assert server.executions == writes and sorted(again.out.splitlines()) == sorted(result.out.splitlines()), "the same answers again"
    assert set(world.states()) == {"done"}


@pytest.mark.parametrize("dedups", [False, True])
def test_exec_in_flight_leaves_a_doubt(world, server, dedups):
    world.policy(**({"provider": PROVIDER} if dedups else {}))
    assert life(world, server, "exec").rc == 0
    assert server.wait_for(lambda s: s.executions == 1)
    record, = world.records()
    assert record["state"] == "sent" and record["in_doubt"]
    query = "?late=1" + ("&keys=honour" if dedups else "")
    answer = world.curl("-d", "n=1", server.base + "/orders?late=1")
    if dedups:
        assert answer.status == 201 and len(set(server.keys())) == 1, query
    else:
        assert answer.rc == 56 or answer.reason == "unknown-outcome"
        assert server.executions == 1


# --- descriptors, users, roots
def test_all_descriptors_are_closed(world, server):
    world.policy()
    first, again, other = good(life(world, server, "close"), 3)
    assert first == again != other and server.executions == 2


@pytest.fixture
def open_world(world):
    """A world in a folder that every user can get to."""
    folder = tempfile.mkdtemp(prefix="sendonce-life-", dir="/tmp")
    os.chmod(folder, 0o755)
    kept, world.folder = world.folder, folder
    for name, file in (("policy_file", "policy.yaml"), ("ledger", "ledger"), ("event_log", "events.jsonl")):
        setattr(world, name, world.path(file))
    yield world
    shutil.rmtree(folder)
    world.folder = kept


def shared_ledger(world):
    """A folder that is setgid and the group's."""
    os.mkdir(world.path("shared"))
    os.chown(world.path("shared"), 0, NOBODY)
    os.chmod(world.path("shared"), 0o2770)
    world.ledger, world.event_log = world.path("shared/ledger"), world.path("shared/events.jsonl")
    return world.policy(ledger={"path": world.ledger, "group": True})


NOBODY = 65534
root = pytest.mark.skipif(os.geteuid() != 0, reason="changing the user takes root")


@root
@pytest.mark.parametrize("group", [False, True])
def test_a_daemon_that_drops_its_user(open_world, server, group):
    """The ledger was opened before, and stays mapped."""
    world = shared_ledger(open_world) if group else open_world.policy()
    first, again, other = good(life(world, server, "drop", NOBODY), 3)
    assert first == again != other and server.executions == 2


@root
def test_who_comes_later_as_another_user_is_refused_with_a_reason(open_world, server):
    world = open_world.policy()
    assert world.curl("-d", "n=1", server.base + "/orders").status == 201
    (code, status, body), = lines(life(world, server, "drop-first", NOBODY))
    assert status == "503" and "ledger-unavailable" in body and "ledger" in json.loads(body)["detail"] and server.executions == 1, body


@root
def test_a_group_shares_a_ledger(open_world, server):
    """Root makes it, the daemon's user goes on with it."""
    world = shared_ledger(open_world)
    answer = world.curl("-d", "n=1", server.base + "/orders")
    assert answer.status == 201
    (code, status, body), = lines(life(world, server, "drop-first", NOBODY))
    assert (code, status) == ("0", "201") and body.strip() == answer.body.strip() and server.executions == 1
    assert [e["verdict"] for e in world.events("write")] == ["execute", "replay"], "both users write one log"


@root
def test_chroot_after_the_start(world, server):
    empty = world.path("empty")
    os.mkdir(empty)
    world.policy()
    first, again, other = good(life(world, server, "chroot", empty), 3)
    assert first == again != other and server.executions == 2


# --- limits
def smallest_stack(world, server, preload, kind="stack", prepare=None):
    """In kilobytes, to 4. The second post is looked at, of `cold-stack` the only one."""
    low, high = 16, 1024
    while high - low > 4:
        middle = (low + high) // 2
        server.reset()
        if prepare:
            prepare()
        result = life(world, server, kind, middle, preload=preload, run="run-%d" % middle)
        answers = [x[:2] for x in lines(result)]
        ok = result.rc == 0 and answers and answers[-1][1] == ("503" if prepare else "201")
        low, high = (low, middle) if ok else (middle, high)
    return high


@pytest.mark.parametrize("kind", ["stack", "cold-stack"])
@pytest.mark.parametrize("size", [0, 40000], ids=["short", "long"])
def test_small_stacks(world, server, kind, size):
    """A fiber's stack that is enough for libcurl: ours need no more, also at their first call and for a long answer."""
    server.default["size"] = str(size)
    world.policy()
    native = smallest_stack(world, server, False, kind)
    ours = smallest_stack(world, server, True, kind)
    assert ours <= native + 4, (native, ours)


def test_a_damaged_ledger_on_a_small_stack(world, server):
    """It is set aside and the write is refused; what is done for that needs no more stack either."""
    def damage():
        if os.path.exists(world.ledger):
            os.unlink(world.ledger)
        os.chmod(world.write("ledger", "no ledger" * 1000), 0o600)

    world.policy()
    native = smallest_stack(world, server, False, "cold-stack")
    assert smallest_stack(world, server, True, "cold-stack", damage) <= native + 4
    assert server.executions == 0


@pytest.mark.parametrize("size", ["8MiB", "32MiB", "256MiB"])
def test_little_address_space(world, server, size):
    """Where the ledger does not fit into it: refused, with a reason, and nothing crashes."""
    world.policy(ledger={"size": size})
    assert world.curl("-d", "n=0", server.base + "/orders").status == 201
    seen = set()
    for limit in (512, 256, 128, 96, 64, 48, 40):
        native = life(world, server, "memory", limit, preload=False)
        result = life(world, server, "memory", limit, run="run-%d" % limit)
        if native.rc != 0 or not native.out.startswith("0 201"):
            continue
        status = lines(result)[0][1] if result.rc == 0 and result.out else "none"
        assert status in ("201", "503"), (limit, result)
        seen.add(status)
        if status == "503":
            assert "ledger-unavailable" in result.out or "core-missing" in result.out, result
    assert "201" in seen and (size != "256MiB" or "503" in seen), seen


def test_a_limit_of_descriptors_that_is_huge(world, server):
    world.policy()
    began = time.monotonic()
    result = world.run(["sh", "-c", 'ulimit -n 1000000 2>/dev/null; exec "$@"', "sh", client("process"), "descriptors", server.base + "/orders"])
    assert len(set(good(result, 2))) == 2 and time.monotonic() - began < 3 * SLOW


def test_under_a_strict_filter(world, server):
    """Beyond what a program with libcurl calls anyway: fstatfs, geteuid, getpid, madvise, msync, readlink, rt_sigpending."""
    world.policy(ledger={"durability": "power"})
    assert world.curl("-d", "n=0", server.base + "/orders").status == 201  # the ledger is there: making one takes more
    # a later libcurl makes one call more, by itself: what it cannot do without natively, and no other, is allowed with us
    woken_by = next(x for x in ("", "eventfd2", "pipe2") if life(world, server, "filter", x, preload=False).rc != -signal.SIGSYS)
    server.reset()
    assert len(good(life(world, server, "filter", woken_by, preload=False), 2)) == 2
    server.reset()
    first, again = good(life(world, server, "filter", woken_by), 2)
    assert first == again and server.executions == 1


def test_signals_are_as_they_were(world, server):
    world.policy()
    native = life(world, server, "signals", preload=False)
    assert len(native.out.splitlines()) == 2, native
    assert len(good(life(world, server, "signals"), 2)) == 2


# --- ends
@pytest.mark.parametrize("how", ["exit", "return", "quick_exit", "_exit", "abort", "term"])
def test_ends_in_flight(world, server, how):
    """The program ends as natively, and what it left is done or in doubt, never forgotten."""
    world.policy(exit_wait="5s")
    native = life(world, server, "end", how, preload=False)
    server.reset()
    result = life(world, server, "end", how)
    assert result.rc == native.rc == {"abort": -signal.SIGABRT, "term": -signal.SIGTERM}.get(how, 3)
    assert server.wait_for(lambda s: s.executions == 1)
    record, = world.records()
    waited = how in ("exit", "return")
    assert record["state"] == ("done" if waited else "sent"), record
    answer = world.curl("-d", "n=1", server.base + "/orders?late=1")
    assert server.executions == 1
    assert (answer.status == 201 and answer.replayed) if waited else (answer.rc == 56 or answer.reason == "unknown-outcome")


@pytest.mark.parametrize("mode, count", [("timeout", 1), ("timeouts", 2)])
def test_a_timed_out_program_waits_at_its_end_and_the_answer_is_kept(world, server, mode, count):
    world.policy(exit_wait="5s")
    began = time.monotonic()
    result = life(world, server, mode)
    assert result.rc == 4 and [x[0] for x in lines(result)] == ["28"] * count
    assert 1.5 < time.monotonic() - began < 4 * SLOW
    assert world.states() == ["done"] * count
    assert world.curl("-d", "n=1", server.base + "/orders?late=2").replayed and server.executions == count


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_the_wait_at_once(world, server, name):
    world.policy(exit_wait="5s")
    process = world.start([client("process"), "timeout", server.base + "/orders"])
    assert process.stdout.readline().startswith("28 ")
    time.sleep(0.3)
    began = time.monotonic()
    process.send_signal(getattr(signal, name))
    process.wait(timeout=10)
    assert process.returncode == -getattr(signal, name) and time.monotonic() - began < 0.5 * SLOW
    record, = world.records()
    assert record["in_doubt"], record


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_also_where_the_program_has_handlers(world, server, name):
    world.policy(exit_wait="5s")
    process = world.start([client("process"), "handlers", server.base + "/orders"])
    assert process.stdout.readline().startswith("28 ")
    time.sleep(0.3)
    began = time.monotonic()
    process.send_signal(getattr(signal, name))
    process.wait(timeout=10)
    assert process.returncode == 4 and time.monotonic() - began < 0.5 * SLOW
    record, = world.records()
    assert record["in_doubt"], record


@pytest.mark.parametrize("wait, most", [("0s", 1.0), ("500ms", 1.6)])
def test_the_wait_is_bounded(world, server, wait, most):
    world.policy(exit_wait=wait)
    began = time.monotonic()
    assert life(world, server, "timeout").rc == 4
    assert time.monotonic() - began < most * SLOW
    record, = world.records()
    assert record["in_doubt"] and record["state"] in ("unknown", "sent")


# --- exit: detach
def until_done(world, count, seconds=8):
    end = time.monotonic() + seconds * SLOW
    while time.monotonic() < end and world.states() != ["done"] * count:
        time.sleep(0.05)
    return world.states()


def children_of_ours(word):
    """Processes whose command line holds the word."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                if word.encode() in f.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


@pytest.mark.parametrize("mode, count", [("timeout", 1), ("timeouts", 2)])
@pytest.mark.parametrize("tls", [False, True])
def test_a_detached_write_reaches_the_ledger(world, tls, mode, count):
    """The program ends as soon as natively, its pipes are closed, and the answer is kept all the same."""
    with OrderServer(tls=tls) as server:
        world.policy(match="POST *://127.0.0.1:*/orders", exit="detach", exit_wait="5s")
        seconds = []
        env = {"SSL_CERT_FILE": server.cafile} if tls else {}
        for preload in (False, True):
            began = time.monotonic()
            result = life(world, server, mode, preload=preload, **env)
            seconds.append(time.monotonic() - began)
            assert result.rc == 4 and [x[0] for x in lines(result)] == ["28"] * count, result
        assert seconds[1] < seconds[0] + 0.5 * SLOW, seconds
        record = world.records()[0]
        assert record["state"] == "sent" and not record["in_doubt"], "somebody drives it"
        assert until_done(world, count) == ["done"] * count
        again = life(world, server, "one", preload=True, **env)
        assert good(again, 1) and server.executions == 2 * count
        assert [e.get("outcome") for e in world.events("write")].count("done") == count


def test_a_retry_joins_the_detached_write(world, server):
    world.policy(exit="detach")
    first = world.curl("-m", "0.3", "-d", "n=1", server.base + "/orders?late=2")
    assert first.rc == 28 and first.seconds < 1.0 * SLOW
    second = world.curl("-d", "n=1", server.base + "/orders?late=2")
    assert second.status == 201 and server.executions == 1 and 0.5 < second.seconds < 3 * SLOW


def test_a_pipe_behind_the_program_ends_with_it(world, server):
    """The child holds none of the program's descriptors, also not one it inherited without knowing."""
    world.policy(exit="detach")
    script = 'curl -q -sS -m 0.3 -d n=1 "$0" 2>/dev/null 7>&1 | cat; echo ended'
    began = time.monotonic()
    result = world.run(["sh", "-c", script, server.base + "/orders?late=2"])
    assert result.out.endswith("ended\n") and time.monotonic() - began < 1.2 * SLOW
    pid, = children_of_ours(server.base + "/orders?late=2")
    links = {fd: os.readlink("/proc/%d/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%d/fd" % pid)}
    assert all(links[fd] == "/dev/null" for fd in "012")
    assert all(link.startswith(("socket:", "/dev/null")) for link in links.values()), links
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    assert int(fields[3]) == pid, "a session of its own"
    assert until_done(world, 1) == ["done"] and children_of_ours(server.base + "/orders?late=2") == []


def test_a_detached_child_that_is_killed_leaves_a_doubt(world, server):
    world.policy(exit="detach")
    assert world.curl("-m", "0.3", "-d", "n=1", server.base + "/orders?late=3").rc == 28
    pid, = children_of_ours(server.base + "/orders?late=3")
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.1)
    record, = world.records()
    assert record["in_doubt"]
    answer = world.curl("-d", "n=1", server.base + "/orders?late=3")
    assert (answer.rc == 56 or answer.reason == "unknown-outcome") and server.executions == 1


def test_a_detached_child_goes_on_for_linger_and_no_longer(world, server):
    world.policy(exit="detach", linger="1s")
    assert world.curl("-m", "0.3", "-d", "n=1", server.base + "/orders?late=20").rc == 28
    time.sleep(2.5 * SLOW)
    assert children_of_ours(server.base + "/orders?late=20") == []
    record, = world.records()
    assert record["state"] == "unknown" and record["in_doubt"]
