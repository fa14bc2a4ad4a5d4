"""What every pytest file knows: where the build is. BUILD names it (default: build); a test marked `san` is
one that `tests/run --san` runs too."""
import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def pytest_addoption(parser):
    parser.addoption("--build", default=os.environ.get("BUILD", "build"), help="the build directory")


def pytest_configure(config):
    config.addinivalue_line("markers", "san: also run against a build with sanitizers")
    os.environ["BUILD"] = str(ROOT / config.getoption("--build"))  # an absolute one stays as it is


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def build():
    return pathlib.Path(os.environ["BUILD"])


@pytest.fixture(scope="session")
def preload(build):
    return build / "libsendonce.so"


@pytest.fixture(scope="session")
def core(build):
    return build / "libsendonce-core.so"


@pytest.fixture(scope="session")
def sendonce(build):
    return build / "sendonce"
