"""Inject: every listed write is sent, with a key; the ledger only says which."""
import os

import pytest

from harness import PROVIDER, SLOW, client


@pytest.fixture
def inject(world):
    return world.policy(top={"mode": "inject"})


def post(world, server, body="n=1", query="", **env):
    return world.curl("-d", body, server.base + "/orders" + query, **env)


@pytest.mark.san
def test_a_repeat_in_one_run_is_sent_with_the_same_key(inject, server):
    answers = [post(inject, server) for _ in range(3)]
    assert [a.status for a in answers] == [201] * 3 and not any(a.replayed for a in answers)
    assert server.executions == 3 and len(set(server.keys())) == 1 and server.keys()[0]
    assert [e["mode"] for e in inject.events("write")] == ["inject"] * 3
    assert [e["verdict"] for e in inject.events("write")] == ["execute", "resend", "resend"]
    assert all(e["served"] == "in-place" and e["wire_sends"] == 1 for e in inject.events("write"))


@pytest.mark.san
def test_a_retry_after_a_timeout_has_the_key_of_the_try_before(inject, server):
    first = post(inject, server, query="?late=1.5&times=1&keys=honour&busy=wait", timeout=60, SENDONCE_RUN="r")
    assert first.status == 201
    server.reset()
    url = server.base + "/orders?late=1.5&times=1&keys=honour&busy=wait&n=2"
    late = inject.curl("-m", str(0.5 * SLOW), "-d", "n=2", url)
    again = inject.curl("-d", "n=2", url)
    assert (late.rc, again.status, server.executions) == (28, 201, 1)
    assert len(server.keys()) == 2 and len(set(server.keys())) == 1


def test_another_run_gets_another_key(inject, server):
    post(inject, server, run="run-1")
    post(inject, server, run="run-2")
    post(inject, server, body="n=2", run="run-1")
    assert server.executions == 3 and len(set(server.keys())) == 3 and all(server.keys())


def test_what_a_rule_asks_of_the_answer_is_read_here_too(inject, server):
    """No answer is kept; whether it was one is known all the same, and another run's write is not taken for a retry."""
    inject.policy(top={"mode": "inject"}, answers={"body": {"json": {"/fill": "absent", "/id": "present"}}})
    for run in ("run-1", "run-2"):
        post(inject, server, run=run)
    assert [e["outcome"] for e in inject.events("write")] == ["done"] * 2 and len(set(server.keys())) == 2
    for run in ("run-1", "run-2"):
        post(inject, server, body="n=2", query="?size=9", run=run)
    assert [e["outcome"] for e in inject.events("write")[2:]] == ["unknown"] * 2 and len(set(server.keys())) == 3


def test_a_keyless_doubt_is_sent_again_too(inject, server):
    """Where enforce would refuse: it only adds a header, and never makes things worse than they were."""
    late = inject.curl("-m", str(0.5 * SLOW), "-d", "n=1", server.base + "/orders?late=1.5&times=1")
    again = inject.curl("-d", "n=1", server.base + "/orders?late=1.5&times=1")
    assert (late.rc, again.status, server.executions) == (28, 201, 2)
    assert len(set(server.keys())) == 1


def test_libcurls_own_resend_passes(inject, server):
    inject.policy(top={"mode": "inject"}, match="POST http://127.0.0.1:*/orders/**")
    result = inject.run([client("inplace"), server.base + "/orders/warm", "then=" + server.base + "/orders/new?die=1&keys=honour"])
    assert "then rc=0 status=201" in result.out
    assert inject.events("write")[-1]["wire_sends"] == 2
    assert len([o for o in server.orders if o["path"] == "/orders/new"]) == 1


@pytest.mark.san
def test_enforce_does_not_see_its_records_but_makes_the_same_keys(inject, server):
    post(inject, server)
    inject.policy(top={"mode": "enforce"})
    enforced = post(inject, server)
    assert not enforced.replayed and server.executions == 2
    assert post(inject, server).replayed and server.executions == 2
    assert len(set(server.keys())) == 1, "so a provider that remembers it still knows the write"
    assert sorted(r["operation"] for r in inject.records()) == ["inject:orders.create", "orders.create"]
    post(inject, server, SENDONCE_MODE="inject")
    assert server.executions == 3


def test_the_programs_own_key_is_left_alone(inject, server):
    inject.curl("-d", "n=1", "-H", "Idempotency-Key: mine", server.base + "/orders")
    inject.curl("-d", "n=2", "-H", "Idempotency-Key: mine", server.base + "/orders")
    assert server.keys() == ["mine", "mine"] and server.executions == 2


@pytest.mark.parametrize("args", [["-T", "body"], ["-F", "a=1"], ["-d", "@body"]], ids=lambda a: a[0])
def test_bodies_of_every_kind_keep_their_key(inject, server, args):
    inject.write("body", "x" * 5000)
    for _ in range(2):
        assert inject.curl("-X", "POST", *args, server.base + "/orders").status == 201
    first, second = server.writes()
    assert first.key == second.key and first.key
    assert len(first.body) == len(second.body) > 0


def test_no_ledger_no_key_and_it_is_sent(world, server):
    world.policy(top={"mode": "inject"}, ledger={"path": world.path("missing/ledger")})
    world.write("body", "x" * 5000)
    assert post(world, server).status == 201
    assert world.curl("-T", "body", "-X", "POST", server.base + "/orders").status == 201
    assert server.keys() == [None, None] and not os.path.exists(world.path("missing"))
    assert len(world.events("unprotected")) == 2 and world.events("write") == []


def test_larger_than_max_request_it_is_sent_as_it_came(inject, server):
    inject.policy(top={"mode": "inject"}, max_request=1000)
    inject.write("body", "x" * 5000)
    assert inject.curl("-T", "body", "-X", "POST", server.base + "/orders").status == 201
    assert inject.curl("-d", "@body", server.base + "/orders").status == 201
    assert server.keys() == [None, None]


def test_a_redirect_into_a_rule_is_followed(inject, server):
    assert inject.curl("-L", "-d", "n=1", server.base + "/free?redirect=307&to=/orders").status == 201


def test_many_at_once(inject, server):
    from harness import parallel
    answers = parallel(*[lambda: post(inject, server, query="?late=0.3")] * 6)
    assert [a.status for a in answers] == [201] * 6
    assert server.executions == 6 and len(set(server.keys())) == 1


def test_a_dedup_provider_does_it_once(inject, server):
    inject.policy(top={"mode": "inject"}, provider=PROVIDER)
    answers = [post(inject, server, query="?keys=honour") for _ in range(3)]
    assert server.executions == 1 and len({a.order for a in answers}) == 1
