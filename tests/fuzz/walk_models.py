#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes one thing at a time in ONNX models, wherever it occurs, and runs a program on each changed file: an operand that is
left out, or is another value; an output that is left out, or is one more; an attribute that is removed, or is another
number or of another kind; a constant or an input of another type, shape or content; the version of the operators.

Run with:  $(benchmarks/peers/make-venv)/bin/python tests/fuzz/walk_models.py PROGRAM MODEL...

PROGRAM is a build of fuzz_model, best with sanitizers (build/asan-ubsan/tests/fuzz/fuzz_model). A MODEL may be a folder, of which
all .onnx files are taken, or "node-tests": ONNX's tests of single operators, with inputs as inputs and as constants.
--some N takes N files of each model by random in place of all, with --changes K changes each. Files that break something stay
in the folder of --findings, with what the program said. Exit code 1 where there are any, and where no model was found.
"""

import argparse
import concurrent.futures
import copy
import hashlib
import itertools
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy as np
    import onnx
    from onnx import AttributeProto, TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

warnings.simplefilter("ignore")  # of tests of ONNX that divide by zero
MOST_BYTES = 1 << 20  # of a model: larger ones say no more, and take longer
FILES_AT_ONCE = 100
MODELS_AT_ONCE = 25
MOST_SECONDS = 20
TOO_LONG = "took too long"
WHOLES = (-1, 0, 1, 2, 3, 7, 2**31, 2**63 - 1, -(2**63))
REALS = (0.0, -1.0, float("nan"), float("inf"), 1e-45, 3e38)
TYPES = [t for t in TensorProto.DataType.values() if t != TensorProto.UNDEFINED]
VERSIONS = (1, *range(6, onnx.defs.onnx_opset_version() + 1))


def graphs_of(graph):
    """The graph and those within its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from graphs_of(attribute.g)


def constants_to_try():
    """Tensors that may stand where an operand does: of many types and of unusual shapes."""
    for shape in ((), (1,), (0,), (2,), (2, 3), (1, 2, 3, 4), (1,) * 8):
        yield np.ones(shape, np.float32)
        yield np.ones(shape, np.int64)
    for kind in (np.float16, np.float64, np.int8, np.uint8, np.int32, bool):
        yield np.zeros((1,), kind)
    for number in WHOLES:
        yield np.full((1,), number, np.int64)
        yield np.full((3,), number, np.int64)


def operand_changes(graph, node, i):
    """Changes of operand i of a node, each a function to call."""
    def name_it(name):
        return lambda: node.input.__setitem__(i, name)

    def constant(array):
        def change():
            graph.initializer.append(numpy_helper.from_array(array, "another"))
            node.input[i] = "another"
        return change

    yield name_it("")
    yield lambda: node.input.__delitem__(i)
    yield lambda: node.input.__delitem__(slice(i, None))
    yield lambda: node.input.insert(i, node.input[i])
    if node.output:
        yield name_it(node.output[0])
    known = [v.name for v in graph.input] + [t.name for t in graph.initializer] + [n for other in graph.node for n in other.output]
    for name in sorted(set(known) - {"", node.input[i]})[:12]:
        yield name_it(name)
    for array in constants_to_try():
        yield constant(array)


def attribute_changes(node, i):
    attribute = node.attribute[i]

    def give(value):
        def change():
            name = attribute.name
            del node.attribute[i]
            node.attribute.append(helper.make_attribute(name, value, attr_type=AttributeProto.INTS if value == [] else None))
        return change

    yield lambda: node.attribute.__delitem__(i)
    for value in (*WHOLES, *REALS, "", "x", [], [1.5], ["x"], np.float32(1)):
        yield give(numpy_helper.from_array(np.array([1], np.float32)) if isinstance(value, np.float32) else value)
    if attribute.type == AttributeProto.INTS:
        old = list(attribute.ints)
        for changed in (old[:-1], [*old, 1], old[::-1], old * 5, *([number] * max(1, len(old)) for number in WHOLES)):
            yield give(changed)
        for k in range(len(old)):
            for number in WHOLES:
                yield give([*old[:k], number, *old[k + 1:]])
    if attribute.type == AttributeProto.FLOATS:
        old = list(attribute.floats)
        for changed in (old[:-1], [*old, 1.0], *([number] * max(1, len(old)) for number in REALS)):
            yield give(changed)
    if attribute.type == AttributeProto.TENSOR:
        yield from ((lambda change=change: change(attribute.t)) for change in CONSTANT_CHANGES)


def node_changes(graph, node):
    for i in range(len(node.input)):
        yield from operand_changes(graph, node, i)
    for absent in range(4):
        yield lambda absent=absent: node.input.extend([""] * absent + [node.input[0] if node.input else "another"])
    for i in range(len(node.output)):
        yield lambda i=i: node.output.__setitem__(i, "")
        yield lambda i=i: node.output.__delitem__(i)
        yield lambda i=i: node.output.insert(i, f"more_{i}")
    yield lambda: node.output.append("more")
    yield lambda: node.output.append(node.output[0] if node.output else "another")
    for i in range(len(node.attribute)):
        yield from attribute_changes(node, i)
    yield lambda: graph.node.remove(node)
    yield lambda: graph.node.append(node)
    for op in sorted({other.op_type for other in graph.node} - {node.op_type}):
        yield lambda op=op: setattr(node, "op_type", op)
    yield lambda: setattr(node, "domain", "com.microsoft" if node.domain == "" else "")


def filled(tensor, number):
    """The same shape, each element the number."""
    array = numpy_helper.to_array(tensor)
    with np.errstate(all="ignore"):
        other = np.full(array.shape, number).astype(array.dtype)
    tensor.CopyFrom(numpy_helper.from_array(other, tensor.name))


def shaped(tensor, shape_of):
    array = numpy_helper.to_array(tensor)
    tensor.CopyFrom(numpy_helper.from_array(np.resize(array, shape_of(array.shape)), tensor.name))


def typed(tensor, data_type):
    """The same numbers as another type."""
    numbers = numpy_helper.to_array(tensor).astype(np.float64).ravel()
    if data_type == TensorProto.STRING:
        tensor.CopyFrom(helper.make_tensor(tensor.name, data_type, tensor.dims, [b"x"] * len(numbers)))
    else:
        with np.errstate(all="ignore"):
            kind = helper.tensor_dtype_to_np_dtype(data_type)
            made = helper.make_tensor(tensor.name, data_type, tensor.dims, numbers.astype(kind).tolist())
        tensor.CopyFrom(made)


CONSTANT_CHANGES = [
    *(lambda t, d=d: typed(t, d) for d in TYPES),
    *(lambda t, f=f: shaped(t, f) for f in (
        lambda s: (), lambda s: (1,), lambda s: (0,), lambda s: s[::-1], lambda s: (1, *s), lambda s: (*s, 1), lambda s: s[1:],
        lambda s: s[:-1], lambda s: (int(np.prod(s)),), lambda s: (*s, 2), lambda s: tuple(d + 1 for d in s),
        lambda s: tuple(max(0, d - 1) for d in s), lambda s: (1,) * 8, lambda s: (1,) * 9)),
    *(lambda t, n=n: filled(t, n) for n in (*WHOLES, *REALS)),
    lambda t: setattr(t, "raw_data", t.raw_data[:-1]),
    lambda t: t.dims.append(2**62),
    lambda t: t.dims.append(-1),
]


def input_changes(value):
    tensor = value.type.tensor_type
    for data_type in TYPES:
        yield lambda data_type=data_type: setattr(tensor, "elem_type", data_type)
    for dims in ((), (0,), (1,), (2, 3), (1,) * 8, (1,) * 9, ("n",), ("n", "n"), (2**31, 2**31)):
        def change(dims=dims):
            value.CopyFrom(helper.make_tensor_value_info(value.name, tensor.elem_type, dims))
        yield change
    for i in range(len(tensor.shape.dim)):
        for number in (0, 1, 2, 3, 5, -1, 2**31, 2**63 - 1):
            yield lambda i=i, number=number: setattr(tensor.shape.dim[i], "dim_value", number)
        yield lambda i=i: setattr(tensor.shape.dim[i], "dim_param", "n")
    yield lambda: tensor.ClearField("shape")


def constant_changes(graph, tensor):
    yield from ((lambda change=change: change(tensor)) for change in CONSTANT_CHANGES)
    yield lambda: graph.initializer.remove(tensor)


def value_changes(values, value):
    yield from input_changes(value)
    yield lambda: values.remove(value)


def version_changes(model):
    if model.opset_import:
        yield from ((lambda v=v: setattr(model.opset_import[0], "version", v)) for v in VERSIONS)


def places_of(model):
    """What can be changed, each as the generator of its changes with its arguments."""
    for graph in graphs_of(model.graph):
        yield from ((node_changes, graph, node) for node in graph.node)
        yield from ((constant_changes, graph, tensor) for tensor in graph.initializer)
        yield from ((value_changes, values, value) for values in (graph.input, graph.output) for value in values)
    yield version_changes, model


def all_changes(model):
    """The numbers of all changes: of the place, and of the change there."""
    for place, (changes, *at) in enumerate(places_of(model)):
        yield from ((place, i) for i, _ in enumerate(changes(*at)))


def changed(model, numbers):
    """The file with these changes; nothing where one makes no sense here, as a second one does whose place is gone."""
    result = copy.deepcopy(model)
    for place, i in numbers:
        try:
            changes, *at = list(places_of(result))[place]
            list(changes(*at))[i]()
        except (ValueError, TypeError, OverflowError, IndexError, KeyError, AttributeError, NotImplementedError):
            return None
    return result.SerializeToString()


def node_tests():
    from onnx.backend.test.case.node import collect_testcases

    for case in collect_testcases(None):
        yield case.name, case.model
        constants = copy.deepcopy(case.model)
        arrays = [a for a in case.data_sets[0][0]]
        for value, array in list(zip(case.model.graph.input, arrays))[1:]:
            if isinstance(array, np.ndarray) and array.dtype.kind in "biuf":
                constants.graph.initializer.append(numpy_helper.from_array(array, value.name))
                constants.graph.input.remove(next(v for v in constants.graph.input if v.name == value.name))
        if constants.graph.initializer:
            yield case.name + "_of_constants", constants


def models(paths):
    for path in paths:
        if path == "node-tests":
            yield from node_tests()
            continue
        path = pathlib.Path(path)
        for file in sorted(path.rglob("*.onnx")) if path.is_dir() else [path]:
            if file.stat().st_size <= MOST_BYTES:
                try:
                    yield file.stem, onnx.load(file)
                except Exception as error:  # what protobuf itself refuses is not a model
                    print(f"{file}: not read: {str(error).splitlines()[0]}", file=sys.stderr)


def said_of(program, files, seconds):
    """What the program says of the files, or None where it found nothing."""
    try:
        done = subprocess.run([program, *files], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=seconds,
                              env={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **os.environ})
    except subprocess.TimeoutExpired as late:
        return (late.stderr or b"").decode(errors="replace") + TOO_LONG
    return None if done.returncode == 0 else done.stderr.decode(errors="replace")


def broken(program, files):
    """The files of which one alone breaks something, each with what the program says then. It takes them by name."""
    files = sorted(files)
    while files:
        said = said_of(program, files, MOST_SECONDS + len(files))
        if said is None:
            return
        named = [files.index(line) for line in said.splitlines() if line in files]
        last = max(named, default=0)
        alone = said_of(program, [files[last]], MOST_SECONDS)
        if alone is not None or not said.endswith(TOO_LONG):  # it may break only behind the others, or these only took long
            yield files[last], alone or said
        files = files[last + 1:]


def some_changes(name, model, some, together, seed):
    """Lists of numbers of changes that are made together: each alone, or `some` by random."""
    numbers = list(all_changes(model))
    dice = random.Random(f"{name} {seed}")
    return [dice.choices(numbers, k=together) for _ in range(some)] if some else [[number] for number in numbers]


def written_changes(folder, named_models, some, together, seed):
    """Writes the changed files of some models into the folder, one after the other; those that are the same once."""
    seen = set()
    for name, model in named_models:
        for changes in some_changes(name, model, some, together, seed):
            content = changed(model, changes)
            if content is None or hashlib.sha1(content).digest() in seen:
                continue
            seen.add(hashlib.sha1(content).digest())
            file = f"{folder}/{name}-{'-'.join(f'{place}.{i}' for place, i in changes)}.onnx"
            pathlib.Path(file).write_bytes(content)
            yield file


def walk(program, named_models, some, together, seed, findings):
    """Runs the changed files of some models; returns how many they were, and those that broke something."""
    count, found = 0, []
    with tempfile.TemporaryDirectory() as folder:
        written = written_changes(folder, named_models, some, together, seed)
        while files := list(itertools.islice(written, FILES_AT_ONCE)):
            count += len(files)
            for file, said in broken(program, files):
                kept = findings / pathlib.Path(file).name
                shutil.copyfile(file, kept)
                kept.with_suffix(".log").write_text(said)
                found.append(kept)
            for file in files:
                os.remove(file)
    return count, found


def main():
    parser = argparse.ArgumentParser(usage="%(prog)s [--some N [--changes K] [--seed N]] [--jobs N] [--findings FOLDER] PROGRAM MODEL...")
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--some", type=int, default=0)
    parser.add_argument("--changes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--findings", type=pathlib.Path, default=pathlib.Path("build/fuzz/findings/walk"))
    options = parser.parse_args()
    options.findings.mkdir(parents=True, exist_ok=True)
    total = broken_files = 0
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        all_models = models(options.models)
        parts = iter(lambda: list(itertools.islice(all_models, MODELS_AT_ONCE)), [])
        runs = [pool.submit(walk, options.program, part, options.some, options.changes, options.seed, options.findings) for part in parts]
        for run in concurrent.futures.as_completed(runs):
            count, found = run.result()
            total += count
            broken_files += len(found)
            for file in found:
                print(file, flush=True)
    print(f"{total} files, {broken_files} broke something")
    return 1 if broken_files or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
