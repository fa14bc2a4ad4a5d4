"""What libsendonce.so is as a file: everything a loader could stumble over, checked before it does."""
import os
import re
import subprocess

import pytest

HOOKED = 34
ARCHES = {"x86_64": ("gcc", "objdump"), "aarch64": ("clang", "aarch64-linux-gnu-objdump")}


def output(*command):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True, timeout=60).stdout


def test_needs_no_other_library(preload):
    dynamic = output("readelf", "-dW", preload)
    assert "(NEEDED)" not in dynamic and "(INIT_ARRAY)" in dynamic
    assert "(TEXTREL)" not in dynamic and "TEXTREL" not in dynamic


def test_no_version_of_a_libc(preload):
    assert b"GLIBC_" not in preload.read_bytes()
    assert "VERNEED" not in output("readelf", "-dW", preload)


def test_every_import_is_weak(preload):
    imports = output("nm", "-D", "--undefined-only", preload).splitlines()
    assert imports and all(line.split()[0] in ("w", "v") for line in imports), imports


def test_exports_are_the_list(preload, root):
    exported = [line.split()[-1] for line in output("nm", "-D", "--defined-only", preload).splitlines()]
    assert sorted(exported) == (root / "tests/gates/exports.txt").read_text().split()
    assert len([name for name in exported if name.startswith("curl_")]) == HOOKED


def test_size_and_relocations(preload):
    assert preload.stat().st_size < 64 * 1024
    relocations = re.findall(r"R_X86_64_\w+", output("readelf", "-rW", preload))
    assert 0 < len(relocations) < 64


def test_stack_is_not_executable(preload):
    line = next(l for l in output("readelf", "-lW", preload).splitlines() if "GNU_STACK" in l)
    assert " RW " in line and "RWE" not in line


def test_has_both_hash_tables(preload):
    dynamic = output("readelf", "-dW", preload)
    assert "(GNU_HASH)" in dynamic and "(HASH)" in dynamic


def functions(listing):
    """Name -> mnemonics and operands, from objdump -d."""
    found, name = {}, None
    for line in listing.splitlines():
        head = re.match(r"[0-9a-f]+ <(\w+)>:", line)
        if head:
            name = head.group(1)
            found[name] = []
        elif name and re.match(r"\s+[0-9a-f]+:\t", line):
            found[name].append(" ".join(line.split("\t")[1:]).strip())
    return found


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("name", ["dlsym", "dlvsym", "dlopen", "select_and_jump"])
def test_stubs_end_in_an_indirect_jump(arch, name, root, tmp_path):
    compiler, objdump = ARCHES[arch]
    stubs = tmp_path / "stubs.o"
    target = ["--target=%s-linux-gnu" % arch] if compiler == "clang" else []
    subprocess.run([compiler, *target, "-I", str(root / "src"), "-c", "-o", str(stubs),
                    str(root / "src/preload" / ("stubs-%s.S" % arch))], check=True, timeout=60)
    code = functions(output(objdump, "-d", "--no-show-raw-insn", stubs))
    jumps = [line for line in code[name] if re.match(r"jmp\s+\*%r|br\s+x1[67]", line)]
    assert len(jumps) == 1, code[name]
    assert len([line for line in code[name] if re.match(r"(call|bl|blr)\b", line)]) == 1
    entries = [n for n in code if n.startswith("curl_")]
    assert len(entries) == HOOKED
    indexes = [re.search(r"[$#](0x[0-9a-f]+|\d+)", " ".join(l for l in code[n] if "mov" in l)).group(1) for n in entries]
    assert sorted(int(i, 0) for i in indexes) == list(range(HOOKED))


def test_c_part_for_aarch64(root, tmp_path):
    """Compiled by clang, which knows the target; and nothing may be called that the compiler invented: helpers for
    atomics would be unresolved in a process without libgcc, and ld.so would end it."""
    make = output("make", "-C", root, "-n", "-B", "ARCH=aarch64", "CC=clang --target=aarch64-linux-gnu -I/usr/include/"
                  + os.uname().machine + "-linux-gnu", "BUILD=%s" % tmp_path, "%s/libsendonce.so" % tmp_path)
    commands = [line for line in make.splitlines() if " -c " in line]
    sources = list((root / "src/preload").glob("*.c"))
    assert len(commands) == len(sources) + 1
    (tmp_path / "obj/preload").mkdir(parents=True)
    for command in commands:
        subprocess.run(command, shell=True, cwd=root, check=True, timeout=60)
    defined, strong = set(), set()
    for line in output("aarch64-linux-gnu-nm", *(tmp_path / "obj/preload").glob("*.o")).splitlines():
        fields = line.split()
        if len(fields) == 3:
            defined.add(fields[2])
        elif len(fields) == 2 and fields[0] == "U":
            strong.add(fields[1])
    assert "preload_select" in strong
    assert strong - defined <= {"_DYNAMIC"}  # the linker's own
