"""Eight processes of eight threads make the same write at once, fifty times over."""
import re

import pytest

from harness import SAN, client


@pytest.mark.san
def test_sixty_four_at_once_are_one_execution(world, server):
    rounds = 5 if SAN else 50
    result = world.run([client("race"), server.base + "/orders?late=0.02", "8", "8", str(rounds)], timeout=120)
    assert result.rc == 0 and result.err == "", result
    lines = [x for x in result.out.splitlines() if x.startswith("round=")]
    assert len(lines) == rounds
    for number, line in enumerate(lines):
        assert line.startswith("round=%d created=64 equal=64 " % number), result.out[:4000]
    assert server.executions == rounds and len(server.writes()) == rounds
    assert len(set(re.findall(r"ord-\d+", result.out))) == rounds
    assert world.states() == ["done"] * rounds


def test_natively_everybody_executes(world, server):
    result = world.run([client("race"), server.base + "/orders", "2", "2", "3"], preload=False)
    assert result.rc == 0 and server.executions == 12
