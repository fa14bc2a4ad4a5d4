"""Method and body set in several ways, one after the other: what libcurl makes of it is what is protected.

The C program `sequences` performs a handle for each sequence of calls. Natively and under the preload the same bytes
arrive, but for the key, and a second try is answered from the ledger.
"""
import itertools
import os
import re

import pytest

from harness import client

CALLS = ["UPLOAD=1", "UPLOAD=0", "POST=1", "POST=0", "POSTFIELDS=abc", "POSTFIELDS", "COPYPOSTFIELDS=xyz", "POSTFIELDSIZE=2", "POSTFIELDSIZE=0",
         "MIMEPOST", "NO_MIMEPOST", "HTTPPOST", "HTTPGET=1", "NOBODY=1", "NOBODY=0", "CUSTOMREQUEST=POST", "CUSTOMREQUEST=PATCH",
         "CUSTOMREQUEST", "INFILESIZE=-1"]
LONGER = """
UPLOAD=1 POSTFIELDS=abc CUSTOMREQUEST=PATCH
UPLOAD=1 POSTFIELDS=abc NOBODY=1
UPLOAD=1 CUSTOMREQUEST=POST NOBODY=1 NOBODY=0
UPLOAD=1 NOBODY=1 CUSTOMREQUEST=PATCH
UPLOAD=1 NOBODY=1 NOBODY=0 CUSTOMREQUEST=PATCH
UPLOAD=1 NOBODY=1 UPLOAD=1
UPLOAD=1 POSTFIELDS=abc UPLOAD=0
UPLOAD=1 POSTFIELDS=abc UPLOAD=1
UPLOAD=1 COPYPOSTFIELDS=xyz POSTFIELDSIZE=2
UPLOAD=1 MIMEPOST HTTPGET=1 POSTFIELDS=abc
UPLOAD=1 HTTPPOST NOBODY=1 NOBODY=0
UPLOAD=1 INFILESIZE=-1 POSTFIELDS=abc
MIMEPOST HTTPGET=1 POSTFIELDS=abc
MIMEPOST HTTPGET=1 POSTFIELDS=abc MIMEPOST
MIMEPOST NOBODY=1 CUSTOMREQUEST=POST
MIMEPOST NOBODY=1 NOBODY=0
MIMEPOST POSTFIELDS=abc CUSTOMREQUEST=PATCH
MIMEPOST UPLOAD=1 HTTPPOST
HTTPPOST UPLOAD=1 CUSTOMREQUEST=POST
HTTPPOST UPLOAD=1 UPLOAD=0
HTTPPOST MIMEPOST POST=1
POSTFIELDS=abc NOBODY=1 CUSTOMREQUEST=POST
POSTFIELDS=abc NOBODY=1 NOBODY=0
POSTFIELDS=abc NOBODY=1 NOBODY=0 POST=1
POSTFIELDS=abc UPLOAD=1 CUSTOMREQUEST=POST
POSTFIELDS=abc HTTPGET=1 CUSTOMREQUEST=POST
POSTFIELDS=abc POSTFIELDS POSTFIELDSIZE=0
COPYPOSTFIELDS=xyz POSTFIELDSIZE=2 POSTFIELDS=abc
POSTFIELDSIZE=2 COPYPOSTFIELDS=xyz POSTFIELDSIZE=0
NOBODY=1 POSTFIELDS=abc CUSTOMREQUEST=POST
NOBODY=1 UPLOAD=1 NOBODY=0
NOBODY=1 CUSTOMREQUEST=POST NOBODY=0
""".strip().splitlines()
SINGLE = [(x,) for x in CALLS]
PAIRS = [x for x in itertools.product(CALLS, repeat=2) if x[0] != x[1]]
TRIPLES = [x for x in itertools.product(CALLS, repeat=3) if x[0] != x[1] and x[1] != x[2]]
SOAK = bool(os.environ.get("SENDONCE_SOAK"))
SEQUENCES = [" ".join(x) for x in SINGLE + PAIRS + (TRIPLES if SOAK else [])] + LONGER
# performed in between, where a rule is and where none is; a form is elsewhere then
BETWEEN = [" ".join(x) for x in itertools.product(CALLS, ["GO", "FREE"], CALLS)]
BETWEEN += ["%s %s %s %s %s" % (x, one, y, two, x) for x in ("MIMEPOST", "HTTPPOST", "POSTFIELDS=abc", "UPLOAD=1")
            for y in CALLS if y != "NO_MIMEPOST" for one in ("GO", "FREE") for two in ("GO2", "FREE")]
WAYS = {"courier": [], "in-place": ["--in-place"], "multi": ["--multi"]}


def neutral(raw):
    for found in set(re.findall(rb"boundary=(-+\w+)", raw)):
        raw = raw.replace(found, b"BOUNDARY")
    return re.sub(rb"Idempotency-Key: [^\r]*\r\n", b"", raw)


def sequences(world, server, lines, *args, **env):
    server.reset()
    argv = [client("sequences"), server.base + "/orders", server.base + "/free", *args]
    with open(world.write("lines", "\n".join(lines) + "\n")) as stdin:  # no shell: it does not run under a sanitizer
        result = world.finish(world.start(argv, stdin=stdin, **env), timeout=600)
    assert result.rc == 0 and result.err == "", result
    seen = {}
    for request in server.requests:
        seen.setdefault(int(request.path.rsplit("/", 1)[1]), []).append(request)
    return result.out.splitlines(), [seen.get(i, []) for i in range(len(lines))]


def compare(world, server, lines, args):
    """What differs: (sequence, what, natively, here)."""
    world.policy(match="* http://127.0.0.1:*/orders/{n}", ledger={"size": "64MiB"})
    native, bare = sequences(world, server, lines, *args, preload=False)
    ours, sent = sequences(world, server, lines, "--tries", "2", *args)
    wrong = []
    for line, one, two, plain, protected in zip(lines, native, ours, bare, sent):
        if two.split() != one.split() + one.split()[-1:]:
            wrong.append((line, "ended", one, two))
        if [neutral(r.raw) for r in plain] != [neutral(r.raw) for r in protected]:
            wrong.append((line, "arrived", [r.raw for r in plain], [r.raw for r in protected]))
        if [bool(r.key) for r in protected] != [r.path.startswith("/orders/") for r in protected]:
            wrong.append((line, "keys", [r.raw for r in protected]))
    assert world.events("unprotected") == []
    return wrong


@pytest.mark.san
@pytest.mark.parametrize("way", WAYS)
def test_what_libcurl_makes_of_it_is_protected(world, server, way):
    wrong = compare(world, server, SEQUENCES, WAYS[way])
    assert not wrong, "%d of %d: %s" % (len(wrong), len(SEQUENCES), "\n".join(map(str, wrong[:40])))


@pytest.mark.parametrize("way", WAYS if SOAK else ["courier", "in-place"])
def test_so_it_is_when_it_is_performed_in_between(world, server, way):
    wrong = compare(world, server, BETWEEN, WAYS[way])
    assert not wrong, "%d of %d: %s" % (len(wrong), len(BETWEEN), "\n".join(map(str, wrong[:40])))
