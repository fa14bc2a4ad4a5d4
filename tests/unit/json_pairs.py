"""Pairs of texts, and whether Python reads the same value in both, for test_identity_json_pairs.

usage: json_pairs.py SEED COUNT

One line a pair: both texts in hex, and `same` or `different`. A pair is one value spelt twice at random (order of
members, spaces, escapes, forms of a number), or that value and one that differs in a detail. What is said of it does
not come from how it was made: both texts are read by Python's json, numbers as decimal.Decimal, which is exact.
"""
import json
import random
import sys
from decimal import Decimal

rng = random.Random(int(sys.argv[1]))
LETTERS = "abAB01 /\\\"\n\t\x00\x1f\x7f\u00e9e\u0301\u20ac\U0001f600\ufffd"
DIGITS = ["0", "1", "5", "10", "100", "12", "500", "9007199254740992", "9007199254740993", "123456789012345678901234567890"]


def make(depth):
    kind = rng.random()
    if depth and kind < 0.4:
        names = {"".join(rng.choices(LETTERS, k=rng.randrange(3))) for _ in range(rng.randrange(4))}
        return {name: make(depth - 1) for name in sorted(names)}
    if depth and kind < 0.6:
        return [make(depth - 1) for _ in range(rng.randrange(4))]
    if kind < 0.75:
        return "".join(rng.choices(LETTERS, k=rng.randrange(4)))
    if kind < 0.95:
        return rng.choice(("", "-")), rng.choice(DIGITS), rng.choice((0, 0, 0, 1, -1, 2, -2, -7, 20, -400, 400, 10**9))
    return rng.choice((True, False, None))


def spell_number(sign, digits, exponent):
    """The same number, as often as not in another form."""
    zeros = rng.randrange(3)
    digits, exponent = digits + "0" * zeros, exponent - zeros
    if digits.strip("0") == "":
        digits = "0"
    form = rng.random()
    if form < 0.4 and 0 <= exponent < 30 and digits != "0":
        return sign + digits + "0" * exponent + rng.choice(("", "", ".0", ".00", "e0", "E+0"))
    if form < 0.7 and -30 < exponent < 0:
        padded = digits.rjust(1 - exponent, "0")
        return sign + (padded[:exponent].lstrip("0") or "0") + "." + padded[exponent:]
    whole, rest = digits[0], digits[1:]
    if rest and whole != "0" and rng.random() < 0.5:
        return sign + whole + "." + rest + rng.choice("eE") + rng.choice(("%d", "%+d")) % (exponent + len(rest))
    return sign + digits + rng.choice("eE") + rng.choice(("%d", "%+d", "%03d")) % exponent


def spell_text(text):
    out = []
    for c in text:
        how = rng.random()
        units = c.encode("utf-16-be")
        if how < 0.25 or c < " ":
            short = {"\n": "\\n", "\t": "\\t"}.get(c) if rng.random() < 0.5 else None
            escaped = "".join("\\u%02x%02x" % (units[i], units[i + 1]) for i in range(0, len(units), 2))
            out.append(short or (escaped.upper().replace("\\U", "\\u") if how < 0.1 else escaped))
        elif c in "\"\\":
            out.append("\\" + c)
        elif c == "/" and how < 0.5:
            out.append("\\/")
        else:
            out.append(c)
    return '"' + "".join(out) + '"'


def space():
    return rng.choice(("", "", "", "", " ", "\n", "\t", "\r"))


def spell(value):
    if isinstance(value, dict):
        items = list(value.items())
        rng.shuffle(items)
        inner = ",".join(space() + spell_text(k) + space() + ":" + spell(v) for k, v in items)
        return space() + "{" + inner + space() + "}" + space()
    if isinstance(value, list):
        return space() + "[" + ",".join(map(spell, value)) + space() + "]" + space()
    if isinstance(value, tuple):
        return space() + spell_number(*value) + space()
    if isinstance(value, str):
        return space() + spell_text(value) + space()
    return space() + json.dumps(value) + space()


def change(value):
    """Another value that differs in a detail, or by chance does not differ at all."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        name = rng.choice(list(value))
        rest = {k: v for k, v in value.items() if k != name}
        how = rng.random()
        if how < 0.2:
            return rest
        if how < 0.4:
            return dict(rest, **{rng.choice((name.swapcase(), name + "\x00", name + "a")): value[name]})
        return dict(rest, **{name: change(value[name])})
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        if rng.random() < 0.3:
            return value[at:] + value[:at]
        return value[:at] + [change(value[at])] + value[at + 1:]
    if isinstance(value, tuple):
        sign, digits, exponent = value
        return rng.choice(((sign, digits[:-1] + "3", exponent), (sign, digits, exponent + 1), ("-" if not sign else "", digits, exponent),
                           (sign, digits + "0", exponent - 1), sign + digits))
    if isinstance(value, str):
        return rng.choice((value + "a", value.swapcase(), value.replace("\u00e9", "e\u0301"), value[::-1], None))
    return make(1)


def number(value):
    sign, digits, exponent = value.as_tuple()
    digits = "".join(map(str, digits)).lstrip("0")
    short = digits.rstrip("0")
    return ("-" * sign + short, exponent + len(digits) - len(short)) if short else ("0", 0)


def canonical(v):
    if isinstance(v, dict):
        return "object", tuple(sorted((k, canonical(x)) for k, x in v.items()))
    if isinstance(v, list):
        return "array", tuple(map(canonical, v))
    if isinstance(v, Decimal):
        return "number", number(v)
    return type(v).__name__, v


def read(text):
    return canonical(json.loads(text, parse_int=Decimal, parse_float=Decimal))


lines = []
for _ in range(int(sys.argv[2])):
    value = make(rng.randrange(4))
    one, two = spell(value), spell(value if rng.random() < 0.5 else change(value))
    same = repr(read(one)) == repr(read(two))
    lines.append("%s %s %s\n" % (one.encode().hex(), two.encode().hex(), "same" if same else "different"))
sys.stdout.writelines(lines)
