"""Two threads of one task, each at a step of its own, make the same request: it means something else at each. No
binding is needed: usage: steps.py URL"""
import ctypes
import sys
import threading

import pycurl

process = ctypes.CDLL(None)  # where libsendonce.so is preloaded, its functions are there


def sendonce(name, *args):
    try:
        function = getattr(process, "sendonce_" + name)
    except AttributeError:
        return -1  # SENDONCE_ABSENT: the program runs without
    return function(*[None if a is None else a.encode() for a in args])


def post(body):
    curl, answer = pycurl.Curl(), []
    curl.setopt(pycurl.URL, sys.argv[1])
    curl.setopt(pycurl.POSTFIELDS, body)
    curl.setopt(pycurl.WRITEFUNCTION, answer.append)
    curl.perform()
    return b"".join(answer).decode()


def branch(step, out):
    codes = [sendonce("step_push", step)] if step else []
    out[step] = [post("amount=5"), post("amount=5")] + codes
    if step:
        out[step].append(sendonce("step_pop"))


print(sendonce("run_set", "task-9"))
answers = {}
threads = [threading.Thread(target=branch, args=(step, answers)) for step in ("pay", "tip", None)]
for t in threads:
    t.start()
for t in threads:
    t.join()
for step in ("pay", "tip", None):
    print(answers[step])
