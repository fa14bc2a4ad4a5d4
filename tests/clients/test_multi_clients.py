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
ALSO_KEYS = ["curl-parallel", "pycurl-multi-read"]
CELLS = [(p, n, k) for p in MULTI_PROGRAMS for n in (TABLE if SOAK else SHORT) for k in (False, True)
         if SOAK or not k or p in ALSO_KEYS and n != "clean"]


@pytest.mark.parametrize("time", range(1, ROUNDS + 1))
@pytest.mark.parametrize("program,name,keys", CELLS)
def test_cell(cells, program, name, keys, time):  # noqa: F811
    judge(cells[program, name, keys, time].result(), name, keys)
