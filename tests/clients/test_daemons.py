"""Daemons that write by libcurl from threads of their own: collectd's write_http and syslog-ng's http destination.

Each fault is shown natively first: what the daemon says of it, and how often the server executed. The runs wait much
and compute little, so all of them are under way at once."""
import os
import re
import socket
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import SLOW, World
from server import OrderServer

FAULTS = {"late": "late=1.7&times=1", "closed": "cut=1&times=1", "cut-body": "cutbody=1&times=1"}
CODES = {"late": 28, "closed": 52, "cut-body": 18}


def wait_for(what, seconds=15):
    end = time.monotonic() + seconds * SLOW
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it did not come to that")


def stop(world, process):
    process.terminate()
    return world.finish(process, 20)


def without_keys(requests):
    assert all(r.key for r in requests)
    return [b"\r\n".join(x for x in r.raw.split(b"\r\n") if not x.startswith(b"Idempotency-Key: ")) for r in requests]


def read(path):
    if not os.path.exists(path):
        return ""
    with open(path, errors="replace") as f:
        return f.read()


# --- collectd: one value, written by a flush; what fails is dropped, so another put of the same is the retry
COLLECTD = """BaseDir "%(folder)s"
PIDFile "%(folder)s/pid"
TypesDB "/usr/share/collectd/types.db"
Interval 3600
Hostname "here"
LoadPlugin logfile
<Plugin logfile>
  LogLevel info
  File "%(folder)s/collectd.log"
</Plugin>
LoadPlugin unixsock
<Plugin unixsock>
  SocketFile "%(folder)s/socket"
</Plugin>
LoadPlugin write_http
<Plugin write_http>
  <Node "orders">
    URL "%(url)s"
    Format "JSON"
    Timeout 1000
    LogHttpError true
    StoreRates false
  </Node>
</Plugin>
"""


class Collectd:
    def __init__(self, world, url, preload):
        self.world, self.log = world, world.path("collectd.log")
        for name in ("socket", "collectd.log"):
            if os.path.exists(world.path(name)):
                os.unlink(world.path(name))
        config = world.write("collectd.conf", COLLECTD % {"folder": world.folder, "url": url})
        self.process = world.start(["collectd", "-f", "-C", config], preload=preload)
        wait_for(lambda: os.path.exists(world.path("socket")))
        self.control = socket.socket(socket.AF_UNIX)
        self.control.connect(world.path("socket"))

    def ask(self, line):
        self.control.sendall(line.encode() + b"\n")
        return self.control.recv(4096).decode()

    def put(self, value=42):
        """Writes one value. Returns what the log says of it: CURLcode and text, or nothing."""
        before = len(read(self.log))
        assert self.ask("PUTVAL here/exec-a/gauge-b interval=10 1700000000:%d" % value).startswith("0 ")
        # the value is taken by a thread of its own: until then there is nothing to flush
        time.sleep(0.3)
        assert " 0 errors" in self.ask("FLUSH timeout=-1 plugin=write_http/orders")
        return re.findall(r"curl_easy_perform failed with status (\d+): (.*)", read(self.log)[before:])

    def stop(self):
        self.control.close()
        assert stop(self.world, self.process).rc == 0


def collectd_run(world, url, puts, preload):
    daemon = Collectd(world, url, preload)
    said = [daemon.put() for _ in range(puts)]
    daemon.stop()
    return [[(int(code), re.sub(r"\d+ milli", "N milli", text)) for code, text in x] for x in said]


def collectd_fault(world, server, fault):
    url = server.base + "/orders?" + FAULTS[fault]
    native, = collectd_run(world, url, 1, False)
    assert [code for code, _ in native] == [CODES[fault]] and server.executions == 1
    server.reset()
    ours = collectd_run(world, url, 3, True)
    assert ours[0] == native and server.executions == 1
    again = [[code for code, _ in x] for x in ours[1:]]
    assert again == ([[], []] if fault == "late" else [[56], [56]]), ours
    assert world.states() == (["done"] if fault == "late" else ["unknown"])


def collectd_clean(world, server, _):
    assert collectd_run(world, server.base + "/orders", 1, False) == [[]]
    native = [r.raw for r in server.requests]
    server.reset()
    assert collectd_run(world, server.base + "/orders", 2, True) == [[], []]
    assert server.executions == 1 and world.states() == ["done"]
    assert without_keys(server.requests) == native


# --- syslog-ng: one message; it retries three times by itself
SYSLOG = """@version: 3.38
options { time-reopen(1); keep-hostname(yes); stats-freq(0); };
source s { unix-dgram("%(folder)s/socket" persist-name("s")); };
destination d { http(url("%(url)s") method("POST") headers("Content-Type: application/json") body('{"item":"$MSG"}')
  timeout(1) workers(1) retries(3) persist-name("d")); };
log { source(s); destination(d); flags(flow-control); };
"""


class Syslog:
    def __init__(self, world, url, preload):
        self.world = world
        for name in ("socket", "persist", "syslog.log"):
            if os.path.exists(world.path(name)):
                os.unlink(world.path(name))
        config = world.write("syslog.conf", SYSLOG % {"folder": world.folder, "url": url})
        self.log = world.path("syslog.log")
        argv = ["-F", "-f", config, "-R", world.path("persist"), "-p", world.path("pid"), "-c", world.path("control"),
                "--no-caps", "-d", "-v", "-t", "-e"]
        self.process = world.start(["sh", "-c", 'exec syslog-ng "$@" 2>"$0"', self.log, *argv], preload=preload)
        wait_for(lambda: os.path.exists(world.path("socket")))

    def write(self, text):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.sendto(("<13>test: " + text).encode(), self.world.path("socket"))

    def end(self, pattern):
        wait_for(lambda: re.search(pattern, read(self.log)))
        stop(self.world, self.process)
        return read(self.log)


def syslog_run(world, url, preload, pattern):
    daemon = Syslog(world, url, preload)
    daemon.write("widget")
    return daemon.end(pattern)


def syslog_errors(log):
    return re.findall(r"curl: error sending HTTP request;.*?error='([^']*)'", log)


def syslog(world, server, fault):
    """Until an answer comes it tries again every second, so what is refused is refused again."""
    url = server.base + "/orders?" + FAULTS.get(fault, "")
    answered, refused = r"HTTP response received.*status_code='201'", r"(?s)Failure when receiving.*Failure when receiving"
    native = syslog_run(world, url, False, answered)
    assert server.executions == (1 if fault == "clean" else 2)  # its own retry is executed again
    plain = [r.raw for r in server.requests]
    server.reset()
    doubt = fault in ("closed", "cut-body")
    ours = syslog_run(world, url, True, refused if doubt else answered)
    assert server.executions == 1 and len(server.writes()) == 1
    assert syslog_errors(ours)[:1] == syslog_errors(native)
    assert world.states() == (["unknown"] if doubt else ["done"])
    assert without_keys(server.requests) == plain[:1]


RUNS = [(collectd_clean, "clean")] + [(collectd_fault, f) for f in FAULTS] + [(syslog, f) for f in ("clean", *FAULTS)]


def one_run(run, fault):
    with tempfile.TemporaryDirectory(prefix="daemon-") as folder, OrderServer() as server:  # a short path: it holds sockets
        world = World(folder).policy()
        try:
            run(world, server, fault)
        finally:
            world.close()


@pytest.fixture(scope="module")
def runs():
    with ThreadPoolExecutor(len(RUNS)) as pool:
        yield {r: pool.submit(one_run, *r) for r in RUNS}


@pytest.mark.parametrize("run,fault", RUNS)
def test_daemon(runs, run, fault):
    runs[run, fault].result()
