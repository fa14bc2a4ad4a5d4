"""Bodies as libcurl would send them, and those kinds that are not protected yet: never in silence."""
import pytest

SAME = ["--tries", "2"]
# name: options of the C client, the body that must arrive
PROTECTED = {
    "fields": (["--body", "a=1"], b"a=1"),
    "nul-bytes": (["--hex", "6100622e00"], b"a\0b.\0"),
    "size-minus-one": (["--size", "-1", "--body", "until the NUL"], b"until the NUL"),
    "size-minus-one-cuts-at-nul": (["--size", "-1", "--hex", "616200636465"], b"ab"),
    "size-zero": (["--size", "0", "--body", "none of it"], b""),
    "size-smaller": (["--size", "3", "--body", "abcdef"], b"abc"),
    "size-large": (["--large", "--hex", "610062"], b"a\0b"),
    "copy": (["--copy", "--body", "a=copied at setopt"], b"a=copied at setopt"),
    "copy-nul": (["--copy", "--hex", "610062"], b"a\0b"),
    "copy-large": (["--copy", "--large", "--hex", "610062"], b"a\0b"),
    "post-without-body": (["--kind", "empty"], b""),
    "delete-without-body": (["--kind", "none", "--method", "DELETE"], b""),
    "delete-with-body": (["--method", "DELETE", "--body", "why=1"], b"why=1"),
    "put-with-fields": (["--method", "PUT", "--body", '{"a":1}'], b'{"a":1}'),
    "patch": (["--method", "PATCH", "--body", "[]"], b"[]"),
    "60-kB": (["--body", "x" * 60000], b"x" * 60000),
}
UNPROTECTED = {
    "read-callback": ["--kind", "read"],
    "upload": ["--kind", "upload"],
    "multipart": ["--kind", "mime"],
}


@pytest.fixture
def everything(world):
    return world.policy(match="POST,PUT,PATCH,DELETE http://127.0.0.1:*/orders")


@pytest.mark.san
@pytest.mark.parametrize("name", PROTECTED)
def test_protected(everything, server, name):
    args, body = PROTECTED[name]
    native = everything.post(*args, server.base + "/orders", preload=False)[0]
    first, second = everything.post(*args, *SAME, server.base + "/orders")
    untouched, ours = server.writes()
    assert native.status == first.status == 201
    assert untouched.body == ours.body == body and ours.method == untouched.method
    assert without_key(ours.raw) == untouched.raw
    assert second.replayed and second.body == first.body


def without_key(raw):
    """The request without the one line that is added."""
    lines = raw.split(b"\r\n")
    added = [x for x in lines if x.startswith(b"Idempotency-Key: ")]
    assert len(added) == 1 and len(added[0]) == len("Idempotency-Key: ") + 36
    lines.remove(added[0])
    return b"\r\n".join(lines)


def test_nul_bytes_make_a_difference(everything, server):
    url = server.base + "/orders"
    for hexes in ("610062", "610063", "6100", "61"):
        assert not everything.post("--hex", hexes, url)[0].replayed
    assert server.executions == 4


def test_an_empty_body_is_not_no_body_of_another_method(everything, server):
    url = server.base + "/orders"
    everything.post("--kind", "empty", url)
    everything.post("--kind", "none", "--method", "DELETE", url)
    assert server.executions == 2


@pytest.mark.san
@pytest.mark.parametrize("name", UNPROTECTED)
def test_unprotected_is_an_event_or_served_in_place(everything, server, name):
    answers = everything.post(*UNPROTECTED[name], *SAME, server.base + "/orders")
    assert all(a.rc == 0 for a in answers), answers
    if not server.keys()[0]:  # passed through: then it is said, and counted, each time
        assert server.executions == 2
        events = everything.events("unprotected")
        assert len(events) == 2 and all(e["operation"] == "orders.create" for e in events)
        assert everything.stats()["unprotected"] == 2
    else:
        assert server.executions == 1 and answers[1].replayed


def test_a_get_that_no_rule_names_has_no_event(everything, server):
    everything.policy()
    assert everything.curl(server.base + "/orders").status == 200
    assert everything.curl("-I", server.base + "/orders").status == 200
    assert everything.events() == [] and server.keys() == []
