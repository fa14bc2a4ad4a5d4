"""Every fuzz target for a quarter of a minute, all at once; with SENDONCE_SOAK ten million executions each."""
import os
import subprocess

TARGETS = ["answer", "form", "json", "jwt", "ledger", "multipart", "policy", "url"]
SOAK = bool(os.environ.get("SENDONCE_SOAK"))
LIMIT = ["-runs=10000000"] if SOAK else ["-max_total_time=15"]
LONGEST = {"ledger": 321}  # a byte of choices and 64 changes


SEEDS = {
    "form": ["a=1&b=%20x+y&a=2&&c", "--x\r\nA: b\r\n\r\nbody\r\n--x--\r\n"],
    "json": ['{"k":"x","a":{"b":[1,2.50e3,-0]},"id":7,"~k":null}', 'data: {"id":1,"result":{}}\n\n', '"\\ud83d\\ude00\\n"',
             'query Q($a: Int) { f(s: "mutation") }', "[[],{},true,false,null]"],
    "jwt": ["Bearer eyJhbGciOiJub25lIn0.eyJpc3MiOiJhIiwic3ViIjoiYiJ9.c2ln", 'OAuth oauth_consumer_key="a", oauth_token="b"',
            "AWS4-HMAC-SHA256 Credential=AKIA/2026/x, SignedHeaders=host", "Basic dXNlcjpwYXNz", 'Digest username="u", realm="r"'],
    "ledger": ["0<\x8c-(\0\x0f\1",  # a stored answer of no bytes
               "A\xff\x85\xb9A\xff\x85\x0b\0\xda<\x013\0"],  # a moment far before the first
    "multipart": ["x\n--x\r\nA: b\r\n\r\nbody\r\n--x\r\nContent-Type: multipart/mixed; boundary=y\r\n\r\n--y\r\n\r\nz\r\n--y--\r\n\r\n--x--\r\n"],
    "url": ["https://user:pw@a.example.com:8443/v1/7/x?q=1&the%20key=2#f", "[::1]:80/a%2Fb", "http://h/../a/./b?x", "HTTP:///x"],
}


def seeds(root, folder, name):
    """What a target begins with."""
    own = folder / (name + ".seeds")
    own.mkdir()
    for number, text in enumerate(SEEDS.get(name, [])):
        (own / str(number)).write_bytes(text.encode("latin-1"))
    return [str(own)] + ([str(root / "tests/policy/bad"), str(root / "policy")] if name == "policy" else [])


def start(build, root, folder, name):
    corpus = folder / name
    corpus.mkdir()
    command = [str(build / "fuzz" / name), *LIMIT, "-max_len=%d" % LONGEST.get(name, 4096), "-timeout=30", "-rss_limit_mb=1024",
               "-artifact_prefix=%s/" % folder, str(corpus), *seeds(root, folder, name)]
    log = open(folder / (name + ".log"), "w+")
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder), log


def test_every_target_is_known(root):
    assert sorted(p.stem[5:] for p in (root / "tests/fuzz").glob("fuzz_*.c")) == TARGETS


def test_fuzz(build, root, tmp_path):
    running = {name: start(build, root, tmp_path, name) for name in TARGETS}
    for name, (process, log) in running.items():
        code = process.wait(24 * 3600 if SOAK else 120)
        log.seek(0)
        text = log.read()
        log.close()
        assert code == 0, "%s:\n%s" % (name, text[-6000:])
        assert " runs in " in text, text[-2000:]
