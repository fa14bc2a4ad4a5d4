"""git push: git-remote-http runs libcurl (GnuTLS) by curl_multi_fdset, select and curl_multi_perform."""
import json
import os
import re

import pytest

from gitserver import GitServer, unchunked

RULE = {"operation": "git.push", "match": "POST http://127.0.0.1:*/{repository}/git-receive-pack"}
# git has no other time limit than this
IMPATIENT = ("http.lowSpeedLimit=100000", "http.lowSpeedTime=1")


class Pusher:
    """A clone with one commit more than the server has."""

    def __init__(self, world, server, size=0):
        self.world, self.server = world, server
        world.policy(**RULE)
        self.folder = world.path("clone-%d" % server.port)
        GitServer.git("init", "-q", "-b", "main", self.folder)
        self.commit("one", size)

    def commit(self, text, size=0):
        with open(os.path.join(self.folder, "order"), "wb") as f:
            f.write(text.encode() + os.urandom(size))
        git = ["git", "-C", self.folder, "-c", "user.name=u", "-c", "user.email=u@example.invalid"]
        for args in (["add", "order"], ["commit", "-qm", text]):
            assert self.world.run([*git, *args], preload=False).rc == 0

    def push(self, *config, **env):
        options = [x for c in config for x in ("-c", c)]
        return self.world.run(["git", "-C", self.folder, *options, "push", "--porcelain", self.server.base + "/r.git", "main"],
                              GIT_CONFIG_NOSYSTEM="1", GIT_TERMINAL_PROMPT="0", **env)


@pytest.fixture
def served(tmp_path):
    """served(FAULT...) is a git server that does so."""
    servers = []

    def serve(**default):
        folder = tmp_path / ("git-%d" % len(servers))
        folder.mkdir()
        servers.append(GitServer(str(folder), default=default).start())
        return servers[-1]

    yield serve
    for server in servers:
        server.close()


def plain(result):
    return re.sub(r"127\.0\.0\.1:\d+|\d+ ms|\d+ milliseconds", "N", result.out + "\0" + result.err), result.rc


def wire(server):
    """What was sent, but for where to and the key."""
    def one(request):
        head = re.sub(rb"127\.0\.0\.1:\d+", b"N", request.raw.split(b"\r\n\r\n")[0])
        # how it is cut into chunks depends on when the socket took how much
        body = unchunked(request.body) if request.header("Transfer-Encoding") else request.body
        return re.sub(rb"\r\nIdempotency-Key: [^\r]+", b"", head), body
    return [one(r) for r in server.requests]


@pytest.mark.parametrize("config,size", [((), 0), (("http.postBuffer=4096",), 20000)], ids=["fields", "chunked"])
def test_clean(world, served, config, size):
    """Over http.postBuffer the body is read while it is sent, and chunked; before that git feels its way."""
    one, other = served(), served()
    ours, native = Pusher(world, one, size), Pusher(world, other, size)
    # the same commit, so the same pack
    GitServer.git("-C", ours.folder, "fetch", "-q", native.folder, "main")
    GitServer.git("-C", ours.folder, "reset", "-q", "--hard", "FETCH_HEAD")
    first, second = ours.push(*config), native.push(*config, preload=False)
    assert second.rc == 0 and plain(first) == plain(second)
    assert one.pushes == other.pushes == 1
    assert wire(one) == wire(other) and all(one.keys()) and not any(other.keys())
    assert ours.push(*config).rc == 0 and one.pushes == 1  # up to date: nothing is written
    ours.commit("two")
    assert ours.push(*config).rc == 0 and one.pushes == 2
    assert set(world.states()) == {"done"}


def test_natively_a_cut_push_is_sent_twice(world, served):
    """libcurl itself sends it again, on a fresh connection: the second execution finds the branch moved."""
    server = served(cut="1", times="1")
    assert Pusher(world, server).push(preload=False).rc != 0
    assert server.executions == 2


@pytest.mark.parametrize("fault", [{"late": "6"}, {"cut": "1"}, {"cutbody": "1"}], ids=["late", "closed", "cut-body"])
def test_pushed_once(world, served, fault):
    """It fails as natively, but was executed once; the next push sees that, and needs no write."""
    server = served(times="1", **fault)
    pusher = Pusher(world, server)
    first = pusher.push(*IMPATIENT)
    assert first.rc != 0 and server.executions == 1 and server.pushes == 1, first
    again = pusher.push()
    assert again.rc == 0 and "up to date" in again.out and server.executions == 1, again
    pusher.commit("two")
    assert pusher.push().rc == 0 and server.pushes == 2


def test_refused_and_resolved(world, served):
    """Cut off before it was executed. Nobody can know, until the operator says so."""
    server = served(cut="1", exec="0", times="1")
    pusher = Pusher(world, server)
    assert pusher.push().rc != 0
    assert server.pushes == 0 and world.states() == ["unknown"]
    refused = pusher.push()
    assert refused.rc != 0 and server.pushes == 0 and len(server.writes()) == 1, refused
    key = world.records()[0]["key"]
    resolved = world.cli("ledger", "resolve", key, "--not-executed", "--operator", "o", "--evidence", "the branch did not move")
    assert resolved.rc == 0, resolved
    third = pusher.push()
    assert third.rc == 0 and server.pushes == 1 and len(server.writes()) == 2, third


def test_audit_sees_that_it_was_sent_twice(world, served):
    """The report names the cause, and what enforce would have done."""
    server = served(cut="1", times="1")
    pusher = Pusher(world, server)
    world.policy(top={"mode": "audit"}, **RULE)
    assert pusher.push().rc != 0 and server.executions == 2
    report = json.loads(world.cli("report", "--json").out)
    assert {k: v for k, v in report["summary"].items() if v and k not in ("writes", "prevented")} == {"wire_sends": 2, "wire-duplicate": 1}, report
    attempt, = report["groups"][0]["attempts"]
    assert attempt["cause"] == "libcurl's own resend: the connection had died" and attempt["exe"].startswith("git-remote-http")
