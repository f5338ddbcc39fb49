#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models that nobody would train, of thousands of nodes, through everything that is done with models.

large_graphs.py LIBRARY [SHAPE ...]: each step works, or is refused in one line.
large_graphs.py LIBRARY --times N [SHAPE ...]: measures models of N and of 16N nodes, N of 1000 or more; the larger one may
take sixteen times as long, or four times that where caches get too small for it, and not 256 times.
"""
import ctypes
import os
import sys
import tempfile
import time

NODES = 4000
# What works with every shape; the others may be refused, where a graph is on grids already or has no weights.
WORKING = ("load", "inspect", "save", "session", "run")

# The larger model is GROWTH times the smaller one. Time may grow by MOST, which is halfway from linear to quadratic, for caches
# and what else the machine does are measured, too.
GROWTH = 16
MOST = GROWTH ** 1.5
# What is over sooner than this with the larger model says nothing: a quadratic step of that size would take minutes at a
# million nodes at worst. Seconds.
IGNORED = 0.04
TRIES = 4
FLOAT, INT8, UINT8, INT32 = 1, 3, 2, 6


# --- ONNX, as far as it is needed here

def varint(number):
    out = bytearray()
    number &= (1 << 64) - 1
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def node(op, inputs, outputs, name="", attributes=b""):
    return field(1, b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(3, name)
                 + field(4, op) + attributes)


def tensor(name, dims, dtype, raw):
    return field(5, b"".join(field(1, d) for d in dims) + field(2, dtype) + field(8, name) + field(9, raw))


def value(number, name, dims, dtype=FLOAT):
    shape = b"".join(field(1, field(1, d)) for d in dims)
    return field(number, field(1, name) + field(2, field(1, field(1, dtype) + field(2, shape))))


def model(parts, inputs, outputs):
    graph = b"".join(parts) + field(2, "g") + b"".join(value(11, *i) for i in inputs) + b"".join(value(12, *o) for o in outputs)
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 21))


ONE = b"\0\0\x80?"
QUARTER = b"\0\0\x80>"  # products of four with it stay what they are
X = [("x", [1, 4])]


def chained(n, make):
    """make(i, before, after) gives the parts of link i."""
    parts = [part for i in range(n) for part in make(i, f"v{i}" if i else "x", f"v{i + 1}")]
    return model(parts, X, [(f"v{n}", [1, 4])])


# --- the shapes

def chain(n):
    return chained(n, lambda i, a, b: [node("Relu", [a], [b])])


def identities(n):
    return chained(n, lambda i, a, b: [node("Identity", [a], [b])])


def diamonds(n):
    return chained(n // 3, lambda i, a, b: [node("Relu", [a], [b + "l"]), node("Sigmoid", [a], [b + "r"]), node("Add", [b + "l", b + "r"], [b])])


def star(n):
    return model([node("Relu", ["x"], [f"y{i}"]) for i in range(n)], X, [(f"y{i}", [1, 4]) for i in range(n)])


def unread(n):
    return model([node("Relu", ["x"], [f"y{i}"]) for i in range(n)], X, [("y0", [1, 4])])


def one_constant(n):
    first = tensor("c", [4], FLOAT, 4 * ONE)
    return chained(n, lambda i, a, b: ([first] if i == 0 else []) + [node("Add", [a, "c"], [b])])


def constants(n):
    return chained(n, lambda i, a, b: [tensor(f"c{i}", [4], FLOAT, 4 * ONE), node("Mul", [a, f"c{i}"], [b])])


def unread_constants(n):
    return model([tensor(f"c{i}", [1], FLOAT, ONE) for i in range(n)] + [node("Relu", ["x"], ["y"])], X, [("y", [1, 4])])


def layers(n):
    """Linear layers with a bias, which get grids, and the constants that passes make."""
    square = 16 * QUARTER
    return chained(n // 2, lambda i, a, b: [tensor(f"w{i}", [4, 4], FLOAT, square), tensor(f"b{i}", [4], FLOAT, 4 * ONE),
                                            node("Gemm", [a, f"w{i}", f"b{i}"], [b + "g"], f"layer{i}"), node("Relu", [b + "g"], [b])])


def one_weight(n):
    first = [tensor("w", [4, 4], FLOAT, 16 * QUARTER), tensor("b", [4], FLOAT, 4 * ONE)]
    return chained(n, lambda i, a, b: (first if i == 0 else []) + [node("Gemm", [a, "w", "b"], [b])])


def norms(n):
    """Normalizations behind layers: each becomes constants of a name that is made up."""
    def link(i, a, b):
        ones = [tensor(f"{kind}{i}", [4], FLOAT, 4 * ONE) for kind in "smpt"]
        return ones + [tensor(f"w{i}", [4, 4], FLOAT, 16 * QUARTER), node("Gemm", [a, f"w{i}"], [b + "g"]),
                       node("BatchNormalization", [b + "g", f"s{i}", f"t{i}", f"m{i}", f"p{i}"], [b])]
    return chained(n // 2, link)


def grids(n):
    grid = [tensor("s", [], FLOAT, ONE), tensor("z", [], UINT8, b"\x80")]
    return chained(n // 2, lambda i, a, b: (grid if i == 0 else []) + [node("QuantizeLinear", [a, "s", "z"], [b + "q"]),
                                                                       node("DequantizeLinear", [b + "q", "s", "z"], [b])])


def grids_of_one(n):
    """As many grids for one value, each read by a node of its own."""
    parts = [tensor("s", [], FLOAT, ONE), tensor("z", [], UINT8, b"\x80")]
    for i in range(n // 3):
        parts += [node("QuantizeLinear", ["x", "s", "z"], [f"q{i}"]), node("DequantizeLinear", [f"q{i}", "s", "z"], [f"d{i}"]),
                  node("Relu", [f"d{i}"], [f"y{i}"])]
    return model(parts, X, [(f"y{i}", [1, 4]) for i in range(n // 3)])


def stored(n):
    """Integers of one value, made as often beside a value on a grid; the last ones are others."""
    parts = [tensor("s", [], FLOAT, ONE), tensor("t", [], FLOAT, b"\0\0\0\x40"), tensor("z", [], UINT8, b"\x80"), node("Relu", ["x"], ["a"]),
             node("Neg", ["x"], ["b"]), node("QuantizeLinear", ["b", "s", "z"], ["bq"]), node("DequantizeLinear", ["bq", "s", "z"], ["bd"]),
             node("Relu", ["bd"], ["y"])]
    parts += [node("QuantizeLinear", ["a", "s" if i + 1 < n else "t", "z"], [f"q{i}"]) for i in range(n)]
    return model(parts, X, [("y", [1, 4])] + [(f"q{i}", [1, 4], UINT8) for i in range(n)])


def grids_of_weights(n):
    """Weights in integers, each with a grid of its own."""
    def link(i, a, b):
        return [tensor(f"w{i}", [4, 4], INT8, 16 * b"\x01"), tensor(f"s{i}", [], FLOAT, ONE),
                node("DequantizeLinear", [f"w{i}", f"s{i}"], [b + "w"]), node("MatMul", [a, b + "w"], [b])]
    return chained(n // 2, link)


def folded(n):
    """Constants computed of constants."""
    return chained(n // 2, lambda i, a, b: [tensor(f"c{i}", [4], FLOAT, 4 * ONE), node("Neg", [f"c{i}"], [b + "n"]),
                                            node("Add", [a, b + "n"], [b])])


def shapes(n):
    """Arithmetic of shapes, which is computed where shapes are inferred."""
    return chained(n // 3, lambda i, a, b: [node("Relu", [a], [b + "r"]), node("Shape", [b + "r"], [b + "s"]), node("Reshape", [b + "r", b + "s"], [b])])


def stops(n):
    """Nodes whose results have shapes that depend on data, one behind the other."""
    to_float = field(5, field(1, "to") + field(3, FLOAT) + field(20, 2))
    return chained(n // 4, lambda i, a, b: [node("NonZero", [a], [b + "n"]), node("Cast", [b + "n"], [b + "f"], attributes=to_float),
                                            node("ReduceSum", [b + "f"], [b + "s"]), node("Add", [a, b + "s"], [b])])


def branches(n):
    """Conditions that follow from shapes, one behind the other."""
    def branch(name, op, a, b):
        graph = node(op, [a], [b + name]) + field(2, name) + field(12, field(1, b + name))
        return field(5, field(1, name) + field(6, graph) + field(20, 5))
    four = tensor("four", [], 7, b"\4" + bytes(7))
    return chained(n // 4, lambda i, a, b: ([four] if i == 0 else []) + [
        node("Size", [a], [b + "n"]), node("Equal", [b + "n", "four"], [b + "c"]),
        node("If", [b + "c"], [b], attributes=branch("then_branch", "Relu", a, b) + branch("else_branch", "Neg", a, b))])


def ends(n):
    """The nodes of a function that the library knows, rows of x on grids, of which many look like the last ones."""
    def number(name, value):
        return field(5, field(1, name) + field(3, value) + field(20, 2))
    def cast(a, b, to):
        return node("Cast", [a], [b], attributes=number("to", to))
    steps = ("ReduceMin x last least;ReduceMax x last most;Min least zero min;Max most zero max;Div max highest above;Div min highest below;"
             "Sub above below wide_step;Sub max min range;IsInf range is_wide;Div range highest range_step;Where is_wide wide_step range_step step;"
             "Less wide_step smallest is_flat;Where is_flat one step y_scale;Div min y_scale steps_below;Neg steps_below exact_zero;"
             "Clip exact_zero zero highest inside_zero;Round inside_zero real_zero;Div x y_scale steps;Round steps rounded;Add rounded real_zero moved;"
             "Clip moved zero highest inside")
    numbers = {"zero": bytes(4), "one": ONE, "highest": b"\0\0\x7f\x43", "smallest": b"\0\0\x80\0"}
    parts = [tensor(name, [], FLOAT, bits) for name, bits in numbers.items()] + [tensor("last", [1], 7, 8 * b"\xff")]
    parts += [node(op, inputs, [output], attributes=number("keepdims", 1) if op.startswith("Reduce") else b"")
              for op, *inputs, output in (step.split() for step in steps.split(";"))]
    parts += [cast("inside", f"y{i}", UINT8) for i in range(n // 2)] + [cast("real_zero", f"z{i}", INT32) for i in range(n // 2)]
    return model(parts, X, [(f"y{i}", [1, 4], UINT8) for i in range(n // 2)] + [(f"z{i}", [1, 1], INT32) for i in range(n // 2)])


def loop_of_sequences(first, n, step):
    """A loop whose states are sequences that begin as the one of that name, and whose iterations a run counts."""
    states = range(n // 4)
    body = [node("Identity", ["goes"], ["on"])] + [node(step, [f"i{k}", "x"] if step == "SequenceInsert" else [f"i{k}"], [f"o{k}"]) for k in states]
    graph = b"".join(body) + field(2, "body")
    graph += b"".join(field(11, field(1, name)) for name in ["number", "goes"] + [f"i{k}" for k in states])
    graph += b"".join(field(12, field(1, name)) for name in ["on"] + [f"o{k}" for k in states])
    attribute = field(5, field(1, "body") + field(6, graph) + field(20, 5))
    return [node("NonZero", ["x"], ["places"]), node("Size", ["places"], ["count"]),
            node("Loop", ["count", ""] + len(states) * [first], [f"r{k}" for k in states], attributes=attribute),
            node("SequenceLength", ["r0"], ["y"])]


def collected(n):
    """Sequences to which each iteration adds an item."""
    return model([node("SequenceEmpty", [], ["s"])] + loop_of_sequences("s", n, "SequenceInsert"), X, [("y", [], 7)])


def carried(n):
    """Sequences that go from iteration to iteration."""
    def branch(name):
        graph = node("SequenceConstruct", ["x"], [name]) + field(2, name) + field(12, field(1, name))
        return field(5, field(1, name) + field(6, graph) + field(20, 5))
    four = tensor("four", [], 7, b"\4" + bytes(7))
    choice = [four, node("Equal", ["count", "four"], ["c"]), node("If", ["c"], ["s"], attributes=branch("then_branch") + branch("else_branch"))]
    return model(choice + loop_of_sequences("s", n, "Identity"), X, [("y", [], 7)])


def wide(n):
    """One node that reads all."""
    return model([node("Relu", ["x"], [f"y{i}"]) for i in range(n)] + [node("Max", [f"y{i}" for i in range(n)], ["y"])], X, [("y", [1, 4])])


def concat(n):
    parts = [node("Relu", ["x"], [f"y{i}"]) for i in range(n)]
    return model(parts + [node("Concat", [f"y{i}" for i in range(n)], ["y"], attributes=field(5, field(1, "axis") + field(3, 1) + field(20, 2)))],
                 X, [("y", [1, 4 * n])])


def tree(n):
    parts, level = [node("Relu", ["x"], [f"l0_{i}"]) for i in range(n // 2)], 0
    count = n // 2
    while count > 1:
        parts += [node("Add", [f"l{level}_{2 * i}", f"l{level}_{2 * i + 1}"], [f"l{level + 1}_{i}"]) for i in range(count // 2)]
        level, count = level + 1, count // 2
    return model(parts, X, [(f"l{level}_0", [1, 4])])


def residual(n):
    """The first value lives to the end, and every node reads it."""
    return chained(n, lambda i, a, b: [node("Add", [a, "x"], [b])])


def long_lives(n):
    """All are read at the end, in the other order."""
    parts = [node("Relu", ["x"], [f"u{i}"]) for i in range(n // 2)]
    before = "x"
    for i in reversed(range(n // 2)):
        parts.append(node("Add", [before, f"u{i}"], [f"w{i}"]))
        before = f"w{i}"
    return model(parts, X, [(before, [1, 4])])


def backwards(n):
    """Nodes in the wrong order."""
    parts = [node("Relu", [f"v{i}" if i else "x"], [f"v{i + 1}"]) for i in range(n)]
    return model(parts[::-1], X, [(f"v{n}", [1, 4])])


def same_names(n):
    """Names that must be made unique, where the first ones to come to mind are taken."""
    half = n // 2
    return chained(n, lambda i, a, b: [node("Relu", [a], [b], f"a_{i}" if i < half else "a")])


def long_names(n):
    """A hundred names of 10 n letters."""
    name = "n" * (10 * n)
    return model(
        [node("Relu", [f"v{i}{name}" if i else "x"], [f"v{i + 1}{name}"], f"n{i}{name}") for i in range(100)], X, [(f"v100{name}", [1, 4])])


SHAPES = (chain, identities, diamonds, star, unread, one_constant, constants, unread_constants, layers, one_weight, norms, grids, grids_of_one,
          stored, grids_of_weights, folded, shapes, stops, branches, ends, collected, carried, wide, concat, tree, residual, long_lives, backwards, same_names, long_names)

# Those with weights, which what is tried to recover accuracy looks at.
RECOVERED = (constants, layers, one_weight, norms)


# --- what is done with them

class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.qerror_message.restype = ctypes.c_char_p
        self.c.qmodel_output_count.restype = ctypes.c_size_t
        self.c.qtensor_create.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
        self.config, self.x = ctypes.c_void_p(), ctypes.c_void_p()
        assert self.c.qconfig_create(ctypes.byref(self.config), b"onnx") == 0
        assert self.c.qtensor_create(ctypes.byref(self.x), FLOAT, (ctypes.c_int64 * 2)(1, 4), 2, None, None, 0) == 0
        self.c.qlib_set_threads(1)
        self.sample = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)(self.give)

    def give(self, inputs, count, index, context):
        handle = ctypes.c_void_p()
        status = self.c.qtensor_share(ctypes.byref(handle), self.x)
        inputs[0] = handle.value
        return status

    def quantize(self, data):
        """All that is tried by default, which takes longer: as steps()."""
        m, int8 = ctypes.c_void_p(), ctypes.c_void_p()
        assert self.c.qmodel_load_bytes(ctypes.byref(m), data, ctypes.c_size_t(len(data))) == 0
        begin = time.process_time()
        status = self.c.qmodel_quantize(ctypes.byref(int8), None, m, self.config, self.sample, ctypes.c_size_t(1), None, None, None)
        seconds = time.process_time() - begin
        self.c.qmodel_free(int8)
        self.c.qmodel_free(m)
        return {"quantize": seconds if status == 0 else self.c.qerror_message().decode(errors="replace")}

    def steps(self, data, folder):
        """The steps by name, as seconds, or the message of the one that was refused."""
        c, times, made = self.c, {}, {}

        def timed(name, function, *arguments, out=True):
            handle = ctypes.c_void_p()
            begin = time.process_time()
            status = getattr(c, function)(*([ctypes.byref(handle)] if out else []), *arguments)
            times[name] = time.process_time() - begin
            if status != 0:
                times[name] = c.qerror_message().decode(errors="replace")
            made[name] = handle
            return status == 0

        size_t, pointer = ctypes.c_size_t, ctypes.byref
        try:
            if not timed("load", "qmodel_load_bytes", data, size_t(len(data))):
                return times
            m = made["load"]
            timed("inspect", "qmodel_inspect", m)
            timed("save", "qmodel_save", m, os.path.join(folder, "a.onnx").encode(), None, out=False)
            timed("dynamic", "qmodel_quantize_dynamic", m, self.config, None)
            timed("weights", "qmodel_quantize_weights", m, None)
            timed("trainer", "qtrainer_create", m, None)
            if timed("session", "qsession_create", m, None):
                count = c.qmodel_output_count(m)
                outputs = (ctypes.c_void_p * count)()
                timed("run", "qsession_run", outputs, size_t(count), made["session"], pointer(self.x), size_t(1), out=False)
                for handle in outputs:
                    c.qtensor_free(ctypes.c_void_p(handle))
            if timed("prepare", "qmodel_prepare", m, self.config, 0):
                p = made["prepare"]
                if timed("calibrate", "qmodel_calibrate", p, pointer(self.x), size_t(1), out=False) and timed("convert", "qmodel_convert", p, None):
                    q = made["convert"]
                    timed("inspect int8", "qmodel_inspect", q)
                    timed("save qdq", "qmodel_save", q, os.path.join(folder, "b.onnx").encode(), None, out=False)
                    attrs = ctypes.c_void_p()
                    c.qattrs_create(pointer(attrs))
                    c.qattrs_set_string(attrs, b"format", b"qoperator")
                    timed("save qoperator", "qmodel_save", q, os.path.join(folder, "c.onnx").encode(), attrs, out=False)
                    c.qattrs_free(attrs)
                    timed("session int8", "qsession_create", q, None)
                    timed("load int8", "qmodel_load", os.path.join(folder, "b.onnx").encode())
            timed("prepare qat", "qmodel_prepare", m, self.config, 1)
        finally:
            for name, handle in made.items():
                noun = {"inspect": "qblob", "inspect int8": "qblob", "session": "qsession", "session int8": "qsession", "trainer": "qtrainer"}.get(name, "qmodel")
                getattr(c, noun + "_free")(handle)
        return times


def badly_refused(steps):
    """Steps whose refusal is no single line."""
    return {name: f"refused by {said!r}" for name, said in steps.items() if isinstance(said, str) and (not said or "\n" in said)}


def slow(small, large):
    """Steps that take longer than they may."""
    both = {name: (small[name], large[name]) for name in large if isinstance(large[name], float) and isinstance(small.get(name), float)}
    return {name: f"{few:.4f} s become {many:.4f} s, {many / few:.1f} times as many"
            for name, (few, many) in both.items() if many > IGNORED and many > MOST * few}


def best(a, b):
    return {name: b[name] if not isinstance(b[name], float) or not isinstance(a.get(name), float) else min(a[name], b[name]) for name in b}


def all_steps(library, shape, n):
    data, recovered = shape(n), shape(n // 5) if shape in RECOVERED else None
    with tempfile.TemporaryDirectory() as folder:
        return library.steps(data, folder) | (library.quantize(recovered) if recovered else {})


def told(times):
    """What was refused, and what took time."""
    return ", ".join(f"{name} {s:.2f}" if isinstance(s, float) else f"{name}: {s[:90]}" for name, s in times.items() if isinstance(s, str) or s > 0.1)


def measure(library, shape, n):
    """The faults of a shape by the best of a few tries."""
    times = [{}, {}]
    for attempt in range(TRIES):
        times = [best(times[i], all_steps(library, shape, size)) for i, size in enumerate((n, GROWTH * n))]
        found = slow(*times)
        if not found:
            break
    print(f"{shape.__name__}: {told(times[1])}", flush=True)
    return found


def main():
    library, wanted = Library(sys.argv[1]), sys.argv[2:]
    nodes = 0
    if wanted[:1] == ["--times"]:
        nodes, wanted = int(wanted[1]), wanted[2:]
    unknown = set(wanted) - {shape.__name__ for shape in SHAPES}
    if unknown:
        sys.exit(f"large_graphs: no shape is named {', '.join(sorted(unknown))}")
    failed = False
    for shape in SHAPES:
        if wanted and shape.__name__ not in wanted:
            continue
        if nodes:
            found = measure(library, shape, nodes)
        else:
            steps = all_steps(library, shape, NODES)
            found = badly_refused(steps) | {name: f"refused by {steps.get(name)!r}" for name in WORKING if not isinstance(steps.get(name), float)}
            print(f"{shape.__name__}: {len(steps)} steps", flush=True)
        for name, text in found.items():
            print(f"large_graphs: {shape.__name__}, {name}: {text}", flush=True)
        failed |= bool(found)
    sys.exit(failed)


if __name__ == "__main__":
    main()
