"""The programs of the fault table: how each makes one write, and what it prints.

PROGRAMS maps a name to a Program, which knows the command line for a URL, a timeout and credentials, and what
the program makes of an answer. All of them end what they print with `saw status=S code=C`, the HTTP status and
the CURLcode as the program's binding tells them; the answer's body stands before that.
"""
import os
import re

from faults import BLOB, DOUBT, RETRIED
from harness import HERE, Answer, client
from server import OrderServer

SAW = re.compile(r"\nsaw status=(\d+) code=(\d+)\n")


class Seen(Answer):
    """What a program printed about its one write. Headers are not among it."""

    @property
    def reason(self):
        document = self.refusal()
        return document and document["type"].rsplit(":", 1)[1]

    @property
    def problem(self):
        return self.refusal()

    def refusal(self):
        try:
            document = self.document() or {}
        except ValueError:
            return None
        return document if str(document.get("type")).startswith("urn:sendonce:") else None


class XmlRpcServer(OrderServer):
    """Answers with the order's id as XML-RPC does."""

    def _body(self, order, spec):
        value = "<value><string>%s</string></value>" % order["order"]
        return ("<methodResponse><params><param>%s</param></params></methodResponse>" % value).encode()

    @staticmethod
    def _send(sock, request, spec, status, body, extra):
        OrderServer._send(sock, request, spec, 200 if status == 201 else status, body, extra)


class Program:
    def __init__(self, argv, fails=False, retries=False, redirects=False, keeps=False, rewinds=True, decodes=True, server=OrderServer):
        self.argv = argv            # (world, url, seconds, user) -> command line
        self.fails = fails          # an answer of 400 or more is an error to it (FAILONERROR)
        self.retries = retries      # tries again by itself
        self.redirects = redirects  # follows redirects by itself, each time with a request of its own
        self.keeps = keeps          # has libcurl keep its method (CUSTOMREQUEST), so a 303 makes it write twice
        self.rewinds = rewinds      # its body can be read a second time, for a 307
        self.decodes = decodes      # takes the content encoding off
        self.server = server        # whom it talks to

    def start(self, world, url, seconds, user, **env):
        world.write("body", BLOB)
        return world.start(self.argv(world, url, seconds, user), **env)

    def finish(self, world, process):
        seen = world.finish(process, 40, Seen)
        found = SAW.search(seen.out + seen.err)
        assert found, seen
        seen.body = (seen.out + seen.err)[:found.start()]
        seen.status, seen.exit, seen.rc = int(found[1]), seen.rc, int(found[2])
        return seen

    def run(self, world, url, seconds, user, **env):
        return self.finish(world, self.start(world, url, seconds, user, **env))

    def expects(self, fault, tries, keys=False):
        """The table's tries in this program's eyes."""
        tries = list(tries)
        if self.retries and fault in RETRIED:
            tries[0] = 201 if keys else RETRIED[fault]
        if self.redirects and fault == "307" and not keys:  # a 307 that libcurl does not follow leaves a doubt
            tries[1:] = [DOUBT] * len(tries[1:])
        if self.keeps and fault == "303":
            tries = ['{"id": "ord-2"}'] * len(tries)
        if not self.decodes and fault == "chunked-gzip":
            tries = [""] * len(tries)
        return [self.fails_on(t) for t in tries] if self.fails else tries

    @staticmethod
    def fails_on(end):
        if end == DOUBT:
            return "rc56"
        return "rc22" if isinstance(end, int) and end >= 400 else end


def curl(*args, **traits):
    def argv(world, url, seconds, user):
        login = ["-u", user] if user else []
        saw = "\\nsaw status=%{http_code} code=%{exitcode}\\n"
        return ["curl", "-q", "-sS", "-L", "--compressed", "-w", saw, "-m", str(seconds), *login, *args, url]
    return Program(argv, **traits)


def script(interpreter, name, kind="fields", **traits):
    path = os.path.join(HERE, "scripts", name)
    return Program(lambda world, url, seconds, user: [interpreter, path, url, str(seconds), user, BLOB, kind, world.path("body")], **traits)


def cmake():
    path = os.path.join(HERE, "scripts", "upload.cmake")
    def argv(world, url, seconds, user):
        return ["cmake", "-DURL=" + url, "-DSECONDS=%d" % seconds, "-DSENDER=" + user, "-DFILE=" + world.path("body"), "-P", path]
    return Program(argv, fails=True, decodes=False)


def kind(name, **traits):
    return Program(lambda world, url, seconds, user: [client("kinds"), name, url, str(seconds), user, BLOB], **traits)


PROGRAMS = {
    # their bodies are in memory when the call starts
    "curl-d": curl("--json", BLOB),
    "curl-retry": curl("--retry", "2", "--retry-delay", "1", "-d", BLOB, retries=True),
    "php-exec": script("php", "exec.php"),
    "php-guzzle": script("php", "guzzle.php", redirects=True),
    "pycurl": script("/usr/bin/python3", "perform.py"),
    "ruby-ethon": script("ruby", "ethon.rb"),
    "perl-www-curl": script("perl", "www.pl"),
    "c-fields": kind("fields"),
    "c-copy": kind("copy"),
    "c-empty": kind("empty"),
    "c-delete": kind("delete", keeps=True),
    "c-patch": kind("patch", keeps=True),
    # their bodies are read, or made by libcurl, while they are sent
    "curl-T": curl("-T", "body"),
    "curl-F": curl("-F", "order=@body;type=application/json", "-F", "note=hello"),
    "cmake-upload": cmake(),
    "php-form": script("php", "exec.php", "form"),
    "php-upload": script("php", "exec.php", "upload", rewinds=False),
    "php-guzzle-form": script("php", "guzzle.php", "form", redirects=True),
    "php-guzzle-stream": script("php", "guzzle.php", "stream", redirects=True),
    "pycurl-form": script("/usr/bin/python3", "perform.py", "form"),
    "pycurl-read": script("/usr/bin/python3", "perform.py", "read"),
    "ruby-ethon-form": script("ruby", "ethon.rb", "form"),
    "perl-www-curl-form": script("perl", "www.pl", "form"),
    "c-read": kind("read"),
    "c-read-chunked": kind("read-chunked"),
    "c-read-file": kind("read-file"),
    "c-upload": kind("upload"),
    "c-upload-chunked": kind("upload-chunked"),
    "c-upload-file": kind("upload-file"),
    "c-mime": kind("mime"),
    "c-mime-read": kind("mime-read"),
    "c-form": kind("form"),
}

# These never call curl_easy_perform: what runs a transfer of theirs is a loop of their own around curl_multi.
MULTI_PROGRAMS = {
    "curl-parallel": curl("--parallel", "--parallel-immediate", "--no-progress-meter", "--json", BLOB),
    "php-multi": script("php", "multi.php", keeps=True),
    "php-guzzle-async": script("php", "guzzle.php", "async", redirects=True),
    "php-symfony": script("php", "symfony.php", redirects=True),
    "pycurl-multi": script("/usr/bin/python3", "multi.py"),
    "pycurl-multi-read": script("/usr/bin/python3", "multi.py", "read"),
    "tornado": script("/usr/bin/python3", "fetch.py"),
    "ruby-typhoeus": script("ruby", "hydra.rb"),
    "ruby-curb": script("ruby", "curb.rb"),
    "r-curl": script("Rscript", "fetch.R"),
    "xmlrpc-c": script("/usr/bin/python3", "xmlrpc.py", server=XmlRpcServer),
    "perl-www-curl-multi": script("/usr/bin/perl", "www_multi.pl"),
}
# npm's, which no Debian package has: only where somebody built it (see README).
if os.environ.get("NODE_LIBCURL"):
    MULTI_PROGRAMS["node-libcurl"] = script("node", "libcurl.js")
