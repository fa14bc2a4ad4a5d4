"""One write by pycurl. Arguments: URL, seconds, user:password or nothing, body, fields|form|read."""
import io
import sys

import pycurl

url, seconds, user, body, kind = sys.argv[1:6]
curl, answer = pycurl.Curl(), io.BytesIO()
curl.setopt(pycurl.URL, url)
if kind == "fields":
    curl.setopt(pycurl.POSTFIELDS, body)
    curl.setopt(pycurl.HTTPHEADER, ["Content-Type: application/json"])
if kind == "form":
    curl.setopt(pycurl.HTTPPOST, [("note", "hello"), ("order", (pycurl.FORM_CONTENTS, body, pycurl.FORM_CONTENTTYPE, "application/json"))])
if kind == "read":
    source = io.BytesIO(body.encode())
    curl.setopt(pycurl.POST, 1)
    curl.setopt(pycurl.READFUNCTION, source.read)
    curl.setopt(pycurl.SEEKFUNCTION, lambda offset, origin: source.seek(offset, origin) and None)
    curl.setopt(pycurl.POSTFIELDSIZE, len(body))
curl.setopt(pycurl.WRITEDATA, answer)
curl.setopt(pycurl.FOLLOWLOCATION, 1)
curl.setopt(pycurl.ENCODING, "")
curl.setopt(pycurl.TIMEOUT, int(seconds))
if user:
    curl.setopt(pycurl.USERPWD, user)
code = 0
try:
    curl.perform()
except pycurl.error as problem:
    code, text = problem.args
    print(text, file=sys.stderr)
status = curl.getinfo(pycurl.RESPONSE_CODE)
print("%s\nsaw status=%d code=%d" % (answer.getvalue().decode("latin-1"), status, code))
sys.exit(1 if code else 22 if status >= 400 else 0)
