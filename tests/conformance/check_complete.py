#!/usr/bin/env python3
"""Every function of the header has a case; one that can fail has a case in errors.json in which a pointer of it is NULL, too,
except of those that take none. Usage: check_complete.py API.json"""

import json
import pathlib
import sys

import page

HERE = page.HERE
# What runners do by themselves: free, read what must come out, compare messages; and what depends on the CPU.
IMPLIED = {"qtensor_dtype", "qtensor_data", "qblob_data", "qblob_size", "qerror_message", "qlib_isa"}


def must_not_be_null(function):
    """Whether there is a pointer that QTN_OPT does not mark."""
    return any("*" in p["type"] and not p["nullable"] for p in function["params"])


def main():
    api = json.loads(pathlib.Path(sys.argv[1]).read_text())["functions"]
    functions = {function["name"] for function in api if not function["name"].endswith("_free")}
    called = {step.get("call") for name in page.CASES for case in json.loads((HERE / f"{name}.json").read_text()) for step in case["steps"]}
    if functions - called - IMPLIED:
        sys.exit(f"no case calls {' '.join(sorted(functions - called - IMPLIED))}")

    fallible = {function["name"] for function in api if function["return"]["type"] == "qstatus" and must_not_be_null(function)}
    steps = [step for case in json.loads((HERE / "errors.json").read_text()) for step in case["steps"]]
    tried = {step["call"] for step in steps if step.get("message", "").endswith(" is NULL")}
    if fallible - tried:
        sys.exit(f"errors.json: no NULL is given to {' '.join(sorted(fallible - tried))}")


if __name__ == "__main__":
    main()
