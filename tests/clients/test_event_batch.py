"""The ends of one call of a program's loop go into the event log together, before that call returns; none is lost where
a callback of that call ends the process by exit(3), and none is there twice where it forks. A batch that a callback jumped out of,
or forked in, holds nothing back of what comes next."""
import re

import pytest

from harness import client
from server import OrderServer

WRITES = 5
# mode, exit code, lines the program itself sees, lines in the end
CASES = [("plain", 0, WRITES, WRITES), ("fork", 0, WRITES, WRITES), ("forkexit", 0, WRITES, WRITES), ("exit", 7, None, WRITES - 1)]


@pytest.mark.parametrize("mode,rc,seen,least", CASES)
def test_lines_of_one_call(world, mode, rc, seen, least):
    with OrderServer() as server:
        world.policy()
        result = world.run([client("ends"), mode, server.base + "/orders", world.event_log])
        assert (result.rc, result.err) == (rc, ""), result
        if seen is not None:
            assert re.search(r"bodies=5 running=0 lines=%d$" % seen, result.out.strip()), result
        told = [e["record"] for e in world.events("write")]
        assert len(told) >= least and len(told) == len(set(told)), told
        assert server.executions == WRITES and world.states() == ["done"] * WRITES


@pytest.mark.parametrize("mode,lines", [("jump", WRITES), ("forkwrite", WRITES + 1)])
def test_one_more_write(world, mode, lines):
    """The fifth write of the loop that was left has no end, the one more has one before it returns."""
    with OrderServer() as server:
        world.policy()
        result = world.run([client("ends"), mode, server.base + "/orders", world.event_log])
        assert (result.rc, result.err) == (0, "") and result.out.strip().endswith(" lines=%d" % lines), result
        assert len({e["record"] for e in world.events("write")}) == lines
        assert server.executions == WRITES + 1 and world.states() == ["done"] * (WRITES + 1)
