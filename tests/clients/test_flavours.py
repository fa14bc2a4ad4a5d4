"""Two libcurls in one process, one with GnuTLS and one with OpenSSL: each write is made once, and by its own library.
Which library it was, the server sees in the first message of TLS."""
import os
import socket
import struct

import pytest

from harness import HERE
from pki import Pki
from server import ConnectProxy, Listener, OrderServer

SCRIPT = os.path.join(HERE, "scripts", "two_flavours.py")


class Hellos(Listener):
    """Forwards to a TLS server and keeps the cipher suites of each ClientHello."""

    def __init__(self, port):
        super().__init__()
        self.to, self.suites = port, []

    def serve(self, sock, number):
        head = sock.recv(4096, socket.MSG_PEEK)
        while len(head) < 5 or len(head) < 5 + struct.unpack(">H", head[3:5])[0]:
            head = sock.recv(16384, socket.MSG_PEEK)
        at = 5 + 4 + 2 + 32
        at += 1 + head[at]
        size = struct.unpack(">H", head[at:at + 2])[0]
        self.suites.append(head[at + 2:at + 2 + size])
        up = socket.create_connection(("127.0.0.1", self.to))
        ConnectProxy.splice(sock, up)


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    return Pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def front(world, pki):
    world.policy(match="POST https://127.0.0.1:*/orders")
    with OrderServer(tls=pki.server) as server, Hellos(server.port) as hellos:
        yield server, hellos


def run(world, front, pki, *who, preload=True):
    server, hellos = front
    server.reset()
    hellos.suites = []
    result = world.run(["/usr/bin/python3", SCRIPT, "https://127.0.0.1:%d/orders" % hellos.port, pki.ca, *who], preload=preload)
    assert result.rc == 0 and result.err == "", result
    assert [x.split()[:2] for x in result.out.splitlines()] == [[x, "201"] for x in who], result
    return result.out, hellos.suites


@pytest.mark.parametrize("order", [["pycurl", "ctypes"], ["ctypes", "pycurl"], ["pycurl", "ctypes", "pycurl", "ctypes"]], ids="-".join)
def test_each_write_by_its_own_library(world, front, pki, order):
    server = front[0]
    native = {who: run(world, front, pki, who, preload=False)[1][0] for who in ("pycurl", "ctypes")}
    assert native["pycurl"] != native["ctypes"]
    out, suites = run(world, front, pki, *order)
    assert [x.split()[-1].split("/")[0] for x in out.splitlines()] == [{"pycurl": "GnuTLS", "ctypes": "OpenSSL"}[x] for x in order]
    assert suites[:2] == [native[x] for x in order[:2]]
    assert server.executions == len(order) == len(server.writes()) and all(server.keys())
    by_connection = {r.connection: who for r, who in zip(server.requests, order)}  # none is used by both
    assert [by_connection[r.connection] for r in server.requests] == order
    assert [e["served"] for e in world.events("write")] == ["courier"] * len(order)
    again, _ = run(world, front, pki, *order)  # in a second process: answered from the ledger
    assert server.executions == 0 and [x.split()[2:4] for x in again.splitlines()] == [x.split()[2:4] for x in out.splitlines()]
