"""Programs killed at random moments, and started again: no order twice, no doubt forgotten.

Each round a writer (curl, PHP, pycurl) sends five orders one after the other to a server that knows no keys, and is killed
with SIGKILL somewhere in between. Then it is started again under the same run and sends all five, in peace. 200 kills;
10,000 with SENDONCE_SOAK.
"""
import os
import random
import signal
import subprocess
import threading
import time

from harness import SLOW
from server import OrderServer

KILLS = 10000 if os.environ.get("SENDONCE_SOAK") else 200
WORKERS, BATCH = 4, 5

CURL = '''for n in "$@"; do
    curl -q -sS -o answer-$PPID-$$ -w '%{http_code}' -d "n=$n" "$BASE/orders?late=0.00$((n % 7))" 2>/dev/null >code-$$
    echo "$n $(cat code-$$)"
done'''

PHP = '''<?php
foreach (array_slice($argv, 1) as $n) {
    $c = curl_init(getenv("BASE") . "/orders?late=0.00" . ($n % 7));
    curl_setopt($c, CURLOPT_POSTFIELDS, "n=$n");
    curl_setopt($c, CURLOPT_RETURNTRANSFER, true);
    curl_exec($c);
    echo $n, " ", curl_getinfo($c, CURLINFO_RESPONSE_CODE), "\\n";
    flush();
}
'''

PYCURL = '''
import os, pycurl, sys
c = pycurl.Curl()
for n in sys.argv[1:]:
    c.setopt(c.URL, os.environ["BASE"] + "/orders?late=0.00%d" % (int(n) % 7))
    c.setopt(c.POSTFIELDS, "n=" + n)
    c.setopt(c.WRITEFUNCTION, lambda b: None)
    try:
        c.perform()
    except pycurl.error:
        pass
    print(n, c.getinfo(c.RESPONSE_CODE), flush=True)
'''


class Storm:
    def __init__(self, world, server):
        self.world, self.server, self.lock = world, server, threading.Lock()
        php, python = world.write("writer.php", PHP), world.write("writer.py", PYCURL)
        self.writers = [["sh", "-c", CURL, "sh"], ["php", "-n", "-d", "extension=curl", php], ["/usr/bin/python3", python]]
        self.seconds = [self.measure(w, i) for i, w in enumerate(self.writers)]
        self.next, self.killed, self.settled, self.in_peace, self.doubts, self.faults = 0, 0, 0, 0, 0, []

    def start(self, writer, numbers, run):
        env = self.world.env(run=run, BASE=self.server.base)
        return subprocess.Popen([*writer, *map(str, numbers)], env=env, cwd=self.world.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True, start_new_session=True)

    def measure(self, writer, i):
        began = time.monotonic()
        process = self.start(writer, range(900000000 + i * BATCH, 900000000 + (i + 1) * BATCH), "warm-up")
        out = process.communicate(timeout=60)[0]
        assert [line.split()[1] for line in out.splitlines()] == ["201"] * BATCH, out
        return time.monotonic() - began

    def round(self, k, rng):
        numbers = range(k * BATCH, (k + 1) * BATCH)
        kind = k % len(self.writers)
        process = self.start(self.writers[kind], numbers, "run-%d" % k)
        time.sleep(rng.uniform(0, 1.2) * self.seconds[kind])
        alive = process.poll() is None
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        first = dict(line.split() for line in process.communicate()[0].splitlines() if len(line.split()) == 2)
        again = self.start(self.writers[kind], numbers, "run-%d" % k)
        second = dict(line.split() for line in again.communicate(timeout=60 * SLOW)[0].splitlines())
        self.judge(numbers, alive, first, second)

    def judge(self, numbers, alive, first, second):
        """What was in flight when the kill came is the first number without a line."""
        told = [str(n) for n in numbers if str(n) in first]
        in_flight = str(numbers[len(told)]) if alive and len(told) < BATCH else None
        with self.lock:
            self.killed += alive
            for n in map(str, numbers):
                status = second.get(n)
                if n == in_flight:
                    self.doubts += status == "424"
                    if status not in ("201", "424"):
                        self.faults.append("%s, in flight at the kill, got %s" % (n, status))
                    continue
                self.in_peace += 1
                self.settled += status == "201"
                if first.get(n) == "201" and status != "201":
                    self.faults.append("%s was answered, and then got %s" % (n, status))

    def work(self, worker):
        rng = random.Random(worker)
        while True:
            with self.lock:
                k, self.next = self.next, self.next + 1
            if self.killed >= KILLS or self.faults:
                return
            try:
                self.round(k, rng)
            except Exception as e:  # a thread's exception must not be lost
                self.faults.append(repr(e))

    def verify(self):
        result = self.world.cli("ledger", "verify")
        if result.rc != 0:
            self.faults.append("the ledger: %r" % result)


def test_kills_at_random_moments(world):
    with OrderServer() as server:
        world.policy(match="POST http://127.0.0.1:*/orders", refuse_as="response", ledger={"size": "256MiB" if KILLS > 200 else "16MiB"})
        storm = Storm(world, server)
        threads = [threading.Thread(target=storm.work, args=(i,)) for i in range(WORKERS)]
        for t in threads:
            t.start()
        while any(t.is_alive() for t in threads):
            storm.verify()
            time.sleep(1)
        storm.verify()
        assert not storm.faults, storm.faults
        executed = {}
        for order in server.orders:
            executed[order["body"]] = executed.get(order["body"], 0) + 1
        assert [n for n, count in executed.items() if count != 1] == [], "executed twice"
        in_doubt = [r for r in storm.world.records() if r["state"] in ("sent", "unknown")]
        assert len(in_doubt) == storm.doubts, "each refusal has its record in doubt, and none was forgotten"
        assert storm.killed >= KILLS and storm.doubts >= KILLS / 100, "the kills hit nothing"
        assert storm.settled >= 0.95 * storm.in_peace
        print("kills %d, in doubt %d, of %d writes not killed %d done" % (storm.killed, storm.doubts, storm.in_peace, storm.settled))
