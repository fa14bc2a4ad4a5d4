"""`sendonce explain` says what a program would get, and the program gets it."""
import json
import os
import re

import pytest

from harness import PROVIDER, build

ENV = {"SENDONCE_SCOPE": "tests", "SENDONCE_RUN": "run-1"}
JSON = ["-H", "Content-Type: application/json"]


def explain(world, *args, **env):
    result = world.cli("explain", "--json", *args, **dict(ENV, **env))
    assert result.rc == 0, result
    assert result.out.count("\n") == 1, "one object a line"
    return json.loads(result.out)


def diff(world, *args, **env):
    result = world.cli("explain", "--json", "--diff", *args, **dict(ENV, **env))
    said = json.loads(result.out)
    assert result.rc == (0 if said["relation"] == "same" else 1), result
    return said["relation"], sorted(d["name"] for d in said["differs"])


def parts(said, what="identity"):
    return {p["name"]: p["value"] for p in said[what]}


# --- what is said is what happens
@pytest.mark.san
def test_the_key_is_the_one_that_is_sent(world, server):
    world.policy(provider=PROVIDER)
    assert world.cli("run", "--", "true").rc == 0  # makes the ledger, and so its secret
    request = ["-d", '{"amount":5}', *JSON, server.base + "/orders"]
    said = explain(world, *request)
    assert (said["verdict"], said["record"], said["key"]["source"]) == ("execute", None, "derived")
    assert world.records() == [], "explaining writes nothing"
    assert world.curl(*request).status == 201
    assert server.keys() == [said["key"]["value"]]
    record, = world.records()
    assert record["content"] == said["content"]


def test_done_is_replayed_and_another_run_is_a_new_write(world, server):
    request = ["-d", "x", server.base + "/orders"]
    assert world.curl(*request).status == 201
    said = explain(world, *request)
    assert (said["verdict"], said["record"]["state"]) == ("replay", "done")
    assert world.curl(*request).replayed
    other = explain(world, *request, SENDONCE_RUN="run-2")
    assert (other["verdict"], other["key"]["generation"]) == ("execute", 2)
    assert world.curl(*request, run="run-2").status == 201
    assert server.keys()[1] == other["key"]["value"] != server.keys()[0]


def test_a_doubt_is_refused_with_the_text_of_the_refusal(world, server):
    request = ["-d", "x", server.base + "/orders?cut=1"]
    assert world.curl(*request).rc != 0
    said = explain(world, *request)
    assert (said["verdict"], said["reason"]) == ("refuse", "unknown-outcome")
    assert said["record"]["in_doubt"] is True and "unknown" in said["text"]
    answer = world.curl(*request)
    assert answer.rc != 0 or answer.reason == "unknown-outcome"


def test_a_doubt_at_a_provider_that_deduplicates_is_sent_again(world, server):
    world.policy(provider=PROVIDER)
    request = ["-d", "x", server.base + "/orders?cut=1"]
    assert world.curl(*request).rc != 0
    said = explain(world, *request)
    assert (said["verdict"], said["key"]["source"]) == ("resend", "the record's")
    assert said["key"]["value"] == server.keys()[0]


def test_the_program_s_own_key(world, server):
    request = ["-d", "x", "-H", "Idempotency-Key: mine-1", server.base + "/orders"]
    world.cli("run", "--", "true")
    said = explain(world, *request)
    assert said["key"] == {"carrier": "header:Idempotency-Key", "value": "mine-1", "source": "the program's own", "generation": 1}
    assert "header.idempotency-key" not in parts(said)
    assert explain(world, "-d", "x", "-H", "Idempotency-Key: " + "k" * 300, server.base + "/orders")["reason"] == "key-invalid"


@pytest.mark.parametrize("body, reason", [('{"a":1}', None), ("[1]", "key-invalid"), ("no json", "key-invalid"), ('{"k":7}', "key-invalid")])
def test_a_body_without_a_place_for_the_key(world, server, body, reason):
    world.policy(provider=PROVIDER, key={"carrier": "json:/k"})
    request = ["-d", body, *JSON, server.base + "/orders"]
    said = explain(world, *request)
    assert (said["verdict"], said["reason"]) == (("refuse", reason) if reason else ("execute", None))
    assert world.curl(*request).reason == reason


@pytest.mark.parametrize("mode", ["off", "audit", "inject"])
def test_modes_that_never_refuse(world, server, mode):
    for own in ([], ["-H", "Idempotency-Key: " + "k" * 300]):
        said = explain(world, "-d", "x", *own, server.base + "/orders", SENDONCE_MODE=mode)
        assert said["verdict"] == "pass" and said["mode"] == mode


def test_mode_replay(world, server):
    request = ["-d", "x", server.base + "/orders"]
    for reason in ("ledger-unavailable", "replay-miss"):
        said = explain(world, *request, SENDONCE_MODE="replay")
        assert (said["verdict"], said["reason"]) == ("refuse", reason)
        assert world.curl(*request, SENDONCE_MODE="replay").reason == reason
        assert world.cli("run", "--", "true").rc == 0
    assert world.curl(*request).status == 201
    assert explain(world, *request, SENDONCE_MODE="replay", SENDONCE_RUN="other")["verdict"] == "replay"
    for args, verdict in ((["-d", "x", "http://h/unlisted"], "refuse"), (["http://h/unlisted"], "pass")):
        assert explain(world, *args, SENDONCE_MODE="replay")["verdict"] == verdict
    world.policy(top={"replay_reads": "refuse"})
    assert explain(world, "http://h/unlisted", SENDONCE_MODE="replay")["verdict"] == "refuse"


def test_names_from_headers(world, server):
    world.policy(top={"scope": {"from": "header:X-Tenant", "strip": True}, "step": {"from": "header:X-Step"}}, match="POST https://h/p")
    one = ["-d", "x", "-H", "X-Tenant: acme", "-H", "X-Step: pay", "https://h/p"]
    said = explain(world, *one)
    assert (said["scope"], said["step"]) == ("acme", "pay")
    relation, differs = diff(world, *one, "--next", "-d", "x", "-H", "X-Tenant: other", "https://h/p")
    assert relation == "different" and {"scope", "step"} <= set(differs)


def test_too_large(world, server):
    world.policy(max_request=10)
    assert explain(world, "-d", "x" * 11, server.base + "/orders")["reason"] == "body-too-large"
    world.policy(max_request=10, oversize="pass")
    assert explain(world, "-d", "x" * 11, server.base + "/orders")["verdict"] == "pass"


def test_without_a_ledger_there_is_no_key_yet(world, server):
    said = explain(world, "-d", "x", server.base + "/orders")
    assert said["verdict"] == "execute" and said["key"]["value"] is None
    assert not os.path.exists(world.ledger)
    secret = world.write("secret", "0123456789abcdef0123456789abcdef")
    said = explain(world, "-d", "x", server.base + "/orders", SENDONCE_SECRET_FILE=secret)
    assert world.curl("-d", "x", server.base + "/orders", SENDONCE_SECRET_FILE=secret).status == 201
    assert server.keys() == [said["key"]["value"]]


def test_a_ledger_that_cannot_be_used(world, server):
    world.write("ledger", "something else " * 1000)
    os.chmod(world.ledger, 0o600)
    said = explain(world, "-d", "x", server.base + "/orders")
    assert said["reason"] == "ledger-unavailable" and world.ledger in said["text"]


# --- rules
RULES = """version: 1
ledger: {path: %s}
writes:
  - operation: first
    match: POST https://a.example.com/v1/things
    when: {json: {/method: tools/call}}
  - operation: second
    match: POST,PUT https://*.example.com/v1/things
  - operation: third
    match: POST https://a.example.com:8443/v1/**
"""


def rules(world):
    world.write("policy.yaml", RULES % world.ledger)
    return world


@pytest.mark.parametrize("args, rule, others", [
    (["-d", '{"method":"tools/call"}', *JSON, "https://a.example.com/v1/things"], "first", {"second": "", "third": "port"}),
    (["-d", '{"method":"tools/list"}', *JSON, "https://a.example.com/v1/things"], "second", {"first": "when", "third": "port"}),
    (["-X", "PUT", "https://b.example.com/v1/things"], "second", {"first": "method, host", "third": "method, host, port"}),
    (["-d", "x", "https://a.example.com:8443/v1/other"], "third", {"first": "port, path", "second": "port, path"}),
    (["http://a.example.com/v1/things"], None, {"first": "method, scheme", "second": "method, scheme", "third": "method, scheme, port"}),
], ids=["first", "when", "put", "port", "none"])
def test_why_the_others_do_not_match(world, args, rule, others):
    said = explain(rules(world), *args)
    assert (said["rule"] or {}).get("operation") == rule
    assert {o["operation"]: o["differs"] for o in said["others"]} == others
    if rule is None:
        assert said["verdict"] == "pass"


def test_when_looks_at_an_uploaded_file_too(world):
    rules(world)
    body = world.write("body", '{"method":"tools/list"}')
    said = explain(world, "-X", "POST", "-T", body, *JSON, "https://a.example.com/v1/things")
    assert said["rule"]["operation"] == "second"


@pytest.mark.parametrize("unlisted, verdict", [("pass", "pass"), ("audit", "pass"), ("refuse", "refuse")])
def test_what_no_rule_names(world, server, unlisted, verdict):
    world.policy(top={"unlisted": unlisted}, match="POST https://h/p")
    for args, expected in ((["-d", "x", server.base + "/orders"], verdict), ([server.base + "/orders"], "pass")):
        said = explain(world, *args)
        assert (said["rule"], said["verdict"], said["reason"]) == (None, expected, "unlisted" if expected == "refuse" else None)
    assert (world.curl("-d", "x", server.base + "/orders").reason == "unlisted") == (verdict == "refuse")


# --- the parts
def test_parts_of_json_as_they_are_hashed(world):
    world.policy(match="POST https://h/p", identity={"ignore": ["/ts", "query:_"], "must_match": ["/note"]})
    said = explain(world, "-d", '{"n": 1.50, "ts": 3, "s": "\\u0061", "l": [true, {"x": null}], "note": "hi", "e": {}}', *JSON,
                   "-H", "X-Tenant-Id: 7", "https://h:443/p?b=2&a=1&_=9")
    assert parts(said) == {"method": "POST", "target.scheme": "https", "target.host": "h", "target.port": "443", "path": "/p",
                           "query.a": "1", "query.b": "2", "content-type": "application/json", "header.x-tenant-id": "7",
                           "body/n": "15e-1", "body/s": '"a"', "body/l/0": "true", "body/l/1/x": "null", "body/note": '"hi"',
                           "body/e": "{}"}
    assert parts(said, "must_match") == {"body/note": '"hi"'}


def test_chosen_fields(world):
    world.policy(match="POST https://h/p", identity={"fields": ["/a", "/gone"]})
    said = parts(explain(world, "-d", '{"a":{"b":2},"c":3}', *JSON, "https://h/p"))
    assert said["body/a/b"] == "2" and said["body/gone"] == "(absent)" and "body/c" not in said


def test_forms_and_raw_bodies(world):
    world.policy(match="POST https://h/p")
    said = parts(explain(world, "-d", "b=2&a=%20x&c", "https://h/p"))
    assert (said["form.a"], said["form.b"], said["form.c"]) == (" x", "2", "(no value)")
    said = parts(explain(world, "--data-binary", "<xml/>", "-H", "Content-Type: text/xml", "https://h/p"))
    assert re.fullmatch("6 bytes, hmac:[0-9a-f]{16}", said["body"])
    said = explain(world, "-F", "a=1", "-F", "b=2", "https://h/p")
    assert [p["value"][:9] for p in said["identity"] if p["name"] == "form part"] == ["45 bytes,"] * 2
    assert parts(explain(world, "-X", "POST", "https://h/p"))["body"] == "(none)"


def test_what_is_no_text_is_not_printed_as_it_is(world):
    """A value with an escape sequence, a NUL or bytes that are no UTF-8: the terminal and the JSON stay whole."""
    world.policy(match="POST https://h/p")
    body = "a=%1b%5b31m&b=%00x&c=%ff&d%1b=1"
    said = parts(explain(world, "-d", body, "https://h/p"))
    assert re.fullmatch("5 bytes, hmac:[0-9a-f]{16}", said["form.a"]) and re.fullmatch("2 bytes, hmac:[0-9a-f]{16}", said["form.b"])
    assert said["form.c"] == "\ufffd" and "\x1b" in "".join(said)
    plain = world.run([os.path.join(build(), "sendonce"), "explain", "-d", body, "https://h/p"], preload=False, text=False,
                      SENDONCE_POLICY=world.policy_file, SENDONCE_LEDGER=world.ledger)
    assert plain.rc == 0 and b"\x1b" not in plain.out and b"\0" not in plain.out
    assert diff(world, "-d", "b=%00x", "https://h/p", "--next", "-d", "b=%00y", "https://h/p") == ("different", ["form.b"])


SECRETS = ["hunter2", "sk_live_9", "c2Vzc2lvbg", "4242424242", "tok-77"]


def test_no_secret_is_shown(world):
    for account in ({"account": "auto"}, {"account": ["header:X-Team", "env:TEAM"]}):
        world.policy(match="POST https://h/p", identity=account)
        for args in (["-u", "me:hunter2"], ["-H", "Authorization: Bearer sk_live_9"], ["--oauth2-bearer", "sk_live_9"], ["-b", "s=c2Vzc2lvbg"],
                     ["-H", "X-Api-Key: sk_live_9"], ["-H", "X-Team: tok-77"], []):
            for data in ('{"card":{"number":"4242424242"},"password":"hunter2"}', "card%5Bnumber%5D=4242424242&client_secret=hunter2"):
                kind = JSON if data[0] == "{" else []
                for form in (["--json"], []):
                    out = world.cli("explain", *form, *args, "-d", data, *kind, "https://h/p?access_token=tok-77", TEAM="tok-77", **ENV).out
                    assert out and not [s for s in SECRETS if s in out], out


def test_no_credential_of_a_path_or_a_short_name_is_shown(world):
    world.policy(match="POST https://h/**")
    urls = {"https://h/services/T01/B01/abcdEFGHijklMNOP1234": "abcdEFGH", "https://h/bot12345:ABC-DEF1234ghIkl/send": "ABC-DEF",
            "https://h/blob?sig=c2lnbmF0&sv=2": "c2lnbmF0"}
    for url, secret in urls.items():
        for form in (["--json"], []):
            out = world.cli("explain", *form, "-d", '{"card":"4242424242","x":{"pwd":"hunter2"},"n":1}', *JSON, url, **ENV).out
            assert out and not [s for s in [*SECRETS, secret] if s in out], out
    first, second = "https://h/a/abcdEFGHijklMNOP1234", "https://h/a/abcdEFGHijklMNOP1235"
    assert diff(world, "-d", "x", first, "--next", "-d", "x", second) == ("different", ["path"])
    assert diff(world, "-d", "x", first, "--next", "-d", "x", first) == ("same", [])


def test_whose_account(world):
    def account(*args, **env):
        said = explain(world, *args, "-d", "x", "https://h/p", **env)
        return [(a["name"], a["value"].split(":")[0]) for a in said["account"]], said["account_opaque"]
    world.policy(match="POST https://h/p")
    assert account("-u", "a:b") == ([("user and password", "hmac")], False)
    assert account("-H", "Authorization: Bearer x") == ([("a credential, whole", "hmac")], True)
    assert account() == ([], False)
    netrc = world.write("netrc", "machine h login me password pw\n")
    assert account("--netrc-file", netrc, "-n") == ([("user and password", "hmac")], False)
    world.policy(match="POST https://h/p", identity={"account": ["header:X-Team", "env:TEAM"]})
    assert account("-H", "X-Team: 1") == ([("header x-team", "hmac"), ("variable TEAM", "(absent)")], False)
    assert account(TEAM="t") == ([("header x-team", "(absent)"), ("variable TEAM", "hmac")], False)
    world.policy(match="POST https://h/p", identity={"account": "none"})
    assert account("-u", "a:b") == ([], False)


# --- two requests
@pytest.mark.parametrize("first, second, relation, differs", [
    (["-d", '{"a":1,"b":2}'], ["-d", '{ "b": 2.0, "a": 1e0 }'], "same", []),
    (["-d", '{"a":9007199254740992}'], ["-d", '{"a":9007199254740993}'], "different", ["body/a"]),
    (["-d", '{"a":null}'], ["-d", "{}"], "different", ["body", "body/a"]),
    (["-d", '{"a":[1,2]}'], ["-d", '{"a":[2,1]}'], "different", ["body/a/0", "body/a/1"]),
    (["-d", '{"a":1}', "-u", "a:b"], ["-d", '{"a":1}', "-u", "a:c"], "different", ["user and password"]),
    (["-d", '{"a":1}', "-H", "X-Org-Account: 1"], ["-d", '{"a":1}'], "different", ["header.x-org-account"]),
    (["-d", '{"a":1,"note":1}'], ["-d", '{"a":1,"note":2}'], "conflict", ["body/note"]),
    (["-d", '{"a":1}', "-H", "Idempotency-Key: k1"], ["-d", '{"a":1}', "-H", "Idempotency-Key: k2"],
     "same content, another own key", ["the program's own key"]),
], ids=["spelling", "big", "null", "order", "account", "header", "must-match", "own-key"])
def test_diff(world, first, second, relation, differs):
    world.policy(match="POST https://h/p", identity={"must_match": ["/note"], "ignore": ["/note"]})
    assert diff(world, *first, *JSON, "https://h/p", "--next", *second, *JSON, "https://h/p") == (relation, differs)


def test_diff_of_pasted_curl_commands(world):
    world.policy(match="POST https://h/p")
    assert diff(world, "--", "curl", "https://h/p", "-d", "a=1", "--next", "/usr/bin/curl", "-sS", "https://h/p", "-da=1") == ("same", [])
    result = world.cli("explain", "--diff", "-d", "a=1", "https://h/p", "--next", "-d", "a=2", "https://h/p", **ENV)
    assert result.rc == 1 and "form.a" in result.out and "1 | 2" in result.out
    assert diff(world, "-d", "a", "https://h/p", "--next", "-d", "a", "https://other/p")[0] == "not both are writes of the policy"


# --- curl's own way to write a request
@pytest.mark.parametrize("args", [
    ["-d", "a=1", "-d", "b=2"], ["-da=1", "-db=2"], ["--data", "a=1&b=2"], ["--data-raw", "a=1&b=2"], ["-sSXPOST", "-d", "a=1&b=2"],
    ["--data-urlencode", "a=1", "--data-urlencode", "b=2"], ["-d", "@data"], ["--data-binary", "@data2"],
    ["-m", "3", "-o/dev/null", "--retry", "2", "-d", "a=1&b=2", "-k"],
], ids=" ".join)
def test_ways_to_write_one_request(world, args):
    world.policy(match="POST https://h/p")
    world.write("data", "a=1&\r\nb=2\n")
    world.write("data2", "a=1&b=2")
    assert diff(world, "-d", "a=1&b=2", "https://h/p", "--next", *args, "https://h/p") == ("same", [])


def test_what_curl_would_do_with_it(world):
    world.policy(match="POST,PUT,GET https://h/**")
    world.write("file", "text")
    assert explain(world, "-G", "-d", "a=1", "https://h/p?b=2")["method"] == "GET"
    assert parts(explain(world, "-G", "-d", "a=1", "https://h/p?b=2"))["query.a"] == "1"
    said = explain(world, "-T", "file", "https://h/p/")
    assert (said["method"], said["path"]) == ("PUT", "/p/file")
    said = parts(explain(world, "--", "--json", '{"a":1}', "https://h/p"))
    assert said["body/a"] == "1" and said["content-type"] == "application/json"
    assert explain(world, "-I", "https://h/p")["method"] == "HEAD"


@pytest.mark.parametrize("args, word", [
    ([], "give a request"), (["--"], "give a request"), (["-d", "x"], "no URL"), (["--frobnicate", "https://h/p"], "--frobnicate"),
    (["-Q", "x", "https://h/p"], "-Q"), (["https://h/p", "-d"], "needs a value"), (["https://h/p", "https://h/q"], "second URL"),
    (["-d", "@missing", "https://h/p"], "missing"), (["ftp://h/p"], "ftp://h/p"), (["-H", "@f", "https://h/p"], "@f"),
    (["-F", "x", "https://h/p"], "name=content"), (["https://h/p", "--next", "https://h/p"], "--diff"),
    (["--diff", "https://h/p"], "--next"), (["--policy"], "--policy"), (["-b", "jar", "https://h/p"], "jar"),
], ids=lambda x: " ".join(x) if isinstance(x, list) else None)
def test_bad_usage(world, args, word):
    result = world.cli("explain", *args, **ENV)
    assert result.rc == 2 and result.out == "" and word in result.err, result


def test_a_policy_that_cannot_be_used(world):
    broken = world.write("broken.yaml", "version: 1\nmdoe: off\n")
    result = world.cli("explain", "--policy", broken, "https://h/p")
    assert result.rc == 3 and "broken.yaml:2:1" in result.err
    result = world.cli("explain", "--policy", world.path("missing"), "https://h/p")
    assert result.rc == 3 and "missing" in result.err


def test_for_people(world, server):
    world.cli("run", "--", "true")
    out = world.cli("explain", "-d", "a=1", server.base + "/orders", **ENV).out
    for line in ("request   POST http://127.0.0.1:", "rule      orders.create (line ", "scope     tests", "run       run-1",
                 "  form.a ", "in header:Idempotency-Key", "record    none", "verdict   execute: "):
        assert line in out, out
