"""Bodies as libcurl would send them: from memory, from callbacks, files and stdin, and as forms."""
import re

import pytest
from harness import World, client
from server import Listener

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


def neutral(raw):
    for number, found in enumerate(re.findall(rb"boundary=(-+\w+)", raw)):
        raw = raw.replace(found, b"BOUNDARY-%d" % number)
    return raw


def without_key(raw):
    """The request without the one line that is added, and without the boundary, which is random."""
    lines = neutral(raw).split(b"\r\n")
    added = [x for x in lines if x.startswith(b"Idempotency-Key: ")]
    assert len(added) == 1 and len(added[0]) == len("Idempotency-Key: ") + 36
    lines.remove(added[0])
    return b"\r\n".join(lines)


def test_nul_bytes_make_a_difference(everything, server):
    url = server.base + "/orders"
    for hexes in ("610062", "610063", "6100", "61"):
        assert not everything.post("--hex", hexes, url)[0].replayed
    assert server.executions == 4


@pytest.mark.parametrize("late", [False, True])
def test_a_form_under_another_content_type(everything, server, late):
    """libcurl puts the boundary behind the program's own type, a new one each time: the same write all the same."""
    url = server.base + "/orders" + ("?late=1.5&times=1" if late else "")
    args = ["-F", "amount=500", "-H", "Content-Type: application/json"]
    if late:
        assert everything.curl("-m", "1", *args, url).rc == 28
    assert [everything.curl(*args, url).order for _ in range(2)] == ["ord-1"] * 2 and server.executions == 1
    assert everything.curl("-F", "amount=501", *args[2:], url).order == "ord-2"


def test_an_empty_body_is_not_no_body_of_another_method(everything, server):
    url = server.base + "/orders"
    everything.post("--kind", "empty", url)
    everything.post("--kind", "none", "--method", "DELETE", url)
    assert server.executions == 2


def test_a_get_that_no_rule_names_has_no_event(everything, server):
    everything.policy()
    assert everything.curl(server.base + "/orders").status == 200
    assert everything.curl("-I", server.base + "/orders").status == 200
    assert everything.events() == [] and server.keys() == []


# --- read callbacks, files and forms: kind and options of the C program `bodies`
KINDS = {
    "post-read": [],
    "post-read-in-steps": ["post-read", "--step", "7"],
    "post-ioctl": [],
    "post-chunked": ["post-chunked", "--step", "7"],
    "post-own-chunks": ["post-own-chunks", "--step", "7"],
    "post-file": [],
    "upload": ["upload", "--step", "7"],
    "upload-empty": [],
    "upload-chunked": ["upload-chunked", "--step", "7"],
    "upload-patch": [],
    "upload-file": [],
    "mime-fields": [],
    "mime-file": [],
    "mime-callback": ["mime-callback", "--seek"],
    "mime-chunked": ["mime-chunked", "--seek", "--step", "7"],
    "mime-nested": [],
    "mime-type": [],
    "form": [],
    "form-file": [],
    "form-stream": ["form-stream", "--seek"],
    "post-read-big": ["post-read", "--size", "3000000"],
    "upload-chunked-big": ["upload-chunked", "--size", "3000000"],
    "mime-fields-big": ["mime-fields", "--size", "3000000"],
    "mime-chunked-big": ["mime-chunked", "--seek", "--size", "3000000"],
}


def bodies(world, kind, url, *args, stdin=None, **env):
    options = KINDS.get(kind) or [kind]
    program = [client("bodies"), options[0], url, *options[1:], "--file", world.write("order.txt", "an order\n" * 9), *args]
    if stdin is not None:
        program = ["sh", "-c", 'file=$1; shift; exec "$@" < "$file"', "sh", world.write("stdin", stdin), *program]
    result = world.run(program, **env)
    assert result.rc == 0 and result.err == "", result
    return [World.post_answer(line) for line in result.out.splitlines()]


def field(answer, name):
    return dict(x.split("=", 1) for x in answer.out.split("\t"))[name]


@pytest.mark.san
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_once_and_as_native(everything, server, kind):
    url = server.base + "/orders"
    native = bodies(everything, kind, url, preload=False)[0]
    first, second = bodies(everything, kind, url, "--tries", "2")
    untouched, ours = server.writes()
    assert native.rc == first.rc == 0 and native.status == first.status == 201
    assert without_key(ours.raw) == neutral(untouched.raw)
    assert second.replayed and second.body == first.body and server.executions == 2
    assert field(first, "sent") == field(native, "sent")


@pytest.mark.san
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_in_place(everything, server, kind):
    """A callback that only the program's own transfer can run keeps it on the program's handle."""
    url = server.base + "/orders"
    native = bodies(everything, kind, url, preload=False)[0]
    first, second, third = bodies(everything, kind, url, "--sockopt", "--tries", "3")
    untouched, ours = server.writes()
    assert native.rc == first.rc == 0 and native.status == first.status == 201
    assert without_key(ours.raw) == neutral(untouched.raw)
    assert second.replayed and third.replayed and third.body == first.body and server.executions == 2
    assert everything.stats()["in_place"] == 1 and everything.events("unprotected") == []


# --- forms that can be read only once: a part with a read callback and no seek callback
ONCE = ["mime-callback", "mime-chunked", "form-stream"]
# How it is served: what the policy says on top, and options of the C program.
WAYS = {"courier": ({}, []), "in-place": ({}, ["--sockopt"]), "inject": ({"mode": "inject"}, []), "audit": ({"mode": "audit"}, [])}


def once(world, kind, *args, **env):
    """`kind` without what KINDS adds: it cannot seek."""
    program = [client("bodies"), kind, args[0], "--file", world.write("order.txt", "x"), *args[1:]]
    result = world.run(program, **env)
    assert result.rc == 0 and result.err == "", result
    return [World.post_answer(line) for line in result.out.splitlines()]


@pytest.mark.san
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ONCE)
def test_a_form_that_can_be_read_only_once(everything, server, kind, way):
    top, options = WAYS[way]
    everything.policy(match="POST http://127.0.0.1:*/orders", top=top)
    url = server.base + "/orders"
    native = once(everything, kind, url, *options, preload=False)[0]
    ours = once(everything, kind, url, *options)[0]
    untouched, sent = server.writes()
    assert (native.rc, native.status) == (ours.rc, ours.status) == (0, 201)
    assert field(ours, "reads") == field(native, "reads") and field(ours, "sent") == field(native, "sent")
    assert (neutral if way == "audit" else without_key)(sent.raw) == neutral(untouched.raw)
    assert everything.events("unprotected") == []


@pytest.mark.parametrize("way", ["courier", "in-place"])
@pytest.mark.parametrize("kind", ONCE)
def test_a_form_without_a_way_back_that_was_not_sent(everything, server, kind, way):
    """libcurl reads nothing before it is connected, so the next try has the whole form."""
    with Listener() as gone:
        port = gone.port
    args = [kind, "http://127.0.0.1:%d/orders" % port, "--tries", "2", "--native-url", server.base + "/orders",
            "--keep-position", *WAYS[way][1]]
    native = once(everything, *args, preload=False)
    ours = once(everything, *args)
    assert [a.rc for a in ours] == [7, 0]
    if [a.rc for a in native] == [7, 26]:  # libcurl 8.7 and later have read an HTTPPOST's by then
        return
    assert [a.rc for a in native] == [7, 0]
    untouched, sent = server.writes()
    assert without_key(sent.raw) == neutral(untouched.raw)


@pytest.mark.parametrize("way", ["in-place", "inject"])
@pytest.mark.parametrize("kind,status", [("mime-callback", 307), ("mime-callback", 303), ("mime-callback", 302), ("form-stream", 303)])
def test_a_form_in_place_is_redirected_as_natively(everything, server, kind, way, status):
    everything.policy(match="POST http://127.0.0.1:*/orders", top=WAYS[way][0])
    to = server.base + "/moved"
    seen = []
    for preload in (False, True):
        server.reset()
        answer = bodies(everything, kind, "%s/orders?redirect=%d&to=%s" % (server.base, status, to), "--seek",
                        *WAYS[way][1], preload=preload)[0]
        assert answer.rc == 0, answer
        seen.append([neutral(r.raw) for r in server.requests])
    assert [without_key(raw) for raw in seen[1]] == seen[0]


@pytest.mark.parametrize("kind", ["mime-fields", "form"])
def test_a_form_in_place_whose_login_is_asked_for(everything, server, kind):
    host = server.base.replace("http://", "http://u:p@") + "/orders?auth=digest"
    native = bodies(everything, kind, host, "--seek", "--digest", preload=False)[0]
    untouched = len(server.requests)
    ours = bodies(everything, kind, host, "--seek", "--digest", "--sockopt")[0]
    assert (ours.rc, ours.status) == (native.rc, native.status) == (0, 201) and server.executions == 2
    lengths = [r.header("Content-Length") for r in server.requests]
    assert lengths[untouched:] == lengths[:untouched]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["mime-callback", "form-stream"])
def test_a_form_with_fewer_bytes_than_announced(everything, server, kind, way):
    """libcurl sends what there is and waits for an answer."""
    everything.policy(match="POST http://127.0.0.1:*/orders", top=WAYS[way][0], exit_wait="0s")
    args = [server.base + "/orders", "--manner", "short", "--timeout-ms", "600", *WAYS[way][1]]
    native = once(everything, kind, *args, preload=False)[0]
    ours = once(everything, kind, *args)[0]
    milliseconds = re.compile(r"after \d+ m")
    assert (ours.rc, milliseconds.sub("", ours.err)) == (native.rc, milliseconds.sub("", native.err))
    assert ours.rc == 28 and server.executions == 0
    if "libcurl/8" in everything.run(["curl", "-V"], preload=False).out:  # there it is not told from a pause: nothing leaves
        return
    assert field(ours, "sent") == field(native, "sent")
    if way in ("courier", "in-place"):
        assert everything.states() == ["unknown"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_timeout_and_a_retry_are_one_write(everything, server, kind):
    url = server.base + "/orders?late=0.8&times=1"
    first, second = bodies(everything, kind, url, "--tries", "2", "--first-timeout-ms", "300")
    assert first.rc == 28 and second.rc == 0 and second.status == 201, (first, second)
    assert server.executions == 1 and second.order == "ord-1"


@pytest.mark.parametrize("kind", ["post-chunked", "mime-fields", "mime-nested", "form"])
def test_another_process_replays(everything, server, kind):
    url = server.base + "/orders"
    assert not bodies(everything, kind, url)[0].replayed
    assert bodies(everything, kind, url)[0].replayed
    assert server.executions == 1


def test_stdin(everything, server):
    url = server.base + "/orders"
    bodies(everything, "post-stdin", url, stdin="from stdin", preload=False)
    assert bodies(everything, "post-stdin", url, stdin="from stdin")[0].status == 201
    assert bodies(everything, "post-stdin", url, stdin="from stdin")[0].replayed
    untouched, ours = server.writes()
    assert without_key(ours.raw) == untouched.raw and b"from stdin" in ours.body


# --- callbacks that do not simply give
@pytest.mark.san
@pytest.mark.parametrize("manner", ["abort", "abort-later", "funny"])
@pytest.mark.parametrize("kind", ["post-read", "post-chunked", "upload"])
def test_a_callback_that_ends_it_ends_it_as_natively(everything, server, kind, manner):
    args = [kind, server.base + "/orders", "--manner", manner, "--step", "7"]
    native = bodies(everything, *args, preload=False)[0]
    ours = bodies(everything, *args)[0]
    assert (ours.rc, ours.err) == (native.rc, native.err)
    assert ours.status == 0 and native.status in (0, 100)  # natively the server was asked to continue first
    assert ours.rc in (26, 42) and field(ours, "reads") == field(native, "reads")
    assert server.executions == 0 and server.keys() == [] and everything.records() == []


@pytest.mark.parametrize("kind", ["mime-callback", "mime-chunked"])
def test_a_part_that_aborts_ends_it_as_natively(everything, server, kind):
    args = [kind, server.base + "/orders", "--manner", "abort"]
    native = bodies(everything, *args, preload=False)[0]
    ours = bodies(everything, *args)[0]
    assert (ours.rc, ours.err) == (native.rc, native.err) and ours.rc == 42
    assert server.executions == 0 and everything.records() == []


@pytest.mark.san
@pytest.mark.parametrize("kind", ["post-read", "post-chunked", "upload", "mime-callback", "mime-chunked"])
def test_a_pause_that_the_progress_callback_ends(everything, server, kind):
    url = server.base + "/orders"
    native = bodies(everything, kind, url, "--manner", "pause", "--step", "7", preload=False)[0]
    ours = bodies(everything, kind, url, "--manner", "pause", "--step", "7")[0]
    assert ours.rc == native.rc == 0 and ours.status == 201
    untouched, sent = server.writes()
    assert without_key(sent.raw) == neutral(untouched.raw)


def test_the_deadline_goes_on_while_a_callback_is_slow(everything, server):
    args = ["post-read", server.base + "/orders", "--manner", "slow", "--step", "7", "--timeout-ms", "500"]
    ours = bodies(everything, *args)[0]
    assert ours.rc == 28 and "Operation timed out after" in ours.err and ours.seconds < 1.5
    assert server.keys() == [] and everything.records() == []


@pytest.mark.parametrize("kind", ["post-read", "upload"])
def test_fewer_bytes_than_announced_wait_as_natively(everything, server, kind):
    args = [kind, server.base + "/orders", "--manner", "short", "--timeout-ms", "700"]
    native = bodies(everything, *args, preload=False)[0]
    ours = bodies(everything, *args)[0]
    assert ours.rc == native.rc and server.executions == 0
    if native.rc == 26:  # libcurl 8.7 and later: an error of the program's
        return
    assert ours.rc == 28
    assert field(ours, "sent") == field(native, "sent") == "37"
    assert everything.states() == ["unknown"]


@pytest.mark.san
@pytest.mark.parametrize("kind", ["post-read", "upload-chunked", "mime-callback", "mime-chunked", "form-stream"])
def test_a_callback_may_jump_out(everything, server, kind):
    answers = bodies(everything, kind, server.base + "/orders", "--manner", "jump", "--tries", "2")
    assert [a.rc for a in answers] == [0, 0] and answers[1].replayed and server.executions == 1


# --- the program's stream
@pytest.mark.parametrize("kind", ["post-read", "post-chunked", "post-file", "upload-file"])
def test_what_could_not_be_sent_is_there_for_the_next_try(everything, server, kind):
    """libcurl reads nothing before it is connected, so a program need not wind its stream back."""
    with Listener() as gone:
        port = gone.port
    args = [kind, "http://127.0.0.1:%d/orders" % port, "--tries", "2", "--keep-position", "--native-url",
            server.base + "/orders"]
    native = bodies(everything, *args, preload=False)
    ours = bodies(everything, *args)
    assert [a.rc for a in native] == [a.rc for a in ours] == [7, 0]
    untouched, sent = server.writes()
    assert without_key(sent.raw) == untouched.raw


# --- forms that libcurl itself has to send in between
@pytest.mark.san
@pytest.mark.parametrize("kind", ["mime-fields", "mime-callback", "mime-nested", "form"])
def test_a_form_goes_back_and_forth(everything, server, kind):
    """Every second try goes where no rule is."""
    url = server.base
    args = ["--tries", "5", "--native-url", url + "/elsewhere"]
    bodies(everything, kind, url + "/orders", *args, preload=False)
    native = [neutral(r.raw) for r in server.writes()]
    server.reset()
    answers = bodies(everything, kind, url + "/orders", *args)
    assert [a.rc for a in answers] == [0] * 5 and [a.replayed for a in answers] == [False, False, True, False, True]
    ours = server.writes()
    assert [r.path for r in ours] == ["/orders", "/elsewhere", "/elsewhere"]
    assert without_key(ours[0].raw) == native[0] and [neutral(r.raw) for r in ours[1:]] == [native[1], native[3]]


@pytest.mark.parametrize("kind", ["mime-fields", "mime-callback"])
def test_a_form_that_was_sent_elsewhere_first(everything, server, kind):
    url = server.base
    answers = bodies(everything, kind, url + "/elsewhere", "--tries", "4", "--native-url", url + "/orders")
    assert [a.rc for a in answers] == [0] * 4 and answers[3].replayed
    sent = [neutral(r.raw).split(b"\r\n\r\n", 1)[1] for r in server.writes()]
    assert len(sent) == 3 and len(set(sent)) == 1


@pytest.mark.san
@pytest.mark.parametrize("way", WAYS)
def test_a_form_that_its_program_has_freed(everything, server, way):
    """libcurl takes it off its handle, which then has an empty one."""
    everything.policy(match="POST http://127.0.0.1:*/orders", top=WAYS[way][0], repeat="after-answer")
    args = [server.base + "/orders", "--tries", "3", "--free-form", *WAYS[way][1]]
    native = bodies(everything, "mime-fields", *args, preload=False)
    ours = bodies(everything, "mime-fields", *args)
    assert [(a.rc, a.status) for a in ours] == [(a.rc, a.status) for a in native]
    sent = [neutral(r.raw).split(b"\r\n\r\n", 1)[1] for r in server.writes()]
    assert sent[len(sent) // 2:] == sent[:len(sent) // 2] and len(sent) == 6 and len(set(sent)) == 2
    assert everything.events("unprotected") == []


@pytest.mark.san
def test_the_form_of_a_copied_handle_is_the_handles(everything, server):
    answers = bodies(everything, "mime-fields", server.base + "/orders", "--tries", "3", "--copy")
    assert [a.rc for a in answers] == [0, 0, 0] and [a.replayed for a in answers] == [False, True, True]
    assert server.executions == len(server.writes()) == 1 and everything.events("unprotected") == []


@pytest.mark.parametrize("kind", ["mime-callback", "mime-chunked"])
def test_a_part_without_a_way_back(everything, server, kind, monkeypatch):
    """libcurl cannot send such a form twice, and says so; that holds whoever read it."""
    monkeypatch.setitem(KINDS, kind, [kind])
    args = [kind, server.base + "/orders", "--tries", "3", "--native-url", server.base + "/elsewhere", "--timeout-ms", "4000"]
    native = bodies(everything, *args, preload=False)
    ours = bodies(everything, *args)
    assert [(a.rc, a.err) for a in ours] == [(a.rc, a.err) for a in native] == [(0, ""), (65, ""), (65, "")]
    untouched, sent = server.writes()
    assert without_key(sent.raw) == neutral(untouched.raw)


# --- redirects
@pytest.mark.parametrize("kind", ["post-read", "upload-chunked", "mime-fields", "form"])
@pytest.mark.parametrize("status", [307, 303, 302])
def test_redirects(everything, server, kind, status):
    def requests(preload):
        server.reset()
        to = server.base + "/moved"
        answer = bodies(everything, kind, "%s/orders?redirect=%d&to=%s" % (server.base, status, to), "--seek",
                        run="run-%d" % preload, preload=preload)[0]
        assert answer.rc == 0, answer
        return [neutral(r.raw) for r in server.requests]

    native, ours = requests(False), requests(True)
    assert [without_key(raw) for raw in ours] == native


@pytest.mark.parametrize("kind", ["post-read", "upload", "mime-fields", "form"])
def test_a_login_that_is_asked_for(everything, server, kind):
    """Digest: the first request goes without a body, and without its length."""
    host = server.base.replace("http://", "http://u:p@")
    native = bodies(everything, kind, host + "/orders?auth=digest", "--seek", "--digest", preload=False)[0]
    untouched = len(server.requests)
    ours = bodies(everything, kind, host + "/orders?auth=digest", "--seek", "--digest")[0]
    assert (ours.rc, ours.status) == (native.rc, native.status) == (0, 201) and server.executions == 2
    lengths = [r.header("Content-Length") for r in server.requests]
    assert lengths[untouched:] == lengths[:untouched]


# --- too large
def test_a_body_over_the_limit_is_refused(world, server):
    world.policy(match="POST,PUT http://127.0.0.1:*/orders", max_request="64KiB")
    for number, kind in enumerate(("post-read", "post-chunked", "upload", "mime-fields", "form")):
        refused = bodies(world, kind, server.base + "/orders", "--size", "70000", "--seek")[0]
        assert refused.status == 403 and refused.reason == "body-too-large", (kind, refused)
        assert bodies(world, kind, server.base + "/orders", "--size", str(60000 + number), "--seek")[0].status == 201, kind
    assert server.executions == 5


@pytest.mark.parametrize("kind", ["post-read", "post-chunked", "upload-chunked", "post-file", "mime-fields", "mime-callback", "form"])
def test_or_passes_if_the_policy_says_so(world, server, kind):
    world.policy(match="POST,PUT http://127.0.0.1:*/orders", max_request="64KiB", oversize="pass")
    args = [server.base + "/orders", "--size", "200000", "--seek", "--tries", "2"]
    natives = bodies(world, kind, *args, preload=False)
    answers = bodies(world, kind, *args)
    assert [a.rc for a in answers] == [a.rc for a in natives] == [0, 0]
    sent = [neutral(r.raw) for r in server.writes()]
    assert sent[2:] == sent[:2] and server.keys() == [None] * 4
    events = world.events("unprotected")
    assert [e["reason"] for e in events] == ["larger than max_request"] * 2


# --- the curl tool
def test_curl_uploads_and_forms(everything, server):
    order, url = everything.write("order.txt", "an order"), server.base + "/orders"
    for args in (["-T", order], ["-X", "POST", "-T", order], ["-F", "file=@" + order, "-F", "a=b"]):
        everything.curl(*args, url, preload=False)
        assert everything.curl(*args, url).status == 201
        assert everything.curl(*args, url).replayed
        untouched, ours = server.writes()[-2:]
        assert without_key(ours.raw) == neutral(untouched.raw)
    assert server.executions == 6


def test_curl_uploads_stdin_in_chunks(everything, server):
    order, url = everything.write("order.txt", "an order " * 20000), server.base + "/orders"
    for preload in (False, True, True):
        result = everything.run(["sh", "-c", 'curl -q -sS -T - "$1" < "$2"', "sh", url, order], preload=preload)
        assert result.rc == 0, result
    untouched, ours = server.writes()
    assert without_key(ours.raw) == untouched.raw and ours.header("Transfer-Encoding") == "chunked"


@pytest.mark.parametrize("args", [["-T", "order.txt"], ["-F", "file=@order.txt"]], ids=" ".join)
def test_curl_retries_are_one_write(everything, server, args):
    everything.write("order.txt", "an order")
    answer = everything.curl(*args, "-m", "0.3", "--retry", "5", "--retry-delay", "1", server.base + "/orders?late=1&times=1")
    assert answer.rc == 0 and answer.order == "ord-1" and server.executions == 1
