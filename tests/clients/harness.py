"""What the end-to-end tests share: a policy, a place for the ledger, clients run under the preload.

A `World` is one test's operator: it owns a folder with policy, ledger and event log, runs programs with
or without sendonce, and asks the command line about what was remembered. Under a sanitizer (SAN=address or
SAN=thread in the environment) its runtime is preloaded first and its reports, which go to files of their own,
make the test fail.
"""
import json
import os
import shutil
import signal
import subprocess
import time
from urllib.parse import unquote

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SAN = os.environ.get("SAN", "")
SLOW = 3 if SAN else 1  # how much longer things may take

# A shell that starts us in the background has these ignored, and what is ignored stays so in every client.
for quiet in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(quiet) == signal.SIG_IGN:
        signal.signal(quiet, signal.default_int_handler if quiet == signal.SIGINT else signal.SIG_DFL)

PROVIDER = {"dedups": True, "key_ttl": "24h", "stores": ["2xx", 402]}


def build():
    return os.path.join(ROOT, os.environ.get("BUILD", "build"))  # an absolute BUILD stays as it is


def client(name):
    return os.path.join(build(), "tests", "clients", name)


def yaml(value, indent=0):
    """As much YAML as a policy needs: mappings in block style, lists in flow style."""
    lines = []
    for key, item in value.items():
        pad = " " * indent + str(key) + ":"
        if isinstance(item, dict):
            lines += [pad, yaml(item, indent + 2)]
        elif isinstance(item, list):
            lines.append("%s [%s]" % (pad, ", ".join(scalar(x) for x in item)))
        else:
            lines.append("%s %s" % (pad, scalar(item)))
    return "\n".join(lines)


def scalar(item):
    if isinstance(item, bool):
        return "true" if item else "false"
    text = str(item)
    plain = text and all(c.isalnum() or c in "/._-+" for c in text)
    return text if plain else json.dumps(text)


class Result:
    def __init__(self, rc, out, err, seconds):
        self.rc, self.out, self.err, self.seconds = rc, out, err, seconds

    def __repr__(self):
        return "<rc=%d out=%r err=%r %.2fs>" % (self.rc, self.out, self.err, self.seconds)


class Answer(Result):
    """What one try of an HTTP client ended with."""

    status, body, headers = 0, "", ()

    def header(self, name):
        for key, value in self.headers:
            if key.lower() == name.lower():
                return value
        return None

    def document(self):
        """The last JSON document: `curl --retry` prints the answers it goes past as well."""
        found, rest = None, self.body.strip()
        while rest:
            found, end = json.JSONDecoder().raw_decode(rest)
            rest = rest[end:].strip()
        return found

    @property
    def order(self):
        try:
            return self.document().get("id")
        except (ValueError, AttributeError):
            return None

    @property
    def replayed(self):
        return self.header("Idempotent-Replayed") == "true"

    @property
    def problem(self):
        """The refusal's document, checked to be one."""
        assert self.header("Content-Type") == "application/problem+json", self
        document = self.document()
        assert document["status"] == self.status, document
        assert all(isinstance(document[x], str) and document[x] for x in ("type", "title", "detail")), document
        return document

    @property
    def reason(self):
        verdict = self.header("Sendonce-Verdict") or ""
        return verdict.split("reason=", 1)[1].split(";")[0].strip() if "reason=" in verdict else None

    def __repr__(self):
        return "<rc=%d status=%d body=%r headers=%r err=%r %.2fs>" % (
            self.rc, self.status, self.body[:300], self.headers, self.err[:300], self.seconds)


def last_headers(text):
    """The header lines of the last header block of a `curl -D` file."""
    blocks = [b for b in text.replace("\r\n", "\n").split("\n\n") if b.strip()]
    if not blocks:
        return ()
    lines = blocks[-1].strip("\n").split("\n")[1:]
    return tuple((x.split(":", 1)[0], x.split(":", 1)[1].strip()) for x in lines if ":" in x)


class World:
    def __init__(self, folder):
        self.folder = str(folder)
        self.policy_file = self.path("policy.yaml")
        self.ledger = self.path("ledger")
        self.event_log = self.path("events.jsonl")
        self.count = 0
        self.processes = []
        self.preload_from = build()

    def path(self, name):
        return os.path.join(self.folder, name)

    # --- policy
    def policy(self, server=None, top=None, ledger=None, **rule):
        """Write the policy: ten lines, with `rule` put over the one rule's defaults."""
        base = {"operation": "orders.create", "match": "POST http://127.0.0.1:*/orders"}
        base.update(rule)
        head = {"version": 1, "ledger": dict({"path": self.ledger, "durability": "process", "size": "8MiB"}, **(ledger or {})),
                "events": self.event_log}
        head.update(top or {})
        rules = yaml(base, 4).lstrip()
        self.write("policy.yaml", yaml(head) + "\nwrites:\n  - " + rules + "\n")
        return self

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    # --- running things
    def env(self, preload=True, run="run-1", scope="tests", **extra):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SENDONCE_", "LD_PRELOAD", "http_proxy", "HTTP"))}
        env.update(HOME=self.folder, LC_ALL="C", no_proxy="*")
        if preload:
            env["LD_PRELOAD"] = ":".join(sanitizer_runtime() + [os.path.join(self.preload_from, "libsendonce.so")])
            env["SENDONCE_POLICY"] = self.policy_file
            env["SENDONCE_LOG"] = self.path("log")
            if scope:
                env["SENDONCE_SCOPE"] = scope
            if run:
                env["SENDONCE_RUN"] = run
        log = "log_path=%s" % self.path("san")
        env["ASAN_OPTIONS"] = "detect_leaks=0:abort_on_error=0:verify_asan_link_order=0:" + log
        env["UBSAN_OPTIONS"] = "print_stacktrace=1:" + log
        env["TSAN_OPTIONS"] = "die_after_fork=0:" + log
        env.update(extra)
        return {k: v for k, v in env.items() if v is not None}

    def start(self, argv, text=True, stdin=subprocess.DEVNULL, **env):
        process = subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=text,
                                   errors="replace" if text else None, env=self.env(**env), cwd=self.folder,
                                   start_new_session=True)
        process.started = time.monotonic()
        self.processes.append(process)
        return process

    def finish(self, process, timeout=40, kind=Result):
        try:
            out, err = process.communicate(timeout=timeout * SLOW)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            raise AssertionError("%r did not end in %d s: %r %r" % (process.args, timeout * SLOW, out, err))
        return kind(process.returncode, out, err, time.monotonic() - process.started)

    def run(self, argv, timeout=40, text=True, **env):
        return self.finish(self.start(argv, text=text, **env), timeout)

    # --- curl and the C client
    def curl_start(self, *args, **env):
        self.count += 1
        dump = self.path("headers-%d" % self.count)
        process = self.start(["curl", "-q", "-sS", "-D", dump, "-w", "\n%{http_code}", *args], **env)
        process.dump = dump
        return process

    def curl_finish(self, process, timeout=40):
        answer = self.finish(process, timeout, Answer)
        body, _, status = answer.out.rpartition("\n")
        answer.body, answer.status = body, int(status or 0)
        if os.path.exists(process.dump):
            with open(process.dump, errors="replace") as f:
                answer.headers = last_headers(f.read())
        return answer

    def curl(self, *args, timeout=40, **env):
        return self.curl_finish(self.curl_start(*args, **env), timeout)

    def post(self, *args, timeout=60, **env):
        """The C client: an Answer for each try."""
        result = self.run([client("post"), *args], timeout, **env)
        assert result.rc == 0 and result.err == "", result
        return [self.post_answer(line) for line in result.out.splitlines()]

    @staticmethod
    def post_answer(line):
        field = dict(x.split("=", 1) for x in line.split("\t"))
        answer = Answer(int(field["rc"]), line, field["error"], int(field["ms"]) / 1000)
        answer.status, answer.body = int(field["status"]), unquote(field["body"], errors="replace")
        answer.headers = [("Content-Type", field["type"]), ("Sendonce-Verdict", field["verdict"])]
        if field["replayed"] == "1":
            answer.headers.append(("Idempotent-Replayed", "true"))
        return answer

    # --- what sendonce knows
    def cli(self, *args, **env):
        env.setdefault("SENDONCE_POLICY", self.policy_file)
        env.setdefault("SENDONCE_LEDGER", self.ledger)
        return self.run([os.path.join(build(), "sendonce"), *args], preload=False, **env)

    def records(self):
        result = self.cli("ledger", "list", "--json")
        assert result.rc == 0, result
        return [json.loads(line) for line in result.out.splitlines()]

    def states(self):
        return sorted(r["state"] for r in self.records())

    def stats(self):
        result = self.cli("stats", "--json")
        assert result.rc == 0, result
        return json.loads(result.out)

    def events(self, kind=None):
        if not os.path.exists(self.event_log):
            return []
        with open(self.event_log) as f:
            events = [json.loads(line) for line in f]
        return [e for e in events if kind is None or e["event"] == kind]

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        reports = [name for name in os.listdir(self.folder) if name.startswith("san.")]
        text = "".join(open(self.path(name), errors="replace").read() for name in reports)
        assert not reports, text[:8000]


def sanitizer_runtime():
    """The runtime must come before every other object: the client itself is not instrumented."""
    name = {"address": "libasan.so", "thread": "libtsan.so"}.get(SAN.split(",")[0])
    if not name:
        return []
    found = subprocess.run([os.environ.get("CC", "gcc"), "-print-file-name=" + name], capture_output=True, text=True, check=True)
    return [os.path.realpath(found.stdout.strip()), os.path.join(build(), "tests", "nolocale.so")]


def parallel(*jobs):
    """Run callables at once, each in a thread; their results in order, or the first exception."""
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(len(jobs)) as pool:
        return [f.result() for f in [pool.submit(job) for job in jobs]]


def have(program):
    return shutil.which(program) is not None
