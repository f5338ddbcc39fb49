#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cases of tests/conformance through the package for Python, each call with its allocations failing in turn: it raises
OutOfMemoryError, and the same call succeeds afterwards with what the case expects. Runs with failing_new preloaded.

usage: walk_allocations.py DENSE ROOT CASES.json...
"""

import ctypes
import sys

import conformance

import qtensor as qt

# Once they have succeeded, these have taken what they were given into account.
ONCE = {"qobserver_observe", "qobserver_merge", "qmodel_calibrate", "qtrainer_step", "qtrainer_backward", "qtrainer_update"}

new = ctypes.CDLL(None)
new.fail_new.argtypes = [ctypes.c_long]
new.stop_failing_new.restype = ctypes.c_bool


def attempt(call, frame, n):
    """Whether allocation n was reached, and the result or the exception."""
    new.fail_new(n)
    try:
        result, error = call(frame), None
    except (qt.Error, conformance.CannotSay) as raised:
        result, error = None, raised
    finally:
        failed = new.stop_failing_new()
    return failed, result, error


def reads_state(frame):
    """A run that does has moved it on, whatever becomes of the results on their way to Python."""
    return None in (frame.get("inputs") or [])


class Walk:
    def __init__(self, dense):
        self.dense, self.points = dense, 0

    def over(self, function, call):
        def walked(frame):
            if reads_state(frame):
                return call(frame)
            n, other = 1, None
            while True:
                failed, result, error = attempt(call, frame, n)
                lacked = failed and isinstance(error, qt.OutOfMemoryError)
                self.points += failed
                if not lacked and error is not None and other is None:
                    other = error
                if not failed or (error is None and function in ONCE):
                    break
                n += 1 if n <= self.dense else n // 10 + 1
            # Where a call fails in any case, it may have found out before it missed the memory.
            if other is not None and str(other) != str(error):
                raise conformance.Wrong(f"{function}, allocation {n}: {other!r}")
            if error is not None:
                raise error
            return result
        return walked


def main():
    walk = Walk(int(sys.argv.pop(1)))
    conformance.CALLS = {name: walk.over(name, call) for name, call in conformance.CALLS.items()}
    status = conformance.main()
    print(f"points {walk.points}")
    return status


if __name__ == "__main__":
    sys.exit(main())
