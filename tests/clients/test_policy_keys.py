"""What the keys of a policy do on the wire."""
import json

import pytest


HEAD = """version: 1
ledger: {{path: {ledger}, durability: process, size: 8MiB}}
events: {events}
"""


def rules(world, text, top=""):
    """A policy of these rules, which stand two columns in."""
    world.write("policy.yaml", HEAD.format(ledger=world.ledger, events=world.event_log) + top + "writes:\n" + text)


def rpc(method, number=1, **params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


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
    assert len(world.events()) == 2
