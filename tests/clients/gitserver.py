"""A git server: the order server with git's own `http-backend` behind it.

A push is one POST to /NAME.git/git-receive-pack, and executing it is what an order is elsewhere. Git puts together
its URLs by itself, so the faults come by the server's default: late, cut and cutbody as with orders, with times,
and exec=0 to have a push cut off before it was executed.
"""
import os
import subprocess
import time

from server import READS, Gone, OrderServer


def unchunked(body):
    whole, rest = b"", body
    while rest:
        size, rest = rest.split(b"\r\n", 1)
        size = int(size, 16)
        whole, rest = whole + rest[:size], rest[size + 2:] if size else b""
    return whole


class GitServer(OrderServer):
    def __init__(self, folder, **kwargs):
        super().__init__(**kwargs)
        self.root = folder
        self.repository = os.path.join(folder, "r.git")
        self.git("init", "-q", "--bare", self.repository)
        self.git("-C", self.repository, "config", "http.receivepack", "true")
        self.git("-C", self.repository, "config", "core.logAllRefUpdates", "true")

    @staticmethod
    def git(*args):
        return subprocess.run(["git", *args], check=True, capture_output=True, text=True, timeout=60).stdout

    @property
    def pushes(self):
        """How often the branch was moved, by git's own book."""
        log = os.path.join(self.repository, "logs/refs/heads/main")
        if not os.path.exists(log):
            return 0
        with open(log) as f:
            return len(f.readlines())

    def _answer(self, sock, request, spec):
        if request.method in READS:
            return self._give(sock, request, {}, *self._backend(request))
        faulty = spec["_arrival"] <= int(spec.get("times", 1 << 30)) and len(request.body) > 4  # 4: git feels its way
        if faulty and spec.get("exec") == "0":
            raise Gone
        self._execute(request)
        answer = self._backend(request)
        if faulty:
            time.sleep(float(spec.get("late", 0)))
        if faulty and "cut" in spec:
            raise Gone
        self._give(sock, request, {"cutbody": spec.get("cutbody")} if faulty else {}, *answer)

    def _backend(self, request):
        """What git's CGI program makes of it: status, header lines, body."""
        path, _, query = request.target.partition("?")
        body = unchunked(request.body) if request.header("Transfer-Encoding") else request.body
        env = dict(os.environ, GIT_PROJECT_ROOT=self.root, GIT_HTTP_EXPORT_ALL="1", GIT_CONFIG_NOSYSTEM="1", HOME=self.root,
                   REQUEST_METHOD=request.method, PATH_INFO=path, QUERY_STRING=query, REMOTE_USER="u", REMOTE_ADDR="127.0.0.1",
                   CONTENT_TYPE=request.header("Content-Type") or "", CONTENT_LENGTH=str(len(body)),
                   HTTP_CONTENT_ENCODING=request.header("Content-Encoding") or "", GIT_PROTOCOL=request.header("Git-Protocol") or "")
        done = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, timeout=60)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        return int(headers.pop("Status", "200").split()[0]), headers, body

    @staticmethod
    def _give(sock, request, spec, status, headers, body):
        lines = "".join("%s: %s\r\n" % h for h in headers.items())
        head = "HTTP/1.1 %d It\r\n%sContent-Length: %d\r\n\r\n" % (status, lines, len(body))
        if spec.get("cutbody"):
            sock.sendall(head.encode() + body[:len(body) // 2])
            raise Gone
        sock.sendall(head.encode() + body)
