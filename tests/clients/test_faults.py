"""Every fault, by every kind of client, five tries each, without keys and against a server that deduplicates.

FAULTS is the table: what the server does, and what each of the five tries ends with. A try is written as
  an HTTP status with the id of the first order        201
  another HTTP status                                  500, 402 ...
  a CURLcode                                           "rc28"
  a refusal, played as an answer                       "424 unknown-outcome"
  a refusal that must not look like success            "rc56"
"""
import pytest

from harness import PROVIDER

DOUBT = "424 unknown-outcome"
BLOB = '{"amount":500}'

# name: (query, native end of the first try, tries without keys, tries against a deduplicating server, executions)
FAULTS = {
    "late": ("late=1.6&times=1", "rc28", ["rc28", 201, 201, 201, 201], ["rc28", 201, 201, 201, 201]),
    "closed": ("cut=1&times=1", "rc52", ["rc52", "rc56", "rc56", "rc56", "rc56"], ["rc52", 201, 201, 201, 201]),
    "cut-body": ("cutbody=1&times=1", "rc18", ["rc18", "rc56", "rc56", "rc56", "rc56"], ["rc18", 201, 201, 201, 201]),
    "500": ("status=500&times=1", 500, [500, DOUBT, DOUBT, DOUBT, DOUBT], [500, 201, 201, 201, 201]),
    "503": ("status=503&times=1", 503, [503, DOUBT, DOUBT, DOUBT, DOUBT], [503, 201, 201, 201, 201]),
    "503-not-executed": ("status=503&times=1&exec=0", 503, [503, DOUBT, DOUBT, DOUBT, DOUBT], [503, 201, 201, 201, 201]),
    "429": ("status=429&times=1&exec=0&retry_after=1", 429, [429, 201, 201, 201, 201], [429, 201, 201, 201, 201]),
    "chunked-gzip": ("chunked=1&gzip=1", 201, [201] * 5, [201] * 5),
    "103": ("early=103", 201, [201] * 5, [201] * 5),
    "set-cookie": ("cookie=1", 201, [201] * 5, [201] * 5),
    "401": ("auth=basic", 401, [401, 201, 201, 201, 201], [401, 201, 201, 201, 201]),
    "402": ("status=402&times=1&exec=0", 402, [402, 201, 201, 201, 201], [402, 201, 201, 201, 201]),
}
# curl --retry tries again by itself on these: its first try ends as the second try of the others does.
RETRIED = {"late": 201, "500": DOUBT, "503": DOUBT, "503-not-executed": DOUBT, "429": 201}
UNSENT = {"503-not-executed"}  # without keys nobody can know that nothing was executed

CLIENTS = {
    "curl-d": ["--compressed", "-d", BLOB],
    "curl-json": ["--compressed", "--json", BLOB],
    "curl-retry": ["--compressed", "--retry", "2", "--retry-delay", "1", "-d", BLOB],
}


def said(answer):
    """One try in the table's words."""
    if answer.rc:
        return "rc%d" % answer.rc
    if answer.reason:
        assert answer.problem["status"] == answer.status
        return "%d %s" % (answer.status, answer.reason)
    if answer.status == 201:
        return 201 if answer.order == "ord-1" else answer.body
    return answer.status


def credentials(name, number):
    if name != "401":
        return []
    return ["-u", "u:wrong" if number == 1 else "u:p"]


def tries(world, kind, name, url):
    timeout = ["-m", "1"] if name == "late" else ["-m", "30"]
    if kind != "c-program":
        return [world.curl(*CLIENTS[kind], *timeout, *credentials(name, n), url) for n in range(1, 6)]
    milli = "1000" if name == "late" else "30000"
    if name != "401":
        return world.post("--encoding", "--body", BLOB, "--tries", "5", "--timeout-ms", milli, url)
    bad = world.post("--body", BLOB, "--user", "u:wrong", url)
    return bad + world.post("--body", BLOB, "--user", "u:p", "--tries", "4", url)


def expected(kind, name, keys):
    table = list(FAULTS[name][3 if keys else 2])
    if kind == "curl-retry" and name in RETRIED:
        table[0] = 201 if keys else RETRIED[name]
    return table


@pytest.mark.parametrize("name", FAULTS)
def test_native(world, server, name):
    url = server.base + "/orders?" + FAULTS[name][0]
    timeout = "1" if name == "late" else "30"
    answer = world.curl("-m", timeout, "--compressed", *credentials(name, 1), "-d", BLOB, url, preload=False)
    assert said(answer) == FAULTS[name][1]


@pytest.mark.san
@pytest.mark.parametrize("keys", [False, True], ids=["no-keys", "dedups"])
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("kind", [*CLIENTS, "c-program"])
def test_five_tries(world, server, kind, name, keys):
    if keys:
        world.policy(provider=PROVIDER)
    url = server.base + "/orders?" + FAULTS[name][0] + ("&keys=honour&busy=wait&stores=201.402" if keys else "")
    answers = tries(world, kind, name, url)
    assert [said(a) for a in answers] == expected(kind, name, keys), answers
    assert server.executions == (0 if name in UNSENT and not keys else 1)
    if not keys and name not in ("429", "401", "402"):
        assert len(server.writes()) == 1
    generations = 2 if name == "402" and keys else 1  # the provider keeps its 402: only another key gets past it
    if name != "401":  # other credentials are another account
        assert len(set(server.keys())) == generations


def headers(answer):
    return {k.lower(): v for k, v in answer.headers}


@pytest.mark.parametrize("compressed", [[], ["--compressed"]], ids=["raw", "decoded"])
def test_replayed_headers_are_right_for_the_bytes(world, server, compressed):
    url = server.base + "/orders?chunked=1&gzip=1&cookie=1&size=5000"
    get = lambda n: world.run(["curl", "-q", "-sS", *compressed, "-D", world.path("h%d" % n), "-d", "x", url], text=False)
    first, second = get(1), get(2)
    assert first.rc == second.rc == 0 and server.executions == 1
    sent = [x.split(":", 1) for x in open(world.path("h2")).read().splitlines() if ":" in x]
    replay = {k.lower(): v.strip() for k, v in sent}
    assert replay["idempotent-replayed"] == "true"
    assert not {"set-cookie", "date", "x-request-id", "transfer-encoding"} & set(replay)
    if replay.get("content-encoding") == "gzip":  # then it must be gzip that is delivered
        assert second.out == first.out
    else:
        import gzip
        assert second.out == (first.out if compressed else gzip.decompress(first.out))
    if "content-length" in replay and "content-encoding" not in replay:
        assert int(replay["content-length"]) == len(second.out)


def test_replay_in_one_process_is_equal_too(world, server):
    answers = world.post("--tries", "3", server.base + "/orders?early=103&cookie=1&size=40000")
    assert len({a.body for a in answers}) == 1 and [a.replayed for a in answers] == [False, True, True]


def test_retry_after_reaches_the_program(world, server):
    answer = world.curl("-d", "x", server.base + "/orders?status=429&exec=0&retry_after=7")
    assert answer.status == 429 and answer.header("Retry-After") == "7" and not answer.reason
