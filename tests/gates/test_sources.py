"""The sources as such: no warning from either compiler, and the one format."""
import subprocess

import pytest

WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Wstrict-prototypes", "-Werror"]


def tracked(root, *patterns):
    listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", *patterns], cwd=root, capture_output=True,
                            text=True, timeout=60)
    if listed.returncode == 0 and listed.stdout:
        return [root / name for name in listed.stdout.split()]
    folders = ("src", "include", "tests")  # an unpacked archive has no git
    return sorted(p for f in folders for pattern in patterns for p in (root / f).rglob(pattern))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_no_warning(compiler, root, tmp_path):
    """At the level of the build, -O2, since some warnings need the optimizer."""
    failed = []
    for source in tracked(root, "*.c"):
        if "src" not in source.relative_to(root).parts:
            continue
        result = subprocess.run([compiler, "-std=c11", "-D_GNU_SOURCE", *WARNINGS, "-Isrc", "-Iinclude", "-O2", "-fPIC",
                                 "-fvisibility=hidden", "-c", "-o", str(tmp_path / "x.o"), str(source)], cwd=root,
                                capture_output=True, text=True, timeout=120)
        if result.returncode:
            failed.append(result.stderr)
    assert not failed, "\n".join(failed)


def test_format(root):
    files = tracked(root, "*.c", "*.h")
    assert files
    result = subprocess.run(["clang-format", "--dry-run", "-Werror", *map(str, files)], cwd=root, capture_output=True,
                            text=True, timeout=120)
    assert result.returncode == 0, result.stderr


def test_no_file_is_empty(root):
    assert not [str(path) for path in tracked(root, "*") if path.is_file() and path.stat().st_size == 0]


def test_preload_uses_no_libc_header(root):
    for source in (root / "src/preload").iterdir():
        if source.suffix not in (".c", ".h", ".S"):
            continue
        for line in source.read_text().splitlines():
            if line.startswith("#include <"):
                assert line.startswith(("#include <linux/", "#include <asm/")), "%s: %s" % (source.name, line)


def test_makefile_stays_small(root):
    assert len((root / "Makefile").read_text().splitlines()) <= 150


# Data flows this way; a room may include only rooms behind it. policy and ledger serve every room and know none.
ROOMS = ["intercept", "request", "policy", "identity", "ledger", "verdict", "courier", "player"]
SERVE_ALL = {"policy", "ledger", "base"}
ANY = {"cli", "report", "preload"}


def may_include(room, other):
    if other == room or other == "base" or room in ANY:
        return True
    if room in SERVE_ALL:
        return False
    return other in SERVE_ALL or (other in ROOMS and ROOMS.index(other) > ROOMS.index(room))


def test_calls_go_down_the_line(root):
    wrong = []
    for source in sorted((root / "src").glob("*/*.[ch]")):
        for line in source.read_text().splitlines():
            if line.startswith('#include "') and "/" in line:
                other = line.split('"')[1].split("/")[0]
                if not may_include(source.parent.name, other):
                    wrong.append("%s: %s" % (source.relative_to(root), line))
    assert not wrong, "\n".join(wrong)


def test_functions_fit_a_page(root):
    long = []
    for source in sorted((root / "src").glob("*/*.c")):
        start = None
        for number, line in enumerate(source.read_text().splitlines(), 1):
            if line == "{":
                start = number
            elif line == "}" and start:
                if number - start + 1 > 45:
                    long.append("%s:%d: %d lines" % (source.relative_to(root), start, number - start + 1))
                start = None
    assert not long, "\n".join(long)


def test_unit_tests_with_threads_end_with_the_first_failure(root):
    """Else the next test runs while threads still write to the frame of the one that failed."""
    texts = {path.name: path.read_text() for path in sorted((root / "tests/unit").glob("*.[ch]"))}
    bring = [name for name in texts if '#include "unit/threads_here.h"' in texts[name]] + ["threads_here.h"]
    wrong = [name for name in texts if "pthread_create(" in texts[name] and name not in bring
             and not any('#include "unit/%s"' % header in texts[name] for header in bring)]
    assert not wrong, "these start threads without unit/threads_here.h: " + ", ".join(wrong)
