"""A kill after every instruction of every transition; with SENDONCE_SOAK a real one, and a stall, at every 301st too."""
import os
import pathlib
import subprocess
import tempfile

SOAK = bool(os.environ.get("SENDONCE_SOAK"))
SHARED_MEMORY = pathlib.Path("/dev/shm")


def test_step_killer(build):
    """Images of every instruction always; children that are really killed or stalled cost a walk to the place each."""
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None) as folder:
        result = subprocess.run([str(build / "tests/crash/step_killer"), folder, "301" if SOAK else "9001"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                timeout=4 * 3600 if SOAK else 300)
    print(result.stdout)
    assert result.returncode == 0, result.stdout
    assert "orphan: " in result.stdout
