"""The tests are tested: bugs are put into a copy of the ledger, and each must be caught.

A mutant is a change of the text of one file; a text that is no longer there is an error, so that the list stays
true. Only the changed file is compiled anew. Those that were once real bugs, and need more images, run with
SENDONCE_SOAK only.
"""
import os
import pathlib
import shutil
import subprocess

import pytest

SOAK = bool(os.environ.get("SENDONCE_SOAK"))
CC = os.environ.get("CC", "gcc")
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g"]
WRAP = ["-Xlinker", "--wrap=shared_in", "-Xlinker", "--wrap=heap_give"]
WALK = "1000000"  # of the step killer: every instruction by image, no further kills

LEASE = """	atomic_store_explicit(&in->at->lease, lease_make(now, LEASE_SECONDS), memory_order_release);
"""
PUBLISH = """	return atomic_compare_exchange_strong(&in->at->word, &seen, out->word) ? LEDGER_OK
	                                                                       : LEDGER_LOST;
"""
LATE_LEASE = """	atomic_store_explicit(&in->at->lease, lease_make(clock_now(), LEASE_SECONDS), memory_order_release);
"""
BANK = """	bank_store(l, c->rec, c->id, w.bank, &c->bank);
"""
SWAP = """	done = atomic_compare_exchange_strong(&c->rec->word, &expected, word);
"""
DONE = """	if (!answer_attach(l, &c, answer, unit, true, now))
		return lock_lost(&c);
	return finish(l, &c, hold, %s);
"""
HALF = """static uint64_t sum_half(void *to, const void *from, size_t n, uint64_t seed)
{
	memcpy(to, from, n);
	return sum_bytes(seed, to, n / 2);
}

"""

# what it is: file, [(old, new)...], the test that must catch it, what that says
MUTANTS = {
    "missing_release_store": (
        "reserve.c",
        [(LEASE, ""), (PUBLISH, PUBLISH.replace("return", "int rc =") + LATE_LEASE + "	return rc;\n")],
        ["step_killer", WALK, "reserve"], "owned without a lease"),
    "marker_before_payload": ("change.c", [(BANK, ""), (SWAP, SWAP + BANK)], ["step_killer", WALK, "sent"], "sent"),
    "gate_without_compare": (
        "change.c", [(SWAP, "	(void)expected;\n	atomic_store(&c->rec->word, word);\n	done = true;\n")],
        ["step_killer", WALK, "sent"], "two execute after a stall"),
    "lease_not_checked": (
        "transition.c", [("if (c.seen != view->word || change_owner_holds(l, &c, now))", "if (c.seen != view->word)")],
        ["step_killer", WALK, "sent"], "two live owners"),
    "no_flush_at_the_gate": (
        "transition.c", [("	rc = finish(l, &c, hold, true);\n	return rc == LEDGER_CANNOT",
                          "	rc = finish(l, &c, hold, false);\n	return rc == LEDGER_CANNOT")],
        ["crash_images", "2000"], "told was sent"),
    "no_flush_when_done": (
        "transition.c", [(DONE % "true", DONE % "false")], ["crash_images", "2000"], "done"),
    "no_flush_of_a_note": (
        "runs.c", [("if (c->bank.flags & BANK_NOTED)", "if (false)")], ["crash_images", "200000"], "told was done"),
    "torn_note_is_a_doubt": (
        "record.c", [("if (w.state != REC_DONE && (w.state", "if (w.state != REC_NONE && (w.state")],
        ["crash_images", "2000"], "told was done"),
    "tombstone_dropped_early": (
        "sweep.c", [("clock_age_min(ended, now) > keep;", "clock_age_min(ended, now) > keep / 2;")],
        ["step_killer", WALK, "sent"], "a tombstone is dropped early"),
    "wake_is_lost": (
        "change.c", [("if (atomic_load(&rec->waiting) && atomic_exchange(&rec->waiting, 0))\n"
                      "		futex_wake_all(&rec->word);", "atomic_exchange(&rec->waiting, 0);")],
        ["wake_race"], "woken after"),
    "sum_over_half_the_answer": (
        "answer.c", [("sum_bytes(c->id, answer->blob.p, answer->blob.n)",
                      "sum_bytes(c->id, answer->blob.p, answer->blob.n / 2)"),
                     ("sum_out(to, at, answer.size, id)", "sum_half(to, at, answer.size, id)"),
                     ("static int copy_out(", HALF + "static int copy_out(")],
        ["crash_images", "600000"], "a torn answer is played"),
    "place_not_looked_at_again": (
        "reserve.c", [("return lock_held(&in->at->lock, in->place_token) && record_of(l, in->id, NULL) == in->at;",
                       "(void)l;\n	return in->at != NULL;")],
        ["step_killer", WALK, "reserve"], "a place that is another's"),
    "no_look_after_publishing": (
        "reserve.c", [("late = rc == LEDGER_OK && !lock_held(&l->header->table_lock, in->table_token);",
                       "late = false;")],
        ["step_killer", WALK, "crowded"], "two execute after a stall"),
    "key_of_nobody_counts": (
        "reserve.c", [("	return rec && record_read(l, rec, &there, &word, &bank);",
                       "	(void)there, (void)word, (void)bank;\n	return rec != NULL;")],
        ["crash_images", "600000"], "never done"),
    "facts_unsound_but_shown": (
        "view.c", [("	if (sound)\n		view_facts(out, &facts);\n	else\n		view_no_facts(out);",
                    "	view_facts(out, &facts);")],
        ["crash_images", "100000"], "facts are shown in part"),
    "locks_of_the_dead_stay": (
        "shared.c", [("life == OWNER_DEAD", "life == OWNER_NONE")], ["step_killer", WALK, "sent"], "a wait without end"),
}


ONCE_REAL = {"no_look_after_publishing", "no_flush_of_a_note", "torn_note_is_a_doubt",
             "place_not_looked_at_again", "key_of_nobody_counts", "facts_unsound_but_shown", "locks_of_the_dead_stay"}
CHOSEN = sorted(set(MUTANTS) if SOAK else set(MUTANTS) - ONCE_REAL)


def compile_one(source, out, src, *flags):
    subprocess.run([CC, *FLAGS, *flags, "-I", str(src), "-c", "-o", str(out), str(source)], check=True, timeout=120)


@pytest.fixture(scope="module")
def objects(root, tmp_path_factory):
    """The sound ledger's objects by name, and those of the tests."""
    folder = tmp_path_factory.mktemp("sound")
    for room in ("base", "ledger"):
        for source in sorted((root / "src" / room).glob("*.c")):
            compile_one(source, folder / ("%s.%s.o" % (room, source.stem)), root / "src")
    for name in ("step_killer", "crash_images", "wake_race"):
        compile_one(root / "tests/crash" / (name + ".c"), folder / (name + ".test"), root / "src", "-I", str(root / "tests"))
    return folder


def link(objects, changed, test, out):
    parts = [p for p in sorted(objects.glob("*.o")) if p.name != "base.clock.o" and p.name != changed.name]
    wrap = WRAP if test == "crash_images" else []
    subprocess.run([CC, "-o", str(out), str(objects / (test + ".test")), str(changed), *map(str, parts), *wrap, "-lpthread"],
                   check=True, timeout=120)


def run(program, folder, arguments):
    folder.mkdir(mode=0o700)
    return subprocess.run([str(program), str(folder), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=300)


@pytest.fixture
def memory(tmp_path):
    """A folder in memory where there is one."""
    where = pathlib.Path("/dev/shm")
    folder = (where if where.is_dir() else tmp_path) / ("sendonce-mutant-%d" % os.getpid())
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("name", CHOSEN)
def test_mutant_is_caught(name, root, objects, tmp_path, memory):
    file, changes, (test, *arguments), says = MUTANTS[name]
    text = (root / "src/ledger" / file).read_text()
    for old, new in changes:
        assert text.count(old) == 1, "%s: this text is there %d times:\n%s" % (file, text.count(old), old)
        text = text.replace(old, new)
    (tmp_path / file).write_text(text)
    changed = tmp_path / ("ledger.%s.o" % pathlib.Path(file).stem)
    compile_one(tmp_path / file, changed, root / "src")
    link(objects, changed, test, tmp_path / "mutant")
    result = run(tmp_path / "mutant", memory, arguments)
    assert result.returncode == 1 and says in result.stdout, result.stdout


def test_the_sound_one_wakes(objects, tmp_path, memory):
    link(objects, objects / "ledger.record.o", "wake_race", tmp_path / "sound")
    result = run(tmp_path / "sound", memory, [])
    assert result.returncode == 0, result.stdout
