#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of options in the header say what the library takes: an unknown key is given to each function, whose message lists
the valid ones; and each key is given a value of another type, which is refused. Usage: check_options.py LIBRARY API.json MODEL.onnx"""
import ctypes
import json
import pathlib
import sys

LIBRARY, MODEL = ctypes.CDLL(sys.argv[1]), sys.argv[3].encode()
API = {function["name"]: function for function in json.loads(pathlib.Path(sys.argv[2]).read_text())["functions"]}
LIBRARY.qerror_message.restype = ctypes.c_char_p
WRONG = {"int": b"text", "float": b"text", "ints": b"text", "floats": b"text", "string": 1}
SAID = {"int": "an int", "float": "a float", "ints": "ints", "floats": "floats", "string": "a string"}
SAMPLE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)
BATCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t,
                         ctypes.c_size_t, ctypes.c_void_p)
CANCELED = 10
no_sample, no_batch = SAMPLE(lambda *_: CANCELED), BATCH(lambda *_: CANCELED)


def call(function, *arguments):
    """Its status; whole numbers are int32_t unless they say what they are."""
    return getattr(LIBRARY, function)(*arguments)


def made(function, *arguments):
    handle = ctypes.c_void_p()
    if call(function, ctypes.byref(handle), *arguments) != 0:
        sys.exit(f"{function}: {LIBRARY.qerror_message().decode()}")
    return handle


def tensor(*shape):
    return made("qtensor_create", 1, (ctypes.c_int64 * len(shape))(*shape), ctypes.c_size_t(len(shape)), None, None, ctypes.c_size_t(0))


def with_option(key, value):
    attrs = made("qattrs_create")
    of_type = "string" if isinstance(value, bytes) else "int"
    call(f"qattrs_set_{of_type}", attrs, key.encode(), value if of_type == "string" else ctypes.c_int64(value))
    return attrs


def callers():
    """Of each function the ways to call it with options: {function: [call of attrs]}."""
    out, one = ctypes.byref(ctypes.c_void_p()), (ctypes.c_double * 1)(1)
    size = ctypes.c_size_t
    picture, filters, matrix = tensor(1, 1, 4, 4), tensor(2, 1, 3, 3), tensor(2, 3)
    config, model = made("qconfig_create", b"onnx"), made("qmodel_load", MODEL)
    prepared = made("qmodel_prepare", model, config, 1)
    trainer = made("qtrainer_create", prepared, None)

    def of(function, *before, after=()):
        return lambda attrs: call(function, *before, attrs, *after)

    return {
        "qlib_set_limits": [of("qlib_set_limits")],
        "qquantizer_create": [of("qquantizer_create", out, 2, 0, 0, one, None, size(1))],
        "qquantizer_choose": [of("qquantizer_choose", out, 2, 0, 0, one, one, size(1))],
        "qquantizer_choose_dynamic": [of("qquantizer_choose_dynamic", out, 2, picture)],
        "qobserver_create": [of("qobserver_create", out, b"minmax")],
        "qop_max_pool2d": [of("qop_max_pool2d", out, picture)],
        "qop_avg_pool2d": [of("qop_avg_pool2d", out, picture, None)],
        "qop_conv2d": [of("qop_conv2d", out, picture, filters, None, None)],
        "qconfig_set": [of("qconfig_set", config, selector) for selector in (b"*", b"tensor:x")],
        "qmodel_save": [of("qmodel_save", model, b"/dev/null/no")],
        "qmodel_save_bytes": [of("qmodel_save_bytes", out, model)],
        "qmodel_quantize": [of("qmodel_quantize", out, None, model, config, no_sample, size(1), after=(None, None))],
        "qmodel_quantize_qat": [of("qmodel_quantize_qat", out, None, model, config, no_batch, size(1), size(1), after=(None, None))],
        "qmodel_quantize_dynamic": [of("qmodel_quantize_dynamic", out, model, config)],
        "qmodel_quantize_weights": [of("qmodel_quantize_weights", out, model)],
        "qsession_create": [of("qsession_create", out, model)],
        "qtrainer_create": [of("qtrainer_create", out, prepared)],
        "qtrainer_set": [of("qtrainer_set", trainer)],
        "qtrainer_set_group": [of("qtrainer_set_group", trainer, b"*")],
        "qlayer_create": [of("qlayer_create", out, kind, weight, None, config, None, None)
                          for kind, weight in ((b"conv2d", filters), (b"embedding_bag", matrix))],
    }


def table(function):
    """{key: type}, with those of other tables; its own rows say more of a key than those."""
    found = {}
    for row in (row for p in API[function]["params"] for row in p.get("options", [])):
        found.update({row["key"]: row["type"]} if "key" in row else table(row["of"]) | found)
    if function == "qmodel_quantize_qat":
        found.pop("total_steps")  # which the table says
    return found


def faults(function, calls):
    known = table(function)
    valid = set()
    for run in calls:
        status, message = run(with_option("no such key", 1)), LIBRARY.qerror_message().decode()
        if status != 1 or "valid are: " not in message:
            yield f"{function} does not refuse an unknown option: status {status}, {message}"
        valid.update(message.partition("valid are: ")[2].split())
    if valid != known.keys():
        yield f"{function}: not in its table: {sorted(valid - known.keys())}; in its table, but not taken: {sorted(known.keys() - valid)}"
    for key, kind in known.items():
        messages = []
        for run in calls:
            status = run(with_option(key, WRONG[kind]))
            messages.append(LIBRARY.qerror_message().decode() if status == 1 else f"status {status}")
        if not any(f'"{key}" must be {SAID[kind]}, not' in message for message in messages):
            yield f"{function}: {key} of another type than {kind} is not refused: {messages}"


def main():
    of_all = callers()
    described = {name for name, function in API.items() if any("options" in p for p in function["params"])} - {"qop_run"}
    found = [f"{name} is not checked here" for name in described - of_all.keys()]
    found += [fault for function, calls in of_all.items() for fault in faults(function, calls)]
    print("\n".join(found) or f"{sum(len(table(name)) for name in described)} options of {len(described)} functions are as the header says")
    sys.exit(bool(found))


main()
