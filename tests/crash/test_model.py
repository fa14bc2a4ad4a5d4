"""The model of a record is searched whole, and finds the bugs that are put into it."""
import os
import re
import subprocess

SOAK = bool(os.environ.get("SENDONCE_SOAK"))


def test_the_model_holds_and_finds_its_bugs(root, build):
    """Short: the two smallest searches, and every bug. `make model` has all but the longest."""
    result = subprocess.run([str(root / "tests/model/run"), "--long" if SOAK else "--short"], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, timeout=3600 if SOAK else 300,
                            env=dict(os.environ, BUILD=str(build)))
    print(result.stdout)
    assert result.returncode == 0, result.stdout
    assert len(re.findall(r"^ok   bug: ", result.stdout, re.M)) == 8
    assert len(re.findall(r"^ok   .* states, depth", result.stdout, re.M)) >= 2
