"""What the keys of a policy do on the wire."""
import json
import os
import re
import signal
import time
from datetime import datetime
from email.utils import formatdate, parsedate_to_datetime
from urllib.parse import quote

import pytest

from harness import SLOW, client, parallel
from server import Listener


HEAD = """version: 1
ledger: {{path: {ledger}, durability: process, size: 8MiB}}
events: {events}
"""


def rules(world, text, top=""):
    """A policy of these rules, which stand two columns in."""
    world.write("policy.yaml", HEAD.format(ledger=world.ledger, events=world.event_log) + top + "writes:\n" + text)


def rpc(method, number=1, **params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def wait_for(what, seconds=10):
    end = time.monotonic() + seconds * SLOW
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def parse_time(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def dechunked(request):
    """The body without the framing of chunks, which the server keeps."""
    rest, out = request.body, b""
    while request.header("Transfer-Encoding") == "chunked":
        size, _, rest = rest.partition(b"\r\n")
        if int(size, 16) == 0:
            return out.decode()
        out, rest = out + rest[:int(size, 16)], rest[int(size, 16) + 2:]
    return request.body.decode()


# --- when

WHEN_RPC = """
  - operation: tools.call
    match: POST http://127.0.0.1:*/mcp
    when: {json: {/method: tools/call}}
    identity: {fields: [/params/name, /params/arguments]}
"""


def test_when_tells_a_call_from_a_list(world, server):
    rules(world, WHEN_RPC)
    for number in (1, 2):
        world.curl("-d", rpc("tools/list", number), server.base + "/mcp")
        world.curl("-d", rpc("tools/call", number, name="send", arguments={"to": "a"}), server.base + "/mcp")
    assert [json.loads(r.body)["method"] for r in server.writes()] == ["tools/list", "tools/call", "tools/list"]
    assert [r.key is not None for r in server.writes()] == [False, True, False]


@pytest.mark.parametrize("arguments", [["-X", "POST", "-T"], ["-X", "POST", "-H", "Expect:", "-H", "Content-Type: application/json", "-T"]],
                         ids=["upload", "upload-json"])
def test_when_reads_a_body_that_a_callback_gives(world, server, arguments):
    rules(world, WHEN_RPC)
    calls = [rpc("tools/list"), rpc("tools/call", name="send"), rpc("tools/list"), rpc("tools/call", name="send")]
    for number, text in enumerate(calls):
        answer = world.curl(*arguments, world.write("body-%d" % number, text), server.base + "/mcp")
        assert answer.rc == 0 and answer.status == 201, answer
    assert [r.body.decode() for r in server.writes()] == calls[:3]


def test_when_takes_a_chunked_body_from_a_pipe(world, server):
    rules(world, WHEN_RPC)
    text = rpc("tools/list", 1, filler="x" * 200000)
    path = world.write("body", text)
    for _ in range(2):
        answer = world.run(["sh", "-c", "cat %s | curl -q -sS -X POST -T - %s/mcp" % (path, server.base)])
        assert answer.rc == 0, answer
    assert [dechunked(r) for r in server.writes()] == [text, text]
    assert all(r.header("Transfer-Encoding") == "chunked" for r in server.writes())
    assert not world.events("unprotected")


def test_when_protects_a_mutation_and_lets_a_query_pass(world, server):
    rules(world, """
  - operation: graphql.mutation
    match: POST http://127.0.0.1:*/graphql
    when: {json: {/query: graphql:mutation}}
""")
    query = json.dumps({"query": "query { order(note: \"mutation { x }\") { id } }"})
    mutation = json.dumps({"query": "\n mutation M { create(a: 1) { id } }"})
    for body in (query, mutation, query, mutation):
        world.curl("-H", "Content-Type: application/json", "-d", body, server.base + "/graphql")
    assert [r.body.decode() for r in server.writes()] == [query, mutation, query]


def test_when_falls_through_to_the_next_rule(world, server):
    rules(world, """
  - operation: first
    match: POST http://127.0.0.1:*/orders
    when: {header: {X-Kind: a}}
  - operation: second
    match: POST http://127.0.0.1:*/orders
    when: {query: {kind: b}}
  - operation: third
    match: POST http://127.0.0.1:*/orders
    when: {form: {kind: c}}
""")
    world.curl("-H", "X-Kind: a", "-d", "x=1", server.base + "/orders")
    world.curl("-d", "x=1", server.base + "/orders?kind=b")
    world.curl("-d", "kind=c", server.base + "/orders")
    world.curl("-d", "kind=d", server.base + "/orders")
    assert [e["operation"] for e in world.events("write")] == ["first", "second", "third"]
    assert len(server.writes()) == 4


def test_when_is_asked_in_audit(world, server):
    rules(world, WHEN_RPC, top="mode: audit\n")
    world.curl("-d", rpc("tools/list"), server.base + "/mcp")
    world.curl("-d", rpc("tools/call"), server.base + "/mcp")
    world.curl("-X", "POST", "-T", world.write("list", rpc("tools/list")), server.base + "/mcp")
    world.curl("-X", "POST", "-T", world.write("call", rpc("tools/call")), server.base + "/mcp")
    assert [e["operation"] for e in world.events("write")] == ["tools.call", "tools.call"]
    assert len(world.events()) == 2 + len(world.events("unlisted"))


# --- carriers and formats

CARRIED = """
  - operation: pay
    match: POST http://127.0.0.1:*/orders
    key: {carrier: %s}
    provider: {dedups: true, key_ttl: 24h, stores: [2xx]}
"""
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


@pytest.mark.parametrize("carrier,body,wanted", [
    ("json:/idempotency_key", '{\n  "amount": 5.00\n}\n', '{"idempotency_key":"KEY",\n  "amount": 5.00\n}\n'),
    ("json:/headers/idempotencyKey", '{"to":"a"}', '{"headers":{"idempotencyKey":"KEY"},"to":"a"}'),
    ("json:/k", "{}", '{"k":"KEY"}'),
])
def test_a_key_in_the_json_body(world, server, carrier, body, wanted):
    rules(world, CARRIED % carrier)
    for _ in range(2):
        answer = world.curl("-H", "Content-Type: application/json", "--data-binary", body, server.base + "/orders")
        assert answer.status == 201, answer
    sent, = server.writes()
    pattern = re.escape(wanted).replace("KEY", UUID)
    assert re.fullmatch(pattern, sent.body.decode()) and int(sent.header("Content-Length")) == len(sent.body)
    assert sent.key is None
    assert answer.replayed


def test_a_key_in_a_body_of_several_lines_with_a_length_of_its_own(world, server):
    rules(world, CARRIED % "json:/k")
    body = '{\n\t"a": "x",\r\n "b": [1,\n2]}'
    answer = world.curl("-H", "Content-Length: %d" % len(body), "--data-binary", body, server.base + "/orders")
    assert answer.status == 201
    sent, = server.writes()
    assert re.fullmatch(r'\{"k":"' + UUID + '",' + re.escape(body[1:]), sent.body.decode())
    assert [v.strip() for k, v in sent.headers if k.lower() == "content-length"] == [str(len(sent.body))]


@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "announced"])
def test_a_key_in_a_json_body_from_a_callback(world, server, chunked):
    rules(world, CARRIED % "json:/k")
    body = json.dumps({"text": "x" * 70000, "n": 1})
    path = world.write("body", body)
    source = "cat %s | curl -q -sS -X POST -T - %s/orders" if chunked else "curl -q -sS -X POST -T %s %s/orders"
    for _ in range(2):
        assert world.run(["sh", "-c", source % (path, server.base)]).rc == 0
    sent, = server.writes()
    assert re.fullmatch(r'\{"k":"' + UUID + '",' + re.escape(body[1:]), dechunked(sent))
    assert (sent.header("Transfer-Encoding") == "chunked") == chunked


def test_a_key_in_the_json_body_goes_along_with_a_redirect(world, server):
    rules(world, CARRIED % "json:/k")
    answer = world.curl("-L", "-d", '{"a":1}', server.base + "/orders?redirect=307&to=" + quote(server.base + "/other"))
    assert answer.status == 201
    first, second = server.writes()
    assert first.body == second.body and b'"k":"' in first.body


def test_a_key_in_the_query(world, server):
    rules(world, CARRIED % "query:requestId")
    for path in ("/orders?x=1", "/orders?x=1#part", "/orders?x=1"):
        assert world.curl("-d", "a", server.base + path).status == 201
    sent, = server.writes()
    assert re.fullmatch(r"/orders\?x=1&requestId=" + UUID, sent.target)


@pytest.mark.parametrize("carrier,spec,body", [
    ("query:requestId", "requestId=mine-1", "{}"), ("json:/k", "", '{"a":1, "k":"mine-1"}')], ids=["query", "json"])
def test_the_programs_own_key_stays_where_it_is(world, server, carrier, spec, body):
    rules(world, CARRIED % carrier)
    for _ in range(2):
        answer = world.curl("-d", body, server.base + "/orders?" + spec)
        assert answer.status == 201
    sent, = server.writes()
    assert sent.body.decode() == body and sent.target == "/orders?" + spec and answer.replayed
    assert world.records()[0]["key"] == "mine-1"


@pytest.mark.parametrize("carrier,first,second", [
    ("query:requestId", ("requestId=mine-1&", "{}"), ("requestId=mine-2&", "{}")),
    ("json:/k", ("", '{"k":"mine-1","a":1}'), ("", '{"k":"mine-2","a":1}'))], ids=["query", "json"])
def test_a_resend_carries_the_records_key(world, server, carrier, first, second):
    """S14: the first is in doubt; the retry comes with a fresh key of its own."""
    rules(world, CARRIED % carrier + "    identity: {ignore: [query:cut]}\n")
    assert world.curl("-d", first[1], server.base + "/orders?%scut=1" % first[0]).rc != 0
    answer = world.curl("-d", second[1], server.base + "/orders?%scut=" % second[0])
    assert answer.status == 201, answer
    one, two = server.writes()
    assert "mine-1" in one.target + one.body.decode() and "mine-1" in two.target + two.body.decode()
    assert "mine-2" not in two.target + two.body.decode()


@pytest.mark.parametrize("body", ["not json", "[1]", '{"k":{}}'])
def test_a_body_without_a_place_for_the_key_is_refused(world, server, body):
    rules(world, CARRIED % "json:/k")
    answer = world.curl("-d", body, server.base + "/orders")
    assert (answer.status, answer.reason) == (403, "key-invalid")
    assert not server.writes()


def test_no_key_at_all(world, server):
    """S13: adding anything to a signed request breaks its signature."""
    rules(world, """
  - operation: signed
    match: POST http://127.0.0.1:*/orders
    key: {carrier: none}
""")
    for _ in range(2):
        answer = world.curl("-H", "Signature: abc", "-d", "a=1", server.base + "/orders")
    sent, = server.writes()
    native = world.curl("-H", "Signature: abc", "-d", "a=1", server.base + "/orders", preload=False)
    assert answer.status == native.status == 201 and answer.replayed
    assert server.writes()[1].raw == sent.raw
    assert world.records()[0]["key"] == ""


@pytest.mark.parametrize("format,pattern", [
    ("uuid", UUID), ("uuid-nodash", "[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}"), ("hex", "[0-9a-f]{64}"),
    ("sf-string", '"%s"' % UUID)])
def test_formats(world, server, format, pattern):
    rules(world, """
  - operation: pay
    match: POST http://127.0.0.1:*/orders
    key: {carrier: "header:X-Request-Key", format: %s}
""" % format)
    world.curl("-d", "a=1", server.base + "/orders")
    sent, = server.writes()
    assert re.fullmatch(pattern, sent.header("X-Request-Key"))


@pytest.mark.parametrize("carrier,words", [
    ("query:requestId", []), ("json:/k", ["body={\"a\":1}"])], ids=["query", "json"])
def test_carriers_on_a_handle_in_place(world, server, carrier, words):
    rules(world, CARRIED % carrier)
    result = world.run([client("inplace"), server.base + "/orders?x=1", "opensocket", "times=2", "then=" + server.base + "/free",
                        "header=Content-Type: application/json", *words])
    assert result.rc == 0, result
    sent, plain = server.writes()
    assert ("requestId=" in sent.target) == (carrier[0] == "q") and (b'{"k":"' in sent.body) == (carrier[0] == "j")
    assert plain.target == "/free" and json.loads(plain.body) in ({"a": 1}, {"n": 1})
    assert world.stats()["in_place"] == 1


@pytest.mark.parametrize("words", [["dup"], ["change"], ["reset"]])
def test_a_body_in_place_is_the_programs_again(world, server, words):
    """What the program does with its handle in a callback meets its own body, not the one with the key."""
    rules(world, CARRIED % "json:/k")
    result = world.run([client("inplace"), server.base + "/orders?size=40000", "opensocket", "body={\"a\":1}",
                        "header=Content-Type: application/json", *words])
    assert result.rc == 0, result
    keyed = [r for r in server.writes() if b'"k":' in r.body]
    assert len(keyed) >= 1 and all(r.body == b'{"a":1}' for r in server.writes() if r not in keyed)


@pytest.mark.parametrize("carrier", ["query:requestId", "json:/k"])
def test_carriers_in_mode_inject(world, server, carrier):
    rules(world, CARRIED % carrier, top="mode: inject\n")
    for _ in range(2):
        assert world.curl("-d", '{"a":1}', server.base + "/orders").status == 201
    one, two = server.writes()
    assert (one.target, one.body) == (two.target, two.body)
    assert "requestId=" in one.target or b'"k":"' in one.body


def test_alias_a_new_key_on_the_same_content_is_the_same_write(world, server):
    """S14: a library makes up a key for every call; the agent's retry is not a new intent."""
    rules(world, """
  - operation: pay
    match: POST http://127.0.0.1:*/orders
    key: {app_key: alias}
""")
    answers = [world.curl("-H", "Idempotency-Key: k-%d" % n, "-d", "a=1", server.base + "/orders") for n in (1, 2, 3, 2)]
    assert [a.order for a in answers] == ["ord-1"] * 4 and [a.replayed for a in answers] == [False, True, True, True]
    other = world.curl("-H", "Idempotency-Key: k-2", "-d", "a=2", server.base + "/orders")
    assert (other.status, other.reason) == (422, "key-conflict")
    assert len(server.writes()) == 1


def test_required_without_a_key_nothing_is_sent(world, server):
    rules(world, """
  - operation: pay
    match: POST http://127.0.0.1:*/orders
    key: {required: true}
""")
    answer = world.curl("-d", "a=1", server.base + "/orders")
    assert (answer.status, answer.reason) == (403, "key-required") and not server.writes()
    assert world.curl("-H", "Idempotency-Key: k", "-d", "a=1", server.base + "/orders").status == 201


# --- answers

ASKED_AGAIN = """
  - operation: pay
    match: POST http://127.0.0.1:*/orders
    provider: {dedups: true, key_ttl: 24h, stores: [2xx]}
    answers: {in_progress: [409]}
"""


def left_in_progress(world, server, late):
    """A program that was killed while its write is still under way at the provider."""
    process = world.start(["curl", "-q", "-sS", "-d", "a=1", server.base + "/orders?keys=honour&times=1&late=%s" % late])
    wait_for(lambda: server.writes())
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_in_progress_is_asked_again_until_there_is_an_answer(world, server):
    """S18(a): 409 is no answer yet."""
    rules(world, ASKED_AGAIN)
    left_in_progress(world, server, 2)
    answer = world.curl("-m", "20", "-d", "a=1", server.base + "/orders?keys=honour&times=1&late=2")
    assert (answer.status, answer.order) == (201, "ord-1"), answer
    assert 3 <= len(server.writes()) <= 8 and server.executions == 1
    assert len({r.key for r in server.writes()}) == 1
    assert world.states() == ["done"]
    again = world.curl("-d", "a=1", server.base + "/orders?keys=honour&times=1&late=2")
    assert again.replayed and again.order == "ord-1"


def test_in_progress_ends_with_the_programs_deadline(world, server):
    rules(world, ASKED_AGAIN)
    left_in_progress(world, server, 4)
    answer = world.curl("-m", "1", "-d", "a=1", server.base + "/orders?keys=honour&times=1&late=4")
    assert answer.rc == 28 and 0.9 < answer.seconds < 2 * SLOW
    wait_for(lambda: world.states() == ["unknown"])
    sent = len(server.writes())
    time.sleep(1)
    assert len(server.writes()) == sent  # nobody waits, nothing is asked


def test_in_progress_is_asked_again_in_place_too(world, server):
    rules(world, ASKED_AGAIN)
    left_in_progress(world, server, 2)
    url = server.base + "/orders?keys=honour&times=1&late=2"
    result = world.run([client("inplace"), url, "opensocket", "body=a=1", "header=Content-Type: application/x-www-form-urlencoded"])
    assert "status=201" in result.out and "409" not in result.out and world.states() == ["done"]
    assert server.executions == 1 and len({r.key for r in server.writes()}) == 1


def test_already_done_is_done_and_its_answer_not_kept(world, server):
    """S18(c): the provider says that it was done before."""
    rules(world, """
  - operation: pay
    match: POST http://127.0.0.1:*/orders
    answers: {already_done: [409]}
""")
    first = world.curl("-d", "a=1", server.base + "/orders?status=409&exec=0")
    assert first.status == 409 and world.states() == ["done"]
    second = world.curl("-d", "a=1", server.base + "/orders?status=409&exec=0")
    assert (second.status, second.reason) == (409, "answer-not-kept")
    assert len(server.writes()) == 1


class Scripted(Listener):
    """Answers each request with the next of some bodies."""

    def __init__(self, *bodies, kind="application/json"):
        super().__init__()
        self.bodies, self.kind, self.requests = list(bodies), kind, []

    def serve(self, sock, number):
        stream = sock.makefile("rb")
        while True:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                line = stream.readline()
                if not line:
                    return
                head += line
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            self.requests.append(stream.read(int(length.group(1)) if length else 0).decode())
            body = self.bodies.pop(0) if len(self.bodies) > 1 else self.bodies[0]
            sock.sendall(("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (
                self.kind, len(body), body)).encode())

    @property
    def base(self):
        return "http://127.0.0.1:%d" % self.port


@pytest.fixture
def scripted():
    made = []

    def make(*bodies, **words):
        made.append(Scripted(*bodies, **words).start())
        return made[-1]
    yield make
    for server in made:
        server.close()


GRAPHQL = """
  - operation: graphql
    match: POST http://127.0.0.1:*/graphql
    when: {json: {/query: graphql:mutation}}
    answers:
      body: {json: {/errors: absent, /data/*/userErrors: empty}}
      %s
"""
MUTATION = json.dumps({"query": "mutation { create { userErrors { message } } }"})


def test_a_body_that_does_not_match_is_no_answer(world, scripted):
    """S10: 200 with errors is not done; what it means is for the rule to say."""
    server = scripted('{"errors":[{"message":"throttled"}]}', '{"data":{"create":{"userErrors":[]}}}')
    rules(world, GRAPHQL % "final: [2xx]")
    first = world.curl("-d", MUTATION, server.base + "/graphql")
    assert first.status == 200 and world.states() == ["unknown"]
    second = world.curl("-d", MUTATION, server.base + "/graphql")
    assert second.reason == "unknown-outcome" and len(server.requests) == 1


def test_a_body_tells_final_from_not_executed(world, scripted):
    server = scripted('{"data":{"create":{"userErrors":[{"message":"no"}]}}}', '{"data":{"create":{"userErrors":[]}}}')
    rules(world, GRAPHQL % "not_executed: [200]")
    first = world.curl("-d", MUTATION, server.base + "/graphql")
    assert first.status == 200 and world.states() == ["freed"]
    answers = [world.curl("-d", MUTATION, server.base + "/graphql") for _ in range(2)]
    assert [a.replayed for a in answers] == [False, True] and world.states() == ["done"]
    assert len(server.requests) == 2


def test_a_body_that_is_no_json_is_not_final(world, scripted):
    server = scripted("<html>gateway</html>")
    rules(world, GRAPHQL % "final: [2xx]")
    world.curl("-d", MUTATION, server.base + "/graphql")
    assert world.states() == ["unknown"]


def test_the_last_answer_of_an_event_stream_counts(world, scripted):
    stream = 'event: message\ndata: {"method":"progress","errors":1}\n\nevent: message\ndata: {"id":1,"result":{}}\n\n'
    server = scripted(stream, kind="text/event-stream")
    rules(world, """
  - operation: tools.call
    match: POST http://127.0.0.1:*/mcp
    answers: {body: {json: {/error: absent, /result: present}}}
""")
    assert [world.curl("-d", rpc("tools/call"), server.base + "/mcp").replayed for _ in range(2)] == [False, True]


# --- repeat, store, unlisted

REPEAT = """
  - operation: pay
    match: POST http://127.0.0.1:*/orders
    provider: {dedups: true, key_ttl: 24h, stores: [2xx]}
    identity: {ignore: [query:cut]}
    repeat: %s
"""


def test_after_answer_two_equal_charges_and_the_retry_of_the_second(world, server):
    """S5: two deliberate charges are two; the retry of the second is the second."""
    rules(world, REPEAT % "after-answer")
    url = server.base + "/orders?keys=honour&cut="
    first = world.curl("-d", "amount=5", url)
    second = world.curl("-d", "amount=5", server.base + "/orders?keys=honour&cut=1")
    assert (first.status, first.order) == (201, "ord-1") and second.rc == 52
    assert server.executions == 2
    retry = world.curl("-d", "amount=5", url)
    assert (retry.status, retry.order) == (201, "ord-2"), retry
    one, two, three = server.writes()
    assert one.key != two.key == three.key and server.executions == 2
    assert [r["generation"] for r in world.records()] == [2]
    third = world.curl("-d", "amount=5", url)
    assert third.order == "ord-3"


@pytest.mark.parametrize("run", ["run-1", None], ids=["run", "no-run"])
def test_after_answer_in_one_process(world, server, run):
    rules(world, REPEAT % "after-answer")
    answers = world.post("--tries", "3", server.base + "/orders", run=run)
    assert [a.order for a in answers] == ["ord-1", "ord-2", "ord-3"]


def test_window_replays_within_it_and_executes_after(world, server):
    rules(world, REPEAT % "window:2s")
    answers = [world.curl("-d", "text=hi", server.base + "/orders") for _ in range(2)]
    time.sleep(2.2)
    answers += [world.curl("-d", "text=hi", server.base + "/orders") for _ in range(2)]
    assert [a.order for a in answers] == ["ord-1", "ord-1", "ord-2", "ord-2"]


@pytest.mark.parametrize("app_key", ["trust", "alias"])
def test_two_runs_with_fresh_keys_the_first_in_doubt(world, server, app_key):
    """The same agent is started twice and its library makes up a key each time: one write, under the first key."""
    rules(world, REPEAT % "replay" + "    key: {app_key: %s}\n" % app_key)
    first = world.curl("-H", "Idempotency-Key: fresh-1", "-d", "amount=5", server.base + "/orders?keys=honour&cut=1", run="run-1")
    assert first.rc == 52
    second = world.curl("-H", "Idempotency-Key: fresh-2", "-d", "amount=5", server.base + "/orders?keys=honour&cut=", run="run-2")
    assert (second.status, second.order) == (201, "ord-1")
    assert [r.key for r in server.writes()] == ["fresh-1", "fresh-1"] and server.executions == 1


def test_store_meta_keeps_no_secret(world, server):
    """S24: the answer holds a secret that is shown once."""
    rules(world, """
  - operation: keys.create
    match: POST http://127.0.0.1:*/orders
    store: meta
""")
    first = world.curl("-d", "name=ci", server.base + "/orders")
    second = world.curl("-d", "name=ci", server.base + "/orders")
    assert first.status == 201 and (second.status, second.reason) == (409, "answer-not-kept")
    record, = world.records()
    assert record["status"] == 201 and not record["answer_kept"]
    whole = open(world.ledger, "rb").read()
    assert b"ord-1" not in whole
    shown = world.cli("ledger", "show", record["key"], "--json")
    assert len(json.loads(shown.out)["answer_hash"]) == 64 and json.loads(shown.out)["answer_hash"] in world.cli("ledger", "show", record["key"]).out
    assert world.cli("ledger", "verify").rc == 0


@pytest.mark.parametrize("arguments", [["-d", "a=1"], ["-X", "DELETE"], ["-T", "policy.yaml"]])
def test_unlisted_writes_are_refused(world, server, arguments):
    rules(world, REPEAT % "replay", top="unlisted: refuse\n")
    answer = world.curl(*arguments, server.base + "/other")
    assert (answer.status, answer.reason) == (403, "unlisted")
    assert world.curl(server.base + "/other").status == 200  # a read
    assert world.curl("-d", "a=1", server.base + "/orders").status == 201
    assert [r.path for r in server.writes()] == ["/orders"]


def test_unlisted_after_its_body_was_read(world, server):
    rules(world, WHEN_RPC, top="unlisted: refuse\n")
    answer = world.curl("-X", "POST", "-T", world.write("list", rpc("tools/list")), server.base + "/mcp")
    assert (answer.status, answer.reason) == (403, "unlisted") and not server.writes()


# --- the time of the first send

FIRST_SENT = """
  - operation: send
    match: POST http://127.0.0.1:*/orders
    key: {carrier: "header:Repeatability-Request-ID", first_sent: "header:Repeatability-First-Sent"}
    provider: {dedups: true, key_ttl: 5m, stores: [2xx]}
    identity: {ignore: [query:cut]}
"""


def repeatability(request):
    return request.header("Repeatability-Request-ID"), request.header("Repeatability-First-Sent")


@pytest.mark.parametrize("arguments", [[], ["--connect-to", "::127.0.0.1:"]], ids=["plain", "connect-to"])
def test_a_retry_repeats_the_time_of_the_first_send(world, server, arguments):
    """S21: the provider goes by the original date."""
    rules(world, FIRST_SENT)
    before = time.time()
    world.curl(*arguments, "-d", "a=1", server.base + "/orders?cut=1")
    after = time.time()
    time.sleep(1.5)
    assert world.curl(*arguments, "-d", "a=1", server.base + "/orders?cut=").status == 201
    one, two = map(repeatability, server.writes())
    assert one == two and re.fullmatch(UUID, one[0])
    assert int(before) <= parsedate_to_datetime(one[1]).timestamp() <= after
    assert parsedate_to_datetime(one[1]).timestamp() == int(parse_time(world.records()[0]["first_sent"]))


def test_what_the_program_says_of_its_own_key_is_kept_and_repeated(world, server):
    rules(world, FIRST_SENT)
    date = formatdate(time.time() - 60, usegmt=True)
    own = ["-H", "Repeatability-Request-ID: mine-1", "-H", "Repeatability-First-Sent: " + date]
    world.curl(*own, "-d", "a=1", server.base + "/orders?cut=1")
    fresh = ["-H", "Repeatability-Request-ID: mine-2", "-H", "Repeatability-First-Sent: " + formatdate(usegmt=True)]
    assert world.curl(*fresh, "-d", "a=1", server.base + "/orders?cut=").status == 201
    assert list(map(repeatability, server.writes())) == [("mine-1", date)] * 2


def test_too_late_for_the_provider_to_know_the_key(world, server):
    """S21: it remembers for five minutes, and the first send was six minutes ago."""
    rules(world, FIRST_SENT)
    date = formatdate(time.time() - 360, usegmt=True)
    own = ["-H", "Repeatability-Request-ID: mine-1", "-H", "Repeatability-First-Sent: " + date]
    world.curl(*own, "-d", "a=1", server.base + "/orders?cut=1")
    answer = world.curl(*own, "-f", "-d", "a=1", server.base + "/orders?cut=")
    assert answer.rc == 56 and len(server.writes()) == 1


def test_the_time_in_mode_inject(world, server):
    rules(world, FIRST_SENT, top="mode: inject\n")
    for cut in ("1", ""):
        world.curl("-d", "a=1", server.base + "/orders?cut=" + cut)
        time.sleep(1.1)
    one, two = map(repeatability, server.writes())
    assert one == two and one[1]


# --- echo

RPC = """
  - operation: tools.call
    match: POST http://127.0.0.1:*/mcp
    when: {json: {/method: tools/call}}
    identity: {ignore: [/id]}
    answers: {echo: [/id]}
"""


class Rpc(Scripted):
    """Answers with the id of the request."""

    def __init__(self, form="%s", wait=0, **words):
        super().__init__("", **words)
        self.form, self.wait = form, wait

    def serve(self, sock, number):
        stream = sock.makefile("rb")
        while True:
            head = b"".join(iter(stream.readline, b"\r\n"))
            if not head:
                return
            text = stream.read(int(re.search(rb"(?i)content-length: *(\d+)", head).group(1))).decode()
            self.requests.append(text)
            time.sleep(self.wait)
            body = self.form % json.dumps({"jsonrpc": "2.0", "id": json.loads(text)["id"], "result": {"n": len(self.requests)}})
            sock.sendall(("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (
                self.kind, len(body), body)).encode())


@pytest.mark.parametrize("kind,form", [("application/json", "%s"), ("text/event-stream", "event: message\ndata: %s\n\n")])
def test_a_replayed_json_rpc_answer_has_the_id_of_its_request(world, kind, form):
    """S9: tools/call is tried again with another id; the client drops an answer with the old one."""
    server = Rpc(form, kind=kind).start()
    rules(world, RPC)
    first = world.curl("-d", rpc("tools/call", 7, name="send"), server.base + "/mcp")
    second = world.curl("-d", rpc("tools/call", "eight-8", name="send"), server.base + "/mcp")
    listed = world.curl("-d", rpc("tools/list", 9), server.base + "/mcp")
    server.close()
    assert '"id": 7' in first.body and '"id": "eight-8"' in second.body and second.replayed
    assert int(second.header("Content-Length")) == len(second.body) and '"n": 1' in second.body
    assert '"n": 2' in listed.body and len(server.requests) == 2


def test_a_joined_json_rpc_answer_has_the_id_of_its_request(world):
    server = Rpc(wait=1).start()
    rules(world, RPC)
    answers = parallel(*[lambda n=n: world.curl("-d", rpc("tools/call", n, name="send"), server.base + "/mcp") for n in (7, 8)])
    server.close()
    assert ['"id": %d' % n in a.body for n, a in zip((7, 8), answers)] == [True, True] and len(server.requests) == 1


# --- scope, run and step from headers

NAMED = """
  - operation: pay
    match: POST http://127.0.0.1:*/orders
"""


def test_names_from_headers(world, server):
    top = "scope: {from: 'header:X-Tenant', strip: true}\nrun: {from: 'header:X-Run'}\nstep: {from: 'header:X-Step', strip: true}\n"
    rules(world, NAMED, top=top)

    def send(tenant, run, step):
        return world.curl("-H", "X-Tenant: " + tenant, "-H", "X-Run: " + run, "-H", "X-Step: " + step, "-d", "a=1",
                          server.base + "/orders").order
    assert [send("t1", "r1", "s1"), send("t1", "r1", "s1"), send("t2", "r1", "s1"), send("t1", "r1", "s2"),
            send("t1", "r2", "s1")] == ["ord-1", "ord-1", "ord-2", "ord-3", "ord-4"]
    assert all(r.header("X-Tenant") is None and r.header("X-Step") is None and r.header("X-Run") for r in server.writes())
    assert [(e["scope"], e["run"]) for e in world.events("write")] == [
        ("t1", "r1"), ("t1", "r1"), ("t2", "r1"), ("t1", "r1"), ("t1", "r2")]


def test_names_from_headers_in_place_and_in_audit(world, server):
    rules(world, NAMED, top="scope: {from: 'header:X-Tenant', strip: true}\n")
    world.run([client("inplace"), server.base + "/orders", "opensocket", "header=X-Tenant: t9"])
    assert server.writes()[0].header("X-Tenant") is None
    world.curl("-H", "X-Tenant: t9", "-d", "a=1", server.base + "/orders", SENDONCE_MODE="audit")
    assert server.writes()[1].header("X-Tenant") == "t9"  # audit changes not one byte
    assert [e["scope"] for e in world.events("write")] == ["t9", "t9"]


def test_a_name_that_is_too_long_counts_as_none(world, server):
    rules(world, NAMED, top="scope: {from: 'header:X-Books'}\n")
    for tenant in ("x" * 256, ""):
        world.curl("-H", "X-Books: " + tenant, "-d", "a=1", server.base + "/orders")
    assert len(server.writes()) == 1
    assert {e["scope"] for e in world.events("write")} == {"uid:%d" % os.geteuid()}


# --- mode replay

def test_replay_answers_listed_writes_from_the_ledger_alone(world, server):
    rules(world, NAMED)
    first = world.curl("-d", "a=1", server.base + "/orders")
    before = open(world.ledger, "rb").read()
    replay = dict(SENDONCE_MODE="replay")
    for run in ("run-1", "run-2", None):
        answer = world.curl("-d", "a=1", server.base + "/orders", run=run, **replay)
        assert (answer.status, answer.order, answer.replayed) == (201, first.order, True)
    miss = world.curl("-d", "a=2", server.base + "/orders", **replay)
    assert (miss.status, miss.reason) == (403, "replay-miss")
    other = world.curl("-d", "a=1", server.base + "/other", **replay)
    assert (other.status, other.reason) == (403, "unlisted")
    assert world.curl(server.base + "/orders", **replay).status == 200  # a read
    assert len(server.writes()) == 1
    record, = world.records()
    assert len(record.get("runs", [])) <= 1 and len(open(world.ledger, "rb").read()) == len(before)


def test_replay_makes_no_connection(world, server):
    rules(world, NAMED, top="mode: replay\nreplay_reads: refuse\n")
    for arguments in (["-d", "a=1", "http://name.invalid/orders"], ["http://name.invalid/"], ["-X", "DELETE", "http://name.invalid/x"]):
        answer = world.curl(*arguments)
        assert answer.rc == 0 and answer.status in (403, 503), answer
    path = world.write("file", "text")
    for arguments in (["-T", path, "ftp://name.invalid/x"], ["-Q", "DELE x", "ftp://name.invalid/"], ["ftp://name.invalid/x"],
                      ["--mail-from", "a@b", "--mail-rcpt", "c@d", "-T", path, "smtp://name.invalid"]):
        answer = world.curl(*arguments)
        assert answer.rc == 7 and "mode replay" in answer.err, answer
    assert server.connections == 0


def test_replay_without_a_ledger_refuses(world, server):
    """An empty or missing ledger is no reason to send."""
    rules(world, NAMED, top="mode: replay\n")
    answer = world.curl("-d", "a=1", server.base + "/orders")
    assert (answer.status, answer.reason) == (503, "ledger-unavailable")
    assert not server.writes() and not os.path.exists(world.ledger)


def test_replay_in_place_and_of_bodies_sends_nothing(world, server):
    rules(world, NAMED + "    oversize: pass\n    max_request: 10\n", top="mode: replay\n")
    world.run([client("inplace"), server.base + "/orders", "opensocket"])
    world.curl("-F", "a=@policy.yaml", server.base + "/orders")
    world.curl("-X", "POST", "-T", "policy.yaml", server.base + "/orders")
    world.curl("-d", "a" * 50, server.base + "/orders")
    assert not server.writes()
