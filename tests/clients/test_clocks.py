"""A wall clock that jumps between a program's first write and its retry, within a boot and across boots."""
import os
import subprocess

import pytest

from harness import HERE, build

HOUR = 3600
JUMPS = {"forward": (25 * HOUR, False), "back": (-2 * HOUR, False),
         "forward-boot": (25 * HOUR, True), "back-boot": (-2 * HOUR, True)}


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    out = tmp_path_factory.mktemp("clock") / "clock.so"
    subprocess.run([os.environ.get("CC", "gcc"), "-shared", "-fPIC", "-O1", "-o", str(out), os.path.join(HERE, "parts/clock.c"),
                    "-ldl"], check=True, timeout=60)
    return out


def moved(world, shim, jump):
    """The environment of a process after the jump."""
    shift, boot = JUMPS[jump]
    env = {"LD_PRELOAD": "%s:%s" % (shim, os.path.join(build(), "libsendonce.so")), "CLOCK_SHIFT": str(shift)}
    if boot:
        env["CLOCK_BOOT"] = world.write("boot-id", "01234567-89ab-cdef-0123-456789abcdef\n")
    return env


# An answer lives for a day, and where no run is known it is replayed for ten minutes. Within a boot neither ends by a
# jump; across boots only the wall clock is left, and what lies in its future ends nothing.
@pytest.mark.parametrize("run", ["run-1", None])
@pytest.mark.parametrize("jump", JUMPS)
def test_an_answer_lives_as_long_as_it_did(world, server, shim, jump, run):
    first = world.curl("-d", "x", server.base + "/orders", run=run)
    again = world.curl("-d", "x", server.base + "/orders", run=run, **moved(world, shim, jump))
    assert first.status == again.status == 201
    expired = jump == "forward-boot"
    assert again.replayed == (not expired) and server.executions == (2 if expired else 1)
    assert world.cli("ledger", "verify").rc == 0


@pytest.mark.parametrize("jump", JUMPS)
def test_a_doubt_lasts_as_long_as_it_did(world, server, shim, jump):
    """unknown_ttl of an hour: only the wall clock of another boot ends it."""
    world.policy(unknown_ttl="1h", exit="wait", exit_wait="0s")
    first = world.curl("-d", "x", "-m", "0.4", server.base + "/orders?late=3")
    assert first.rc == 28 and world.states() == ["unknown"]
    again = world.curl("-d", "x", server.base + "/orders?late=3", **moved(world, shim, jump))
    dropped = jump == "forward-boot"
    assert (again.status == 201) == dropped and server.executions == (2 if dropped else 1)


@pytest.mark.parametrize("jump", JUMPS)
def test_a_key_is_relied_on_as_long_as_the_provider_knows_it(world, server, shim, jump):
    """key_ttl of a day: the older of both clocks counts within a boot; nothing sent in the future is sent again."""
    world.policy(provider={"dedups": True, "key_ttl": "24h", "stores": ["2xx"]}, exit_wait="0s")
    first = world.curl("-d", "x", "-m", "0.4", server.base + "/orders?late=2&keys=honour&busy=wait")
    assert first.rc == 28 and world.states() == ["unknown"]
    again = world.curl("-d", "x", server.base + "/orders?late=2&keys=honour&busy=wait", **moved(world, shim, jump))
    assert (again.status == 201) == (jump == "back"), again
    assert server.executions == 1
