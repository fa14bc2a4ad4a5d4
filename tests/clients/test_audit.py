"""Audit: what is written down, and that nothing else is done. A recording server compares the bytes of both runs."""
import os
import re

import pytest

from harness import SLOW, build, client, have
from programs import MULTI_PROGRAMS, PROGRAMS

RULE = {"match": "POST,PUT http://127.0.0.1:*/orders/**"}


@pytest.fixture
def audit(world):
    return world.policy(top={"mode": "audit"}, **RULE)


PYCURL = """
import io, pycurl, sys
c = pycurl.Curl()
c.setopt(c.WRITEFUNCTION, lambda b: None)
for n in range(int(sys.argv[2])):
    c.setopt(c.URL, sys.argv[1] + "/orders/%d" % n)
    if n % 4 == 3:
        c.setopt(c.HTTPPOST, [("n", str(n))])
    elif n % 4 == 2:
        c.setopt(c.UPLOAD, 1)
        c.setopt(c.READFUNCTION, io.BytesIO(b"x" * n).read)
        c.setopt(c.INFILESIZE, n)
    elif n % 4 == 1:
        c.setopt(c.POST, 1)
        c.setopt(c.POSTFIELDS, "n=%d" % n)
    else:
        c.setopt(c.HTTPGET, 1)
    c.perform()
"""

PHP = """<?php
for ($n = 0; $n < $argv[2]; $n++) {
    $c = curl_init($argv[1] . "/orders/$n");
    curl_setopt($c, CURLOPT_RETURNTRANSFER, true);
    if ($n % 2) curl_setopt($c, CURLOPT_POSTFIELDS, "n=$n");
    curl_exec($c);
    curl_close($c);
}
"""


def many(world, what, base):
    """One client, its requests: 200 and more over all of them."""
    form = world.write("form.txt", "a file\n" * 50)
    urls = [base + "/orders/%d" % n for n in range(20)]
    if what == "pycurl":
        return world.run(["/usr/bin/python3", "-c", PYCURL, base, "40"])
    if what == "php":
        return world.run(["php", "-n", "-d", "extension=curl", world.write("client.php", PHP), base, "40"])
    if what == "c":
        return world.run([client("inplace"), urls[0], "opensocket", "prereq", "times=40", "then=" + urls[1]])
    args = {"get": [], "data": ["-d", "a=1"], "upload": ["-T", form], "stdin": ["-T", "-"], "form": ["-F", "a=1", "-F", "f=@" + form],
            "json": ["--json", '{"a":1}'], "verbose": ["-v", "-d", "a=1"], "include": ["-i", "-d", "a=1"]}[what]
    return world.run(["curl", "-q", "-sS", *[x for url in urls for x in (*args, url, "-o", "/dev/null", "--next")][:-1]])


def without_boundary(raw):
    """A form's boundary is random; the rest of it is not."""
    at = raw.find(b"boundary=")
    if at < 0:
        return raw
    return raw.replace(raw[at + 9:raw.index(b"\r\n", at)], b"B")


def traffic(server):
    with server.lock:
        return [(r.number, without_boundary(r.raw)) for r in server.requests]


KINDS = ["get", "data", "upload", "stdin", "form", "json", "verbose", "include", "c", "pycurl", "php"]
ASKS = {"answers": {"body": {"json": {"/fill": "absent", "/id": "present"}}}}  # then the answer is read on its way


@pytest.mark.parametrize("what, more", [(what, {}) for what in KINDS] + [(what, ASKS) for what in ("stdin", "include", "c", "pycurl", "php")],
                         ids=lambda x: x if isinstance(x, str) else "asks" if x else "")
def test_the_wire_is_byte_for_byte_the_same(audit, server, what, more):
    audit.policy(top={"mode": "audit"}, **RULE, **more)
    if what == "php" and not have("php"):
        pytest.skip("no PHP")
    runs = []
    for env in ({"preload": False}, {}):
        server.reset()
        if "preload" not in env:
            result = many(audit, what, server.base)
        else:
            run, audit.run = audit.run, lambda *a, **k: run(*a, preload=False, **k)
            result = many(audit, what, server.base)
            del audit.run
        assert result.rc == 0, result
        runs.append((traffic(server), result.out, [x for x in result.err.splitlines() if x[:1] in "<>"] if what == "verbose" else ""))
    assert len(runs[0][0]) >= 20
    assert [x[1] for x in runs[0][0]] == [x[1] for x in runs[1][0]]
    assert runs[0][0] == runs[1][0], "the same connections too"
    if what == "verbose":
        assert [x for x in runs[0][2] if not x.startswith("< ")] == [x for x in runs[1][2] if not x.startswith("< ")]
    assert not os.path.exists(audit.ledger), "no ledger was made"
    writes = [r for r in server.requests if r.method != "GET"]
    events = audit.events()
    assert len(events) == len(writes) and all(e["event"] == "write" and e["mode"] == "audit" for e in events)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_of_the_fault_table_sends_the_same(world, server, name):
    world.policy(top={"mode": "audit"}, match="POST,PUT,PATCH,DELETE http://127.0.0.1:*/orders")
    runs = []
    for preload in (False, True):
        server.reset()
        seen = PROGRAMS[name].run(world, server.base + "/orders", 20, "", preload=preload)
        with server.lock:
            runs.append(([without_boundary(r.raw) for r in server.requests], seen.status, seen.rc))
    assert runs[0] == runs[1] and len(runs[0][0]) >= 1
    events = world.events("write")
    assert len(events) == len(server.writes()) and not os.path.exists(world.ledger)
    assert all("fingerprint" in e and e["wire_sends"] == 1 for e in events)


@pytest.mark.parametrize("name", {**PROGRAMS, **MULTI_PROGRAMS})
def test_each_wire_send_and_each_call_is_counted(world, server, name):
    """The server's own list against the log, also where nothing comes back and where libcurl sends a second time."""
    program = {**PROGRAMS, **MULTI_PROGRAMS}[name]
    world.policy(top={"mode": "audit"}, match="POST,PUT,PATCH,DELETE http://127.0.0.1:*/orders")
    for fault in ("cut=1", "redirect=307&to=/orders", "auth=basic"):
        server.reset()
        before = len(world.events())
        program.run(world, server.base + "/orders?" + fault, 20, "u:p" if "auth" in fault else "")
        events = world.events()[before:]
        assert sum(e["wire_sends"] for e in events) == len(server.writes()), (fault, events)
        assert all(e["event"] == "write" for e in events) and len(events) >= 1
        if not program.retries and not program.redirects:
            assert len(events) == 1, "one call, one event"


@pytest.mark.san
def test_what_an_event_says(audit, server):
    audit.curl("-d", "n=1", "-H", "Idempotency-Key: mine-1234567", server.base + "/orders/7?secret=1")
    event, = audit.events()
    assert event["operation"] == "orders.create" and event["path"] == "/orders/**" and event["method"] == "POST"
    assert (event["key"], event["status"], event["outcome"], event["curlcode"], event["wire_sends"]) == ("mine-123", 201, "done", 0, 1)
    assert len(event["fingerprint"]) == 16 and event["scope"] == "tests" and event["run"] == "run-1"
    assert "verdict" not in event and "record" not in event and "reason" not in event
    assert "secret" not in open(audit.event_log).read()


@pytest.mark.san
@pytest.mark.parametrize("query, outcome", [
    ("", "done"), ("size=10", "unknown"), ("cutbody=1", "unknown"), ("chunked=1&size=9", "unknown"), ("chunked=1", "done"), ("gzip=1", "done"),
    ("gzip=1&size=10", "unknown"), ("redirect=307&to=/orders/2", "done"), ("redirect=307&to=/orders/2%3Fsize=9", "unknown"),
    ("status=503", "unknown"), ("status=422", "freed")])
def test_what_a_rule_asks_of_the_answer_is_read(audit, server, query, outcome):
    """A 201 with errors in it is no final answer, in audit as under enforce; and what the program gets is what it got without."""
    args = ["-L", "--compressed", "-d", "n=1", "-i", server.base + "/orders/1?" + query]
    outs = []
    for preload in (False, True):
        server.reset()
        audit.policy(top={"mode": "audit"}, **RULE, **ASKS)
        outs.append(audit.run(["curl", "-q", "-sS", *args], preload=preload))
    assert outs[0].rc == outs[1].rc and without_names(outs[0].out) == without_names(outs[1].out)
    assert audit.events()[-1]["outcome"] == outcome, audit.events()


def without_names(text):
    return re.sub("(?m)^X-Request-Id:.*$", "", text)


def test_of_an_answer_that_is_too_large_nothing_is_said(audit, server):
    """As under enforce, where it could not be looked at either."""
    audit.policy(top={"mode": "audit"}, ledger={"max_response": "64KiB"}, **RULE, answers={"body": {"json": {"/id": "present"}}})
    for size, outcome in ((60000, "done"), (70000, "unknown")):
        assert len(audit.curl("-d", "n=1", server.base + "/orders/1?size=%d" % size).body) > size
        assert audit.events()[-1]["outcome"] == outcome


LOSING = """
import os, pycurl, sys
base, log, steps = sys.argv[1:]
c = pycurl.Curl()
c.setopt(c.WRITEFUNCTION, lambda b: None)
c.setopt(c.URL, base + "/orders/1")
for step in steps:
    if step == "w":
        c.setopt(c.POSTFIELDS, "n=1")
        c.perform()
    elif step == "-":
        os.rename(log, log + ".away")
    elif step == "+":
        os.rename(log + ".away", log)
    elif step == "f" and os.fork() > 0:
        os.wait()
        break
"""


def losing(audit, server, steps, *command):
    """A program that writes (w) while there is no place for its log (between - and +); f: what follows is a child's."""
    log = audit.path("logs")
    os.makedirs(log, exist_ok=True)
    audit.policy(top={"mode": "audit", "events": os.path.join(log, "events")}, **RULE)
    audit.event_log = os.path.join(log, "events")
    return audit.run([*command, "/usr/bin/python3", "-c", LOSING, server.base, log, steps])


@pytest.mark.san
@pytest.mark.parametrize("steps, told", [
    ("www", ["write"] * 3), ("w-ww+ww", ["write", "write", 2, "write"]), ("-w+", [1]), ("-w+-w+w", ["write", 2]),
    ("-w+fw", ["write", 1]), ("-wfw+w", ["write", 1, 1])])
def test_events_that_are_lost_are_counted(audit, server, steps, told):
    """By the process, which says so as soon as it can: behind the next event, or at its exit. A child knows nothing of its parent's."""
    result = losing(audit, server, steps)
    assert result.rc == 0, result
    assert [e["lost"] if e["event"] == "lost" else e["event"] for e in audit.events()] == told
    assert len(server.writes()) == steps.count("w")


def test_a_report_of_a_log_that_lost_events_is_no_all_clear(audit, server):
    for steps, rc in (("w", 0), ("-w+w", 3)):
        result = losing(audit, server, steps, os.path.join(build(), "sendonce"), "run", "--summary", "--policy", audit.policy_file, "--")
        assert result.rc == rc and ("1 events were lost" in result.err) == (rc == 3), result


@pytest.mark.parametrize("name", {**PROGRAMS, **MULTI_PROGRAMS})
def test_the_answer_is_read_beside_every_program(world, server, name):
    program = {**PROGRAMS, **MULTI_PROGRAMS}[name]
    world.policy(top={"mode": "audit"}, match="POST,PUT,PATCH,DELETE http://127.0.0.1:*/orders", **ASKS)
    for query, outcome in (("", "done"), ("size=9", "unknown")):
        before = len(world.events())
        plain = program.run(world, server.base + "/orders?" + query, 20, "", preload=False)
        server.reset()
        seen = program.run(world, server.base + "/orders?" + query, 20, "")
        assert (seen.status, seen.rc) == (plain.status, plain.rc)
        assert {e["outcome"] for e in world.events()[before:]} == {outcome}


@pytest.mark.san
def test_a_body_has_one_fingerprint_however_it_is_sent(audit, server):
    """In memory, read with a known size, read in chunks: what left is what is hashed."""
    body = '{"n":111}'
    name = audit.write("body.json", body)
    kind = ["-H", "Content-Type: application/json", "-X", "POST", server.base + "/orders/7"]
    audit.curl("-d", "@" + name, *kind)
    audit.curl("-T", name, *kind)
    audit.curl("-T", name, "-H", "Transfer-Encoding: chunked", *kind)
    audit.curl("-T", name, "-H", "Transfer-Encoding: chunked", "-H", "Expect:", *kind)
    assert [r.body for r in server.writes()] == [body.encode()] * 2 + [b"9\r\n" + body.encode() + b"\r\n0\r\n\r\n"] * 2
    assert len({e["fingerprint"] for e in audit.events()}) == 1
    audit.curl("-d", "other", *kind)
    assert len({e["fingerprint"] for e in audit.events()}) == 2


def test_a_form_has_the_same_fingerprint_twice(audit, server):
    for value in ("1", "1", "2"):
        audit.curl("-F", "a=" + value, server.base + "/orders/7")
    first, second, third = [e["fingerprint"] for e in audit.events()]
    assert first == second != third


def test_the_secret_file_names_the_hashes(audit, server, tmp_path):
    secret = audit.write("secret", "0123456789abcdef0123")
    audit.curl("-d", "n=1", server.base + "/orders/7")
    audit.curl("-d", "n=1", server.base + "/orders/7", SENDONCE_SECRET_FILE=secret)
    audit.curl("-d", "n=1", server.base + "/orders/7", SENDONCE_SECRET_FILE=audit.path("missing"))
    first, second, third = audit.events()
    assert first["fingerprint"] != second["fingerprint"] and "fingerprint" not in third
    assert server.executions == 3


@pytest.mark.san
def test_libcurls_own_resend_is_counted(audit, server):
    lines = audit.run([client("inplace"), server.base + "/orders/warm", "then=" + server.base + "/orders/new?die=1"])
    assert "then rc=0" in lines.out
    assert server.executions == 3, "warm, and the new one twice: audit only looks"
    warm, new = audit.events("write")
    assert warm["wire_sends"] == 1 and "reason" not in warm
    assert (new["wire_sends"], new["reason"], new["curlcode"]) == (2, "wire-resend", 0)


@pytest.mark.parametrize("words,spec", [(["-L"], "redirect=307&to=/orders/8"), (["--digest", "-u", "u:p"], "auth=digest")],
                         ids=["redirect", "digest"])
def test_what_an_answer_asks_for_is_no_resend(audit, server, words, spec):
    audit.curl(*words, "-d", "n=1", server.base + "/orders/7?" + spec)
    event, = audit.events()
    assert event["wire_sends"] == 2 and "reason" not in event


@pytest.mark.san
def test_a_retry_after_a_timeout_is_two_orders_and_two_events(audit, server):
    url = server.base + "/orders/7?late=1.5&times=1"
    first = audit.curl("-m", str(0.5 * SLOW), "-d", "n=1", url)
    second = audit.curl("-d", "n=1", url)
    assert (first.rc, second.status, server.executions) == (28, 201, 2)
    events = audit.events()
    assert [(e["outcome"], e["curlcode"]) for e in events] == [("unknown", 28), ("done", 0)]
    assert events[0]["fingerprint"] == events[1]["fingerprint"]


def test_nothing_that_listens_is_not_executed(audit):
    answer = audit.curl("-d", "n=1", "http://127.0.0.1:1/orders/7")
    event, = audit.events()
    assert answer.rc == 7 and (event["outcome"], event["wire_sends"]) == ("not-executed", 0)


# --- unlisted
@pytest.mark.parametrize("top", [{"mode": "audit"}, {"mode": "enforce", "unlisted": "audit"}])
def test_unlisted_writes_are_written_down_folded(world, server, top):
    """Mode audit wants them all: who audits may have no rules yet."""
    world.policy(top=top, **RULE)
    world.curl("-d", "n=1", server.base + "/hooks/12/abcdefghij0123456789?x=1")
    world.curl(server.base + "/free")
    event, = world.events("unlisted")
    assert (event["method"], event["path"], event["wire_sends"], event["status"]) == ("POST", "/hooks/{id}/{secret}", 1, 201)
    assert event["host"] == "127.0.0.1" and "operation" not in event and event["outcome"] == "done"
    assert sorted(event["parts"]) == ["n", "query"] and "abcdefghij" not in open(world.event_log).read()
    assert server.writes()[0].key is None
    world.curl("-d", "n=1", server.base + "/hooks/12/abcdefghij0123456789?x=1")
    world.curl("-d", "n=2", server.base + "/hooks/12/abcdefghij0123456789?x=1")
    world.curl("-T", world.write("body", "n=1"), "-H", "Content-Type: application/x-www-form-urlencoded", "-X", "POST",
               server.base + "/hooks/12/abcdefghij0123456789?x=1")
    identities = [e["identity"] for e in world.events("unlisted")]
    assert identities[0] == identities[1] == identities[3] != identities[2]


@pytest.mark.san
def test_the_parts_of_a_request_are_named_and_hashed_never_shown(audit, server):
    kind = ["-H", "Content-Type: application/json", server.base + "/orders/7?dry=0"]
    audit.curl("-d", '{"amount":500,"to":{"id":"customer-1"},"note":"please pay the second invoice"}', *kind)
    audit.curl("-d", '{"note":"kindly settle invoice number two", "to":{"id":"customer-1"}, "amount":5e2}', *kind)
    first, second = [e["parts"] for e in audit.events()]
    assert list(first) == ["query", "/amount", "/note", "/to/id"]
    assert {name: value[0] for name, value in first.items()} == {"query": "s", "/amount": "n", "/note": "t", "/to/id": "s"}
    assert {name for name in first if first[name] != second[name]} == {"/note"}
    assert all(re.fullmatch("[nsbtv][0-9a-f]{8}", value) for value in first.values())
    text = open(audit.event_log).read()
    assert "invoice" not in text and "customer" not in text


def test_data_in_the_place_of_a_name_is_not_shown(audit, server):
    """libcurl calls every body a form; a map may be keyed by what it holds."""
    for body in ("a sentence of some words", "anna@example.com=1", "Zm9vYmFyMTIzNDU2Nzg5MGZvb2Jhcg==", "4111111111111111=5"):
        audit.curl("-d", body, server.base + "/orders/7")
    audit.curl("--json", '{"anna@example.com":{"4111111111111111":1},"tok_live_abc123DEF456":2}', server.base + "/orders/7")
    assert [list(e["parts"]) for e in audit.events()] == [["{other}"], ["{other}"], ["{secret}"], ["{id}"], ["/{other}/{id}", "/{secret}"]]


def test_an_unlisted_write_that_leads_to_a_listed_one_is_still_stopped(world, server):
    world.policy(top={"unlisted": "audit"}, **RULE)
    answer = world.curl("-L", "-d", "n=1", server.base + "/free?redirect=307&to=/orders/8")
    assert answer.reason == "redirected-into-rule" and server.executions == 0
    event, = world.events("unlisted")
    assert event["wire_sends"] == 1
    world.policy(top={"mode": "audit", "unlisted": "audit"}, **RULE)
    assert world.curl("-L", "-d", "n=1", server.base + "/free?redirect=307&to=/orders/8").status == 201


def test_unlisted_writes_pass_in_silence_by_default(world, server):
    world.policy(**RULE)
    world.curl("-d", "n=1", server.base + "/free")
    assert world.events() == [] and server.executions == 1


# --- never in the way
@pytest.mark.san
def test_a_broken_policy_hinders_nothing(world, server):
    world.write("policy.yaml", "version: 1\nnonsense: 1\n")
    events = world.path("state/sendonce/ledger.events.jsonl")
    answer = world.curl("-d", "n=1", server.base + "/orders/7", SENDONCE_MODE="audit", XDG_STATE_HOME=world.path("state"))
    assert answer.status == 201 and server.writes()[0].key is None
    assert "policy-invalid" in open(events).read()
    refused = world.curl("-d", "n=1", server.base + "/orders/7")
    assert refused.status == 503


def test_a_ledger_that_cannot_be_used_hinders_nothing(world, server):
    world.policy(top={"mode": "audit"}, ledger={"path": world.path("missing/ledger")}, **RULE)
    assert world.curl("-d", "n=1", server.base + "/orders/7").status == 201
    assert len(world.events("write")) == 1 and not os.path.exists(world.path("missing"))


def test_the_environment_says_audit(world, server):
    world.policy(**RULE)
    for _ in range(2):
        assert not world.curl("-d", "n=1", server.base + "/orders/7", SENDONCE_MODE="audit").replayed
    assert server.executions == 2 and not os.path.exists(world.ledger)


def test_run_starts_it_without_a_ledger(world, server):
    world.policy(ledger={"path": world.path("missing/ledger")}, **RULE)
    result = world.cli("run", "--mode", "audit", "--", "curl", "-sS", "-d", "n=1", server.base + "/orders/7")
    assert result.rc == 0, result
    assert [e["mode"] for e in world.events("write")] == ["audit"]


@pytest.mark.san
def test_callbacks_of_the_program(audit, server):
    """Its own callbacks, a copy made in one of them, a jump out of another, a change in a third."""
    for words in (["verbose", "progress", "include"], ["dup", "verbose"], ["jump"], ["change"], ["reset"], ["nested"]):
        runs = []
        for preload in (False, True):
            server.reset()
            result = audit.run([client("inplace"), server.base + "/orders/7", *words], preload=preload)
            runs.append((result.rc, re.sub(r"req-\d+", "", result.out), result.err))
        assert runs[0] == runs[1], words
