"""The two scripts a newcomer meets: `make demo`, and what the README tells him to do."""
import os
import time

from harness import ROOT, SAN, build


def test_demo(world):
    if SAN:
        return  # it shows the product as users build it
    started = time.monotonic()
    result = world.run([os.path.join(ROOT, "tests", "demo")], preload=False, BUILD=build())
    assert result.rc == 0 and result.err == "", result
    assert "orders at the server: 2" in result.out and "orders at the server: 1" in result.out
    assert "orders.create" in result.out and time.monotonic() - started < 60


def test_first_steps(world):
    if SAN or not os.path.exists(os.path.join(ROOT, ".git")):
        return  # there is nothing to clone
    result = world.run([os.path.join(ROOT, "tests", "first-steps")], timeout=300, preload=False)
    assert result.rc == 0, result
