#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is built has what makes mistakes in memory harder to use: tables that are read-only once it is loaded, no stack
that can be executed, checks of frames and of buffers, and, on x86-64, landing places for indirect calls.

usage: check_hardening.py [--linked-only] FILE ...     --linked-only: what the linker gives; the objects are not ours"""
import re
import struct
import subprocess
import sys

ENDBR64 = b"\xf3\x0f\x1e\xfa"


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True, text=True).stdout


def loads(data):
    """(address, offset, size) of each segment that is loaded, of a 64-bit file."""
    start, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, start + i * size)
        if kind == 1:
            yield address, offset, length


def without_landing(path, symbols):
    """Exported functions that do not begin with endbr64."""
    data = open(path, "rb").read()
    segments = list(loads(data))
    missing, seen = [], 0
    for address, name in re.findall(r"^\s*\d+: ([0-9a-f]+)\s+\d+ FUNC\s+GLOBAL DEFAULT\s+\d+ (\S+)", symbols, re.M):
        place = int(address, 16)
        for start, offset, length in segments:
            if start <= place < start + length:
                seen += 1
                at = offset + place - start
                if data[at:at + 4] != ENDBR64:
                    missing.append(name)
    return missing, seen


def faults(path, linked_only):
    header, segments, dynamic, symbols = (readelf(option, path) for option in ("-h", "-l", "-d", "--dyn-syms"))
    found = []
    if not re.search(r"Type:\s+DYN", header):
        found.append("is not position independent")
    if "GNU_RELRO" not in segments:
        found.append("has no read-only relocations")
    if not re.search(r"BIND_NOW|FLAGS_1.*\bNOW\b", dynamic):
        found.append("binds functions late, so their table stays writable")
    stack = re.search(r"GNU_STACK\s.*?\s([RWE ]{3})\s+0x", segments)
    if not stack or "E" in stack.group(1):
        found.append("asks for a stack that can be executed")
    if "TEXTREL" in dynamic:
        found.append("changes its code when it is loaded")
    if re.search(r"^\s+LOAD\s.*\bRWE\b", segments, re.M):
        found.append("has memory that can be written and executed")
    if "(RPATH)" in dynamic:
        found.append("has an RPATH, which goes before LD_LIBRARY_PATH")
    if linked_only:
        return found
    if "__stack_chk_fail" not in symbols:
        found.append("has no checks of frames (-fstack-protector-strong)")
    if not re.search(r"UND __\w+_chk(?!_fail)\b", symbols.replace("__stack_chk_fail", "")):
        found.append("has no checks of buffers (-D_FORTIFY_SOURCE)")
    if "X86-64" in header:
        missing, seen = without_landing(path, symbols)
        if missing:
            found.append(f"has functions without endbr64 (-fcf-protection): {' '.join(missing[:5])}")
        if not seen and not re.search(r"INTERP", segments):
            found.append("exports no functions")
    return found


def main():
    arguments = sys.argv[1:]
    linked_only = arguments[:1] == ["--linked-only"]
    files, failed = arguments[linked_only:], 0
    if not files:
        sys.exit("check_hardening: no files")
    for path in files:
        for fault in faults(path, linked_only):
            print(f"check_hardening: {path} {fault}")
            failed = 1
    sys.exit(failed)


if __name__ == "__main__":
    main()
