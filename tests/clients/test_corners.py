"""Corners where a write could be sent twice, hang, or be forgotten, each by real programs."""
import os
import re
import signal
import time

import pytest

from harness import PROVIDER, SLOW, client
from server import ConnectProxy, FullQueue, Listener, OrderServer


class Scripted(Listener):
    """Answers each request with what `say(number, method, path)` returns: bytes, or None to go on reading."""

    def __init__(self, say):
        super().__init__()
        self.say, self.seen = say, []

    @property
    def base(self):
        return "http://127.0.0.1:%d" % self.port

    def posts(self):
        with self.lock:
            return [x for x in self.seen if x[0] == "POST"]

    def serve(self, sock, number):
        data = b""
        while True:
            while b"\r\n\r\n" not in data:
                data += self.more(sock)
            head, data = data.split(b"\r\n\r\n", 1)
            length = re.search(rb"(?i)content-length: (\d+)", head)
            while length and len(data) < int(length.group(1)):
                data += self.more(sock)
            data = data[int(length.group(1)):] if length else data
            method, path, _ = head.decode().split(" ", 2)
            with self.lock:
                self.seen.append((method, path, head.decode()))
                count = len(self.seen)
            answer = self.say(count, method, path)
            if answer is not None:
                sock.sendall(answer)

    @staticmethod
    def more(sock):
        data = sock.recv(65536)
        if not data:
            raise OSError
        return data


def said(status, body=b"{}", extra=""):
    return ("HTTP/1.1 %d X\r\nContent-Length: %d\r\n%s\r\n" % (status, len(body), extra)).encode() + body


def see(status):
    """A server that executes a POST, sends its client elsewhere, and has nothing there."""
    return Scripted(lambda count, method, path: said(status, b"", "Location: /result\r\n") if method == "POST" else said(404, b"{}"))


# --- redirects after the write
def test_a_result_page_that_is_not_there_is_no_refusal_of_the_write(world):
    with see(303) as server:
        answers = [world.curl("-L", "-d", "n=1", server.base + "/orders") for _ in range(2)]
    assert answers[0].status == 404 and len(server.posts()) == 1
    assert world.states() == ["done"] and answers[1].reason == "answer-not-kept"


def test_nor_behind_a_302(world):
    with see(302) as server:
        answers = [world.curl("-L", "-d", "n=1", server.base + "/orders") for _ in range(2)]
    assert answers[0].status == 404 and len(server.posts()) == 1
    assert world.states() == ["unknown"] and answers[1].reason == "unknown-outcome"


def test_a_write_that_was_sent_on_by_307_is_refused_where_it_arrived(world):
    def say(count, method, path):
        return said(307, b"", "Location: /orders/new\r\n") if path == "/orders" else said(422)

    with Scripted(say) as server:
        answers = [world.curl("-L", "-d", "n=1", server.base + "/orders") for _ in range(2)]
        assert [a.status for a in answers] == [422, 422] and len(server.posts()) == 4
    assert world.states() == ["freed"]

# --- a doubt that is being sent again
def test_who_asks_while_a_doubt_is_being_sent_again_waits_in_his_own_time(world, server):
    world.policy(provider=PROVIDER)
    url, queue = server.base + "/orders?keys=honour&late=2&times=1", FullQueue()
    try:
        first = world.curl("-m", "0.4", "-d", "n=1", url)
        assert first.rc == 28 and world.states() == ["unknown"]
        time.sleep(2)  # the order is made, and nobody was told
        again = world.curl_start("-m", "5", "--connect-to", "::127.0.0.1:%d" % queue.port, "-d", "n=1", url)
        time.sleep(0.5)
        before = os.times()
        short = world.curl("-m", "1", "-d", "n=1", url)
        after = os.times()
        long = world.curl("-m", "30", "-d", "n=1", url)
        assert world.curl_finish(again).rc == 28
    finally:
        queue.close()
    assert short.rc == 28 and short.seconds < 2 * SLOW
    assert after.children_user + after.children_system - before.children_user - before.children_system < 0.5 * SLOW
    assert (long.rc, long.status, long.order) == (0, 201, "ord-1")
    assert server.executions == 1 and len(set(server.keys())) == 1

# --- how long a doubt lasts
def test_a_doubt_is_as_old_as_its_last_send(world):
    world.policy(unknown_ttl="2s")
    with Scripted(lambda count, method, path: said(429) if count == 1 else None) as server:
        url = server.base + "/orders"
        assert world.curl("-d", "n=1", url).status == 429 and world.states() == ["freed"]
        time.sleep(2.2)
        killed = world.curl_start("-d", "n=1", url)
        time.sleep(0.5 * SLOW)
        os.killpg(killed.pid, signal.SIGKILL)
        killed.communicate()
        assert world.curl("-d", "n=1", url).reason == "unknown-outcome"
        assert len(server.posts()) == 2
        time.sleep(2.2)
        late = world.curl("-m", "1", "-d", "n=1", url)
        assert late.rc == 28 and len(server.posts()) == 3
    assert world.events("doubt-dropped")

# --- after the process has begun to end
def test_a_retry_during_exit_is_sent_under_the_same_key(world, server):
    world.policy(provider=PROVIDER)
    result = world.run([client("life"), "retry-at-exit", server.base + "/orders?keys=honour&busy=wait&late=1"])
    lines = {x.split()[0]: x for x in result.out.splitlines()}
    assert "rc=28" in lines["first"] and "rc=0 status=201" in lines["again"] and "ord-1" in lines["again"], result
    assert len(server.writes()) == 2 and len(set(server.keys())) == server.executions == 1
    assert world.states() == ["done"]


# --- two tokens, two kinds of key
def test_a_delivered_record_does_not_hide_a_doubt_under_another_token(world):
    world.policy(exit_wait="0s")
    with Scripted(lambda count, method, path: None if count == 2 else said(201)) as server:
        def write(token, run):
            return world.curl("-m", "1", "-H", "Authorization: Bearer " + token, "-d", "n=1", server.base + "/orders", run=run)

        assert write("aaa", "run-1").status == 201
        assert write("bbb", "run-2").rc == 28 and world.states() == ["done", "unknown"]
        assert write("aaa", "run-1").replayed
        again = write("aaa", "run-3")
        assert again.rc == 56 and "unknown-outcome" in again.err
    assert len(server.posts()) == 2


def test_no_key_is_ever_used_for_two_generations(world, server):
    url, own = server.base + "/orders?keys=honour", ("-H", "Idempotency-Key: mine")
    for run in ("run-1", "run-2"):
        assert world.curl("-d", "n=1", url, run=run).status == 201
    assert world.curl(*own, "-d", "n=1", url, run="run-2").status == 201
    assert world.curl("-d", "n=1", url, run="run-3").order == "ord-4"
    assert len(set(server.keys())) == server.executions == 4


# --- two runs that make the same write
def test_a_run_keeps_its_answer_when_another_run_writes_the_same(world, server):
    def write(run, query=""):
        return world.curl("-d", "n=1", server.base + "/orders?keys=honour" + query, run=run)

    assert [write(run).order for run in ("a", "b", "a", "b", "c", "a")] == ["ord-1", "ord-2", "ord-1", "ord-2", "ord-3", "ord-1"]
    assert len(set(server.keys())) == server.executions == 3


def test_a_run_repeats_its_own_refused_try_and_no_other(world):
    world.policy(provider=PROVIDER)
    with Scripted(lambda count, method, path: said({2: 429, 3: 402}.get(count, 201))) as server:
        def write(run):
            return world.curl("-d", "n=1", server.base + "/orders", run=run)

        assert [write("a").status, write("b").status, write("b").status, write("b").status] == [201, 429, 402, 201]
        assert write("a").replayed and write("b").replayed
    keys = [re.search("(?i)idempotency-key: (.*)", x[2]).group(1) for x in server.posts()]
    assert len(keys) == 4 and len(set(keys)) == 3 and keys[1] == keys[2]  # 429: the same key; 402 is stored: another one


def test_two_processes_of_one_run_beside_another_run(world, server):
    assert world.curl("-d", "n=1", server.base + "/orders", run="a").order == "ord-1"
    started = [world.curl_start("-d", "n=1", server.base + "/orders", run="b") for _ in range(6)]
    assert {world.curl_finish(p).order for p in started} == {"ord-2"} and server.executions == 2


def test_a_run_that_has_its_answer_is_not_given_a_late_one(world, server):
    def write(run, *args):
        return world.curl(*args, "-d", "n=1", server.base + "/orders?late=0.7", run=run)

    assert write("a").order == "ord-1"
    assert write("b", "-m", "0.3").rc == 28 and world.states() == ["done", "done"]
    assert write("a").order == "ord-1" and write("c").order == "ord-2"


# --- a process that stands still
def test_an_owner_that_wakes_up_late_does_not_send(world):
    with OrderServer(tls=True, hello_delay=3) as slow, OrderServer(tls=True) as server, ConnectProxy() as proxy:
        world.policy(match="POST https://127.0.0.1:*/orders")
        args = ("-k", "-d", "n=1", slow.base + "/orders?status=500")
        owner = world.curl_start("-x", "http://127.0.0.1:%d" % proxy.port, *args, no_proxy="")
        time.sleep(1)
        os.kill(owner.pid, signal.SIGSTOP)
        time.sleep(15.5)  # the lease
        assert world.curl("--connect-to", "::127.0.0.1:%d" % server.port, *args).status == 500
        os.kill(owner.pid, signal.SIGCONT)
        woken = world.curl_finish(owner)
        assert woken.rc == 56 and "sendonce" in woken.err  # its own send was stopped: not an answer
        assert proxy.connections == 1 and len(server.writes()) == 1 and not slow.writes()
    assert world.states() == ["unknown"]


# --- answers as large as they may be
def test_a_body_of_exactly_max_response_is_kept(world):
    """And one byte more is not: what comes with the body does not count."""
    world.policy(ledger={"max_response": "64KiB"})
    for size, kept in ((65536, True), (65537, False)):
        with Scripted(lambda count, method, path: said(201, b"x" * size)) as server:
            answers = [world.curl("-d", "n=%d" % size, server.base + "/orders") for _ in range(2)]
            assert answers[0].status == 201 and len(server.posts()) == 1
            assert (answers[1].status == 201 and answers[1].body == "x" * size) if kept else answers[1].reason == "answer-not-kept"
