"""The duplicate report: suites that know nothing of sendonce, with duplicates planted in them, run under audit."""
import json
import os
import re
import sys
import time
import xml.etree.ElementTree as ElementTree

import pytest

from harness import SLOW, build, have

KINDS = ("duplicate", "wire-duplicate", "near-duplicate", "conflict", "fresh-key", "unknown", "unprotected")

# Each suite: three distinct orders and a read; then a retry after a lost answer, a repeat after an answer, a charge in
# other words, one key for two orders, two keys for one order, an order that stays in doubt, and libcurl's own resend.
PLANTED = {"duplicate": 2, "wire-duplicate": 1, "near-duplicate": 1, "conflict": 1, "fresh-key": 1, "unknown": 1}
WRITES = 3 + 2 + 2 + 2 + 2 + 2 + 1 + 2

PYTEST = '''
import io, json, os, pycurl

BASE = os.environ["BASE"]


def send(path, body=None, key=None, handle=None):
    c, out = handle or pycurl.Curl(), io.BytesIO()
    c.setopt(c.URL, BASE + path)
    c.setopt(c.WRITEFUNCTION, out.write)
    headers = ["Content-Type: application/json"] + (["Idempotency-Key: " + key] if key else [])
    c.setopt(c.HTTPHEADER, headers)
    if body is not None:
        c.setopt(c.POSTFIELDS, json.dumps(body))
    else:
        c.setopt(c.HTTPGET, 1)
    try:
        c.perform()
    except pycurl.error as e:
        return e.args[0]
    return c.getinfo(c.RESPONSE_CODE)


def test_distinct_orders():
    for n in (1, 2, 3):
        assert send("/orders", {"amount": n, "to": "c1", "note": "please deliver it before noon"}) == 201
    assert send("/orders") == 200 and send("/orders") == 200


def test_a_retry():
    assert send("/orders?cut=1&times=1", {"amount": 10}) == 52
    assert send("/orders?cut=1&times=1", {"amount": 10}) == 201


def test_a_repeat():
    assert [send("/orders", {"amount": 20}) for _ in "ab"] == [201, 201]


def test_an_agent_that_rewrote_its_words():
    assert send("/orders", {"amount": 30, "to": "c9", "note": "payment of the invoice for May"}) == 201
    assert send("/orders", {"amount": 30, "to": "c9", "note": "we hereby settle what was due in May"}) == 201


def test_one_key_for_two_orders():
    assert send("/orders", {"amount": 40}, key="key-one-0001") == 201
    assert send("/orders", {"amount": 41}, key="key-one-0001") == 201


def test_two_keys_for_one_order():
    assert send("/orders", {"amount": 50}, key="key-two-0001") == 201
    assert send("/orders", {"amount": 50}, key="key-two-0002") == 201


def test_a_doubt():
    assert send("/orders?cut=1", {"amount": 60}) == 52


def test_a_connection_that_dies():
    c = pycurl.Curl()
    assert send("/orders/warm", {"amount": 70}, handle=c) == 201
    assert send("/orders?die=1", {"amount": 71}, handle=c) == 201
'''

PHP = r'''<?php
$base = getenv("BASE");
function send($path, $body = null, $key = null, $c = null) {
    global $base;
    $c = $c ?? curl_init();
    curl_setopt($c, CURLOPT_URL, $base . $path);
    curl_setopt($c, CURLOPT_RETURNTRANSFER, true);
    curl_setopt($c, CURLOPT_HTTPHEADER, array_merge(["Content-Type: application/json"], $key ? ["Idempotency-Key: $key"] : []));
    if ($body === null) curl_setopt($c, CURLOPT_HTTPGET, true); else curl_setopt($c, CURLOPT_POSTFIELDS, json_encode($body));
    return curl_exec($c) === false ? curl_errno($c) : curl_getinfo($c, CURLINFO_RESPONSE_CODE);
}
function check($wanted, ...$got) { foreach ($got as $g) if ($g !== $wanted) { fwrite(STDERR, "wanted $wanted, got $g\n"); exit(9); } }
foreach ([1, 2, 3] as $n) check(201, send("/orders", ["amount" => $n, "to" => "c1", "note" => "please deliver it before noon"]));
check(200, send("/orders"), send("/orders"));
check(52, send("/orders?cut=1&times=1", ["amount" => 10]));
check(201, send("/orders?cut=1&times=1", ["amount" => 10]));
check(201, send("/orders", ["amount" => 20]), send("/orders", ["amount" => 20]));
check(201, send("/orders", ["amount" => 30, "to" => "c9", "note" => "payment of the invoice for May"]));
check(201, send("/orders", ["amount" => 30, "to" => "c9", "note" => "we hereby settle what was due in May"]));
check(201, send("/orders", ["amount" => 40], "key-one-0001"), send("/orders", ["amount" => 41], "key-one-0001"));
check(201, send("/orders", ["amount" => 50], "key-two-0001"), send("/orders", ["amount" => 50], "key-two-0002"));
check(52, send("/orders?cut=1", ["amount" => 60]));
$c = curl_init();
check(201, send("/orders/warm", ["amount" => 70], null, $c), send("/orders?die=1", ["amount" => 71], null, $c));
'''

BATS = r'''
send() { path=$1 body=$2; shift 2; curl -q -sS -o /dev/null -w '%{http_code}' "$@" --json "$body" "$BASE$path"; }
@test "distinct orders" {
  for n in 1 2 3; do run send /orders '{"amount":'$n',"to":"c1","note":"please deliver it before noon"}'; [ "$output" = 201 ]; done
  run curl -q -sS -o /dev/null -w '%{http_code}' "$BASE/orders"; [ "$output" = 200 ]
}
@test "a retry" {
  run send '/orders?cut=1&times=1' '{"amount":10}'; [ "$status" = 52 ]
  run send '/orders?cut=1&times=1' '{"amount":10}'; [ "$output" = 201 ]
}
@test "a repeat" {
  for n in 1 2; do run send /orders '{"amount":20}'; [ "$output" = 201 ]; done
}
@test "other words" {
  run send /orders '{"amount":30,"to":"c9","note":"payment of the invoice for May"}'; [ "$output" = 201 ]
  run send /orders '{"amount":30,"to":"c9","note":"we hereby settle what was due in May"}'; [ "$output" = 201 ]
}
@test "one key for two orders" {
  for n in 40 41; do run send /orders '{"amount":'$n'}' -H 'Idempotency-Key: key-one-0001'; [ "$output" = 201 ]; done
}
@test "two keys for one order" {
  for n in 1 2; do run send /orders '{"amount":50}' -H "Idempotency-Key: key-two-000$n"; [ "$output" = 201 ]; done
}
@test "a doubt" {
  run send '/orders?cut=1' '{"amount":60}'; [ "$status" = 52 ]
}
@test "a connection that dies" {
  run curl -q -sS -o /dev/null --json '{"amount":70}' "$BASE/orders/warm" --next -q -sS -o /dev/null -w '%{http_code}' --json '{"amount":71}' "$BASE/orders?die=1"
  [ "$output" = 201 ]
}
'''

SUITES = {
    "pytest": ("test_orders.py", PYTEST, [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]),
    "php": ("orders.php", PHP, ["php", "-n", "-d", "extension=curl"]),
    "bats": ("orders.bats", BATS, ["bats"]),
}


def audited(world, *argv, **env):
    """Runs a command under `sendonce run`, as a user would."""
    env.setdefault("SENDONCE_POLICY", world.policy_file)
    return world.run([os.path.join(build(), "sendonce"), "run", *argv], preload=False, timeout=120, **env)


def suite(world, server, name, *options):
    file, text, argv = SUITES[name]
    if not have(argv[0]):
        pytest.skip("no %s" % argv[0])
    return audited(world, *options, "--", *argv, world.write(file, text), BASE=server.base)


def found(report):
    return {kind: report["summary"][kind] for kind in KINDS if report["summary"][kind]}


@pytest.fixture
def audit(world):
    return world.policy(top={"mode": "audit", "scope": "tests"}, match="POST http://127.0.0.1:*/orders/**")


@pytest.mark.parametrize("name", SUITES)
def test_exactly_what_was_planted_is_found(audit, server, name):
    result = suite(audit, server, name, "--report", audit.path("report.json"))
    assert result.rc == 0, result
    with open(audit.path("report.json")) as f:
        report = json.load(f)
    assert found(report) == PLANTED, json.dumps(report, indent=1)
    assert report["summary"]["writes"] == WRITES and report["summary"]["wire_sends"] == len(server.writes())
    causes = sorted(a["cause"].split(":")[0] for g in report["groups"] for a in g["attempts"] if "duplicate" in a["found"])
    assert causes == ["repeat", "retry"]
    near, = [g for g in report["groups"] if g["found"] == ["near-duplicate"]]
    assert near["differs"] == "/note" and len(near["attempts"]) == 2
    assert "invoice" not in open(audit.event_log).read()


def test_without_a_policy_all_writes_are_compared(world, server):
    """Who audits first has no rules yet."""
    state = world.path("state")
    result = audited(
        world, "--mode", "audit", "--report", world.path("report.json"), "--", "sh", "-c",
        'for n in 1 1 2; do curl -q -sS -o /dev/null -d n=$n "$0/orders/777?a=1"; done; curl -q -sS -o /dev/null "$0/orders"', server.base,
        SENDONCE_POLICY=None, XDG_STATE_HOME=state)
    assert result.rc == 0, result
    report = json.load(open(world.path("report.json")))
    assert found(report) == {"duplicate": 1} and report["summary"]["writes"] == 3
    assert report["operations"][0]["operation"] == "POST 127.0.0.1/orders/{id}" and not report["operations"][0]["listed"]


# --- the forms of the report
def test_the_streams_are_the_command_s_own_and_the_summary_has_three_lines(audit, server):
    script = 'echo out; echo err >&2; curl -q -sS -o /dev/null -d n=1 "$0/orders"; exit %d'
    for options in ([], ["--summary"]):
        result = audited(audit, *options, "--", "sh", "-c", script % 0, server.base)
        lines = result.err.splitlines()
        assert result.rc == 0 and result.out == "out\n" and lines[0] == "err", result
        assert len(lines) == (4 if options else 1) and all(line.startswith("sendonce: ") for line in lines[1:])
    assert audited(audit, "--summary", "--", "sh", "-c", script % 7, server.base).rc == 7
    assert audited(audit, "--summary", "--", "sh", "-c", "kill -TERM $$").rc == -15
    assert audited(audit, "--summary", "--", "/nonexistent").rc == 127


def test_only_what_the_command_added_is_reported(audit, server):
    twice = ["sh", "-c", 'for n in 1 2; do curl -q -sS -o /dev/null -d same=1 "$0/orders"; done', server.base]
    assert audited(audit, "--", *twice).rc == 0
    result = audited(audit, "--report", audit.path("r.json"), "--", "sh", "-c", 'curl -q -sS -o /dev/null -d other=1 "$0/orders"', server.base)
    assert result.rc == 0 and json.load(open(audit.path("r.json")))["summary"]["writes"] == 1
    assert json.loads(audit.cli("report", "--json").out)["summary"]["writes"] == 3


TWICE = 'for n in 1 2; do curl -q -sS -o /dev/null -d same=1 -H "X-Run: other" "$0/orders"; %s done'


def test_a_log_that_is_rotated_meanwhile_is_read_on_both_sides(audit, server):
    """Renamed between the two writes, once beginning with no log and once in the middle of one."""
    log = audit.event_log
    for n in range(2):
        result = audited(audit, "--fail-on", "duplicate", "--summary", "--", "sh", "-c", TWICE % "[ $n = 2 ] || mv $1 $1.$2;", server.base, log, str(n))
        assert result.rc == 1 and "sendonce: duplicate 1\n" in result.err, (n, result)
        audit.write(log, "")


@pytest.mark.parametrize("run", ["fixed", {"from": "header:X-Run"}], ids=["fixed", "header"])
def test_a_policy_that_names_the_run_itself_hides_nothing(audit, server, run):
    audit.policy(top={"mode": "audit", "run": run}, match="POST http://127.0.0.1:*/orders/**")
    result = audited(audit, "--run", "new", "--fail-on", "duplicate", "--summary", "--", "sh", "-c", TWICE % "", server.base)
    assert result.rc == 1 and "sendonce: duplicate 1\n" in result.err, result


def test_lines_of_other_runs_are_told(audit, server):
    other = 'SENDONCE_RUN=%s curl -q -sS -o /dev/null -d same=1 "$0/orders";'
    result = audited(audit, "--run", "mine", "--summary", "--", "sh", "-c", other % "mine" + other % "other", server.base)
    assert result.rc == 0 and "1 writes" in result.err and ", 1 lines of other runs left out" in result.err, result


@pytest.mark.parametrize("kind", ["link", "folder", "nowhere"])
def test_a_log_that_cannot_be_written_is_told_before_anything_runs(audit, kind):
    """Else the report would find nothing, and say so."""
    log = audit.path("log")
    if kind == "link":
        os.symlink(audit.path("elsewhere"), log)
    elif kind == "folder":
        os.mkdir(log)
    else:
        log = audit.path("gone/log")
    audit.policy(top={"mode": "audit", "events": log}, match="POST http://127.0.0.1:*/orders/**")
    result = audited(audit, "--summary", "--", "touch", audit.path("ran"))
    assert result.rc == 3 and log in result.err and not os.path.exists(audit.path("ran")), result


def test_a_log_that_fills_up_is_no_all_clear(audit, server):
    """Audit opens no ledger that could count what is lost, so `run` looks whether there is room at the end."""
    audit.policy(top={"mode": "audit", "events": "/mnt/log"}, match="POST http://127.0.0.1:*/orders/**")
    run = [os.path.join(build(), "sendonce"), "run", "--summary", "--", "sh", "-c"]
    many = 'for n in $(seq 15); do curl -q -sS -o /dev/null -d n=$n "$0/orders"; done; '
    for fill, rc in (("dd if=/dev/zero of=/mnt/fill 2>/dev/null; ", 3), ("", 0)):
        argv = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64k tmpfs /mnt || exit 99; exec "$@"', "sh",
                *run, fill + many + "true", server.base]
        result = audit.run(argv, preload=False, SENDONCE_POLICY=audit.policy_file)
        if result.rc == 99 or "unshare failed" in result.err:
            pytest.skip("no mount here")
        assert result.rc == rc and ("may be missing" in result.err) == (rc == 3), result


@pytest.mark.parametrize("fail_on, rc", [("duplicate", 1), ("wire-duplicate", 0), ("wire-duplicate,duplicate", 1), ("unknown", 0)])
def test_fail_on(audit, server, fail_on, rc):
    twice = ["sh", "-c", 'for n in 1 2; do curl -q -sS -o /dev/null -d same=1 "$0/orders"; done', server.base]
    assert audited(audit, "--summary", "--fail-on", fail_on, "--", *twice).rc == rc
    assert audit.cli("report", "--fail-on", fail_on).rc == rc
    assert audited(audit, "--fail-on", fail_on, "--", "sh", "-c", "exit 5").rc == 5


@pytest.mark.parametrize("args", [["report", "--fail-on", "nonsense"], ["report", "--fail-on", ","], ["report", "--json", "--html"],
                                  ["report", "--compare", "one"], ["report", "--compare", "--json", "a", "b"], ["events", "--exec", "x"],
                                  ["stats", "--json", "--prometheus"]], ids=" ".join)
def test_bad_usage(world, args):
    result = world.policy().cli(*args)
    assert result.rc == 2 and result.out == "" and "sendonce %s --help" % args[0] in result.err


def test_files_that_cannot_be_used(audit):
    for args in (["report"], ["report", "/nonexistent"], ["report", "/"]):
        result = audit.cli(*args)
        assert result.rc == 3 and result.out == "" and result.err.startswith("sendonce report: /"), result
    result = audited(audit, "--report", "/nonexistent/r.html", "--", "touch", audit.path("ran"))
    assert result.rc == 3 and "/nonexistent/r.html" in result.err and not os.path.exists(audit.path("ran"))


def planted_log(audit, server):
    assert suite(audit, server, "bats").rc == 0
    return audit.event_log


def test_junit(audit, server):
    planted_log(audit, server)
    result = audit.cli("report", "--junit")
    root = ElementTree.fromstring(result.out)
    assert root.tag == "testsuites" and [x.tag for x in root] == ["testsuite"]
    suite_ = root[0]
    # required by windyroad's JUnit.xsd and known to Jenkins' junit-10.xsd, in this order
    assert set(suite_.attrib) == {"name", "tests", "failures", "errors", "skipped", "time", "package", "id", "timestamp", "hostname"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite_.get("timestamp")) and suite_.get("hostname")
    assert [x.tag for x in suite_] == ["properties", "testcase", "system-out", "system-err"]
    cases = suite_.findall("testcase")
    assert int(suite_.get("tests")) == len(cases) == 1 and int(suite_.get("failures")) == 1
    assert set(cases[0].attrib) == {"classname", "name", "time"} and cases[0].get("name") == "orders.create"
    failure, = cases[0]
    assert failure.tag == "failure" and set(failure.attrib) == {"message", "type"} and failure.get("type") == "duplicate"
    assert failure.get("message") == "duplicate 2, wire-duplicate 1, near-duplicate 1" and "libcurl's own resend" in failure.text


def test_html_carries_all_it_needs(audit, server):
    planted_log(audit, server)
    page = audit.cli("report", "--html").out
    assert not re.search(r"""(src|href)\s*=|@import|url\(|https?://(?!www\.w3\.org/2000/svg|127\.0\.0\.1)""", page)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found(json.loads(data.group(1))) == PLANTED


def test_a_name_in_the_log_cannot_end_the_script(audit, server):
    line = {"time": "2026-11-30T10:00:00.000000Z", "event": "unlisted", "pid": 1, "exe": "</script><img src=x>", "method": "POST",
            "host": "h", "path": "/<b>\x1b[31m&\"", "identity": "1" * 16, "wire_sends": 1, "outcome": "unknown", "curlcode": 52}
    log = audit.write("evil.jsonl", json.dumps(line) + "\n")
    page = audit.cli("report", "--html", log).out
    assert "<img" not in page and page.count("</script>") == 2
    assert "\x1b" not in audit.cli("report", log).out
    failure = ElementTree.fromstring(audit.cli("report", "--junit", "--fail-on", "unknown", log).out).find(".//failure").text
    assert "curl code 52, sent 1" in failure and "status" not in failure


def test_the_text_has_summary_operations_and_time_lines(audit, server):
    planted_log(audit, server)
    out = audit.cli("report").out
    lines = out.splitlines()
    assert lines[1] == "sendonce: duplicate 2, wire-duplicate 1, near-duplicate 1, conflict 1, fresh-key 1, unknown 1"
    assert re.search(r"^orders\.create +%d +%d +2 +1 +1 +1 +1 +1 +0 +0$" % (WRITES, WRITES + 1), out, re.M)
    assert "retry: no answer had come" in out and "enforce: refuse unknown-outcome" in out and "they differ in: /note" in out


def test_compare(audit, server):
    twice = ["sh", "-c", 'for n in 1 2; do curl -q -sS -o /dev/null -d same=1 "$0/orders"; done', server.base]
    once = ["sh", "-c", 'curl -q -sS -o /dev/null -d same=1 "$0/orders"', server.base]
    logs = []
    for command in (twice, once):
        assert audited(audit, "--", *command).rc == 0
        logs.append(audit.path("log%d" % len(logs)))
        os.rename(audit.event_log, logs[-1])
    better = audit.cli("report", "--compare", "--fail-on", "duplicate", *logs)
    assert better.rc == 0 and re.search(r"^orders.create .*duplicate 1 -> 0$", better.out, re.M), better
    worse = audit.cli("report", "--compare", "--fail-on", "duplicate", *reversed(logs))
    assert worse.rc == 1 and "duplicate 0 -> 1" in worse.out
    assert audit.cli("report", "--compare", logs[0], logs[0]).out.count("as before") == 2


# --- what the known repeaters look like
def test_curl_retry_is_a_retry(audit, server):
    result = audited(audit, "--report", audit.path("r.json"), "--", "curl", "-q", "-sS", "--retry", "2", "--retry-delay", "1",
                     "-d", "n=1", server.base + "/orders?status=503&times=1")
    report = json.load(open(audit.path("r.json")))
    assert result.rc == 0 and found(report) == {"duplicate": 1}
    attempt, = [a for g in report["groups"] for a in g["attempts"] if a["found"]]
    assert attempt["cause"] == "retry: the answer proved nothing" and attempt["enforce"] == "refuse unknown-outcome"


def test_a_put_that_is_retried(world, server):
    """As S3 clients do: the same object again, streamed, with another date in its signature."""
    world.policy(top={"mode": "audit"}, match="PUT http://127.0.0.1:*/bucket/**")
    name = world.write("object", "x" * 100000)
    for day, rc in (("1", 52), ("2", 0)):
        result = audited(world, "--", "curl", "-q", "-sS", "-o", "/dev/null", "-T", name, "-H", "X-Amz-Date: 2026113%s" % day,
                         server.base + "/bucket/object?cut=1&times=1")
        assert result.rc == rc, result
    report = json.loads(world.cli("report", "--json").out)
    assert found(report) == {"duplicate": 1}
    assert report["groups"][0]["attempts"][1]["cause"] == "retry: no answer had come"


def test_enforce_s_own_log_says_what_was_prevented(world, server):
    world.policy()
    for _ in "abc":
        assert world.curl("-d", "n=1", server.base + "/orders").status == 201
    report = json.loads(world.cli("report", "--json").out)
    assert found(report) == {} and report["summary"]["prevented"] == 2 and report["summary"]["wire_sends"] == 1


# --- the log itself
def test_follow_tells_a_person(world, server):
    world.policy()
    follow = world.start([os.path.join(build(), "sendonce"), "events", "--follow", "--json", "--exec", "cat >> " + world.path("told")],
                         preload=False, SENDONCE_POLICY=world.policy_file)

    def wait_told(count):
        end = time.monotonic() + 10 * SLOW
        while time.monotonic() < end and (not os.path.exists(world.path("told")) or len(open(world.path("told")).readlines()) < count):
            time.sleep(0.05)

    time.sleep(0.5 * SLOW)
    assert world.curl("-d", "n=1", server.base + "/orders").status == 201
    assert world.curl("-d", "n=2", server.base + "/orders?cut=1").rc == 52
    wait_told(1)
    os.rename(world.event_log, world.path("rotated"))
    assert world.curl("-d", "n=3", server.base + "/orders?cut=1").rc == 52
    wait_told(2)
    follow.terminate()
    out, err = follow.communicate()
    told = [json.loads(line) for line in open(world.path("told"))]
    assert [(e["event"], e["outcome"]) for e in told] == [("write", "unknown")] * 2, (told, err)
    assert len(out.splitlines()) == 3 and err == ""


def test_a_command_that_fails_is_told_and_the_following_goes_on(world):
    world.policy()
    world.write("events.jsonl", "")
    follow = world.start([os.path.join(build(), "sendonce"), "events", "--follow", "--exec", "exit 3"], preload=False,
                         SENDONCE_POLICY=world.policy_file)
    time.sleep(0.5 * SLOW)
    line = json.dumps({"time": "2026-11-30T10:00:00.000000Z", "event": "refusal", "reason": "key-conflict"})
    for text in (line + "\nnot json\n" + line[:20], line[20:] + "\n"):
        with open(world.event_log, "a") as f:
            f.write(text)
        time.sleep(0.5 * SLOW)
    follow.terminate()
    out, err = follow.communicate()
    assert out.count("key-conflict") == 2 and err.count("failed") == 2 and err.count("could not be read") == 1


def test_an_event_behind_a_torn_line_is_not_lost(audit, server):
    """What a full disk leaves: the beginning of a line, and the next event right behind it."""
    once = ["sh", "-c", 'curl -q -sS -o /dev/null -d same=1 "$0/orders"', server.base]
    assert audited(audit, "--", *once).rc == 0
    line = open(audit.event_log).read()
    audit.write(audit.event_log, line + line[:57] + line[:5] + line)
    report = json.loads(audit.cli("report", "--json").out)
    assert found(report) == {"duplicate": 1} and report["damaged_lines"] == 1
    events = audit.cli("events", "--json")
    assert events.rc == 1 and events.out == line * 2 and "1 lines" in events.err
    assert "# seen 2 times" in audit.cli("init", "--from-events", audit.event_log, "-").out


def test_prometheus(world, server):
    world.policy()
    for n in (1, 1, 2):
        world.curl("-d", "n=%d" % n, server.base + "/orders")
    world.curl("-d", "n=9", server.base + "/orders?cut=1")
    out = world.cli("stats", "--prometheus").out
    samples = dict(line.rsplit(" ", 1) for line in out.splitlines() if not line.startswith("#"))
    for name, sample in samples.items():
        assert re.fullmatch(r'[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})?', name) and sample.isdigit(), name
    assert samples['sendonce_writes_total{operation="orders.create",verdict="execute"}'] == "3"
    assert samples['sendonce_writes_total{operation="orders.create",verdict="replay"}'] == "1"
    assert samples['sendonce_writes_in_doubt{operation="orders.create"}'] == "1"
    assert samples["sendonce_ledger_executed_total"] == "3"
    types = re.findall(r"^# TYPE (\S+) (\S+)$", out, re.M)
    assert len(types) == len(set(types)) and all(kind == ("counter" if name.endswith("_total") else "gauge") for name, kind in types)


def test_hints(world, server):
    world.policy()
    assert world.curl("-d", "n=first", server.base + "/orders").status == 201 and "hint" not in world.cli("stats").out
    urls = "url = %s/orders\n" % server.base
    world.write("many", "".join('data = "n=%d"\n%soutput = /dev/null\nnext\n' % (n, urls) for n in range(110))[:-len("next\n")])
    assert world.run(["curl", "-q", "-sS", "-K", world.path("many")]).rc == 0
    assert "none was ever answered from the ledger" in world.cli("stats").out.replace("\n      ", " ")
    log = world.path("events.jsonl")
    lines = []
    for n in range(200):
        verdict = "replay" if n >= 170 and n % 4 else "execute"
        lines.append(json.dumps({"time": "2026-11-30T%02d:00:%02d.000000Z" % (1 if n < 170 else 23, n % 60), "event": "write",
                                 "operation": "orders.create", "verdict": verdict, "outcome": "done"}))
    with open(log, "w") as f:
        f.write("\n".join(lines) + "\n")
    assert "something retries too much" in world.cli("stats").out


@pytest.mark.san
def test_a_log_that_cannot_be_written_loses_events_never_a_write(world, server):
    """A full disk: the write goes on, and what was lost is counted."""
    world.policy(top={"events": "/dev/full"})
    assert world.curl("-d", "n=1", server.base + "/orders").status == 201
    assert world.curl("-d", "n=1", server.base + "/orders").replayed
    assert world.stats()["events_lost"] >= 2


def test_a_large_log_is_read_fast_and_in_bounds(world):
    """A tenth of a million here; the whole of it with SENDONCE_SOAK."""
    count = 1000000 if os.environ.get("SENDONCE_SOAK") else 100000
    with open(world.path("large.jsonl"), "w") as f:
        for n in range(count):
            f.write('{"time":"2026-11-30T%02d:%02d:%02d.%06dZ","event":"write","run":"r%d","scope":"s","pid":%d,"exe":"curl","mode":"audit",'
                    '"operation":"op.%d","method":"POST","host":"api.example.com","path":"/v1/things/{id}","identity":"%016x",'
                    '"fingerprint":"%016x","wire_sends":1,"outcome":"done","status":201,"curlcode":0,"ms":%d,"bytes":33,'
                    '"parts":{"/amount":"n%08x","/currency":"s12345678","/customer":"s%08x","/note":"t%08x","/items/0/sku":"s87654321"}}\n'
                    % (n // 360000 + 1, n // 6000 % 60, n // 100 % 60, n % 100 * 10000, n // 1000, n % 500, n % 40, n // 2 + 1, n // 2 + 1,
                       n % 300, n // 2, n // 2, n))
    script = ("import resource,subprocess,sys,time; t=time.time(); out=subprocess.run(sys.argv[1:],capture_output=True,text=True).stdout;"
              "u=resource.getrusage(resource.RUSAGE_CHILDREN); print(u.ru_utime+u.ru_stime, u.ru_maxrss, out.splitlines()[1])")
    result = world.run([sys.executable, "-c", script, os.path.join(build(), "sendonce"), "report", world.path("large.jsonl")], preload=False, timeout=120)
    seconds, kilobytes, line = result.out.split(" ", 2)
    assert line.startswith("sendonce: duplicate %d" % (count // 2)), result
    assert float(seconds) <= 5 * count / 1e6 * SLOW and int(kilobytes) <= 300 * 1024 * SLOW, (seconds, kilobytes)
