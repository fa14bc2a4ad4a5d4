"""Rules whose method is `*`: reads are writes then, with all that follows: sent once, kept, and answered from the ledger."""
import pytest

from harness import SLOW

READS = {"GET": [], "HEAD": ["-I"], "OPTIONS": ["-X", "OPTIONS"], "POP": ["-X", "POP"], "POST": ["-d", "a=1"]}


def sent(server, method):
    return [r for r in server.requests if r.method == method]


@pytest.mark.parametrize("method", READS)
def test_a_retry_gets_the_kept_answer(world, server, method):
    world.policy(match="* http://127.0.0.1:*/queue/**")
    url = server.base + "/queue/pop"
    first, again = (world.curl(*READS[method], url) for _ in range(2))
    assert (first.rc, first.status // 100, first.replayed) == (0, 2, False)
    assert (again.rc, again.status, again.replayed) == (0, first.status, True)
    if method != "HEAD":  # curl -I prints the headers, and the replay's own are among them
        assert again.body == first.body
    assert len(sent(server, method)) == 1 and sent(server, method)[0].key
    assert world.states() == ["done"]


def test_a_read_whose_answer_is_late_is_not_sent_twice(world, server):
    world.policy(match="* http://127.0.0.1:*/queue/**")
    url = server.base + "/queue/pop?pre=1.5"
    first = world.curl("-m", "0.5", url)
    assert first.rc == 28
    again = world.curl(url, timeout=20 * SLOW)
    assert (again.rc, again.status) == (0, 200)
    assert len(sent(server, "GET")) == 1


def test_methods_are_told_apart(world, server):
    world.policy(match="* http://127.0.0.1:*/queue/**")
    url = server.base + "/queue/pop"
    assert not any(world.curl(*READS[x], url).replayed for x in READS)
    assert [len(sent(server, x)) for x in READS] == [1] * len(READS)


def test_other_urls_pass(world, server):
    world.policy(match="* http://127.0.0.1:*/queue/**")
    for _ in range(2):
        assert world.curl(server.base + "/other").status == 200
    assert len(sent(server, "GET")) == 2 and not sent(server, "GET")[0].key


def test_a_resumed_download_of_a_whole_file(world, server):
    """416 says that nothing is left to be fetched: for --fail it is no error, as it is not for libcurl."""
    world.policy(match="* http://127.0.0.1:*/queue/**", answers={"final": ["2xx", 416]})
    there = world.write("there", "all of it")
    server.read_status = 416
    for preload in (False, True, True):
        result = world.run(["curl", "-q", "-sS", "--fail", "-C", "-", "-o", there, server.base + "/queue/file"], preload=preload)
        assert (result.rc, result.err) == (0, "")
    assert [r.header("Range") for r in sent(server, "GET")] == ["bytes=9-"] * 2


def test_parts_of_one_thing_are_told_apart(world, server):
    """A range is part of what is asked for, whichever way the program says it."""
    world.policy(match="* http://127.0.0.1:*/queue/**")
    url = server.base + "/queue/big"
    for args in (["-r", "0-9"], ["-H", "Range: bytes=10-19"], ["-r", "20-"], []):
        assert not world.curl(*args, url).replayed
        assert world.curl(*args, url).replayed
    assert [r.header("Range") for r in sent(server, "GET")] == ["bytes=0-9", "bytes=10-19", "bytes=20-", None]
