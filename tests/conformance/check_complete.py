#!/usr/bin/env python3
"""Every function of the header that can fail has a case in errors.json in which a pointer of it is NULL, but for those
that take none."""

import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
WITHOUT_POINTERS = {"qlib_set_threads"}


def main():
    header = (HERE.parent.parent / "capi/include/qtensor/qtensor.h").read_text()
    fallible = set(re.findall(r"^QTN_API qstatus (q\w+)\(", header, re.M)) - WITHOUT_POINTERS
    steps = [step for case in json.loads((HERE / "errors.json").read_text()) for step in case["steps"]]
    tried = {step["call"] for step in steps if step.get("message", "").endswith(" is NULL")}
    if fallible - tried:
        sys.exit(f"errors.json: no NULL is given to {' '.join(sorted(fallible - tried))}")


if __name__ == "__main__":
    main()
