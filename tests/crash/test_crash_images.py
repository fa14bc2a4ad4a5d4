"""What a power loss leaves of a ledger of durability `power`: 1,000 images, 100,000 with SENDONCE_SOAK."""
import os
import pathlib
import subprocess
import tempfile

SOAK = bool(os.environ.get("SENDONCE_SOAK"))
SHARED_MEMORY = pathlib.Path("/dev/shm")


def test_crash_images(build):
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None) as folder:
        result = subprocess.run([str(build / "tests/crash/crash_images"), folder, "100000" if SOAK else "1000"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    print(result.stdout)
    assert result.returncode == 0, result.stdout
    assert " images, " in result.stdout
