"""Every fault of faults.py, by curl and by a C program, five tries each, without keys and against a server that
deduplicates. Other programs are in test_fault_table.py."""
import pytest

from faults import BLOB, FAULTS, FREED, PROVIDER_KEYS, REDIRECTED, RETRIED, UNSENT, said, seconds, user
from harness import PROVIDER

CLIENTS = {
    "curl-d": ["-L", "--compressed", "-d", BLOB],
    "curl-json": ["-L", "--compressed", "--json", BLOB],
    "curl-retry": ["-L", "--compressed", "--retry", "2", "--retry-delay", "1", "-d", BLOB],
}


def tries(world, kind, name, url):
    if kind != "c-program":
        login = lambda n: ["-u", user(name, n)] if user(name, n) else []
        return [world.curl(*CLIENTS[kind], "-m", str(seconds(name)), *login(n), url) for n in range(1, 6)]
    args = ["--follow", "--body", BLOB, "--timeout-ms", "%d000" % seconds(name)]
    if name != "401":
        return world.post("--encoding", "--tries", "5", *args, url)
    return world.post(*args, "--user", user(name, 1), url) + world.post(*args, "--user", user(name, 2), "--tries", "4", url)


def expected(kind, name, keys):
    table = list(FAULTS[name][3 if keys else 2])
    if kind == "curl-retry" and name in RETRIED:
        table[0] = 201 if keys else RETRIED[name]
    return table


@pytest.mark.san
@pytest.mark.parametrize("keys", [False, True], ids=["no-keys", "dedups"])
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("kind", [*CLIENTS, "c-program"])
def test_five_tries(world, server, kind, name, keys):
    if keys:
        world.policy(provider=PROVIDER)
    url = server.base + "/orders?" + FAULTS[name][0] + (PROVIDER_KEYS if keys else "")
    answers = tries(world, kind, name, url)
    assert [said(a) for a in answers] == expected(kind, name, keys), answers
    assert server.executions == (0 if name in UNSENT and not keys else 1)
    if not keys and name not in FREED | REDIRECTED:
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


def test_verbose_shows_a_replayed_answer_too(world, server):
    """There are programs that read the answer from this transcript alone."""
    show = lambda: [x for x in world.run(["curl", "-q", "-sv", "-d", "x", server.base + "/orders"]).err.splitlines() if x[:1] == "<"]
    live, replay = show(), show()
    assert live[0] == replay[0] == "< HTTP/1.1 201 Created" and live[-1].strip() == replay[-1].strip() == "<"
    assert "< Idempotent-Replayed: true" in [x.strip() for x in replay]


def test_retry_after_reaches_the_program(world, server):
    answer = world.curl("-d", "x", server.base + "/orders?status=429&exec=0&retry_after=7")
    assert answer.status == 429 and answer.header("Retry-After") == "7" and not answer.reason
