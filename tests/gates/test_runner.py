"""tests/run itself: what looks like success in other runners is a failure here."""
import os
import shutil
import subprocess

import pytest

CMOCKA = r"""
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
static void good(void **state) { (void)state; }
static void bad(void **state) { (void)state; assert_int_equal(1, 2); }
static void skipped(void **state) { (void)state; skip(); }
static void crash(void **state) { (void)state; abort(); }
int main(void)
{
	const struct CMUnitTest tests[] = {TESTS};
	(void)good, (void)bad, (void)skipped, (void)crash;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
"""

UNITS = {
    "good": ("cmocka_unit_test(good), cmocka_unit_test(good)", 0, "2 passed, 0 failed, 0 skipped"),
    "bad": ("cmocka_unit_test(good), cmocka_unit_test(bad)", 1, "1 passed, 1 failed, 0 skipped"),
    "unnamed-skip": ("cmocka_unit_test(skipped)", 1, "0 passed, 1 failed, 0 skipped"),
    "crash": ("cmocka_unit_test(good), cmocka_unit_test(crash)", 1, "0 passed, 1 failed, 0 skipped"),
}

SCRIPTS = {
    "good": ("def test_a(): pass", 0, "1 passed, 0 failed, 0 skipped"),
    "bad": ("def test_a(): assert 0\ndef test_b(): pass", 1, "1 passed, 1 failed, 0 skipped"),
    "empty": ("x = 1", 1, "0 passed, 1 failed, 0 skipped"),
    "broken": ("import no_such_module", 1, "0 passed, 1 failed, 0 skipped"),
    "exits": ("import os\ndef test_a(): os._exit(0)", 1, "0 passed, 1 failed, 0 skipped"),
    "skip": ("import pytest\ndef test_a(): pytest.skip('x')", 1, "0 passed, 1 failed, 0 skipped"),
}


@pytest.fixture
def tree(root, tmp_path):
    """A project of its own with our runner and no tests yet."""
    for folder in ("tests/unit", "tests/gates", "build/unit"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(root / "tests/run", tmp_path / "tests")
    shutil.copy(root / "tests/conftest.py", tmp_path / "tests")
    (tmp_path / "tests/allowed-skips").write_text("# none\n")
    return tmp_path


def run(tree, *arguments):
    env = dict(os.environ, BUILD="build")
    result = subprocess.run([str(tree / "tests/run"), *arguments], env=env, capture_output=True, text=True, timeout=100)
    return result.returncode, result.stdout.splitlines()[-1] if result.stdout else result.stderr


@pytest.mark.parametrize("name", UNITS)
def test_unit_program(tree, name):
    tests, code, last = UNITS[name]
    source = tree / "tests/unit/test_x.c"
    source.write_text(CMOCKA)
    subprocess.run(["gcc", "-DTESTS=" + tests, "-o", str(tree / "build/unit/test_x"), str(source), "-lcmocka"],
                   check=True, timeout=60)
    assert run(tree) == (code, last)


THREADS = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include "unit/threads_here.h"
static void *late(void *arg) { usleep(100000); ++*(int *)arg; return NULL; }
static void first(void **state)
{
	pthread_t thread;
	int mine = 0;
	(void)state;
	pthread_create(&thread, NULL, late, &mine);
	assert_int_equal(17, 18);
	pthread_join(thread, NULL);
}
static void second(void **state) { (void)state; fprintf(stderr, "the second runs\n"); }
"""


def test_failure_while_a_thread_uses_the_frame_of_the_test(root, tree):
    """Whatever would come after it is not run, and what has failed is told."""
    source = tree / "tests/unit/test_x.c"
    source.write_text(CMOCKA.replace("static void good", THREADS + "static void good"))
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-I", str(root / "tests"), "-o", str(tree / "build/unit/test_x"), str(source),
                    "-DTESTS=cmocka_unit_test(first), cmocka_unit_test(second)", "-lcmocka", "-lpthread"],
                   check=True, timeout=60)
    result = subprocess.run([str(tree / "tests/run")], env=dict(os.environ, BUILD="build"), capture_output=True,
                            text=True, timeout=100)
    assert result.returncode == 1 and "0x11 != 0x12" in result.stdout
    assert "the second runs" not in result.stdout


def test_unit_program_that_was_not_built(tree):
    (tree / "tests/unit/test_x.c").write_text("int main(void) { return 0; }")
    assert run(tree) == (1, "0 passed, 1 failed, 0 skipped")


def test_unit_program_that_runs_no_test(tree):
    (tree / "tests/unit/test_x.c").write_text("")
    shutil.copy("/bin/true", tree / "build/unit/test_x")
    assert run(tree) == (1, "0 passed, 1 failed, 0 skipped")


@pytest.mark.parametrize("name", SCRIPTS)
def test_pytest_file(tree, name):
    text, code, last = SCRIPTS[name]
    (tree / "tests/gates/test_y.py").write_text(text + "\n")
    assert run(tree) == (code, last)


def test_named_skip(tree):
    (tree / "tests/gates/test_y.py").write_text(SCRIPTS["skip"][0] + "\n")
    (tree / "tests/allowed-skips").write_text("test_y.py::test_a  # needs a kernel this machine has not\n")
    assert run(tree) == (0, "0 passed, 0 failed, 1 skipped")
    (tree / "tests/allowed-skips").write_text("test_y.py::test_a\n")
    code, last = run(tree)
    assert code == 1 and "no reason given" in last


def test_nothing_at_all(tree):
    assert run(tree) == (1, "0 passed, 1 failed, 0 skipped")


def test_only_marked_ones_under_sanitizers(tree):
    (tree / "tests/gates/test_y.py").write_text("import pytest\n@pytest.mark.san\ndef test_a(): pass\n"
                                                "def test_b(): assert 0\n")
    (tree / "tests/gates/test_z.py").write_text("def test_a(): assert 0\n")
    assert run(tree, "--san") == (0, "1 passed, 0 failed, 0 skipped")
