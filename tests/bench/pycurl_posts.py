"""POSTs on one warm handle: for each number read, so many requests, and the microseconds all of them took.

   pycurl_posts.py URL [form]     a JSON body, or a form that libcurl renders"""
import sys
import time

import pycurl

c = pycurl.Curl()
c.setopt(c.URL, sys.argv[1])
form = len(sys.argv) > 2
if not form:
    c.setopt(c.POST, 1)
c.setopt(c.WRITEFUNCTION, lambda data: None)
n = 0
for line in sys.stdin:
    began = time.perf_counter()
    for _ in range(int(line)):
        n += 1
        if form:
            c.setopt(c.HTTPPOST, [("amount", "500"), ("customer", "c1"), ("n", str(n))])
        else:
            c.setopt(c.POSTFIELDS, '{"amount": 500, "customer": "c1", "n": %d}' % n)
        c.perform()
    print("%.1f" % ((time.perf_counter() - began) * 1e6), flush=True)
