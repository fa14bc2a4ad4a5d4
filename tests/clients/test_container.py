"""A root in namespaces of its own, with sendonce in /etc/ld.so.preload: every process loads it, and nothing changes.

The short form lays an overlay over this machine's /etc inside user, mount and pid namespaces. With SENDONCE_SOAK a Debian is
made with debootstrap, and the daemons a container holds (php-fpm, cron, sshd) are started in it as well.
"""
import json
import os
import subprocess
import sys

import pytest

from harness import build, have

SOAK = bool(os.environ.get("SENDONCE_SOAK"))
COMMANDS = 300

# Runs inside, one process for all commands: what each printed and how it ended.
DRIVER = r'''
import concurrent.futures, json, os, subprocess, sys
env = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/dev/null", "LC_ALL": "C", "TERM": "dumb", "MANPAGER": "cat", "PAGER": "cat"}
def run(item):
    name, option = item
    try:
        p = subprocess.run([name, option], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           timeout=20, cwd="/", start_new_session=True)
        return [p.returncode, p.stdout.decode("latin-1")]
    except subprocess.TimeoutExpired:
        return ["timeout", ""]
    except OSError as e:
        return ["errno", e.errno]
with open("/proc/self/maps") as f:
    loaded = "libsendonce.so" in f.read()
items = json.loads(sys.stdin.read())
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    json.dump({"loaded": loaded, "results": list(pool.map(run, items))}, sys.stdout)
'''

# Whatever changes something, waits for a person, draws on a screen, or takes long, even when only asked for its version.
LEFT_OUT = {"reset", "clear", "tset", "tput", "script", "scriptlive", "setterm", "wall", "write", "mesg", "watch", "top", "htop", "login", "su",
            "newgrp", "sg", "passwd", "chfn", "chsh", "dialog", "whiptail", "unshare", "nsenter", "setarch", "linux32", "linux64", "strace",
            "systemd-run", "run-parts", "apt-key", "savelog", "py3clean", "py3compile", "pyclean", "pycompile", "gdb", "chromium", "vim", "yes",
            "i386", "x86_64", "uname26", "pslog", "pstree", "ps", "free", "uptime", "w", "last", "lastb", "dmesg", "reportbug", "deb-systemd-helper",
            "ischroot", "mcookie", "uuidgen", "mktemp", "tempfile", "date", "nproc", "who", "users", "lslogins", "lsof", "vmstat", "slabtop", "tload"}


def candidates(root=""):
    names = sorted(n for n in os.listdir(root + "/usr/bin") if n not in LEFT_OUT and os.access(root + "/usr/bin/" + n, os.X_OK)
                   and os.path.isfile(root + "/usr/bin/" + n) and not n.startswith(("systemd", "chromium", "x-", "git-")))
    return [[n, "--version"] for n in names] + [[n, "--help"] for n in names]


def namespaces(preload, *command):
    """The command in user, mount and pid namespaces, with or without us in /etc/ld.so.preload."""
    inside = "set -e; mount -t tmpfs tmpfs /mnt; mkdir /mnt/u /mnt/w; mount -t overlay overlay -o lowerdir=/etc,upperdir=/mnt/u,workdir=/mnt/w /etc; "
    inside += "echo %s >/etc/ld.so.preload; " % preload if preload else "rm -f /etc/ld.so.preload; "
    return ["unshare", "-Ur", "-m", "-p", "-f", "--mount-proc", "sh", "-c", inside + 'exec "$@"', "sh", *command]


def all_of(items, preload, wrap=namespaces):
    result = subprocess.run(wrap(preload, sys.executable if wrap is namespaces else "python3", "-c", DRIVER), input=json.dumps(items),
                            capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["loaded"] == bool(preload)
    return found["results"]


def compare(items, preload, wrap=namespaces):
    """Those that print the same twice without us must print it with us. Returns how many did."""
    plain, with_us = all_of(items, None, wrap), all_of(items, preload, wrap)
    counted = [i for i in range(len(items)) if plain[i][0] not in ("timeout", "errno")]
    other = [i for i in counted if plain[i] != with_us[i]]
    again = [all_of([items[i] for i in other], None, wrap) for _ in range(6)]  # some print their memory in another order each time
    assert [(items[i], plain[i], with_us[i]) for k, i in enumerate(other) if all(r[k] == plain[i] for r in again)] == []
    return len(counted) - len(other)


def test_commands_print_the_same_bytes():
    items = candidates()
    step = 1 if SOAK else max(1, len(items) // (COMMANDS + 60))
    assert compare(items[::step], build() + "/libsendonce.so") >= COMMANDS


CLIENTS = {
    "curl": ["curl", "-q", "-sS", "-d", "n=1", "@@"],
    "php": ["php", "-n", "-d", "extension=curl", "-r", "$c=curl_init('@@'); curl_setopt($c,CURLOPT_POSTFIELDS,'n=1'); curl_exec($c);"],
    "pycurl": ["/usr/bin/python3", "-c", "import pycurl; c=pycurl.Curl(); c.setopt(c.URL,'@@'); c.setopt(c.POSTFIELDS,'n=1'); c.perform()"],
    "perl": ["perl", "-e", "use WWW::Curl::Easy; my $c=WWW::Curl::Easy->new; $c->setopt(CURLOPT_URL,'@@'); "
             "$c->setopt(CURLOPT_POSTFIELDS,'n=1'); $c->perform;"],
    "ruby": ["ruby", "-e", "require 'ethon'; e=Ethon::Easy.new; e.http_request('@@',:post,body:'n=1'); e.perform; print e.response_body"],
}


@pytest.mark.parametrize("name", CLIENTS)
def test_clients_are_protected(world, server, name):
    """Nothing in the environment names the preload; each try is another process of another pid namespace."""
    world.policy(top={"scope": "tests", "run": "one"}, match="POST http://127.0.0.1:*/orders")
    os.chmod(world.folder, 0o755)
    argv = [a.replace("@@", server.base + "/orders") for a in CLIENTS[name]]
    answers = [world.run(namespaces(build() + "/libsendonce.so", *argv), preload=False, SENDONCE_POLICY=world.policy_file) for _ in "abc"]
    assert all(a.rc == 0 for a in answers), answers
    assert server.executions == 1 and len({a.out for a in answers}) == 1 and '"id"' in answers[0].out


def test_without_the_preload_they_are_not(world, server):
    """What the others would look like if the namespace did nothing."""
    world.policy(top={"scope": "tests", "run": "one"})
    argv = [a.replace("@@", server.base + "/orders") for a in CLIENTS["curl"]]
    for _ in "ab":
        assert world.run(namespaces(None, *argv), preload=False, SENDONCE_POLICY=world.policy_file).rc == 0
    assert server.executions == 2


# --- a whole Debian
EXTRA = "python3,python3-pycurl,php-cli,php-curl,php-fpm,git,ruby,perl,libwww-curl-perl,cron,openssh-server,curl,ca-certificates"


def debian(folder):
    """A root with us in /etc/ld.so.preload, from this machine's own package source."""
    sources = subprocess.run("cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null", shell=True, capture_output=True, text=True).stdout
    words = sources.replace("\n", " ").split()
    mirror = next(w for w in words if w.startswith("http") and w.rstrip("/").endswith("debian"))
    root = os.path.join(str(folder), "root")
    subprocess.run(["debootstrap", "--variant=minbase", "--include=" + EXTRA, "bookworm", root, mirror], check=True, capture_output=True, timeout=1500)
    place = root + "/usr/lib/sendonce"
    os.makedirs(place)
    for name in ("libsendonce.so", "libsendonce-core.so"):
        subprocess.run(["cp", os.path.join(build(), name), place], check=True)
    return root


def chrooted(root):
    def wrap(preload, *command):
        line = "/usr/lib/sendonce/libsendonce.so" if preload else ""
        inside = "set -e; mount --bind {0} {0}; mount -t proc proc {0}/proc; mount --bind /dev {0}/dev; echo '{1}' >{0}/etc/ld.so.preload; ".format(root, line)
        return ["unshare", "-m", "-p", "-f", "sh", "-c", inside + 'exec chroot %s "$@"' % root, "sh", *command]
    return wrap


STARTED = [["sh", "-c", "echo $((1+1))"], ["bash", "-lc", "echo ok"], ["apt-get", "check"], ["apt-cache", "policy"], ["dpkg", "--audit"],
           ["python3", "-c", "import ssl, ctypes, pycurl; print(1)"], ["php", "-r", "echo curl_version()['version'];"], ["php-fpm8.2", "-t"],
           ["git", "init", "-q", "/tmp/repository"], ["ruby", "-e", "puts 1"], ["perl", "-MWWW::Curl::Easy", "-e", "print 1"], ["cron", "-V"],
           ["sh", "-c", "mkdir -p /run/sshd; ssh-keygen -A >/dev/null; /usr/sbin/sshd -t && echo good"], ["su", "nobody", "-s", "/bin/sh", "-c", "id -un"]]


def whole_debian(world, server, tmp_path):
    wrap = chrooted(debian(tmp_path))
    for command in STARTED:
        runs = [world.run(wrap(preload, *command), preload=False, timeout=120) for preload in (None, True)]
        assert (runs[0].rc, runs[0].out) == (runs[1].rc, runs[1].out), (command, runs)
        assert "ld.so" not in runs[1].err and runs[1].rc in (0, 1), (command, runs[1])
    root = os.path.join(str(tmp_path), "root")
    os.makedirs(root + "/etc/sendonce")
    with open(root + "/etc/sendonce/policy.yaml", "w") as f:
        f.write("version: 1\nscope: box\nrun: one\nledger: {path: /var/lib/sendonce/ledger, durability: process}\nwrites:\n"
                "  - operation: orders.create\n    match: POST http://127.0.0.1:*/orders/**\n")
    os.makedirs(root + "/var/lib/sendonce", mode=0o700)
    for name in ("curl", "pycurl", "perl"):
        argv = [a.replace("@@", server.base + "/orders/" + name) for a in CLIENTS[name]]
        answers = [world.run(wrap(True, *argv), preload=False) for _ in "ab"]
        assert answers[0].rc == 0 and answers[0].out == answers[1].out, answers
    argv = ["php", "-r", CLIENTS["php"][-1].replace("@@", server.base + "/orders/php")]
    answers = [world.run(wrap(True, *argv), preload=False) for _ in "ab"]
    assert answers[0].out == answers[1].out and server.executions == 4
    print("commands with the same output: %d" % compare(candidates(root), True, wrap))


if SOAK and os.geteuid() == 0 and have("debootstrap"):
    test_a_debian_of_its_own = whole_debian
