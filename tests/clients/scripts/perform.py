"""One write by pycurl. Arguments: URL, seconds, user:password or nothing, body."""
import io
import sys

import pycurl

url, seconds, user, body = sys.argv[1:]
curl, answer = pycurl.Curl(), io.BytesIO()
curl.setopt(pycurl.URL, url)
curl.setopt(pycurl.POSTFIELDS, body)
curl.setopt(pycurl.HTTPHEADER, ["Content-Type: application/json"])
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
