"""Copies of a handle (curl_easy_duphandle): as well protected as the handle itself, and the same bytes as natively.

The C program `copies` puts a body on a handle, copies it and performs both in all orders.
"""
import re

import pytest

from harness import client

KINDS = ["fields", "copied-fields", "read", "upload", "mime", "mime-callback", "mime-nested", "form", "headers", "curlu", "share",
         "share-alone", "cookies", "cookie-line"]
FORMS = ["mime", "mime-callback", "mime-nested", "form"]
STREAMS = ["read", "upload", "mime-callback"]  # both handles read one stream
# `copies` says what the letters do
ORDERS = {"the copy": "c", "the handle, the copy": "oc", "the copy, the handle": "co", "the copy twice": "cc", "the copy alone is left": "xc",
          "a copy of the copy": "dco", "both at once": "m", "made while it is performed": "ic", "in place": "pcoc",
          "in place, elsewhere first": "pCco"}
AROUND = {"elsewhere first": "Cc", "here first": "cC", "back and forth": "CcCcO", "the handle in between": "oCcO", "a copy of a used copy": "Cdc",
          "a form of its own": "csc", "of its own at once": "sc"}
# When the functions are called that free what parts read from
FREED = {"dropped unsent": "k", "two copies, dropped unsent": "kK", "the form goes first": "x", "a copy that is reset": "kr", "reset after a write": "cr",
         "other contents first": "uoc", "other contents since": "cuc", "other contents of a form that was sent": "ouco", "in place": "pcuo",
         "in a loop": "nn", "both in a loop, then a copy of the copy": "mKd", "a form of its own": "dcsc", "elsewhere": "CuCcr", "made inside": "ic",
         "made inside, in place": "pic", "a form that is not sent any more": "ogk", "a copy of such a copy": "ogkKro", "a form instead of it": "ogKcsc",
         "of a form that was never sent": "gkK", "of a copy": "kogK"}
COOKIES = ["cookies", "cookie-line", "share", "share-alone"]


def neutral(raw):
    for found in set(re.findall(rb"boundary=(-+\w+)", raw)):
        raw = raw.replace(found, b"BOUNDARY")
    return re.sub(rb"Idempotency-Key: [^\r]*\r\n", b"", re.sub(rb"session=s\d+", b"session=s", raw))


def copies(world, server, kind, order, query="?cookie=1", **env):
    server.reset()
    result = world.run([client("copies"), kind, order, server.base + "/orders" + query, server.base + "/free" + query], **env)
    assert result.rc == 0 and result.err == "", result
    lines = [x.split(" ", 3) for x in result.out.splitlines()]
    return [(who, code, status, rest if who == "freed" else "") for who, code, status, rest in lines], server.writes()


def check(world, server, kind, order):
    """Every write to /orders is one and the same, but for what a program changes on its copy."""
    native, bare = copies(world, server, kind, order, preload=False)
    ours, sent = copies(world, server, kind, order)
    assert sorted(ours) == sorted(native) and ours
    assert world.events("unprotected") == [], world.events("unprotected")
    assert all(r.key for r in sent if r.path == "/orders") and all(r.key is None for r in sent if r.path == "/free")
    bodies = {neutral(r.raw) for r in sent if r.path == "/orders"}
    allowed = {neutral(r.raw) for r in bare if r.path == "/orders"}
    assert bodies <= allowed, (bodies - allowed, allowed)
    assert [neutral(r.raw) for r in sent if r.path == "/free"] == [neutral(r.raw) for r in bare if r.path == "/free"]
    contents = {neutral(r.raw).split(b"\r\n\r\n", 1)[1] for r in sent if r.path == "/orders"}
    assert len([r for r in sent if r.path == "/orders"]) == len(contents) == (2 if order == "csc" else 1)


@pytest.mark.san
@pytest.mark.parametrize("kind", KINDS)
def test_either_is_protected(world, server, kind):
    world.policy(match="POST,PUT http://127.0.0.1:*/orders")
    for number, (name, order) in enumerate(ORDERS.items()):
        if kind in STREAMS and order == "m":
            continue
        world.ledger = world.path("ledger-%d" % number)
        world.policy(match="POST,PUT http://127.0.0.1:*/orders")
        check(world, server, kind, order)


@pytest.mark.san
@pytest.mark.parametrize("kind", FORMS)
def test_forms_that_libcurl_sends_as_well(world, server, kind):
    for number, (name, order) in enumerate(AROUND.items()):
        if kind == "form" and "s" in order:
            continue
        world.ledger = world.path("ledger-%d" % number)
        world.policy(match="POST,PUT http://127.0.0.1:*/orders")
        check(world, server, kind, order)


@pytest.mark.parametrize("kind", COOKIES)
def test_the_jar_is_what_it_is_natively(world, server, kind):
    """What a copy has of the handle's cookies, and what it keeps of its own."""
    for number, order in enumerate(["cC", "oC", "oO", "OcO", "OcC", "oCO", "cCdO"]):
        world.ledger = world.path("ledger-%d" % number)
        world.policy(match="POST http://127.0.0.1:*/orders")
        check(world, server, kind, order)


@pytest.mark.san
@pytest.mark.parametrize("kind", ["mime", "mime-nested"])
def test_a_form_that_libcurl_is_sending_is_not_silent(world, server, kind):
    """It cannot be taken off its handle then, and nothing renders the copy's."""
    native, bare = copies(world, server, kind, "iOcc", preload=False)
    ours, sent = copies(world, server, kind, "iOcc")
    assert ours == native and [neutral(r.raw) for r in sent] == [neutral(r.raw) for r in bare]
    assert [e["reason"] for e in world.events("unprotected")] == ["form of a copied handle"] * 2


@pytest.mark.san
@pytest.mark.parametrize("kind", ["mime-callback", "mime-counted", "mime-counted-inside", "mime-counted-by-name"])
def test_parts_are_freed_as_natively(world, server, kind):
    """As often, by the same functions, and at the same steps, whatever copies of ours there are."""
    for number, order in enumerate(FREED.values()):
        if kind == "mime-callback" and ("u" in order or "m" in order):
            continue
        native, _ = copies(world, server, kind, order, preload=False)
        world.ledger = world.path("ledger-%d" % number)
        world.policy(match="POST http://127.0.0.1:*/orders")
        ours, sent = copies(world, server, kind, order)
        assert (sorted(ours) if "m" in order else ours) == (sorted(native) if "m" in order else native)
        assert world.events("unprotected") == [] and any(who == "freed" for who, *_ in native)
        assert all(r.key for r in sent if r.path == "/orders")


@pytest.mark.san
@pytest.mark.parametrize("mode", ["off", "audit", "inject"])
def test_parts_are_freed_as_natively_in_other_modes(world, server, mode):
    for order in ("kK", "oc", "dco", "pcuo"):
        native, bare = copies(world, server, "mime-counted", order, preload=False)
        world.policy(match="POST http://127.0.0.1:*/orders", top={"mode": mode})
        ours, sent = copies(world, server, "mime-counted", order)
        assert ours == native and [neutral(r.raw) for r in sent] == [neutral(r.raw) for r in bare]


@pytest.mark.san
@pytest.mark.parametrize("order", ["k", "oc", "dco", "cuc", "pcoc", "csc", "nn"])
def test_more_functions_than_anybody_has(world, server, order):
    """Copies of their forms are libcurl's alone: not protected, which is said, and freed as natively."""
    native, bare = copies(world, server, "mime-hundred", order, preload=False)
    world.policy(match="POST http://127.0.0.1:*/orders", repeat="after-answer")
    ours, sent = copies(world, server, "mime-hundred", order)
    assert ours == native and [neutral(r.raw) for r in sent] == [neutral(r.raw) for r in bare]
    told = [e["reason"] for e in world.events("unprotected")]
    assert set(told) <= {"form of a copied handle"}
    own = "s" in order  # the last write is one of a form of its own
    assert len(told) == sum(order.count(x) for x in "cdn") - own
    assert len([r for r in sent if r.key]) == order.count("o") + own


@pytest.mark.san
def test_a_part_that_can_be_read_once(world, server):
    """It is read for each copy, and once. In place libcurl reads it itself, which is too late then: nothing is sent."""
    for number, order in enumerate(["c", "oc", "co", "cc", "xc", "dco", "n", "oCc"]):
        world.ledger = world.path("ledger-%d" % number)
        world.policy(match="POST http://127.0.0.1:*/orders", repeat="after-answer")
        native, bare = copies(world, server, "mime-once", order, preload=False)
        ours, sent = copies(world, server, "mime-once", order)
        if order == "oCc" and ours[1] != native[1]:  # libcurl 8 does not take back what it cannot rewind
            assert ours[1:3] == [("copy", "rc=65", "status=0", ""), native[1]]
            assert [r.path for r in sent] == ["/orders"] * 2 and len({neutral(r.raw) for r in sent}) == 1
            continue
        assert ours == native and [neutral(r.raw) for r in sent] == [neutral(r.raw) for r in bare]
    native, _ = copies(world, server, "mime-once", "pc", preload=False)
    ours, sent = copies(world, server, "mime-once", "pc")
    assert ours[0] == ("copy", "rc=65", "status=0", "") and ours[1:] == native[1:] and sent == []
