"""Fixtures. A test gets a `server` (plain HTTP), a `world` with the ten-line policy, or both."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import pytest

from harness import World
from server import OrderServer


@pytest.fixture
def server():
    with OrderServer() as s:
        yield s


@pytest.fixture
def world(tmp_path):
    w = World(tmp_path).policy()
    yield w
    w.close()
