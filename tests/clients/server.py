"""An order server that misbehaves on request: the other side of every end-to-end test.

Loopback only, HTTP/1.1 with keep-alive, a thread a connection, nothing but the standard library.
It is written on plain sockets because the tests compare raw request bytes, and because most of what
it has to do (die after reading, cut a body, answer nothing) is what HTTP libraries prevent.

What happens to a request is said in its query, so that one server serves every case:

    late=S        execute, then wait S seconds before the answer        pre=S  wait before executing
    cut=1         execute, then close without one byte                  cutbody=1  close inside the body
    die=1         on the second or a later request of a connection: execute, close without a byte
    status=N      answer N (with exec=0: without executing); retry_after=S adds the header
    redirect=N    answer N with Location: `to`; executes nothing. status=303&to=.. executes; ID in `to` is the order's id
    auth=basic|digest|ntlm   401 unless the credentials are those of user `u`, password `p`
    times=N       the fault (late, cut, cutbody, status, redirect) hits the first N arrivals only
    keys=honour   one order a key: 409 while it runs (busy=wait: wait for it), 422 for another body, else the
                  first answer again. stores=201.402 names the statuses that are kept; an executed order
                  is always found again
    chunked=1 gzip=1 cookie=1 early=103 size=N trickle=S   form of the answer
    trailer=1     chunked, with a trailer X-Sum     http10=1  an HTTP/1.0 answer that ends with the connection
    proto=ICY     instead of HTTP/1.1 in the status line
    hdr=LINE|LINE more header lines                 expect=ignore|417  no 100 Continue, or refused once
    split=N       the head in two segments, the first one N bytes long
    idle=S        close the connection when nothing came for S seconds after the answer

`executions` counts orders; a GET, HEAD or OPTIONS never executes. As a program it prints its port;
GET /_stats answers with the counts as JSON.
"""
import base64
import gzip
import json
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
from urllib.parse import parse_qsl, urlsplit

READS = {"GET", "HEAD", "OPTIONS", "TRACE"}
REASONS = {200: "OK", 201: "Created", 307: "Temporary Redirect", 401: "Unauthorized", 402: "Payment Required",
           409: "Conflict", 422: "Unprocessable Entity", 429: "Too Many Requests", 500: "Internal Server Error",
           503: "Service Unavailable"}


class Gone(Exception):
    """The connection is to be closed now, without another byte."""


class Request:
    """One request as it came over the wire."""

    def __init__(self, raw_head, body, connection, number):
        self.raw = raw_head + body
        self.body = body
        self.connection, self.number = connection, number
        lines = raw_head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = lines[0].split(" ", 2)
        self.headers = [tuple(x.split(":", 1)) for x in lines[1:] if ":" in x]
        self.path = urlsplit(self.target).path
        self.spec = dict(parse_qsl(urlsplit(self.target).query))
        self.at = time.monotonic()

    def header(self, name):
        for key, value in self.headers:
            if key.lower() == name.lower():
                return value.strip()
        return None

    @property
    def key(self):
        return self.header("Idempotency-Key")

    @property
    def content(self):
        """The body, of which a multipart boundary is no part."""
        kind, _, boundary = (self.header("Content-Type") or "").partition("boundary=")
        return self.body.replace(boundary.encode("latin-1"), b"") if kind.startswith("multipart/") and boundary else self.body


def make_certificate(folder):
    """A certificate authority of one certificate: it signs itself and names 127.0.0.1."""
    cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", cert,
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"],
                   check=True, capture_output=True, timeout=60)
    return cert, key


def ntlm_challenge(request):
    """NTLM's second message for a first one, and the bare name of the scheme for none."""
    if not (request.header("Authorization") or "").startswith("NTLM TlRMTVNTUAAB"):
        return "NTLM"
    message = b"NTLMSSP\0" + struct.pack("<IHHIIQQHHI", 2, 0, 0, 48, 0x8201, 0x0123456789abcdef, 0, 0, 0, 48)
    return "NTLM " + base64.b64encode(message).decode()


class Listener:
    """A loopback socket and a thread that accepts; subclasses say what a connection means."""

    def __init__(self, port=0, address="127.0.0.1", backlog=256):
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind((address, port))
        self.sock.listen(backlog)
        self.port = self.sock.getsockname()[1]
        self.lock = threading.Lock()
        self.connections = 0
        self.open = set()
        self.closing = False

    def start(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def _accept(self):
        while not self.closing:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            with self.lock:
                self.connections += 1
                number = self.connections
                self.open.add(sock)
            threading.Thread(target=self._one, args=(sock, number), daemon=True).start()

    def _one(self, sock, number):
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.serve(sock, number)
        except (OSError, Gone, ValueError):
            pass
        finally:
            with self.lock:
                self.open.discard(sock)
            sock.close()

    def close(self):
        self.closing = True
        try:
            self.sock.shutdown(socket.SHUT_RDWR)  # wakes accept(); close() alone does not
        except OSError:
            pass
        self.sock.close()
        with self.lock:
            for sock in self.open:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()


class OrderServer(Listener):
    def __init__(self, port=0, tls=False, default=None, hello_delay=0, address="127.0.0.1", client_ca=None):
        super().__init__(port, address)
        self.address = address
        self.default = dict(default or {})
        self.hello_delay = hello_delay  # TLS: how long the ClientHello waits for its answer
        self.tls, self.cafile, self.folder = None, None, None
        if tls:
            self.folder = tempfile.mkdtemp(prefix="orders-tls-")
            self.cafile, key = make_certificate(self.folder) if tls is True else tls
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(self.cafile, key)
            if client_ca:
                self.tls.load_verify_locations(client_ca)
                self.tls.verify_mode = ssl.CERT_REQUIRED
        self.cond = threading.Condition(self.lock)
        self.reset()

    def reset(self):
        with self.lock:
            self.requests, self.orders, self.arrivals, self.by_key = [], [], {}, {}
            self.read_status = 200  # of all reads

    def close(self):
        super().close()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    # --- what the tests ask
    @property
    def base(self):
        return "%s://%s:%d" % ("https" if self.tls else "http", self.address, self.port)

    @property
    def executions(self):
        with self.lock:
            return len(self.orders)

    def writes(self, path=None):
        """Wire sends: every non-read request that arrived whole."""
        with self.lock:
            return [r for r in self.requests if r.method not in READS and (path is None or r.path == path)]

    def keys(self, path=None):
        return [r.key for r in self.writes(path)]

    def wait_for(self, what, timeout=10):
        """Until what(self) is true; False when it did not happen."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if what(self):
                return True
            time.sleep(0.01)
        return False

    def stats(self):
        with self.lock:
            sends = {}
            for r in self.requests:
                sends[r.path] = sends.get(r.path, 0) + 1
            return {"connections": self.connections, "executions": len(self.orders), "sends": sends,
                    "keys": [r.key for r in self.requests if r.method not in READS]}

    # --- one connection
    def serve(self, sock, number):
        if self.tls:
            if self.hello_delay:
                time.sleep(self.hello_delay)
            sock = self.tls.wrap_socket(sock, server_side=True)
        buffered, count, idle = b"", 0, None
        try:
            while True:
                sock.settimeout(idle)
                request, buffered = self._read(sock, buffered, number, count + 1)
                sock.settimeout(None)
                count += 1
                spec = dict(self.default, **request.spec)
                with self.lock:
                    self.requests.append(request)
                    at = (request.method, request.target)
                    self.arrivals[at] = self.arrivals.get(at, 0) + 1
                    spec["_arrival"] = self.arrivals[at]
                self._answer(sock, request, spec)
                idle = float(spec["idle"]) if "idle" in spec else None
        finally:
            sock.close()

    @staticmethod
    def _more(sock):
        try:
            data = sock.recv(65536)
        except socket.timeout:
            raise Gone
        if not data:
            raise Gone
        return data

    def _read(self, sock, buffered, connection, number):
        while b"\r\n\r\n" not in buffered:
            buffered += self._more(sock)
        head, rest = buffered.split(b"\r\n\r\n", 1)
        head += b"\r\n\r\n"
        request = Request(head, b"", connection, number)
        expect = request.spec.get("expect") if (request.header("Expect") or "").lower() == "100-continue" else "none"
        if expect == "417":
            sock.sendall(b"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n")
            return self._read(sock, rest, connection, number)
        if expect is None:
            sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" in (request.header("Transfer-Encoding") or ""):
            while not rest.endswith(b"0\r\n\r\n"):
                rest += self._more(sock)
            length = len(rest)
        else:
            length = int(request.header("Content-Length") or 0)
        while len(rest) < length:
            rest += self._more(sock)
        return Request(head, rest[:length], connection, number), rest[length:]

    # --- what is done and said
    def _answer(self, sock, request, spec):
        if request.path == "/_stats":
            return self._send(sock, request, spec, 200, json.dumps(self.stats()).encode(), [])
        if not self._authorised(request, spec):
            challenge = 'Basic realm="orders"'
            if spec["auth"] == "digest":
                challenge = 'Digest realm="orders", nonce="n%d", qop="auth", algorithm=MD5' % time.monotonic_ns()
            if spec["auth"] == "ntlm":
                challenge = ntlm_challenge(request)
            return self._send(sock, request, {}, 401, b'{"error":"who are you?"}', [("WWW-Authenticate", challenge)])
        faulty = spec["_arrival"] <= int(spec.get("times", 1 << 30))
        if "redirect" in spec and faulty:
            return self._send(sock, request, {}, int(spec["redirect"]), b"", [("Location", spec["to"])])
        if "pre" in spec:
            time.sleep(float(spec["pre"]))
        if request.method in READS:
            name = request.path.rsplit("/", 1)[-1]
            body = json.dumps({"id": name} if name.startswith("ord-") else {"read": True})
            return self._send(sock, request, spec, self.read_status, body.encode(), [])
        if spec.get("keys") == "honour" and request.key:
            return self._once(sock, request, spec, faulty)
        self._execute_and_send(sock, request, spec, faulty)

    @staticmethod
    def _authorised(request, spec):
        given = request.header("Authorization") or ""
        if spec.get("auth") == "basic":
            return given == "Basic " + base64.b64encode(b"u:p").decode()
        if spec.get("auth") == "digest":
            return given.startswith("Digest ") and 'username="u"' in given
        if spec.get("auth") == "ntlm":  # the third message; what it proves is not looked at
            return given.startswith("NTLM TlRMTVNTUAAD")
        return True

    def _execute(self, request):
        with self.lock:
            order = {"order": "ord-%d" % (len(self.orders) + 1), "key": request.key, "path": request.path,
                     "method": request.method, "body": request.body}
            self.orders.append(order)
        return order

    def _body(self, order, spec):
        body = json.dumps({"id": order["order"]})
        return (body[:-1] + ', "fill": "' + "x" * int(spec["size"]) + '"}' if "size" in spec else body).encode()

    def _execute_and_send(self, sock, request, spec, faulty, remember=None):
        """remember(status, body, order) is told what a later request with the same key may get."""
        status = int(spec.get("status", 201)) if faulty else 201
        order = self._execute(request) if status < 400 or spec.get("exec", "1") == "1" else None
        extra = []
        body = self._body(order, spec) if order else b'{"error":"not now"}'
        if status >= 400:
            body = b'{"error":"status %d"}' % status
        if remember:
            remember(status, body, order)
        if 300 <= status < 400 and "to" in spec:
            extra.append(("Location", spec["to"].replace("ID", order["order"])))
        if faulty and "late" in spec:
            time.sleep(float(spec["late"]))
        if faulty and "cut" in spec or "die" in spec and request.number > 1:
            raise Gone
        if status >= 400 and "retry_after" in spec:
            extra.append(("Retry-After", spec["retry_after"]))
        self._send(sock, request, spec if faulty else dict(spec, cutbody=""), status, body, extra)

    def _once(self, sock, request, spec, faulty):
        stores = [int(x) for x in spec.get("stores", "201.402").split(".")]
        with self.cond:
            entry = self.by_key.get(request.key)
            if not entry:
                self.by_key[request.key] = entry = {"body": request.content, "busy": True, "answer": None}
                mine = True
            else:
                mine = False
        if mine:
            return self._first(sock, request, spec, faulty, entry, stores)
        if entry["body"] != request.content:
            return self._send(sock, request, spec, 422, b'{"error":"another body under this key"}', [])
        with self.cond:
            if entry["busy"] and spec.get("busy") != "wait":
                return self._send(sock, request, spec, 409, b'{"error":"still running"}', [])
            while entry["busy"]:
                self.cond.wait(1)
        if not entry["answer"]:
            entry["busy"] = True
            return self._first(sock, request, spec, faulty, entry, stores)
        status, body = entry["answer"]
        self._send(sock, request, {}, status, body, [("Idempotent-Replayed", "true")])

    def _first(self, sock, request, spec, faulty, entry, stores):
        def remember(status, body, order):
            if status in stores:
                entry["answer"] = (status, body)
            elif order:  # the order exists, whatever this answer says
                entry["answer"] = (201, self._body(order, spec))

        try:
            self._execute_and_send(sock, request, spec, faulty, remember)
        finally:
            with self.cond:
                entry["busy"] = False
                self.cond.notify_all()

    @staticmethod
    def _send(sock, request, spec, status, body, extra):
        if spec.get("early"):
            sock.sendall(b"HTTP/1.1 %s Early Hints\r\nLink: </s.css>; rel=preload\r\n\r\n" % spec["early"].encode())
        headers = [("Content-Type", "application/json"), ("X-Request-Id", "req-%d" % time.monotonic_ns())] + extra
        if spec.get("cookie"):
            headers.append(("Set-Cookie", "session=s%d; Path=/" % time.monotonic_ns()))
        if spec.get("gzip"):
            body = gzip.compress(body, mtime=0)
            headers.append(("Content-Encoding", "gzip"))
        headers += [tuple(x.split(": ", 1)) for x in spec.get("hdr", "").split("|") if x]
        chunked = spec.get("chunked") or spec.get("trailer")
        headers.append(("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(len(body))))
        head = "HTTP/1.1 %d %s\r\n" % (status, REASONS.get(status, "Status"))
        head += "".join("%s: %s\r\n" % h for h in headers) + "\r\n"
        head = head.encode()
        if spec.get("proto"):
            head = head.replace(b"HTTP/1.1", spec["proto"].encode(), 1)
        if spec.get("http10"):
            sock.sendall(head.replace(b"HTTP/1.1", b"HTTP/1.0").replace(b"Content-Length", b"X-Length") + body)
            raise Gone
        if request.method == "HEAD":
            return sock.sendall(head)
        if spec.get("split"):  # the head in two segments, the first so long
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.sendall(head[:int(spec["split"])])
            time.sleep(0.02)
            head = head[int(spec["split"]):]
        if spec.get("cutbody"):
            sock.sendall(head + body[:len(body) // 2])
            raise Gone
        if chunked:
            half = len(body) // 2
            pieces = [p for p in (body[:half], body[half:]) if p]
            body = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n"
            body += b"X-Sum: 7\r\n\r\n" if spec.get("trailer") else b"\r\n"
        if spec.get("trickle"):
            sock.sendall(head)
            for i in range(len(body)):
                time.sleep(float(spec["trickle"]))
                sock.sendall(body[i:i + 1])
            return None
        return sock.sendall(head + body)


class Silent(Listener):
    """Accepts, reads, says nothing: a TLS server that never answers the ClientHello."""

    def __init__(self):
        super().__init__()
        self.seen = b""

    def serve(self, sock, number):
        while True:
            data = sock.recv(65536)
            if not data:
                return
            with self.lock:
                self.seen += data


class FullQueue:
    """A listener whose accept queue is full: a connect() to it hangs. drain() accepts at last and
    returns everything that its guests have sent."""

    def __init__(self):
        self.sock = socket.socket()
        self.sock.bind(("127.0.0.1", 0))
        self.sock.listen(0)
        self.port = self.sock.getsockname()[1]
        self.fillers = []
        for _ in range(8):  # the first ones fill the queue, the last ones prove that it is full
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex(("127.0.0.1", self.port))
            self.fillers.append(s)

    def drain(self, seconds):
        end, guests, seen = time.monotonic() + seconds, [], b""
        for s in self.fillers:
            s.close()
        self.sock.settimeout(0.1)
        while time.monotonic() < end:
            try:
                guest, _ = self.sock.accept()
                guest.settimeout(0.1)
                guests.append(guest)
            except socket.timeout:
                pass
            for guest in guests:
                try:
                    seen += guest.recv(65536)
                except OSError:
                    pass
        for s in guests:
            s.close()
        return seen

    def close(self):
        for s in self.fillers:
            s.close()
        self.sock.close()


class SlowNames:
    """A name server on UDP that says 127.0.0.1 to everything, but only after `delay` seconds."""

    def __init__(self, address="127.0.0.1", port=53, delay=2.0):
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind((address, port))
        self.delay, self.asked, self.answered = delay, 0, 0
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            try:
                data, peer = self.sock.recvfrom(2048)
            except OSError:
                return
            self.asked += 1
            threading.Timer(self.delay, self._reply, (data, peer)).start()

    def _reply(self, data, peer):
        end = data.index(b"\0", 12) + 5  # one question: name, type, class
        is_a = data[end - 4:end - 2] == b"\0\1"
        answer = data[:2] + struct.pack(">HHHHH", 0x8180, 1, 1 if is_a else 0, 0, 0) + data[12:end]
        if is_a:
            answer += b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 1, 4) + bytes([127, 0, 0, 1])
        try:
            self.sock.sendto(answer, peer)
            self.answered += 1
        except OSError:
            pass

    def close(self):
        self.sock.close()


class ConnectProxy(Listener):
    """A proxy that knows CONNECT only, and only to loopback."""

    def serve(self, sock, number):
        head = b""
        while b"\r\n\r\n" not in head:
            data = sock.recv(65536)
            if not data:
                return
            head += data
        host, port = head.split()[1].decode().rsplit(":", 1)
        if not head.startswith(b"CONNECT ") or host not in ("127.0.0.1", "localhost"):
            sock.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            return
        up = socket.create_connection((host, int(port)))
        up.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        self.splice(sock, up)

    @classmethod
    def splice(cls, sock, up):
        back = threading.Thread(target=cls._pump, args=(up, sock), daemon=True)
        back.start()
        cls._pump(sock, up)
        back.join(60)
        up.close()

    @staticmethod
    def _pump(source, target):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                target.sendall(data)
        except OSError:
            pass
        for s in (source, target):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class UnixFront:
    """A unix socket before a TCP server."""

    def __init__(self, path, port):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.bind(path)
        self.sock.listen(16)
        self.path, self.port = path, port
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            up = socket.create_connection(("127.0.0.1", self.port))
            for a, b in ((sock, up), (up, sock)):
                threading.Thread(target=ConnectProxy._pump, args=(a, b), daemon=True).start()

    def close(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()


def main(argv):
    default = dict(parse_qsl(argv[argv.index("--default") + 1])) if "--default" in argv else {}
    with OrderServer(tls="--tls" in argv, default=default) as server:
        print(server.port, flush=True)
        if server.cafile:
            print(server.cafile, flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
