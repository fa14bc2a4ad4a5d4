"""The scenarios a shim for idempotent writes has to get right, S1 to S24 and a few more, from end to end.

Those that are about one key of the policy are in test_policy_keys.py and named there: S9 (JSON-RPC), S10 (GraphQL), S13 (signed
requests), S14 (keys of the program's own), S18 (the three meanings of 409), S21 (a provider that forgets), S24 (secrets).
"""
import os
import signal

import pytest

from harness import PROVIDER, client, parallel
from server import OrderServer
from test_policy_keys import wait_for

JSON = ["-H", "Content-Type: application/json"]


def sent(world, server, *bodies, path="/orders", head=JSON):
    """How many of these bodies, posted one after the other, reached the server."""
    before = len(server.writes())
    for body in bodies:
        answer = world.curl(*head, "--data-binary", body, server.base + path)
        assert answer.status == 201, answer
    return len(server.writes()) - before


def test_s1_big_integers_are_not_rounded(world, server):
    assert sent(world, server, '{"to":9007199254740992,"amt":1}', '{"to":9007199254740993,"amt":1}') == 2
    assert sent(world, server, '{"to":9007199254740993.0,"amt":1}') == 0


def test_s2_spellings_of_a_number(world, server):
    assert sent(world, server, '{"amount":1.0}', '{"amount":1}', '{"amount":1e0}', '{"amount":10E-1}') == 1
    assert sent(world, server, '{"amount":"1"}') == 1
    assert sent(world, server, '{"amount":-0}', '{"amount":0}', '{"amount":0.0e9}') == 1
    assert sent(world, server, '{"amount":1E400}', '{"amount":1e999999999}', '{"amount":10e399}') == 2


def test_s3_order_spaces_and_escapes(world, server):
    assert sent(world, server, '{"a":1,"b":"\u00e9"}', '{ "b":"\\u00e9","a":1 }') == 1
    assert sent(world, server, '{"l":[1,2]}', '{"l":[2,1]}') == 2
    assert sent(world, server, '{"x":null}', '{}') == 2
    assert sent(world, server, '{"a":1,"A":2}', '{"A":1,"a":2}', '{"A":2,"a":1}') == 2
    assert sent(world, server, '{"n":"\u00e9"}', '{"n":"e\u0301"}') == 2


def test_s4_what_is_no_json_counts_as_its_bytes(world, server):
    assert sent(world, server, '{"amount":1,"amount":2}', '{"amount":2,"amount":1}', '{"amount":1,"amount":2}') == 2
    assert sent(world, server, '{"amount":', '{"amount": ', "") == 3


def test_s5_equal_writes_of_a_run(world, server):
    """The default; repeat: after-answer, ordinal and window have tests of their own."""
    assert sent(world, server, "amount=500&customer=c1", "amount=500&customer=c1", head=[]) == 1
    assert world.stats()["replayed"] == 1


def test_s6_a_timeout_then_the_same_bytes(world, server):
    world.policy(provider=PROVIDER)
    url = server.base + "/orders?keys=honour&busy=wait&late=1.5&times=1"
    assert world.curl("-m", "0.5", "-d", "a=1", url).rc == 28
    answer = world.curl("-m", "10", "-d", "a=1", url)
    assert answer.status == 201 and server.executions == 1 and len({r.key for r in server.writes()}) == 1


def test_s6_a_timeout_with_a_provider_without_keys(world, server):
    world.policy(linger="0", exit_wait="0")
    url = server.base + "/orders?late=3&times=1"
    assert world.curl("-m", "0.5", "-d", "a=1", url).rc == 28
    answer = world.curl("-f", "-m", "10", "-d", "a=1", url)
    assert answer.rc == 56 and "sendonce" in answer.err and len(server.writes()) == 1


def test_s7_a_failure_before_any_byte_left(world, server):
    world.policy(match="POST *://**", identity={"target": "provider"})
    assert world.curl("-d", "a=1", "http://name.invalid/orders").rc == 6
    assert world.curl("-d", "a=1", "http://127.0.0.1:9/orders").rc == 7
    assert world.curl("-d", "a=1", server.base + "/orders").status == 201
    assert len(server.writes()) == 1 and world.states() == ["done"]


@pytest.mark.parametrize("dedups,executions", [(False, 2), (True, 2)], ids=["keyless", "keyed"])
def test_s8_libcurls_own_resend(world, server, dedups, executions):
    """The warm-up is one execution, and the write is one, however often its bytes left."""
    world.policy(match="POST http://127.0.0.1:*/orders/**", **({"provider": PROVIDER} if dedups else {}))
    result = world.run([client("inplace"), server.base + "/orders/warm", "then=" + server.base + "/orders/new?die=1&keys=honour"])
    assert result.rc == 0 and server.executions == executions, (result, server.writes())
    new = [r for r in server.writes() if r.path == "/orders/new"]
    assert len({r.key for r in new}) == 1 and len(new) == (2 if dedups else 1)


def test_s11_multipart_boundaries(world, server):
    path = world.write("file", "content")
    for _ in range(2):
        assert world.curl("-F", "a=1", "-F", "f=@" + path, server.base + "/orders").status == 201
    assert len(server.writes()) == 1
    world.write("file", "Content")
    assert world.curl("-F", "a=1", "-F", "f=@" + path, server.base + "/orders").status == 201
    assert len(server.writes()) == 2


def test_s12_forms(world, server):
    assert sent(world, server, "a=1&b=x%20y", "b=x+y&a=1", head=[]) == 1
    assert sent(world, server, "a=1&a=2", "a=2&a=1", head=[]) == 2


def test_s13_what_is_new_in_every_try(world, server):
    world.policy(identity={"ignore": ["/ts", "/meta/nonce", "query:_"]})
    for n in (1, 2):
        answer = world.curl(*JSON, "-H", "traceparent: 00-%032x-%016x-01" % (n, n), "-H", "x-stainless-retry-count: %d" % n,
                            "-H", "X-Stripe-Client-Telemetry: {%d}" % n, "-H", "X-Amz-Date: 2026013%dT000000Z" % n,
                            "-d", '{"amt":1,"ts":%d,"meta":{"nonce":"n%d"}}' % (n, n), server.base + "/orders?_=%d" % n)
        assert answer.order == "ord-1"
    assert len(server.writes()) == 1


def test_s14_one_key_for_two_contents(world, server):
    own = ["-H", "Idempotency-Key: k-1"]
    assert world.curl(*own, "-d", "a=1", server.base + "/orders").status == 201
    answer = world.curl(*own, "-d", "a=2", server.base + "/orders")
    assert (answer.status, answer.reason) == (422, "key-conflict") and len(server.writes()) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_s15_server_errors(world, server, status):
    world.policy(provider=PROVIDER)
    url = server.base + "/orders?keys=honour&status=%d&times=1" % status
    assert world.curl("-d", "a=1", url).status == status and world.states() == ["unknown"]
    assert world.curl("-d", "a=1", url).status == 201 and server.executions == 1
    assert len({r.key for r in server.writes()}) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_s15_server_errors_of_a_provider_without_keys(world, server, status):
    url = server.base + "/orders?status=%d&times=1" % status
    assert world.curl("-d", "a=1", url).status == status
    answer = world.curl("-d", "a=1", url)
    assert (answer.status, answer.reason) == (424, "unknown-outcome") and len(server.writes()) == 1


@pytest.mark.parametrize("status", [429, 401, 403, 413, 400, 402, 404, 422])
def test_s16_s17_client_errors_are_not_kept(world, server, status):
    url = server.base + "/orders?exec=0&retry_after=1&status=%d&times=1" % status
    first = world.curl("-d", "a=1", url)
    assert first.status == status and first.header("Retry-After") == "1" and world.states() == ["freed"]
    assert world.curl("-d", "a=1", url).status == 201 and server.executions == 1


def test_s16_a_refused_token_then_a_fresh_one(world, server):
    url = server.base + "/orders?exec=0&status=401&times=1"
    for n in (1, 2):
        answer = world.curl("-H", "Authorization: Bearer opaque-%d" % n, "-d", "a=1", url)
    assert answer.status == 201 and server.executions == 1


def test_s16_a_request_timeout_proves_nothing(world, server):
    url = server.base + "/orders?status=408&times=1"
    world.curl("-d", "a=1", url)
    assert world.states() == ["unknown"] and world.curl("-d", "a=1", url).reason == "unknown-outcome"


def test_s19_accepted_and_polled(world, server):
    url = server.base + "/orders?status=202&hdr=Location: /ops/7".replace(" ", "%20")
    first, second = (world.curl("-d", "a=1", url) for _ in range(2))
    assert (first.status, second.status) == (202, 202) and second.replayed
    assert second.header("Location") == "/ops/7" and len(server.writes()) == 1


def test_s20_the_key_does_not_go_to_another_host(world, server):
    other = OrderServer().start()
    try:
        answer = world.curl("-L", "-d", "a=1", server.base + "/orders?redirect=307&to=" + other.base + "/elsewhere")
        assert answer.status == 201
        assert server.writes()[0].key and other.writes()[0].key is None and other.writes()[0].body == b"a=1"
    finally:
        other.close()


@pytest.mark.parametrize("dedups", [True, False], ids=["keyed", "keyless"])
def test_s22_killed_after_its_write_left(world, server, dedups):
    world.policy(**({"provider": PROVIDER} if dedups else {}))
    url = server.base + "/orders?keys=honour&busy=wait&late=1&times=1"
    process = world.start(["curl", "-q", "-sS", "-d", "a=1", url])
    wait_for(lambda: server.writes())
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    answer = world.curl("-d", "a=1", url)
    assert server.executions == 1
    if dedups:
        assert answer.status == 201 and len({r.key for r in server.writes()}) == 1
    else:
        assert (answer.status, answer.reason) == (424, "unknown-outcome") and len(server.writes()) == 1


def test_s23_two_processes_at_once(world, server):
    answers = parallel(*[lambda: world.curl("-d", "a=1", server.base + "/orders?late=0.7")] * 3)
    assert [a.order for a in answers] == ["ord-1"] * 3 and len(server.writes()) == 1


def test_s24_an_answer_above_the_cap_is_done_all_the_same(world, server):
    world.policy(ledger={"max_response": "64KiB"})
    url = server.base + "/orders?size=100000"
    assert world.curl("-d", "a=1", url).status == 201 and world.states() == ["done"]
    answer = world.curl("-d", "a=1", url)
    assert (answer.status, answer.reason) == (409, "answer-not-kept") and len(server.writes()) == 1


def test_s24_an_answer_that_was_cut_is_no_answer(world, server):
    assert world.curl("-d", "a=1", server.base + "/orders?cutbody=1&times=1").rc == 18
    assert world.states() == ["unknown"]


# --- whose write it is

def test_another_opaque_token_while_the_first_write_is_in_doubt(world, server):
    """The caller may be the same one with a fresh token; nothing is told of the other write."""
    world.policy(refuse_as="response")
    url = server.base + "/orders?cut=1&times=1"
    assert world.curl("-H", "Authorization: Bearer opaque-1", "-d", "a=1", url).rc == 52
    answer = world.curl("-H", "Authorization: Bearer opaque-2", "-d", "a=1", url)
    assert answer.reason == "unknown-outcome" and len(server.writes()) == 1
    assert "curl" not in answer.body and world.records()[0]["key"] not in answer.body
    other = world.curl("-u", "someone:else", "-d", "a=1", url)
    assert other.status == 201  # no token that rotates: somebody else


def test_another_opaque_token_once_the_first_was_answered(world, server):
    for n in (1, 2):
        assert world.curl("-H", "Authorization: Bearer opaque-%d" % n, "-d", "a=1", server.base + "/orders").status == 201
    assert len(server.writes()) == 2


def test_a_key_that_was_answered_never_starts_a_generation(world, server):
    """A bound key is replayed, whatever run, repeat and replay_for."""
    world.policy(repeat="after-answer", replay_for="0")
    for run in ("run-1", "run-2", None, "run-1"):
        answer = world.curl("-H", "Idempotency-Key: k-1", "-d", "a=1", server.base + "/orders", run=run)
        assert answer.order == "ord-1"
    assert world.curl("-H", "Idempotency-Key: k-2", "-d", "a=1", server.base + "/orders").order == "ord-2"


# --- and the short ones

@pytest.mark.parametrize("method,status", [("PUT", 412), ("DELETE", 404), ("PATCH", 409)])
def test_also_an_answer_after_a_doubt_proves_nothing(world, server, method, status):
    """PUT with If-Match gives 412, and DELETE 404, because the first one was applied."""
    world.policy(match=method + " http://127.0.0.1:*/orders", provider={"dedups": True, "key_ttl": "24h", "stores": []},
                 identity={"ignore": ["query:cut", "query:exec", "query:status"]})
    first = world.curl("-X", method, "-H", 'If-Match: "1"', server.base + "/orders?cut=1&status=")
    second = world.curl("-X", method, "-H", 'If-Match: "1"', server.base + "/orders?cut=&exec=0&status=%d" % status)
    assert first.rc == 52 and second.status == status and len(server.writes()) == 2
    assert world.states() == ["unknown"]


def test_also_a_scope_that_is_unset_is_said_once(world, server):
    world.curl("-d", "a=1", server.base + "/orders", scope=None)
    warning, = world.events("warning")
    assert warning["reason"] == "scope-unset" and warning["scope"] == "uid:%d" % os.geteuid()


def test_also_users_without_a_scope_do_not_share_with_those_with_one(world, server):
    for scope in (None, "a", "b"):
        assert world.curl("-d", "a=1", server.base + "/orders", scope=scope).replayed is False
    assert len(server.writes()) == 3

