"""What the documents promise about tests and commands is there."""
import os
import pathlib
import re
import subprocess

import pytest

TESTS = pathlib.Path(__file__).resolve().parent.parent
ROOT = TESTS.parent


def exists(reference):
    """FILE::TEST or FILE, with or without its ending, under tests/."""
    name, _, test = reference.partition("::")
    files = [TESTS / (name + end) for end in ("", ".py", ".c") if (TESTS / (name + end)).is_file()]
    if not files:
        return False
    return not test or re.search(r"^(def|static void) %s\b" % re.escape(test), files[0].read_text(), re.M) is not None


def references(path):
    return re.findall(r"\b(?:gates|clients|unit|crash)/test_\w+(?:\.py|\.c)?(?:::\w+)?", path.read_text())


def test_every_hazard_has_its_line():
    rows = re.findall(r"^\| (\d+) \|", (TESTS / "hazards.md").read_text(), re.M)
    assert [int(n) for n in rows] == list(range(1, 55))


@pytest.mark.parametrize("page", ["tests/hazards.md", "docs/security.md"])
def test_tests_that_are_named_exist(page):
    found = references(ROOT / page)
    assert len(found) > 10 and [r for r in found if not exists(r)] == []


def test_a_name_that_is_not_there_is_noticed():
    assert not exists("gates/test_docs.py::test_nothing") and not exists("unit/test_nothing") and exists("gates/test_docs")


def blocks(page):
    """Fenced blocks that a `run` mark precedes."""
    return re.findall(r"<!-- run -->\n```sh\n(.*?)```", (ROOT / page).read_text(), re.S)


def test_commands_of_the_containers_page(tmp_path):
    """With sendonce installed as the image's recipe installs it."""
    if os.environ.get("SAN"):
        return  # it shows the product as users build it
    build = os.path.join(ROOT, os.environ.get("BUILD", "build"))
    out = tmp_path / "out"
    subprocess.run(["make", "-C", str(ROOT), "install", "BUILD=" + build, "DESTDIR=" + str(out)], check=True, capture_output=True, timeout=300)
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nscope: s\nwrites:\n  - operation: a\n    match: POST https://api.example.com/v1/a\n    identity: {account: none}\n")
    commands = blocks("docs/containers.md")
    assert len(commands) == 1
    for line in commands[0].splitlines():
        result = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                                env={"PATH": "%s/usr/bin:/usr/bin:/bin" % out, "HOME": str(tmp_path), "SENDONCE_POLICY": str(policy),
                                     "LIBRARY": "%s/usr/lib/sendonce/libsendonce.so" % out})
        assert result.returncode == 0, (line, result)


def test_yaml_of_the_pages_is_yaml(tmp_path):
    """By the same parser that reads policies: an unknown key is told at its place, a fault in the YAML as one."""
    build = os.path.join(ROOT, os.environ.get("BUILD", "build"))
    found = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/containers.md").read_text(), re.S)
    assert len(found) == 2
    for number, text in enumerate(found):
        page = tmp_path / ("%d.yaml" % number)
        page.write_text(text)
        result = subprocess.run([build + "/sendonce", "check", str(page)], capture_output=True, text=True, timeout=60,
                                env={"PATH": "/usr/bin:/bin", "TASK_ID": "one"})
        assert result.returncode == 1 and re.search(r"unknown key|version", result.stderr), result
