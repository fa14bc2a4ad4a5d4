"""What the gates share: a tiny web server, a compiler, and a preload with a core that only counts."""
import http.server
import os
import pathlib
import shutil
import subprocess
import threading

import pytest

PARTS = pathlib.Path(__file__).resolve().parent / "parts"


class Answering(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.methods.append(self.command)
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(b"ok\n")

    do_POST = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = do_GET

    def log_message(self, *_):
        pass


@pytest.fixture
def web():
    """A server; `web.url`, and in `web.methods` what was asked of it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.methods = []
    server.url = "http://127.0.0.1:%d/" % server.server_port
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def compiled(tmp_path):
    """compiled(NAME, SOURCE, FLAG...) builds a C source in the test's folder."""

    def compile_it(name, source, *flags, cc="gcc"):
        text = tmp_path / (name + ".c")
        text.write_text(source)
        out = tmp_path / name
        subprocess.run([cc, "-o", str(out), str(text), *flags], check=True, timeout=60)
        return out

    return compile_it


class Host:
    """Runs programs under a preload, in an environment without anything of ours."""

    def __init__(self, preload, folder):
        self.preload, self.folder = pathlib.Path(preload), pathlib.Path(preload).parent
        self.log, self.calls = folder / "log", folder / "calls"

    def environment(self, **extra):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SENDONCE_", "LD_"))}
        env.update(LD_PRELOAD=str(self.preload), SENDONCE_LOG=str(self.log), FAKE_CORE_LOG=str(self.calls))
        env.update({k: str(v) for k, v in extra.items()})
        return env

    def run(self, *command, preload=None, **env):
        env = self.environment(**env)
        if preload is not None:
            env["LD_PRELOAD"] = preload
        return subprocess.run([str(c) for c in command], env=env, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=60)

    def called(self, name):
        """The libcurls that calls of this name went to, in order."""
        if not self.calls.exists():
            return []
        lines = [line.split() for line in self.calls.read_text().splitlines()]
        return [libcurl.split(".so")[0] for call, libcurl in lines if call == name]


@pytest.fixture
def alone(preload, tmp_path):
    """The preload without a core beside it."""
    folder = tmp_path / "alone"
    folder.mkdir()
    return Host(shutil.copy(preload, folder), tmp_path)


@pytest.fixture
def faked(preload, root, tmp_path):
    """The preload with the counting core beside it."""
    folder = tmp_path / "faked"
    folder.mkdir()
    subprocess.run(["gcc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Werror", "-I", str(root / "src"), "-O1", "-fPIC",
                    "-shared", "-fvisibility=hidden", "-o", str(folder / "libsendonce-core.so"),
                    str(PARTS / "fakecore.c")], check=True, timeout=60)
    return Host(shutil.copy(preload, folder), tmp_path)
