"""Loops around curl_multi, written as its documentation has them: each case twice, natively and under sendonce.

What a program sees of its loop is the same: running_handles, the order of the messages, msgs_left, codes, texts,
statuses, how often its callbacks ran, what is on the wire but for the key. How often the loop turns, and how often
libcurl asks for a timer or a descriptor, may differ a little. The cases wait much and compute little, so they run
several at a time ahead of the tests that judge them. `make soak` runs every case by every kind of loop.
"""
import glob
import os
import re
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import SAN, World, client, parallel
from server import FullQueue, OrderServer
from test_fault_table import on_the_wire
from test_valgrind import complaints

KINDS = ["poll", "wait", "fdset", "epoll"]
SOAK = bool(os.environ.get("SENDONCE_SOAK"))
WORKERS = 2 if SAN else 8
RULE = {"match": "POST,PUT http://127.0.0.1:*/orders"}
REPLAYED = r"headers=\d+"  # a replay has two lines more

# case: executions natively and under sendonce, and what may be otherwise in the transcript
CORNERS = {
    "never-read": (2, 2, None),
    "again": (2, 1, REPLAYED),
    "again-midway": (2, 1, None),
    "cleanup-inside": (2, 2, None),
    "easy-first": (2, 2, None),
    "getinfo": (1, 1, None),
    "moved": (3, 3, None),
    "wrong-calls": (1, 1, None),
    "timeouts": (1, 1, None),
    "wakeup": (1, 1, None),
    "duplicate": (1, 1, None),
    "kept-message": (3, 3, None),
    "lost-message": (2, 2, None),
}
ENDS = {
    "caught-socket": (1, 1, None),
    "caught-read": (1, 1, r" reads=\d+"),
    "courier-join": (2, 1, None),
    "twins": (2, 1, None),
    "timed": (2, 1, None),
    "low-speed": (1, 1, None),
    "unreachable": (0, 0, None),
    "forked": (1, 1, None),
}
CALLBACKS = {
    "callbacks": (1, 1, None),
    "callbacks-read": (1, 1, r" reads=\d+"),
    "nested": (2, 2, None),
    "read-pause": (1, 1, None),
    "read-bodies": (3, 3, None),
    "read-abort": (0, 0, r" reads=\d+"),
    "mime": (1, 1, None),
    "extra-fds": (1, 1, None),
    "socket-all": (1, 1, None),
    "pause-large": (1, 1, None),
    "aborts": (3, 3, None),
    "answers": (6, 6, None),
}
HABITS = {
    "set-in-callback": (2, 2, None),
    "host-limit": (5, 5, None),
    "host-limit-connecting": (5, 5, None),
    "host-limit-late": (3, 3, None),
    "total-limit": (5, 5, None),
    "waiting-again": (4, 3, None),
    "max-connects": (5, 5, None),
    "pipelining": (5, 5, None),
    "timer-calls": (1, 1, None),
    "socket-calls": (1, 1, None),
    "readded": (8, 8, None),
    "shared": (8, 8, None),
    "other-thread": (2, 2, None),
    "fork-child": (1, 1, None),
    "fork-both": (2, 1, REPLAYED),
    "connect-only": (1, 1, None),
    "pause-all": (5, 5, None),
    "pause-early": (1, 1, None),
    "set-after": (3, 3, None),
    "changed-after": (1, 1, None),
    "cleaned-in-reading": (3, 3, None),
    "atexit-cleanup": (2, 2, None),
    "perform-only": (2, 2, None),
    "in-between": (4, 4, None),
}
CASES = {"loop_corners": CORNERS, "loop_ends": ENDS, "loop_callbacks": CALLBACKS, "loop_habits": HABITS}
ALL = [(program, c) for program, cases in CASES.items() for c in cases]


def kinds_of(number):
    return KINDS if SOAK else ["epoll", KINDS[number % 3]]


LOOPS = [("loops", "", kind, "enforce") for kind in KINDS] + [("loops", "unread", kind, "enforce") for kind in kinds_of(0)]
CELLS = [(program, case, kind, "enforce") for n, (program, case) in enumerate(ALL) for kind in kinds_of(n)]
# audit and inject answer for nothing: libcurl does it all, and only the key is there that was not
WATCHED = [(*cell, kind, mode) for n, cell in enumerate([("loops", ""), *ALL]) for kind in (KINDS if SOAK else [KINDS[n % 4]])
           for mode in ("audit", "inject")]


class Side:
    """A transcript: its lines, what they cost, and what came to the server."""

    def __init__(self, result, server):
        assert result.rc == 0 and result.err == "", result
        lines = result.out.splitlines()
        self.cost = {k: int(v) for k, v in (x.split("=") for x in lines[-1].split()[1:])}
        self.orders = re.findall(r"ord-\d+", result.out)
        self.lines = [re.sub(r"ord-\d+", "ORDER", re.sub(r"after \d+ m", "after N m", x)) for x in lines[:-1]]
        self.executions = server.executions
        self.requests = [r.raw.replace(b":%d\r\n" % server.port, b":PORT\r\n", 1) for r in server.requests]


def argv(program, case, kind, base):
    url = base + "/orders"
    if program == "loops":
        return [client("loops"), kind, url] + ([case] if case else [])
    return [client(program), case, kind, url]


class Cell:
    def __init__(self, program, case, kind, mode, folder):
        self.world = World(folder).policy(top={"mode": mode}, **RULE)
        with OrderServer() as server, OrderServer() as other:
            joined = (program, case, mode) == ("loops", "", "enforce") and self.lead(server)
            started = [self.world.start(argv(program, case, kind, s.base), preload=p) for s, p in ((server, True), (other, False))]
            ended = [self.world.finish(p) for p in started]
            if joined:
                self.leader = self.world.finish(joined)
            self.ours, self.native = Side(ended[0], server), Side(ended[1], other)
        self.writes = [e for e in self.world.events() if e.get("operation") == "orders.create"]
        self.world.close()

    def lead(self, server):
        """Another process sends w4 first; the loop's is a retry of it."""
        process = self.world.start([client("loops"), "lead", server.base + "/orders"])
        assert server.wait_for(lambda s: s.requests)
        return process


def run_cell(program, case, kind, mode, place):
    with tempfile.TemporaryDirectory(dir=place) as folder:
        return Cell(program, case, kind, mode, folder)


@pytest.fixture(scope="module")
def cells(request, tmp_path_factory):
    wanted = [i.callspec.params for i in request.session.items if "cells" in i.fixturenames and i.path == request.path]
    wanted = sorted({(p["program"], p["case"], p["kind"], p["mode"]) for p in wanted}, key=lambda c: c[0] != "loops")
    place = tmp_path_factory.mktemp("loops")
    with ThreadPoolExecutor(WORKERS) as pool:
        yield {c: pool.submit(run_cell, *c, place) for c in wanted}
        pool.shutdown(cancel_futures=True)


# turns a case may take more than natively: how the bytes of a large answer come together is the machine's (natively 9 to
# 57 turns were seen), but more than one for each buffer of libcurl's is a storm
MORE = {"pause-large": 6000000 // 16384}


def same_cost(ours, native, more=0):
    """No storm of timers or turns, no descriptor that is shown again and again, no assigned pointer lost."""
    for name in ("turns", "timers", "sockets"):
        assert ours.cost[name] <= 2 * native.cost[name] + 20 + more, (name, ours.cost, native.cost)
    assert ours.cost["lost"] == native.cost["lost"] == 0


@pytest.mark.san
@pytest.mark.parametrize("program,case,kind,mode", LOOPS)
def test_reads_and_writes(cells, program, case, kind, mode):
    cell = cells[program, case, kind, mode].result()
    ours, native = cell.ours, cell.native
    # what another process got comes from the ledger, which keeps no request ids
    lines = [[re.sub(r"headers=\d+", "", x) if x.startswith("w4 ") else x for x in side.lines] for side in (ours, native)]
    assert lines[0] == lines[1]
    assert (native.executions, ours.executions) == (6, 6)  # the joined one is the other process's
    if case == "":
        leader = re.search(r"ord-\d+", cell.leader.out)[0]
        assert "code=0 status=201" in cell.leader.out and leader == ours.orders[-2], (cell.leader, ours.orders)
    # the answer of another process's attempt is looked for forty times a second
    same_cost(ours, native, 100 if case == "" else 0)


@pytest.mark.san
@pytest.mark.parametrize("program,case,kind,mode", CELLS)
def test_corner(cells, program, case, kind, mode):
    cell = cells[program, case, kind, mode].result()
    natively, once, blank = CASES[program][case]
    ours, native = cell.ours, cell.native
    lines = [[re.sub(blank, "", x) for x in side.lines] if blank else side.lines for side in (ours, native)]
    assert lines[0] == lines[1]
    assert (native.executions, ours.executions) == (natively, once)
    if program == "loop_habits" and case != "set-in-callback":
        assert "in-place" not in [e.get("served") for e in cell.writes]
    if natively == once:
        assert sorted(on_the_wire(ours.requests, True)) == sorted(on_the_wire(native.requests, False))
    same_cost(ours, native, MORE.get(case, 0))


@pytest.mark.parametrize("program,case,kind,mode", WATCHED)
def test_watched(cells, program, case, kind, mode):
    ours, native = (cell := cells[program, case, kind, mode].result()).ours, cell.native
    lines = [[re.sub(r" reads=\d+", "", x) for x in side.lines] for side in (ours, native)]  # inject reads a body before it is asked for
    assert lines[0] == lines[1]
    assert ours.executions == native.executions
    assert all((b"Idempotency-Key: " in r) == (mode == "inject") for r in ours.requests if r.startswith((b"POST", b"PUT")))
    assert sorted(on_the_wire(ours.requests, True)) == sorted(on_the_wire(native.requests, False))
    assert len(cell.writes) >= ours.executions  # one that was aborted is written down too
    same_cost(ours, native, MORE.get(case, 0))


@pytest.mark.san
@pytest.mark.parametrize("kind", KINDS)
def test_a_join_that_only_this_thread_could_drive(world, server, kind):
    """The multi's own write is served on its handle: waiting for it would never end."""
    world.policy(**RULE)
    result = world.run(argv("loop_ends", "own-join", kind, server.base))
    lines = [x for x in result.out.splitlines() if not x.startswith("running")]
    assert result.rc == 0 and lines[0] == "took no time", result
    assert "code=0 status=409" in lines[1] and "in-progress" in lines[1], result
    assert lines[2] == "message joined code=0 left=0" and "code=0 status=201" in lines[3], result
    assert server.executions == 1


@pytest.mark.san
@pytest.mark.parametrize("kind", KINDS)
def test_removed_before_it_left(world, kind):
    """A handle whose connection hangs is taken out: nothing is ever sent, and it may be tried again."""
    world.policy(**RULE)
    queue = FullQueue()
    try:
        base = "http://127.0.0.1:%d" % queue.port
        native = world.run(argv("loop_ends", "withdrawn", kind, base), preload=False)
        ours = world.run(argv("loop_ends", "withdrawn", kind, base))
        assert ours.rc == native.rc == 0
        assert [x for x in ours.out.splitlines() if "cost" not in x] == [x for x in native.out.splitlines() if "cost" not in x]
        assert b"POST" not in queue.drain(1)
    finally:
        queue.close()
    assert world.states() in ([], ["freed"])


@pytest.mark.san
@pytest.mark.parametrize("kind", ["poll", "epoll"])
def test_a_deadline_before_it_left(world, kind):
    """The connection hangs: the deadlines end as natively, and nothing is sent, then or later."""
    world.policy(**RULE)
    queue = FullQueue()
    try:
        base = "http://127.0.0.1:%d" % queue.port
        both = parallel(*[lambda p=p: world.run(argv("loop_ends", "hanging", kind, base), preload=p) for p in (True, False)])
        # which of libcurl's three looks at the same deadline comes first is a matter of a millisecond
        late = r"error=(Connection time|Failed to connect)[^\n]* body="
        ours, native = [re.sub(late, "error=late body=", r.out).splitlines()[:-1] for r in both]
        assert ours == native
        assert b"POST" not in queue.drain(1)
    finally:
        queue.close()
    assert set(world.states()) <= {"freed"}


@pytest.mark.san
def test_left_behind_at_exit(world, server):
    """The process ends by itself while the write is under way: it waits for the answer, and the next one gets that."""
    world.policy(**RULE)
    for kind in ("epoll", "poll"):
        result = world.run(argv("loop_ends", "left-behind", kind, server.base))
        assert result.rc == 0 and server.executions == 1, result
        assert world.states() == ["done"]


@pytest.mark.san
def test_threads_with_a_multi_each(world, server):
    """Eight threads, each with a loop of its own; one write is the same for all of them."""
    threads, writes, rounds = (4, 8, 2) if SAN else (8, 16, 5)
    world.policy(**RULE)
    result = world.run([client("loop_threads"), server.base + "/orders", str(threads), str(writes), str(rounds)], timeout=60)
    assert result.rc == 0 and result.err == "", result
    removed = writes // 8 + (writes % 8 == 7)
    for number, line in enumerate(result.out.splitlines()):
        assert line.startswith("round=%d created=%d equal=%d " % (number, threads * (writes + 1 - removed), threads)), result
    # what was taken out is executed all the same, by the courier
    everything = rounds * (threads * writes + 1)
    assert server.wait_for(lambda s: s.executions == everything), server.executions
    assert len(server.writes()) == everything


MEMCHECK = [("loops", ""), ("loop_corners", "cleanup-inside")] + ([c for c in ALL if c[1] != "cleanup-inside"] if SOAK else [])


@pytest.mark.parametrize("program,case", MEMCHECK)
def test_memcheck(world, server, program, case):
    """Nothing of ours is wrong or lost in the epoll loop."""
    if SAN:
        return
    world.policy(**RULE)
    report = world.path("memcheck.%p.xml")  # a child has one of its own
    result = world.run(["valgrind", "--quiet", "--xml=yes", "--xml-file=" + report, "--leak-check=full", "--show-leak-kinds=definite",
                        "--num-callers=30", *argv(program, case, "epoll", server.base)], timeout=120)
    assert result.rc == 0 and result.out.splitlines()[-1].startswith("cost "), result
    reports = {path: ElementTree.parse(path) for path in glob.glob(world.path("memcheck.*.xml"))}
    pids = [x.findtext("pid") for x in reports.values()]
    # a child puts what its parent has under way out of its mind, and frees none of it: that is its copy of memory in use
    children = {path for path, x in reports.items() if x.findtext("ppid") in pids}
    found = [text for path in reports for text in complaints(path) if path not in children or not text.startswith("Leak_")]
    assert len(reports) - len(children) == 1 and not found, "\n\n".join(found)
