"""Texts and what another JSON reader makes of them, for test_identity_json_reference.

One line a text: the text in hex, and a hash of its value, or `-` for a text that has no canonical
form. Numbers are compared as decimal.Decimal, which is exact. The seed is the argument.
"""

import hashlib
import json
import random
import sys
from decimal import Decimal

rng = random.Random(int(sys.argv[1]))
NUMBERS = ["0", "-0", "1", "1.0", "1e0", "10e-1", "0.1", "1E-1", "-1", "-1.00e0", "100", "1e2", "1E+2",
           "9007199254740992", "9007199254740993", "9.007199254740993e15", "12e-7", "0.0000012",
           "1e400", "10e399", "-0.0", "0e7", "01", "1.", ".5", "+1", "1e", "-", "NaN", "Infinity", "1e+"]
STRINGS = ["a", "b", "A", "\\u0061", "\\u00e9", "\u00e9", "e\u0301", "\\/", "/", "\\n", "\\u000A",
           "\\ud83d\\ude00", "\U0001f600", "\\ud83d", "\\ude00", "\\\\", "\\u005c", "\\\"", "\\u0022",
           "\ufffd", "\\uFFFD", "", "\\x", "\n", "\\u00", "1", "\x7f", "\\u0000", "\\b", "\\u0008"]
WORDS = ["true", "false", "null", "tru", "nulll", "True"]


def space():
    return rng.choice(["", "", "", " ", "\n", "\t", "\r", "\u00a0"] if rng.random() < 0.1 else ["", "", " "])


def text(depth):
    kind = rng.random()
    if depth and kind < 0.45:
        names = [string() for _ in range(rng.randrange(4))]
        return "{" + ",".join(f"{space()}{n}{space()}:{text(depth - 1)}" for n in names) + space() + "}"
    if depth and kind < 0.65:
        return "[" + ",".join(text(depth - 1) for _ in range(rng.randrange(4))) + space() + "]"
    scalar = string() if kind < 0.8 else rng.choice(NUMBERS[:22] if rng.random() < 0.97 else NUMBERS)
    if kind > 0.95:
        scalar = rng.choice(WORDS[:3] if rng.random() < 0.9 else WORDS)
    return space() + scalar + space()


def string():
    good = [s for s in STRINGS if s not in ("\\x", "\n", "\\u00")]
    pool = STRINGS if rng.random() < 0.03 else good
    return '"' + "".join(rng.choice(pool) for _ in range(rng.choice([1, 1, 1, 2]))) + '"'


def damage(raw):
    at = rng.randrange(len(raw) + 1)
    how = rng.randrange(4)
    if how == 0:
        return raw[:at]
    if how == 1:
        return raw[:at] + bytes([rng.randrange(256)]) + raw[at:]
    if how == 2:
        return raw[:at] + raw[at + 1:]
    return raw + rng.choice([b"x", b"]", b" ", b"\xef\xbb\xbf", b"//", b"\x00", b"1"])


def refuse(_):
    raise ValueError


def pairs(items):
    if len({name for name, _ in items}) != len(items):
        raise ValueError
    return dict(items)


def number(value):
    sign, digits, exponent = value.as_tuple()
    digits = "".join(map(str, digits)).lstrip("0")
    short = digits.rstrip("0")
    return f"{'-' * sign}{short}e{exponent + len(digits) - len(short)}" if short else "0"


def canonical(v):
    if isinstance(v, dict):
        names = sorted(v, key=lambda n: n.encode("utf-16-be", "surrogatepass"))
        return ["object", [[n.encode("utf-16-be", "surrogatepass").hex(), canonical(v[n])] for n in names]]
    if isinstance(v, list):
        return ["array", [canonical(i) for i in v]]
    if isinstance(v, Decimal):
        return ["number", number(v)]
    if isinstance(v, str):
        return ["string", v.encode("utf-16-be", "surrogatepass").hex()]
    return ["word", repr(v)]


def value(raw):
    try:
        read = json.loads(raw.decode("utf-8"), parse_int=Decimal, parse_float=Decimal,
                          parse_constant=refuse, object_pairs_hook=pairs)
    except ValueError:
        return "-"
    return hashlib.sha256(repr(canonical(read)).encode()).hexdigest()[:16]


for _ in range(4000):
    raw = text(rng.randrange(4)).encode("utf-8", "surrogatepass")
    if rng.random() < 0.15:
        raw = damage(raw)
    print(raw.hex() or "empty", value(raw))
