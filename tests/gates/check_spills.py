#!/usr/bin/env python3
"""No inner loop of a product puts vectors on the stack: compilers that run out of registers there cost half the speed.

usage: check_spills.py OBJDUMP OBJECT...

An inner loop is what lies between a backward jump and its target with no other backward jump within; it is a product's
if it has several multiply-add instructions. A loop that stores a vector on the stack for every third of them is listed.
(Constants that a loop's end reads from there do no harm; nor do halves of vectors, a habit of GCC 12.)
"""

import re
import subprocess
import sys

PRODUCT = re.compile(r"vpdpbusd|vpmaddwd|vpmaddubsw|vfmadd\d+ps")
JUMP = re.compile(r"^j\w+\s+([0-9a-f]+)")
STORE_TO_STACK = re.compile(r"^vmov\w+\s+%[yz]mm\d+,.*\(%r[sb]p\)")
FEW = 4


def functions(listing):
    """Name and instructions, (address, text), of every function of a disassembly."""
    name, code = None, []
    for line in listing.splitlines():
        if start := re.match(r"^[0-9a-f]+ <(.*)>:$", line):
            if name:
                yield name, code
            name, code = start[1], []
        elif parts := re.match(r"^\s*([0-9a-f]+):\s+(.*?)\s*$", line):
            code.append((int(parts[1], 16), parts[2]))
    if name:
        yield name, code


def inner_loops(code):
    loops = []
    for address, text in code:
        jump = JUMP.match(text)
        if jump and (target := int(jump[1], 16)) <= address:
            loops.append((target, address))
    for begin, end in loops:
        if not any(begin <= b and e < end for b, e in loops):
            yield [text for address, text in code if begin <= address <= end]


def main():
    objdump, *objects = sys.argv[1:]
    products, spilling = 0, []
    for path in objects:
        done = subprocess.run([objdump, "-d", "-C", "--no-show-raw-insn", path], capture_output=True, text=True, check=True)
        for name, code in functions(done.stdout):
            for loop in inner_loops(code):
                sums = sum(bool(PRODUCT.search(text)) for text in loop)
                stores = sum(bool(STORE_TO_STACK.search(text)) for text in loop)
                products += sums >= FEW
                if sums >= FEW and 3 * stores >= sums:
                    spilling.append(f"{stores} stores to the stack beside {sums} products in {name}")
    print("\n".join(spilling))
    print(f"{products} inner loops of products, {len(spilling)} that spill")
    if products == 0:
        sys.exit("check_spills: no product found: this check has lost its objects")
    sys.exit(1 if spilling else 0)


if __name__ == "__main__":
    main()
