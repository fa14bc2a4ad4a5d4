"""memcheck, over one write that is executed, replayed, refused: nothing of ours is wrong or lost."""
import xml.etree.ElementTree as ElementTree

import pytest

from harness import SAN, client


def complaints(path):
    """Errors that have one of our objects on their stack."""
    found = []
    for error in ElementTree.parse(path).getroot().iter("error"):
        kind = error.findtext("kind")
        frames = ["%s (%s:%s) in %s" % (f.findtext("fn"), f.findtext("file"), f.findtext("line"), f.findtext("obj"))
                  for f in error.iter("frame")]
        if kind not in ("Leak_StillReachable", "Leak_PossiblyLost") and any("libsendonce" in f for f in frames):
            found.append("%s\n  %s" % (kind, "\n  ".join(frames)))
    return found


def memcheck(world, *args, program="post", **env):
    report = world.path("memcheck.xml")
    result = world.run(["valgrind", "--quiet", "--xml=yes", "--xml-file=" + report, "--leak-check=full", "--show-leak-kinds=definite",
                        "--num-callers=30", client(program), *args], timeout=120, **env)
    assert result.rc == 0, result
    found = complaints(report)
    assert not found, "\n\n".join(found)
    return [world.post_answer(line) for line in result.out.splitlines()]


def test_an_easy_write(world, server):
    if SAN:
        return  # the sanitizer's build does its own checking and does not run under memcheck
    first, second = memcheck(world, "--tries", "2", server.base + "/orders")
    assert (first.status, second.status, second.replayed) == (201, 201, True)
    assert server.executions == 1


def test_a_write_left_behind_and_one_refused(world, server):
    if SAN:
        return
    world.policy(exit_wait="1s")
    first, _ = memcheck(world, "--tries", "2", "--new", "--timeout-ms", "2000", server.base + "/orders?late=20")
    assert first.rc == 28 and server.executions == 1


def test_the_refusal(world, server):
    if SAN:
        return
    first, second = memcheck(world, "--tries", "2", server.base + "/orders?status=500")
    assert first.status == 500 and second.reason == "unknown-outcome"


@pytest.mark.parametrize("kind", ["post-read", "post-chunked", "upload", "upload-chunked", "mime-fields", "mime-nested", "mime-file", "form"])
def test_each_kind_of_body(world, server, kind):
    """Sent, answered again, and once sent by libcurl itself."""
    if SAN:
        return
    world.policy(match="POST,PUT http://127.0.0.1:*/orders")
    answers = memcheck(world, kind, server.base + "/orders", "--tries", "3", "--native-url", server.base + "/elsewhere", "--file",
                       world.write("order", "order"), program="bodies")
    assert [a.status for a in answers] == [201] * 3 and answers[2].replayed
