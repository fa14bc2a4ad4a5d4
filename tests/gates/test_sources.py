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


def test_preload_uses_no_libc_header(root):
    for source in (root / "src/preload").iterdir():
        if source.suffix not in (".c", ".h", ".S"):
            continue
        for line in source.read_text().splitlines():
            if line.startswith("#include <"):
                assert line.startswith(("#include <linux/", "#include <asm/")), "%s: %s" % (source.name, line)


def test_makefile_stays_small(root):
    assert len((root / "Makefile").read_text().splitlines()) <= 150
