#!/usr/bin/env python3
"""Every function of the header has a case; one that can fail has a case in errors.json in which a pointer of it is NULL, too,
but for those that take none."""

import json
import re
import sys

import page

HERE = page.HERE
WITHOUT_POINTERS = {"qlib_set_threads", "qlib_set_limits"}  # whose one pointer may be NULL
# What runners do by themselves: free, read what must come out, compare messages; and what depends on the CPU.
IMPLIED = {"qtensor_dtype", "qtensor_data", "qblob_data", "qblob_size", "qerror_message", "qlib_isa"}


def main():
    symbols = (HERE.parent.parent / "capi/symbols.txt").read_text()
    functions = {name for name in re.findall(r"^q\w+", symbols, re.M) if not name.endswith("_free")}
    called = {step.get("call") for name in page.CASES for case in json.loads((HERE / f"{name}.json").read_text()) for step in case["steps"]}
    if functions - called - IMPLIED:
        sys.exit(f"no case calls {' '.join(sorted(functions - called - IMPLIED))}")

    header = (HERE.parent.parent / "capi/include/qtensor/qtensor.h").read_text()
    fallible = set(re.findall(r"^QTN_API qstatus (q\w+)\(", header, re.M)) - WITHOUT_POINTERS
    steps = [step for case in json.loads((HERE / "errors.json").read_text()) for step in case["steps"]]
    tried = {step["call"] for step in steps if step.get("message", "").endswith(" is NULL")}
    if fallible - tried:
        sys.exit(f"errors.json: no NULL is given to {' '.join(sorted(fallible - tried))}")


if __name__ == "__main__":
    main()
