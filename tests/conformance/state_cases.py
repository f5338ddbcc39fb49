"""Cases of sessions with state, for make_networks.py: a recurrent cell and a memory that grows, unrolled by PyTorch.

Weights and inputs are multiples of 1/8 and steps are few, so that sums in float32 are exact.
"""

import io
import pathlib

import torch
from torch import nn

from make_cases import call, case, expected_floats, floats

HERE = pathlib.Path(__file__).resolve().parent


class Cell(nn.Module):
    """A leaky state of four units; `moved` is how much a step has changed it, `wrong` and `best` are no state of the cell."""

    def __init__(self):
        super().__init__()
        g = torch.Generator().manual_seed(1)
        self.of_x, self.of_h = (torch.randint(-4, 5, (n, 4), generator=g) / 8 for n in (3, 4))

    def forward(self, x, h):
        state = torch.relu(x @ self.of_x + h @ self.of_h) / 2
        return state - h, state, state[:, :3], torch.argmax(state, 1)


class Memory(nn.Module):
    """Keeps all that it has seen, as a decoder keeps keys."""

    def forward(self, x, past):
        kept = torch.cat((past, x * 2), 1)
        return kept.sum(1), kept


def load(name, net, inputs, names, open_axes):
    file = io.BytesIO()
    with torch.no_grad():
        torch.onnx.export(net, inputs, file, input_names=names[0], output_names=names[1], opset_version=17, dynamo=False,
                          dynamic_axes=open_axes)  # fmt: skip
    path = HERE / "networks" / f"{name}.onnx"
    path.write_bytes(file.getvalue())
    return call("qmodel_load", "m", path=str(path.relative_to(HERE.parent.parent)))


def refused(status, message, step):
    return {**step, "status": status, "message": message}


def cell_cases(inputs):
    net = Cell()
    names = ["x", "h"], ["moved", "state", "wrong", "best"]
    loaded = load("cell", net, (inputs[0], torch.zeros(1, 4)), names, {"x": {0: "n"}})
    bind = call("qsession_bind", s="$s", output=1, input=1)

    def steps(h, xs, prefix, first=None):
        """Runs that begin with state h, which `first` gives by name."""
        made = []
        for i, x in enumerate(xs):
            moved, h, _, _ = net(x, h)
            given = first if i == 0 and first else None
            out = [f"{prefix}{i}{what}" for what in ("moved", "state", "wrong", "best")]
            made += [floats(f"{prefix}{i}x", x),
                     call("qsession_run", out, s="$s", inputs=[f"${prefix}{i}x", given], output_count=4),
                     expected_floats(out[0], moved), expected_floats(out[1], h)]  # fmt: skip
        return made, h

    zeros = torch.zeros(1, 4)
    ones = torch.full((1, 4), 0.5)
    for engine in ("native", "reference"):
        session = call("qsession_create", "s", m="$m", attrs={"engine": engine})
        begun, _ = steps(zeros, inputs, "a")
        again, _ = steps(zeros, inputs[:2], "b")
        given, _ = steps(ones, inputs, "c", "$ones")
        case(f"state/cell/{engine}", [], loaded, session, bind, *begun, call("qsession_reset", s="$s"), *again, floats("ones", ones), *given)
        # What fails leaves the state, and what looks at it too.
        begun, h = steps(zeros, inputs[:2], "a")
        more, _ = steps(h, inputs[2:], "d")
        wide = floats("wide", torch.zeros(1, 5))
        text = 'session: input "h" takes 1x4, not 1x5'
        case(f"state/failed_run/{engine}", [], loaded, session, bind, *begun, wide,
             refused("QTN_ESHAPE", text, call("qsession_run", s="$s", inputs=["$a0x", "$wide"], output_count=4)),
             call("qsession_profile", "times", s="$s", inputs=["$a0x", None]), *more)  # fmt: skip
    session = call("qsession_create", "s", m="$m")
    number = "session: output 4 is not one of the model's 4", "session: input 2 is not one of the model's 2"
    case("state/refused", [], loaded, session, floats("x", inputs[0]),
         refused("QTN_EINVAL", "qsession_run: inputs[1] is NULL", call("qsession_run", s="$s", inputs=["$x", None], output_count=4)),
         refused("QTN_EINVAL", number[0], call("qsession_bind", s="$s", output=4, input=1)),
         refused("QTN_EINVAL", number[1], call("qsession_bind", s="$s", output=1, input=2)),
         refused("QTN_ESHAPE", 'session: output "wrong" is ?x3, and input "h" takes 1x4', call("qsession_bind", s="$s", output=2, input=1)),
         refused("QTN_EDTYPE", 'session: output "best" is int64, and input "h" takes float32', call("qsession_bind", s="$s", output=3, input=1)))  # fmt: skip


def memory_cases(inputs):
    net = Memory()
    open_axes = {"past": {1: "seen"}, "kept": {1: "seen and new"}}
    loaded = load("memory", net, (inputs[0].reshape(1, 1, 3), torch.zeros(1, 2, 3)), (["x", "past"], ["sum", "kept"]), open_axes)
    for name, length in (("empty", 0), ("begun", 2)):
        past = torch.ones(1, length, 3)
        steps = [loaded, call("qsession_create", "s", m="$m"), call("qsession_bind", s="$s", output=1, input=1), floats("past", past)]
        first = floats("x0", inputs[0].reshape(1, 1, 3))
        steps += [first, refused("QTN_ESTATE", 'session: input "past" takes 1x?x3, so its first state has to be given',
                                 call("qsession_run", s="$s", inputs=["$x0", None], output_count=2))]  # fmt: skip
        for i in range(12):  # more lengths than plans are kept
            x = inputs[i % len(inputs)].reshape(1, 1, 3)
            total, past = net(x, past)
            steps += [floats(f"x{i}", x), call("qsession_run", [f"sum{i}", f"kept{i}"], s="$s", inputs=[f"$x{i}", None if i else "$past"], output_count=2),
                      expected_floats(f"sum{i}", total), expected_floats(f"kept{i}", past)]  # fmt: skip
        case(f"state/grows/{name}", [], *steps)


class Stream(nn.Module):
    """An LSTM that takes a step at a time. Of each row of its weights the largest is 127/128, so int8 holds them exactly."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4)
        g = torch.Generator().manual_seed(3)
        with torch.no_grad():
            for name, weight in self.lstm.named_parameters():
                weight.copy_(torch.randint(-126, 127, weight.shape, generator=g) / 128)
                if "weight" in name:
                    weight[:, 0] = 127 / 128

    def forward(self, x, h, c):
        y, (h, c) = self.lstm(x, (h, c))
        return y, h, c


def stream_cases(inputs):
    halves = 1e-4  # x and the state are taken in 15 bits, once weights are integers
    net = Stream()
    zeros = torch.zeros(1, 1, 4)
    inputs = [x.reshape(1, 1, 3) for x in inputs]
    loaded = load("stream", net, (inputs[0], zeros, zeros), (["x", "h", "c"], ["y", "h_next", "c_next"]), {})
    dynamic = [call("qconfig_create", "config", name="onnx"), call("qmodel_quantize_dynamic", "q", m="$m", config="$config")]
    for name, made, model, tolerance in (("float", [], "$m", 1e-6), ("dynamic", dynamic, "$q", halves)):
        h, c = zeros, zeros
        steps = [loaded, *made, call("qsession_create", "s", m=model), call("qsession_bind", s="$s", output=1, input=1),
                 call("qsession_bind", s="$s", output=2, input=2)]  # fmt: skip
        for i in range(12):
            with torch.no_grad():
                y, h, c = net(inputs[i % len(inputs)], h, c)
            outputs = [f"{what}{i}" for what in "yhc"]
            steps += [floats(f"x{i}", inputs[i % len(inputs)]), call("qsession_run", outputs, s="$s", inputs=[f"$x{i}", None, None], output_count=3),
                      *(expected_floats(to, t, tolerance=tolerance) for to, t in zip(outputs, (y, h, c)))]  # fmt: skip
        dtype = "int8" if made else "float32"
        nodes = [{"op": "LSTM", "dtype": dtype}, {"op": "Squeeze", "dtype": "float32"}]  # of an axis for directions
        report = {"expect": "$report", "json": {"nodes": nodes}}
        case(f"state/lstm/{name}", [], *steps, call("qmodel_inspect", "report", m=model), report)


def cases():
    g = torch.Generator().manual_seed(2)
    inputs = [torch.randint(-8, 9, (1, 3), generator=g) / 8 for _ in range(5)]
    cell_cases(inputs)
    memory_cases(inputs)
    stream_cases(inputs)
