"""What libsendonce-core.so is as a file: a guest in somebody else's process."""
import re
import subprocess


def output(*command):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True, timeout=60).stdout


def test_exports_its_start_and_nothing_else(core):
    exported = [line.split()[-1] for line in output("nm", "-D", "--defined-only", core).splitlines()]
    assert exported == ["sendonce_core_start"]


def test_needs_libc_only(core):
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", core))
    assert needed and set(needed) <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def test_no_constructor_of_its_own(core):
    """crtbeginS.o brings frame_dummy; whatever else is here runs in every host before its main."""
    dynamic = output("readelf", "-dW", core)
    sizes = {kind: int(size) for kind, size in re.findall(r"\((INIT_ARRAY|FINI_ARRAY)SZ\)\s+(\d+)", dynamic)}
    assert sizes.get("INIT_ARRAY", 0) <= 8
    assert sizes.get("FINI_ARRAY", 0) <= 8


def test_no_executable_stack_or_text_relocation(core):
    assert "TEXTREL" not in output("readelf", "-dW", core)
    line = next(l for l in output("readelf", "-lW", core).splitlines() if "GNU_STACK" in l)
    assert " RW " in line and "RWE" not in line


def test_links_to_no_libcurl(core):
    """The host's libcurl is found, never linked to: an import would bind to our own entries."""
    imports = output("nm", "-D", "--undefined-only", core)
    assert "curl_" not in imports
