"""The fault table by real programs: every program of programs.py by every fault of faults.py.

A cell runs the program once by itself, which is the reference, and then three times under sendonce in one run.
Where the native try executed, all of them together execute once; each ends as the table says; and the first of
them is the native one again, in what it prints and in the bytes it sends but for the added key. The cells wait
much and compute little, so they run several at a time ahead of the tests that judge them. `make soak` does each
five times.
"""
import os
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from faults import FAULTS, FREED, PROVIDER_KEYS, RETRIED, UNSENT, said, seconds, user
from harness import PROVIDER, World
from programs import MULTI_PROGRAMS, PROGRAMS
from test_bodies import without_key

WORKERS = 6
TRIES = 3
ROUNDS = 5 if os.environ.get("SENDONCE_SOAK") else 1
TABLE = {"clean": ("", 201, [201] * TRIES, [201] * TRIES), **FAULTS}


class Cell:
    """What came of one program under one fault."""

    def __init__(self, program, name, keys, folder):
        self.program, self.name = program, name
        self.query = (TABLE[name][0] + (PROVIDER_KEYS if keys else "")).lstrip("&")
        rule = {"provider": PROVIDER} if keys else {}
        self.world = World(folder).policy(match="POST,PUT,PATCH,DELETE http://127.0.0.1:*/orders", **rule)
        with program.server() as self.server:
            self.native, self.native_sent = self.one(1, preload=False)
            self.native_executions = self.server.executions
            self.server.reset()
            first, self.sent = self.one(1)
            self.tries = [first] + [self.one(n)[0] for n in range(2, TRIES + 1)]
            self.executions = self.server.executions
        self.world.close()

    def one(self, number, **env):
        url = self.server.base + "/orders" + ("?" + self.query if self.query else "")
        seen = self.program.run(self.world, url, seconds(self.name), user(self.name, number), **env)
        return seen, [r.raw for r in self.server.requests]


def run_cell(program, name, keys, place):
    with tempfile.TemporaryDirectory(dir=place) as folder:  # gone at once: ledgers add up
        return Cell({**PROGRAMS, **MULTI_PROGRAMS}[program], name, keys, folder)


@pytest.fixture(scope="module")
def cells(request, tmp_path_factory):
    wanted = [i.callspec.params for i in request.session.items if i.originalname == "test_cell" and i.path == request.path]
    cells = [(p["program"], p["name"], p["keys"], p["time"]) for p in wanted]
    cells.sort(key=lambda cell: cell[1] != "late")  # the longest first
    place = tmp_path_factory.mktemp("cells")
    with ThreadPoolExecutor(WORKERS) as pool:
        jobs = {c: pool.submit(run_cell, *c[:3], place) for c in cells}
        yield jobs
        pool.shutdown(cancel_futures=True)


def printed(seen):
    """What the program printed and how it ended, but for what differs between two native runs."""
    text = re.sub(r"after \d+ milliseconds", "after N milliseconds", seen.out + "\0" + seen.err)
    # Ruby's mime-types says this now and then when it is loaded.
    return seen.exit, re.sub(r"Type \S+ is already registered as a variant of \S+\n", "", text)


def on_the_wire(raws, added):
    """The requests without the key, which must be there exactly where it is said to be."""
    plain = []
    for raw in raws:
        boundary = re.search(rb"boundary=([^\r]+)", raw)
        raw = raw.replace(boundary[1], b"BOUNDARY") if boundary else raw  # it is made anew each time
        plain.append(without_key(raw) if added and b"Idempotency-Key: " in raw else raw)
    return plain


def marked(program):
    """Under a sanitizer's runtime only programs that bring no runtime of their own."""
    return pytest.param(program, marks=pytest.mark.san) if program.startswith("c-") else program


@pytest.mark.parametrize("time", range(1, ROUNDS + 1))
@pytest.mark.parametrize("keys", [False, True], ids=["no-keys", "dedups"])
@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("program", [marked(p) for p in PROGRAMS])
def test_cell(cells, program, name, keys, time):
    judge(cells[program, name, keys, time].result(), name, keys)


def judge(cell, name, keys):
    program = cell.program
    again = program.retries and name in RETRIED
    twice = program.keeps and name == "303"
    better = name == "307" and not program.rewinds  # the body is kept: what fails natively works
    expected = program.expects(name, TABLE[name][3 if keys else 2][:TRIES], keys)
    assert [said(t) for t in cell.tries] == expected, cell.tries
    assert cell.executions == (0 if name in UNSENT and not keys else 1) + twice
    assert cell.native_executions == (0 if name in FREED | UNSENT or better else 1) + twice + again
    if better:
        assert said(cell.native) == "rc65", cell.native
    elif not again:
        assert [said(cell.native)] == program.expects(name, [TABLE[name][1]]), cell.native
        assert printed(cell.tries[0]) == printed(cell.native)
        assert on_the_wire(cell.sent, True) == on_the_wire(cell.native_sent, False)
