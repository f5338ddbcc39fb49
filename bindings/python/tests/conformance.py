#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of tests/conformance through the package: the same values, bits and error texts as C. Steps that Python
cannot express, a NULL where there is always an object, are counted by what they lack.

usage: conformance.py ROOT CASES.json...
"""

import collections
import json
import math
import pathlib
import re
import struct
import sys
import tempfile

import numpy as np
from elements import bytes_of, elements_of

import qtensor as qt
from qtensor._batches import batches_of
from qtensor._samples import samples_of

REALS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
COUNTS = {"count", "rank", "input_count", "target_count", "nbytes", "cap"}


class CannotSay(Exception):
    """Why a step is none for Python."""


def real(value):
    return REALS[value] if isinstance(value, str) else value


class Frame:
    """The handles of a case, and the arguments of its step."""

    def __init__(self, root, folder):
        self.root, self.folder, self.handles, self.step = root, folder, {}, {}

    def get(self, name):
        return self.step.get("with", {}).get(name)

    def handle(self, name):
        value = self.get(name)
        return None if value is None else self.handles[value[1:]]

    def own(self, name):
        """What a method is called on, or a class that has no absent value."""
        if self.get(name) is None:
            raise CannotSay("an object that is NULL")
        return self.handle(name)

    def text(self, name):
        if self.get(name) is None:
            raise CannotSay("a text that is NULL")
        return self.get(name)

    def list(self, name):
        if self.get(name) is None:
            raise CannotSay("a list that is NULL")
        return self.get(name)

    def tensors(self, name):
        return [None if v is None else self.handles[v[1:]] for v in self.list(name)]

    def texts(self, name):
        if None in self.list(name):
            raise CannotSay("a text that is NULL")
        return self.list(name)

    def index(self):
        if self.get("index") < 0:
            raise CannotSay("an unsigned number below 0")
        return self.get("index")

    def place(self, text):
        return f"{self.folder}/{text[1:]}" if text.startswith("@") else f"{self.root}/{text}"

    def path(self, name="path"):
        return self.place(self.text(name))

    def attrs(self, name="attrs"):
        return {k: [real(x) for x in v] if isinstance(v, list) else v for k, v in (self.get(name) or {}).items()}

    def attrs_or_none(self, name):
        return None if self.get(name) is None else self.attrs(name)

    def keep_report(self, model, report):
        if self.get("report"):
            self.handles[self.get("report")] = report.encode()
        return model

    def data(self, dtype):
        return None if self.get("data") is None else bytes_of(dtype, self.get("data"))

    def bytes(self):
        """A list of bytes, or a blob that a call has given."""
        return self.own("data") if isinstance(self.get("data"), str) else self.data("uint8")


def create_quantizer(f):
    return qt.Quantizer(f.get("dtype"), f.get("scheme"), f.get("axis") or 0, map(real, f.list("scales")), f.get("zero_points") or [],
                        f.attrs())


def choose_quantizer(f):
    return qt.Quantizer.choose(f.get("dtype"), f.get("scheme"), f.get("axis") or 0, map(real, f.list("mins")),
                               map(real, f.list("maxs")), f.attrs())


def wrap(f):
    if f.get("misaligned") is None or f.get("quantizer"):
        raise CannotSay("a buffer of another size or grid than its tensor")
    raw, count = bytearray(f.data(f.get("dtype")) + bytes(8)), math.prod(f.get("shape"))
    return qt.from_numpy(np.frombuffer(raw, f.get("dtype"), count, f.get("misaligned")).reshape(f.get("shape")))


def set_config(f):
    f.own("c").set(f.text("selector"), f.attrs_or_none("settings"))


def describe(f):
    text = f.own("t").describe()
    return {"text": text, "length": len(text.encode())}


def quantize(f):
    if f.step["with"].get("sample", "") is None:
        raise CannotSay("a callback that is NULL")
    model = f.own("m")
    quantized, report = model._quantize(f.own("config"), samples_of(f.tensors("samples"), model), f.attrs(), None)
    return f.keep_report(quantized, report)


def quantize_qat(f):
    if f.step["with"].get("batch", "") is None:
        raise CannotSay("a callback that is NULL")
    model = f.own("m")
    data = batches_of(list(zip(f.tensors("inputs"), f.tensors("targets"))), model)
    return f.keep_report(*model._quantize_qat(f.own("config"), data, f.attrs(), None))


def make_layer(f):
    return qt.Layer(f.text("kind"), f.own("weight"), f.handle("bias"), f.handle("config"), f.handle("x_quantizer"),
                    f.handle("out_quantizer"), f.attrs())


def run_layer(f):
    return f.own("layer").run(f.own("x"))


def run_session(f):
    if f.get("output_count") not in (None, f.own("s").output_count):
        raise CannotSay("another number of outputs than there are")
    return f.own("s").run(f.tensors("inputs"))


def evaluate(f):
    if f.get("output_count") not in (None, 1):
        raise CannotSay("another number of outputs than there are")
    return f.own("t").evaluate(f.tensors("inputs"))


def from_dlpack(f):
    raise CannotSay("a structure of DLPack made by hand")


def fresh_attrs(f):
    raise CannotSay("attributes without what takes them")


def no_call(f):
    raise CannotSay("a call outside of a callback")


def version(f):
    major, minor, patch = map(int, qt.Lib.version().split("."))
    return major << 16 | minor << 8 | patch


def register_scale(f):
    """The operator that cases register: each element times the attribute "factor"."""
    def run(inputs, attrs):
        if "factor" not in attrs:
            raise qt.InvalidError("factor is missing")
        return inputs[0] * np.float32(attrs["factor"])

    if "infer" in f.step.get("with", {}) or "run" in f.step.get("with", {}):
        raise CannotSay("a callback that is NULL")
    qt.register_op(f.text("domain"), f.text("name"), lambda inputs, attrs: [inputs[0][:2]], run,
                   since_version=f.get("since_version"))


CALLS = {
    "qlib_version": version,
    "qlib_set_isa": lambda f: qt.Lib.set_isa(f.text("isa")),
    "qlib_set_threads": lambda f: qt.Lib.set_threads(f.get("count")),
    "qlib_set_limits": lambda f: qt.Lib.set_limits(f.attrs_or_none("limits")),
    "qlib_limit": lambda f: qt.Lib.limit(f.text("name")),
    "qstatus_name": lambda f: qt.Lib.status_name(f.get("status")),
    "qdtype_name": lambda f: qt.Lib.dtype_name(f.get("dtype")),
    "qquantizer_create": create_quantizer,
    "qquantizer_choose": choose_quantizer,
    "qquantizer_choose_dynamic": lambda f: qt.Quantizer.choose_dynamic(f.get("dtype"), f.handle("x"), f.attrs()),
    "qquantizer_dtype": lambda f: f.own("q").dtype.name,
    "qquantizer_scheme": lambda f: f.own("q").scheme.value,
    "qquantizer_axis": lambda f: f.own("q").axis,
    "qquantizer_count": lambda f: f.own("q").count,
    "qquantizer_scales": lambda f: list(f.own("q").scales),
    "qquantizer_zero_points": lambda f: list(f.own("q").zero_points),
    "qquantizer_float_zero_points": lambda f: list(f.own("q").float_zero_points),
    "qquantizer_block_size": lambda f: f.own("q").block_size,
    "qquantizer_quant_min": lambda f: f.own("q").quant_min,
    "qquantizer_quant_max": lambda f: f.own("q").quant_max,
    "qquantizer_numerics": lambda f: f.own("q").numerics,
    "qtensor_create": lambda f: qt.Tensor.create(f.get("dtype"), f.list("shape"), f.handle("quantizer"),
                                                 f.data(f.get("dtype"))),
    "qtensor_wrap": wrap,
    "qtensor_share": lambda f: f.own("t").share(),
    "qtensor_quantize": lambda f: f.own("x").quantize(f.handle("quantizer")),
    "qtensor_dequantize": lambda f: f.own("x").dequantize(),
    "qtensor_select": lambda f: f.own("t").select(f.get("axis"), f.get("index")),
    "qtensor_slice": lambda f: f.own("t").slice(f.get("axis"), f.get("start"), f.get("stop"), f.get("step")),
    "qtensor_permute": lambda f: f.own("t").permute(f.list("axes")),
    "qtensor_reshape": lambda f: f.own("t").reshape(f.list("shape")),
    "qtensor_contiguous": lambda f: f.own("t").contiguous(),
    "qtensor_int_repr": lambda f: f.own("t").int_repr(),
    "qtensor_equal": lambda f: int(f.own("a").equal(f.handle("b"))),
    "qtensor_copy": lambda f: f.own("dst").copy(f.handle("src")),
    "qtensor_item": lambda f: f.own("t").item(),
    "qtensor_describe": describe,
    "qtensor_data_mut": lambda f: memoryview(f.own("t")) is not None,
    "qtensor_dtype": lambda f: f.own("t").dtype.name,
    "qtensor_rank": lambda f: f.own("t").rank,
    "qtensor_shape": lambda f: list(f.own("t").shape),
    "qtensor_strides": lambda f: list(f.own("t").strides),
    "qtensor_numel": lambda f: f.own("t").numel,
    "qtensor_nbytes": lambda f: f.own("t").nbytes,
    "qtensor_quantizer": lambda f: f.own("t").quantizer is not None,
    "qtensor_save": lambda f: f.own("t").save(f.path()),
    "qtensor_load": lambda f: qt.Tensor.load(f.path()),
    "qtensor_save_npy": lambda f: f.own("t").save_npy(f.path()),
    "qtensor_load_npy": lambda f: qt.Tensor.load_npy(f.path()),
    "qtensor_save_all": lambda f: qt.Tensor.save_all(f.path(), f.texts("names"), f.tensors("tensors")),
    "qtensor_load_named": lambda f: qt.Tensor.load_named(f.path(), f.text("name")),
    "qtensor_load_rows": lambda f: qt.Tensor.load_rows(f.path(), f.get("name") or "", f.get("start"), f.get("stop")),
    "qtensor_inspect": lambda f: qt.Tensor.inspect(f.path()),
    "qtensor_to_dlpack": lambda f: qt.Tensor._from_capsule(f.own("t").__dlpack__()).rank,
    "qtensor_to_dlpack_versioned": lambda f: qt.Tensor._from_capsule(f.own("t").__dlpack__(max_version=(1, 0))).rank,
    "qtensor_from_dlpack": from_dlpack,
    "qtensor_from_dlpack_versioned": from_dlpack,
    "qobserver_create": lambda f: qt.Observer(f.text("kind"), f.attrs()),
    "qobserver_observe": lambda f: f.own("o").observe(f.handle("x")),
    "qobserver_merge": lambda f: f.own("o").merge(f.own("other")),
    "qobserver_quantizer": lambda f: f.own("o").quantizer(),
    "qobserver_save": lambda f: f.own("o").save(),
    "qobserver_save_file": lambda f: f.own("o").save_file(f.path()),
    "qobserver_load_file": lambda f: qt.Observer.load_file(f.path()),
    "qobserver_load": lambda f: qt.Observer.load(f.own("data")[: f.get("nbytes")]),
    "qop_register": register_scale,
    "qop_unregister": lambda f: qt.unregister_op(f.text("domain"), f.text("name"), f.get("since_version")),
    "qop_run": lambda f: qt.Op.run(f.text("op"), f.tensors("inputs"), f.attrs(), 1 if f.get("output_count") is None
                                   else f.get("output_count")),
    "qop_linear": lambda f: qt.Op.linear(f.handle("x"), f.handle("weight"), f.handle("bias"), f.handle("out_quantizer")),
    "qop_conv2d": lambda f: qt.Op.conv2d(f.handle("x"), f.handle("weight"), f.handle("bias"), f.handle("out_quantizer"),
                                         f.attrs()),
    "qop_relu": lambda f: qt.Op.relu(f.handle("x")),
    "qop_fake_quantize": lambda f: qt.Op.fake_quantize(f.handle("x"), f.handle("quantizer")),
    "qop_fake_quantize_backward": lambda f: qt.Op.fake_quantize_backward(f.handle("dy"), f.handle("x"),
                                                                        f.handle("quantizer")),
    "qop_add": lambda f: qt.Op.add(f.handle("a"), f.handle("b"), f.handle("out_quantizer")),
    "qop_matmul": lambda f: qt.Op.matmul(f.handle("a"), f.handle("b"), f.handle("out_quantizer")),
    "qop_cat": lambda f: qt.Op.cat(f.tensors("inputs"), f.get("axis") or 0, f.handle("out_quantizer")),
    "qop_max_pool2d": lambda f: qt.Op.max_pool2d(f.handle("x"), f.attrs()),
    "qop_avg_pool2d": lambda f: qt.Op.avg_pool2d(f.handle("x"), f.handle("out_quantizer"), f.attrs()),
    "qconfig_create": lambda f: qt.Config(f.text("name")),
    "qconfig_set": set_config,
    "qconfig_save": lambda f: f.own("c").save(f.path()),
    "qconfig_load": lambda f: qt.Config.load(f.path()),
    "qmodel_load": lambda f: qt.Model.load(f.path()),
    "qmodel_load_bytes": lambda f: qt.Model.load_bytes(f.bytes()),
    "qmodel_save": lambda f: f.own("m").save(f.path(), f.attrs()),
    "qmodel_save_bytes": lambda f: f.own("m").save_bytes(f.attrs()),
    "qmodel_fuse": lambda f: f.own("m").fuse(f.texts("nodes")),
    "qmodel_prepare": lambda f: f.own("m").prepare(f.own("config"), f.get("mode") or 0),
    "qmodel_calibrate": lambda f: f.own("prepared").calibrate(f.tensors("inputs")),
    "qmodel_convert": lambda f: f.own("prepared").convert(f.attrs()),
    "qmodel_save_calibration": lambda f: f.own("prepared").save_calibration(f.path()),
    "qmodel_load_calibration": lambda f: f.own("prepared").load_calibration(f.path()),
    "qmodel_merge_calibrations": lambda f: qt.Model.merge_calibrations(f.path(), [
        f.place(p) for p in f.texts("parts")]),
    "qmodel_quantize": quantize,
    "qmodel_quantize_qat": quantize_qat,
    "qmodel_quantize_dynamic": lambda f: f.own("m").quantize_dynamic(f.own("config"), f.attrs()),
    "qmodel_quantize_weights": lambda f: f.own("m").quantize_weights(f.attrs()),
    "qmodel_input_count": lambda f: f.own("m").input_count,
    "qmodel_output_count": lambda f: f.own("m").output_count,
    "qmodel_tensor_count": lambda f: f.own("m").tensor_count,
    "qmodel_tensor_name": lambda f: f.own("m").tensor_name(f.index()),
    "qmodel_tensor": lambda f: f.own("m").tensor(f.text("name")),
    "qmodel_set_tensor": lambda f: f.own("m").set_tensor(f.text("name"), f.handle("t")),
    "qmodel_input_name": lambda f: f.own("m").input_name(f.index()),
    "qmodel_input_dtype": lambda f: f.own("m").input_dtype(f.index()).name,
    "qmodel_input_rank": lambda f: len(f.own("m").input_shape(f.index())),
    "qmodel_input_shape": lambda f: list(f.own("m").input_shape(f.index())),
    "qmodel_output_name": lambda f: f.own("m").output_name(f.index()),
    "qmodel_inspect": lambda f: f.own("m").inspect(),
    "qsession_create": lambda f: qt.Session(f.own("m"), f.attrs()),
    "qsession_run": run_session,
    "qsession_bind": lambda f: f.own("s").bind(f.get("output"), f.get("input")),
    "qsession_reset": lambda f: f.own("s").reset(),
    "qsession_profile": lambda f: f.own("s").profile(f.tensors("inputs")),
    "qreport_summary": lambda f: qt.Model._report_summary(f.text("report")),
    "qlayer_create": make_layer,
    "qlayer_run": run_layer,
    "qlayer_weight": lambda f: f.own("layer").weight,
    "qlayer_bias": lambda f: f.own("layer").bias,
    "qtrainer_create": lambda f: qt.Trainer(f.own("m"), f.attrs()),
    "qtrainer_step": lambda f: f.own("t").step(f.tensors("inputs"), f.tensors("targets")),
    "qtrainer_backward": lambda f: f.own("t").backward(f.tensors("inputs"), f.tensors("targets")),
    "qtrainer_update": lambda f: f.own("t").update(),
    "qtrainer_evaluate": evaluate,
    "qtrainer_set": lambda f: f.own("t").set(f.attrs() if f.get("attrs") is not None else None),
    "qtrainer_set_group": lambda f: f.own("t").set_group(f.text("selector"), f.attrs_or_none("settings")),
    "qtrainer_parameter_count": lambda f: f.own("t").parameter_count,
    "qtrainer_parameter_name": lambda f: f.own("t").parameter_name(f.index()),
    "qtrainer_parameter": lambda f: f.own("t").parameter(f.index()),
    "qtrainer_gradient": lambda f: f.own("t").gradient(f.index()),
    "qtrainer_buffer_count": lambda f: f.own("t").buffer_count,
    "qtrainer_buffer_name": lambda f: f.own("t").buffer_name(f.index()),
    "qtrainer_buffer": lambda f: f.own("t").buffer(f.index()),
    "qtrainer_model": lambda f: f.own("t").model(),
    "qtrainer_save": lambda f: f.own("t").save(f.path()),
    "qtrainer_load": lambda f: f.own("t").load(f.path()),
    "qtrainer_save_bytes": lambda f: f.own("t").save_bytes(),
    "qtrainer_load_bytes": lambda f: f.own("t").load_bytes(f.bytes()),
    **dict.fromkeys(["qattrs_create", "qattrs_set_int", "qattrs_set_float", "qattrs_set_string", "qattrs_set_ints",
                     "qattrs_set_floats", "qattrs_count", "qattrs_key", "qattrs_kind", "qattrs_get_int", "qattrs_get_float",
                     "qattrs_get_string", "qattrs_get_ints", "qattrs_get_floats", "qattrs_get_tensor"], fresh_attrs),
    **dict.fromkeys(["qcall_input_count", "qcall_input_dtype", "qcall_input_rank", "qcall_input_shape", "qcall_input",
                     "qcall_attrs", "qcall_output_count", "qcall_output", "qcall_set_output_type", "qcall_fail"], no_call),
}


class Wrong(Exception):
    """What a step gave instead of what it must."""


def same(got, want, tolerance):
    if isinstance(want, dict):
        return isinstance(got, dict) and all(same(got.get(k), v, tolerance) for k, v in want.items())
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(same, got, want, [tolerance] * len(got)))
    if isinstance(got, (int, float)) and not isinstance(got, bool) and (want in REALS if isinstance(want, str) else True):
        want = real(want)
        if isinstance(got, int) and isinstance(want, int):
            return got == want
        return got == want or (got != got and want != want) or abs(got - want) <= tolerance
    return got == want


def check(what, got, want, tolerance=0):
    if not same(got, want, tolerance or 0):
        raise Wrong(f"{what} is {str(got)[:180]}, not {str(want)[:180]}")


def grid_of(q):
    if q is None:
        return None
    return {"scheme": q.scheme.value, "axis": q.axis, "scales": list(q.scales), "zero_points": list(q.zero_points),
            "numerics": q.numerics, "block_size": q.block_size}


def expect(f, step):
    got, tolerance = f.handles[step["expect"][1:]], step.get("tolerance")
    if "json" in step:
        got = json.loads(got) if isinstance(got, bytes) else got
        return check("json", got, step["json"], tolerance)
    for key in step.keys() - {"expect", "tolerance"}:
        want = step[key]
        if key == "dtype":
            check(key, got.dtype.name, want)
        elif key == "shape":
            check(key, list(got.shape), want)
        elif key == "data":
            if got.dtype is qt.float32:
                want = [struct.unpack("f", struct.pack("f", real(v)))[0] for v in want]
            check(key, elements_of(got), want, tolerance)
        elif key == "quantizer":
            check(key, grid_of(got.quantizer), want)
        elif key == "text":
            check(key, repr(got), want)
        else:
            raise Wrong(f'"{key}" is nothing to expect')


def refuse_unsayable(step):
    arguments = step.get("with", {})
    for name in ("out", "outputs", "out_loss", "out_len", "buf"):
        if arguments.get(name, "") is None:
            raise CannotSay("an output that is NULL")
    for name in COUNTS & arguments.keys() - ({"count"} if step["call"] == "qlib_set_threads" else set()):
        if step.get("status") and (step["call"], name) != ("qobserver_load", "nbytes"):
            raise CannotSay("a list of another length than it has")


def call(f, step):
    refuse_unsayable(step)
    try:
        result = CALLS[step["call"]](f)
    except qt.Error as error:
        check("status", f"QTN_{error.status.name}", step.get("status", f"QTN_OK, but \"{error}\""))
        return check("message", str(error), step["message"].replace("{folder}", str(f.folder)))
    if "status" in step:
        raise Wrong(f"{step['call']} is QTN_OK, not {step['status']}")
    out = step.get("out")
    if isinstance(out, list):
        f.handles.update(zip(out, result))
    elif out:
        f.handles[out] = result[0] if isinstance(result, list) else result
    if "equals" in step:
        check(step["call"], result, step["equals"], step.get("tolerance"))


def run(case, root, folder, unsayable):
    f = Frame(root, folder)
    for number, step in enumerate(case["steps"], 1):
        f.step = step
        try:
            (expect if "expect" in step else call)(f, step)
        except CannotSay as why:
            unsayable[str(why)].append(step["call"])
            if "status" not in step:
                return  # what follows needs it
        except Exception as error:
            raise Wrong(f"{case['name']}, step {number}: {type(error).__name__}: {error}") from None


def main():
    root, *files = sys.argv[1:]
    symbols = (pathlib.Path(root) / "capi/symbols.txt").read_text()
    unsayable, total, failed = collections.defaultdict(list), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            for case in json.loads(pathlib.Path(file).read_text()):
                total += 1
                try:
                    run(case, root, folder, unsayable)
                except Wrong as wrong:
                    failed += 1
                    print("FAILED ", wrong)
    for why, calls in unsayable.items():
        print(f"Python cannot say {why}: {len(calls)} steps of {len(set(calls))} functions")
    unknown = CALLS.keys() - set(re.findall(r"^q\w+", symbols, re.M))
    if unknown:
        print("C has no", *unknown)
    print(f"{total} cases, {failed} failed")
    return 1 if failed or unknown or not total else 0


if __name__ == "__main__":
    sys.exit(main())
