"""What has broken other preloads and has no better place: see tests/hazards.md."""
import os
import stat

import pytest


SELF = """
import os, pycurl, sys
def held():
    links = {}
    for fd in os.listdir("/proc/self/fd"):
        try:
            links[fd] = os.readlink("/proc/self/fd/" + fd)
        except OSError:
            pass  # that of the listing itself
    return {fd: link for fd, link in links.items() if not link.startswith("socket:")}
before = held()
c = pycurl.Curl()
for n in "12":
    c.setopt(c.URL, sys.argv[1])
    c.setopt(c.POSTFIELDS, "n=" + n)
    c.setopt(c.WRITEFUNCTION, lambda b: None)
    c.perform()
c.close()
print(held() == before, flush=True)
os.execv("/bin/ls", ["ls", "/proc/self/fd"])
"""


def test_no_descriptor_is_kept_or_inherited(world, server):
    """31: no file is held after a write (an idle connection is, as libcurl does), and a program it becomes has none of ours."""
    world.policy()
    seen = []
    for preload in (False, True):
        result = world.run(["/usr/bin/python3", "-c", SELF, server.base + "/orders"], preload=preload)
        assert result.rc == 0, result
        seen.append(result.out)
    assert seen[0] == seen[1] and seen[1].startswith("True\n")


@pytest.mark.parametrize("mask", [0o777, 0o077, 0o000])
def test_umask_does_not_matter(world, server, mask):
    """37: the ledger is 0600 and usable whatever the program's umask is, and the umask stays what it was."""
    world.policy()
    script = "umask %03o; curl -q -sS -d n=1 %s/orders; echo; umask" % (mask, server.base)
    result = world.run(["sh", "-c", script])
    assert result.out.splitlines()[-1] == "0%03o" % mask and '"id"' in result.out
    assert stat.S_IMODE(os.stat(world.ledger).st_mode) == 0o600
    assert world.curl("-d", "n=1", server.base + "/orders").replayed


def test_a_ledger_cut_short_by_somebody_else(world, server):
    """34: cut before it is opened, an error; the file is set aside and writes are refused until a person has looked."""
    world.policy()
    assert world.curl("-d", "n=1", server.base + "/orders").status == 201
    os.truncate(world.ledger, os.path.getsize(world.ledger) // 2)
    for _ in "ab":
        answer = world.curl("-d", "n=1", server.base + "/orders")
        assert answer.status == 503 and answer.reason == "ledger-unavailable"
    assert server.executions == 1
