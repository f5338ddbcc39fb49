# SPDX-License-Identifier: Apache-2.0
"""Operators that programs register: functions of Python as what the library calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from qtensor import core
from qtensor._enums import DType, Status
from qtensor._errors import Error

if TYPE_CHECKING:
    from qtensor._arrays import Array

    Infer = Callable[[list["Operand | None"], dict[str, Any]], Iterable[tuple[DType | str, Iterable[int]]] | None]
    Run = Callable[[list["Array | None"], dict[str, Any]], Any]
    RunQuantized = Callable[[list[core.Tensor | None], dict[str, Any], list[core.Quantizer | None]], Any]


class Operand(NamedTuple):
    """An input, as the function that infers sees it. `value` is an array, or None where it is not known before a run."""

    dtype: DType
    shape: tuple[int, ...]
    value: Any


class _Operator(core.Operator):
    """Nothing is raised through the library: what a function raises is said to the call. The library holds a reference of
    its own: models may let go of an operator when an interpreter that ends has taken all modules apart."""

    def __init__(self, infer: Infer, run: Run, run_quantized: RunQuantized | None) -> None:
        super().__init__()
        self._infer, self._run, self._run_quantized = infer, run, run_quantized

    def infer(self, call: core.Call) -> bool:
        return _guarded(call, self._say_types)

    def run(self, call: core.Call) -> None:
        _guarded(call, self._compute)

    def has_quantized(self) -> bool:
        return self._run_quantized is not None

    def run_quantized(self, call: core.Call) -> bool:
        return _guarded(call, self._compute_quantized)

    def hold(self) -> None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def released(self, _let_go: Any = ctypes.pythonapi.Py_DecRef, _as_object: Any = ctypes.py_object) -> None:
        _let_go(_as_object(self))

    def _say_types(self, call: core.Call) -> bool:
        inputs = [Operand(call.input_dtype(i), call.input_shape(i), _array(call.input(i))) if call.has_input(i) else None
                  for i in range(call.input_count())]
        types = self._infer(inputs, call.attrs())
        if types is None:
            return False
        for i, (dtype, shape) in enumerate(_counted(list(types), call, "types of outputs")):
            call.set_output_type(i, dtype, shape)
        return True

    def _compute(self, call: core.Call) -> bool:
        _give(call, self._run([_array(call.input(i)) for i in range(call.input_count())], call.attrs()))
        return True

    def _compute_quantized(self, call: core.Call) -> bool:
        if self._run_quantized is None:
            return False
        inputs: list[core.Tensor | None] = [call.input(i) for i in range(call.input_count())]
        grids: list[core.Quantizer | None] = [call.output_quantizer(i) for i in range(call.output_count())]
        results = self._run_quantized(inputs, call.attrs(), grids)
        if results is None:
            return False
        _give(call, results)
        return True


def _array(tensor: core.Tensor | None) -> Any:
    return None if tensor is None else tensor.numpy()


def _counted(results: Sequence[Any], call: core.Call, what: str) -> Sequence[Any]:
    if len(results) != call.output_count():
        raise ValueError(f"{len(results)} {what} for {call.output_count()} outputs")
    return results


def _give(call: core.Call, results: Any) -> None:
    several = isinstance(results, (list, tuple)) and (call.output_count() != 1 or len(results) == 1)
    for i, result in enumerate(_counted(results if several else [results], call, "results")):
        call.set_output(i, result)


def _guarded(call: core.Call, function: Callable[[core.Call], bool]) -> bool:
    try:
        return function(call)
    except Error as error:
        call.fail(error.status, str(error))
    except Exception as error:
        call.fail(Status.EINVAL, f"{type(error).__name__}: {error}")
    except BaseException as error:  # such as KeyboardInterrupt
        call.fail(Status.ECANCELED, type(error).__name__)
    return False


def register_op(domain: str, name: str, infer: Infer, run: Run, *, run_quantized: RunQuantized | None = None,
                since_version: int = 1) -> None:
    """Adds an operator to those that files may use, as "domain::name".

    `infer(inputs, attrs)` gives a (dtype, shape) for each output, or None where these follow from the value of an input
    that is not known yet. `run(inputs, attrs)` gets arrays, which are its own, and gives the result, or a list of them.
    `run_quantized(inputs, attrs, quantizers)` gets tensors, of which some are quantized, and the quantizers of the
    outputs; it gives results on these, or real ones, which are rounded to them, or None where `run` is to compute them.
    Absent inputs are None. Many threads may call at once."""
    for what, function in (("infer", infer), ("run", run), ("run_quantized", run_quantized)):
        if not callable(function) and (function is not None or what != "run_quantized"):
            raise TypeError(f"{what} is of type '{type(function).__name__}', not a function")
    operator = _Operator(infer, run, run_quantized)
    operator.hold()
    try:
        core.Op.register_operator(domain, name, since_version, operator)
    except BaseException:
        operator.released()
        raise


def unregister_op(domain: str, name: str, since_version: int = 1) -> None:
    """Takes register_op() back. Models and sessions that have the operator go on."""
    core.Op.unregister_operator(domain, name, since_version)
