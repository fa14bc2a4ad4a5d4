"""Programs that run their transfers by curl_multi, by the faults after which they would try again.

The cells are those of test_fault_table.py: once natively, which is the reference, then three times under sendonce
in one run. The short form tries each program against a server without keys, and some against one that
deduplicates; `make soak` every one by every fault of the table.
"""
import os

import pytest

from programs import MULTI_PROGRAMS
from test_fault_table import ROUNDS, TABLE, cells, judge  # noqa: F401 (cells is a fixture)

SOAK = bool(os.environ.get("SENDONCE_SOAK"))
SHORT = ["clean", "late", "closed", "cut-body"]
# rows of the table that say nothing of a program. These ask libcurl for no redirects and no decoding:
PLAIN = ["pycurl-multi", "pycurl-multi-read", "ruby-typhoeus", "ruby-curb", "perl-www-curl-multi", "xmlrpc-c"]
AS_IT_CAME = {(p, n) for p in PLAIN for n in ("307", "303", "chunked-gzip")}
# Sets another header list in the middle of a redirect, for which the courier follows with the first one (303: the GET keeps
# its Content-Type); and gives its body again where the table's programs cannot (307).
OF_ITS_OWN = {("php-symfony", "307"), ("php-symfony", "303")}
TELLS_NO_MORE = {("xmlrpc-c", n) for n in ("401", "500", "503", "503-not-executed")}  # than the status, and gives up at 401
ALSO_KEYS = ["curl-parallel", "pycurl-multi-read"]
CELLS = [(p, n, k) for p in MULTI_PROGRAMS for n in (TABLE if SOAK else SHORT) for k in (False, True)
         if (p, n) not in AS_IT_CAME | OF_ITS_OWN | TELLS_NO_MORE and (SOAK or not k or p in ALSO_KEYS and n != "clean")]


@pytest.mark.parametrize("time", range(1, ROUNDS + 1))
@pytest.mark.parametrize("program,name,keys", CELLS)
def test_cell(cells, program, name, keys, time):  # noqa: F811
    judge(cells[program, name, keys, time].result(), name, keys)
