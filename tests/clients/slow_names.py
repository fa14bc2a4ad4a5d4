"""Run in a mount and network namespace of its own: a name server that answers after the client's timeout.

    slow_names.py RESOLV.CONF [NAME=VALUE ...]     the pairs go into the client's environment

Prints whether the name server was asked, curl's exit code, and how many requests reached the order server,
counted well after the late answer was given.
"""
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from server import OrderServer, SlowNames

MS_BIND, SIOCSIFFLAGS, IFF_UP = 4096, 0x8914, 1


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def bind_over(source, target):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), os.path.realpath(target).encode(), None, MS_BIND, None) != 0:
        raise OSError(ctypes.get_errno(), "cannot mount over " + target)


def main(resolv, pairs):
    loopback_up()
    bind_over(resolv, "/etc/resolv.conf")
    names = SlowNames(delay=2)
    with OrderServer() as server:
        env = dict(os.environ, **dict(p.split("=", 1) for p in pairs))
        curl = subprocess.run(["curl", "-q", "-sS", "-m", "1", "-d", "x", "http://orders.test:%d/orders" % server.port],
                              env=env, timeout=30, capture_output=True)
        time.sleep(2.5)
        print("asked=%s rc=%d requests=%d %s" % ("yes" if names.asked else "no", curl.returncode, len(server.requests),
                                                 curl.stderr.decode(errors="replace")))


main(sys.argv[1], sys.argv[2:])
