"""Refusals are proper answers, and whatever is wrong with policy or ledger, the host lives on in silence."""
import os
import shutil
import stat
import tempfile

import pytest

from harness import World, build


def write(world, server, path="/orders", **env):
    answer = world.curl("-d", '{"amount":1}', server.base + path, **env)
    assert answer.err == ""  # not a word from us on stderr
    return answer


def refused(answer, status, reason):
    assert (answer.rc, answer.status, answer.reason) == (0, status, reason), answer
    assert answer.problem["detail"]
    assert answer.header("x-should-retry") == "false" and answer.header("Stripe-Should-Retry") == "false"
    assert answer.header("Idempotent-Replayed") is None
    if status == 503:
        assert int(answer.header("Retry-After")) > 0


def test_unknown_outcome(world, server):
    path = "/orders?status=500"
    assert write(world, server, path).status == 500
    answer = write(world, server, path)
    refused(answer, 424, "unknown-outcome")
    text = answer.problem["detail"].lower()
    assert "retry" in text and "--not-executed" not in text
    events = world.events("refusal")
    assert len(events) == 1 and events[0]["reason"] == "unknown-outcome"


def test_unknown_outcome_with_fail_is_no_success(world, server):
    url = server.base + "/orders?status=500"
    world.curl("-d", "x", url)
    answer = world.curl("--fail", "-d", "x", url)
    assert answer.rc == 56 and len(server.writes()) == 1


@pytest.mark.parametrize("how,status", [("response", 424), ("error", 0)])
def test_refuse_as(world, server, how, status):
    world.policy(refuse_as=how)
    url = server.base + "/orders?cut=1"
    assert world.curl("-d", "x", url).rc == 52
    answer = world.curl("-d", "x", url)
    assert (answer.rc, answer.status) == (0 if status else 56, status)
    assert len(server.writes()) == 1


def test_errorbuffer_has_the_text(world, server):
    first, second = world.post("--tries", "2", server.base + "/orders?cut=1")
    assert first.rc == 52 and second.rc == 56 and len(second.err) > 20


def test_key_conflict(world, server):
    world.policy(identity={"fields": ["/order"], "must_match": ["/amount"]})
    send = lambda body: world.curl("-H", "Content-Type: application/json", "-d", body, server.base + "/orders")
    assert send('{"order":1,"amount":5}').status == 201
    refused(send('{"order":1,"amount":6}'), 422, "key-conflict")
    assert send('{"order":1,"amount":5}').replayed and server.executions == 1


def test_key_required(world, server):
    world.policy(key={"required": True})
    refused(write(world, server), 403, "key-required")
    with_key = world.curl("-H", "Idempotency-Key: mine-1", "-d", "x", server.base + "/orders")
    assert with_key.status == 201 and server.keys() == ["mine-1"]


# --- policy
def test_no_policy_at_all_is_off(world, server):
    if os.path.exists("/etc/sendonce/policy.yaml"):
        raise AssertionError("this machine has a policy of its own: the test means nothing here")
    for _ in range(2):
        assert write(world, server, SENDONCE_POLICY=None).status == 201
    assert server.executions == 2 and server.keys() == [None, None]


def broken_policies(world):
    yield world.path("not-there.yaml")
    yield world.write("syntax.yaml", "version: 1\nwrites: [\n")
    yield world.write("unknown.yaml", "version: 1\nrepeet: replay\nwrites: []\n")
    yield world.write("empty.yaml", "")
    yield world.write("binary.yaml", "\x01\x02\x03")
    yield world.folder
    yield "relative.yaml"


def test_named_policies_that_cannot_be_used_refuse_writes_and_let_reads_pass(world, server):
    for path in broken_policies(world):
        for target in ("/orders", "/anything"):
            refused(write(world, server, target, SENDONCE_POLICY=path), 503, "policy-invalid")
        read = world.curl(server.base + "/anything", SENDONCE_POLICY=path)
        assert (read.rc, read.status, read.err) == (0, 200, "")
    assert server.executions == 0


def test_the_refusal_says_where_the_policy_is_wrong(world, server):
    path = world.write("unknown.yaml", "version: 1\nrepeet: replay\nwrites: []\n")
    detail = write(world, server, SENDONCE_POLICY=path).problem["detail"]
    assert "unknown.yaml:2" in detail and "repeet" in detail


@pytest.mark.parametrize("mode", ["off"])
def test_with_mode_off_a_broken_policy_refuses_nothing(world, server, mode):
    path = world.write("broken.yaml", "version: nine\n")
    assert write(world, server, SENDONCE_POLICY=path, SENDONCE_MODE=mode).status == 201


def test_kill_switch(world, server):
    path = world.write("broken.yaml", "version: nine\n")
    assert write(world, server, SENDONCE_POLICY=path, SENDONCE_DISABLE="1").status == 201
    assert server.keys() == [None]


# --- ledger
def ledger_refused(world, server):
    for _ in range(2):
        refused(write(world, server), 503, "ledger-unavailable")
    assert write(world, server, "/unlisted").status == 201  # what no rule names passes
    assert world.curl(server.base + "/orders").status == 200
    assert [o["path"] for o in server.orders] == ["/unlisted"]


def test_missing_folder(world, server):
    world.policy(ledger={"path": world.path("no/such/folder/ledger")})
    ledger_refused(world, server)
    assert not os.path.exists(world.path("no"))


@pytest.mark.parametrize("content", [b"hello", b"\0" * 8192, b"x" * (1 << 20)], ids=["short", "zeroes", "long"])
def test_foreign_file(world, server, content):
    with open(world.ledger, "wb") as f:
        f.write(content)
    ledger_refused(world, server)
    kept = [open(world.path(n), "rb").read() for n in os.listdir(world.folder) if n.startswith("ledger")]
    assert content in kept  # set aside or left alone, never lost


def test_an_empty_file_is_no_ledger(world, server):
    open(world.ledger, "w").close()
    ledger_refused(world, server)
    told = world.events("refusal")
    assert told and not any({"key", "fingerprint", "record"} & set(e) for e in told)  # what nobody knows is left out


def test_symbolic_link(world, server):
    write(world, server, "/orders?n=1")
    os.rename(world.ledger, world.path("real"))
    os.symlink(world.path("real"), world.ledger)
    server.reset()
    ledger_refused(world, server)


def test_hard_link(world, server):
    write(world, server, "/orders?n=1")
    os.link(world.ledger, world.path("second-name"))
    server.reset()
    ledger_refused(world, server)


def test_a_folder_in_its_place(world, server):
    os.mkdir(world.ledger)
    ledger_refused(world, server)


class Nobody(World):
    """A user for whom file modes count: root may write to everything."""

    def start(self, argv, **kw):
        drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        return super().start([*drop, *argv], **kw)


@pytest.fixture
def nobody():
    folder = tempfile.mkdtemp(prefix="sendonce-nobody-")  # pytest's own folders are closed to others
    for name in ("libsendonce.so", "libsendonce-core.so"):
        shutil.copy(os.path.join(build(), name), folder)
    if os.geteuid() == 0:
        os.chown(folder, 65534, 65534)
    os.chmod(folder, 0o755)
    world = Nobody(folder).policy()
    world.preload_from = folder
    yield world
    world.close()
    shutil.rmtree(folder)


def test_read_only_ledger(nobody, server):
    assert write(nobody, server, "/orders?n=1").status == 201
    assert stat.S_IMODE(os.stat(nobody.ledger).st_mode) == 0o600
    os.chmod(nobody.ledger, 0o400)
    server.reset()
    ledger_refused(nobody, server)


def test_read_only_folder(nobody, server):
    os.mkdir(nobody.path("closed"), 0o555)
    nobody.policy(ledger={"path": nobody.path("closed/ledger")})
    ledger_refused(nobody, server)


def test_a_ledger_of_somebody_else(nobody, server):
    if os.geteuid() != 0:
        os.chmod(nobody.folder, 0o755)
    assert write(nobody, server, "/orders?n=1").status == 201
    if os.geteuid() == 0:
        os.chown(nobody.ledger, 1, 1)
    else:
        os.chmod(nobody.ledger, 0)  # as near as one comes without being root
    server.reset()
    ledger_refused(nobody, server)


def test_full_ledger_refuses_new_writes_and_answers_old_ones(world, server):
    world.policy(ledger={"size": "1MiB", "max_response": "64KiB"})
    url = server.base + "/orders?size=20000"
    answers = world.post("--vary", "--tries", "3000", url, timeout=120)
    good = [a for a in answers if a.status == 201]
    full = [a for a in answers if a.status != 201]
    assert good and full and answers[0].status == 201
    assert {(a.rc, a.status, a.reason) for a in full} == {(0, 503, "ledger-full")}
    assert server.executions == len(good)
    again = world.post("--vary", "--tries", "1", url)[0]
    assert again.status == 201 and again.replayed and again.body == answers[0].body
    one_more = world.curl("-d", "never seen", server.base + "/orders")
    refused(one_more, 503, "ledger-full")


def test_run_and_check_say_it_before_anything_starts(world):
    broken = world.write("broken.yaml", "version: 1\nrepeet: replay\nwrites: []\n")
    run = world.cli("run", "--policy", broken, "--", "touch", world.path("started"))
    assert run.rc == 3 and "broken.yaml:2" in run.err and not os.path.exists(world.path("started"))
    assert world.cli("run", "--policy", world.path("missing.yaml"), "--", "true").rc == 3
    assert world.cli("check", broken).rc in (1, 3)
    assert world.cli("check", world.policy_file).rc == 0
    os.mkdir(world.ledger)
    assert world.cli("run", "--policy", world.policy_file, "--", "true").rc == 3
