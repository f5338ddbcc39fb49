#!/usr/bin/env python3
"""Makes training/*.json: losses, optimizers, schedules, clipping of gradients, random numbers, and small networks.

  losses.json      torch.nn.functional in float64 on float32 operands, gradients by autograd
  optimizers.json  torch.optim in its single-tensor form, float32; torch.nn.utils.clip_grad_norm_ and clip_grad_value_
  schedules.json   torch.optim.lr_scheduler
  random.json      Philox: one function for words of 32 and 64 bits, which gives numpy.random.Philox (64) and the
                   vectors that are published with the algorithm (Random123's kat_vectors, 32)
  small.json       small_*.onnx, each with something unusual, trained by torch.optim.SGD

Run again with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_training.py
"""

import math
import pathlib
import warnings

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper

import golden_json


FOLDER = pathlib.Path(__file__).parent / "training"


def noise(seed, *shape, scale=1.0):
    return (np.random.default_rng(seed).normal(size=shape) * scale).round(3).astype(np.float32)


# ------------------------------------------------------------------------------------------------------------ losses


def labels(seed, classes, *shape, dtype=np.int64):
    return np.random.default_rng(seed).integers(0, classes, size=shape).astype(dtype)


def distributions(seed, *shape):
    p = np.random.default_rng(seed).uniform(0.05, 1, size=shape)
    return (p / p.sum(axis=1, keepdims=True)).astype(np.float32)


def cross_entropy(y, t, class_axis=1, ignore_index=-100, label_smoothing=0.0):
    t = t.movedim(class_axis, 1) if t.is_floating_point() else t
    return F.cross_entropy(y.movedim(class_axis, 1), t, ignore_index=ignore_index, label_smoothing=label_smoothing)


def distillation(y, teacher, target, temperature=1.0, alpha=None, class_axis=1):
    y, teacher = y.movedim(class_axis, 1), teacher.movedim(class_axis, 1)
    soft = temperature**2 * F.kl_div(
        F.log_softmax(y / temperature, 1), F.softmax(teacher / temperature, 1), reduction="batchmean"
    )
    return soft if alpha is None else alpha * soft + (1 - alpha) * F.cross_entropy(y, target)


LOSSES = {
    "cross_entropy": cross_entropy,
    "mse": lambda y, t: F.mse_loss(y, t),
    "huber": lambda y, t, delta=1.0: F.huber_loss(y, t, delta=delta),
    "distillation": lambda y, teacher, target=None, **attrs: distillation(y, teacher, target, **attrs),
}


def masked(logits, *places):
    for place in places:
        logits[place] = -np.inf
    return logits


def loss_cases():
    smooth = {"label_smoothing": 0.1}
    yield "cross_entropy", "labels", {}, noise(1, 4, 5), [labels(2, 5, 4)]
    yield "cross_entropy", "labels_int32", {}, noise(3, 3, 7), [labels(4, 7, 3, dtype=np.int32)]
    yield "cross_entropy", "labels_smooth", smooth, noise(5, 4, 5), [labels(6, 5, 4)]
    yield "cross_entropy", "labels_very_smooth", {"label_smoothing": 0.9}, noise(7, 4, 3), [labels(8, 3, 4)]
    yield "cross_entropy", "pixels", {}, noise(9, 2, 3, 4, 2), [labels(10, 3, 2, 4, 2)]
    yield "cross_entropy", "pixels_smooth", smooth, noise(11, 2, 3, 5), [labels(12, 3, 2, 5)]
    yield "cross_entropy", "many_classes", smooth, noise(13, 3, 130, scale=3), [labels(14, 130, 3)]
    yield "cross_entropy", "one_class", {}, noise(15, 3, 1), [labels(16, 1, 3)]
    yield "cross_entropy", "far_apart", {}, noise(17, 5, 4, scale=200), [labels(18, 4, 5)]
    yield "cross_entropy", "large", {}, noise(19, 3, 4) + np.float32(1e4), [labels(20, 4, 3)]
    excluded = masked(noise(21, 3, 4), (0, 1), (1, 0), (1, 3))
    yield "cross_entropy", "excluded_classes", {}, excluded, [np.array([0, 2, 3], np.int64)]
    yield "cross_entropy", "distributions", {}, noise(22, 4, 5), [distributions(23, 4, 5)]
    yield "cross_entropy", "distributions_smooth", smooth, noise(24, 4, 5), [distributions(25, 4, 5)]
    yield "cross_entropy", "distributions_of_pixels", smooth, noise(26, 2, 3, 4), [distributions(27, 2, 3, 4)]
    yield "cross_entropy", "shares_of_any_sum", smooth, noise(28, 3, 4), [noise(29, 3, 4)]
    yield "mse", "matrix", {}, noise(30, 4, 3), [noise(31, 4, 3)]
    yield "mse", "vector", {}, noise(32, 7), [noise(33, 7)]
    yield "mse", "pixels", {}, noise(34, 2, 3, 2, 2, scale=100), [noise(35, 2, 3, 2, 2)]
    yield "huber", "default", {}, noise(36, 5, 4, scale=2), [noise(37, 5, 4)]
    yield "huber", "small_delta", {"delta": 0.25}, noise(38, 5, 4), [noise(39, 5, 4)]
    ends = np.array([1.5, -1.5, 1.25, -2.0, 0.0], np.float32)
    yield "huber", "borders", {"delta": 1.5}, ends, [np.zeros(5, np.float32)]
    yield "distillation", "plain", {}, noise(40, 4, 5), [noise(41, 4, 5)]
    yield "distillation", "warm", {"temperature": 4.0}, noise(42, 4, 5, scale=3), [noise(43, 4, 5, scale=3)]
    yield "distillation", "pixels", {"temperature": 2.0}, noise(44, 2, 3, 4), [noise(45, 2, 3, 4)]
    mixed = {"temperature": 3.0, "alpha": 0.7}
    yield "distillation", "with_labels", mixed, noise(46, 4, 5), [noise(47, 4, 5), labels(48, 5, 4)]
    yield "distillation", "pixels_with_labels", mixed, noise(49, 2, 3, 4), [noise(50, 2, 3, 4), labels(51, 3, 2, 4)]
    teacher = masked(noise(52, 3, 4), (0, 1), (2, 2))
    yield "distillation", "sure_teacher", {"temperature": 2.0}, noise(53, 3, 4), [teacher]
    only = {"alpha": 0.0}
    yield "distillation", "labels_alone", only, noise(54, 3, 4), [noise(55, 3, 4), labels(56, 4, 3)]


    words = {"class_axis": -1}
    yield "cross_entropy", "words", words, noise(57, 2, 4, 5), [labels(58, 5, 2, 4)]
    yield "cross_entropy", "words_as_distributions", words | smooth, noise(59, 2, 3, 4), [distributions(60, 2, 3, 4)]
    yield "cross_entropy", "middle_axis", {"class_axis": 2}, noise(61, 2, 3, 4, 2), [labels(62, 4, 2, 3, 2)]
    padded = labels(63, 5, 3, 4)
    padded[0, 2:] = padded[2, 1:] = -1
    yield "cross_entropy", "padded_words", words | {"ignore_index": -1}, noise(64, 3, 4, 5), [padded]
    yield "cross_entropy", "padded_smooth", words | smooth | {"ignore_index": -1}, noise(65, 3, 4, 5), [padded]
    yield "cross_entropy", "ignored_class", {"ignore_index": 2}, noise(66, 6, 4), [np.array([0, 2, 3, 2, 1, 2], np.int32)]
    yield "distillation", "words", mixed | words, noise(67, 2, 3, 4), [noise(68, 2, 3, 4), labels(69, 4, 2, 3)]


def losses():
    cases = []
    for loss, name, attrs, output, targets in loss_cases():
        y = torch.from_numpy(output).double().requires_grad_()
        operands = [torch.from_numpy(t) for t in targets]
        operands = [t.double() if t.is_floating_point() else t.long() for t in operands]
        value = LOSSES[loss](y, *operands, **attrs)
        value.backward()
        cases.append({"name": f"{loss}/{name}", "attrs": {"loss": loss} | attrs, "output": output, "targets": targets,
                      "loss": value.item(), "gradient": y.grad.numpy()})  # fmt: skip
        assert math.isfinite(value.item()), name
    return cases


# -------------------------------------------------------------------------------------------------------- optimizers


STEPS = 50
SHOWN = (1, 2, 3, 10, 50)


def optimizer_problem():
    """Two parameters and what their gradients are: noise around a slope, over four orders of magnitude, at last small."""
    shapes = {"weight": (2, 5), "bias": (3,)}
    values = {name: noise(100 + i, *shape) for i, (name, shape) in enumerate(shapes.items())}
    gradients = []
    for step in range(STEPS):
        at = {}
        for i, (name, shape) in enumerate(shapes.items()):
            size = np.logspace(-3, 1, num=math.prod(shape)).reshape(shape) * (1 if step + 1 < STEPS else 1e-3)
            at[name] = ((noise(1000 + 2 * step + i, *shape) + 0.5) * size).astype(np.float32)
        gradients.append(at)
    rates = [float(0.01 * (1.5 + math.cos(step / 5))) for step in range(STEPS)]
    return values, gradients, rates


OPTIMIZERS = [
    ("sgd", {}),
    ("sgd", {"weight_decay": 0.05}),
    ("sgd", {"momentum": 0.9}),
    ("sgd", {"momentum": 0.9, "weight_decay": 0.05}),
    ("sgd", {"momentum": 0.8, "nesterov": 1, "weight_decay": 0.01}),
    ("adam", {}),
    ("adam", {"weight_decay": 0.1}),
    ("adam", {"beta1": 0.3, "beta2": 0.9, "epsilon": 1e-3}),
    ("adam", {"beta1": 0.0, "beta2": 0.5}),
    ("adamw", {}),
    ("adamw", {"weight_decay": 0.5, "beta1": 0.8, "beta2": 0.99}),
]


def make_torch(kind, attrs, groups):
    names = {"epsilon": "eps"}
    options = {names.get(key, key): value for key, value in attrs.items() if key not in ("beta1", "beta2", "nesterov")}
    if kind == "sgd":
        return torch.optim.SGD(groups, foreach=False, nesterov=bool(attrs.get("nesterov", 0)), **options)
    options["betas"] = (attrs.get("beta1", 0.9), attrs.get("beta2", 0.999))
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind](groups, foreach=False, **options)


def optimizers():
    values, gradients, rates = optimizer_problem()
    cases = []
    for kind, attrs in OPTIMIZERS:
        for factor, decays in ((1.0, True), (0.25, False)):  # of the bias
            parameters = {name: torch.from_numpy(value.copy()).requires_grad_() for name, value in values.items()}
            groups = [{"params": [parameters["weight"]]}, {"params": [parameters["bias"]]}]
            if not decays:
                groups[1]["weight_decay"] = 0.0
            optimizer = make_torch(kind, attrs, groups)
            after = []
            for step in range(STEPS):
                for name, parameter in parameters.items():
                    parameter.grad = torch.from_numpy(gradients[step][name].copy())
                optimizer.param_groups[0]["lr"] = rates[step]
                optimizer.param_groups[1]["lr"] = rates[step] * factor
                optimizer.step()
                if step + 1 in SHOWN:
                    now = {name: p.detach().numpy().copy() for name, p in parameters.items()}
                    after.append({"step": step + 1, "values": now})
            state = {}
            for name, parameter in parameters.items():
                for key, tensor in optimizer.state[parameter].items():
                    if key != "step" and tensor is not None:
                        state[f"{name}.{key}"] = tensor.numpy()
            cases.append({"name": f"{kind}/{len(cases)}", "attrs": {"optimizer": kind} | attrs, "bias_factor": factor,
                          "bias_decays": int(decays), "after": after, "state": state})  # fmt: skip
    return {"values": values, "gradients": gradients, "rates": np.array(rates), "cases": cases, "clips": clips()}


def clips():
    cases = []
    gradients = [noise(200, 3, 4), noise(201, 5, scale=10), noise(202, 40)]
    infinite = [noise(203, 3), np.array([1, np.inf, -2], np.float32)]
    undefined = [noise(204, 3), np.array([1, np.nan, -2], np.float32)]
    for name, tensors, key, bound in (
        ("shorter", gradients, "clip_norm", 2.5),
        ("as_it_is", gradients, "clip_norm", 1000.0),
        ("infinite", infinite, "clip_norm", 1.0),
        ("values", gradients, "clip_value", 0.75),
        ("infinite_values", infinite, "clip_value", 1.5),
        ("nan", undefined, "clip_norm", 1.0),
        ("nan_values", undefined, "clip_value", 1.5),
    ):
        parameters = [torch.zeros(t.shape, requires_grad=True) for t in tensors]
        for parameter, tensor in zip(parameters, tensors):
            parameter.grad = torch.from_numpy(tensor.copy())
        if key == "clip_norm":
            torch.nn.utils.clip_grad_norm_(parameters, bound)
        else:
            torch.nn.utils.clip_grad_value_(parameters, bound)
        cases.append({"name": name, "attrs": {key: bound}, "gradients": tensors,
                      "clipped": [p.grad.numpy() for p in parameters]})  # fmt: skip
    return cases


# --------------------------------------------------------------------------------------------------------- schedules


def torch_schedule(optimizer, attrs):
    kinds = torch.optim.lr_scheduler
    warmup = attrs.get("warmup_steps", 0)
    if attrs["schedule"] == "constant":
        main = kinds.ConstantLR(optimizer, factor=1.0, total_iters=1)
    elif attrs["schedule"] == "step":
        main = kinds.StepLR(optimizer, attrs["step_size"], gamma=attrs.get("gamma", 0.1))
    else:
        main = kinds.CosineAnnealingLR(optimizer, attrs["total_steps"] - warmup, eta_min=attrs.get("min_lr", 0.0))
    if not warmup:
        return main
    rising = kinds.LinearLR(optimizer, start_factor=1 / warmup, end_factor=1.0, total_iters=warmup - 1)
    return kinds.SequentialLR(optimizer, [rising, main], milestones=[warmup])


def schedules():
    cases = []
    for name, attrs, count in (
        ("constant", {"schedule": "constant", "lr": 0.05}, 100),
        ("constant_warmup", {"schedule": "constant", "lr": 0.05, "warmup_steps": 7}, 100),
        ("step", {"schedule": "step", "lr": 0.1, "step_size": 30}, 100),
        ("step_gamma", {"schedule": "step", "lr": 0.1, "step_size": 7, "gamma": 0.97}, 100),
        ("step_warmup", {"schedule": "step", "lr": 0.1, "step_size": 10, "gamma": 0.5, "warmup_steps": 5}, 100),
        ("cosine", {"schedule": "cosine", "lr": 0.1, "total_steps": 100}, 101),
        ("cosine_to_one_percent", {"schedule": "cosine", "lr": 0.001, "min_lr": 1e-5, "total_steps": 100}, 101),
        ("cosine_warmup", {"schedule": "cosine", "lr": 0.1, "min_lr": 0.01, "total_steps": 100, "warmup_steps": 10}, 101),
        ("cosine_one_step", {"schedule": "cosine", "lr": 0.1, "min_lr": 0.01, "total_steps": 1}, 2),
    ):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=attrs["lr"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SequentialLR calls what PyTorch advises against
            schedule = torch_schedule(optimizer, attrs)
            rates = []
            for _ in range(count):
                rates.append(float(optimizer.param_groups[0]["lr"]))
                optimizer.step()
                schedule.step()
        cases.append({"name": name, "attrs": attrs, "rates": np.array(rates)})
    return cases


# ------------------------------------------------------------------------------------------------------------ random


MULTIPLIERS = {32: (0xD2511F53, 0xCD9E8D57), 64: (0xD2E7470EE14C6C93, 0xCA5A826395121157)}
KEY_STEPS = {32: (0x9E3779B9, 0xBB67AE85), 64: (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)}
PUBLISHED = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def philox(counter, key, bits):
    """Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011: four words, ten rounds."""
    mask = (1 << bits) - 1
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        p0, p1 = MULTIPLIERS[bits][0] * c0, MULTIPLIERS[bits][1] * c2
        c0, c1, c2, c3 = (p1 >> bits) ^ c1 ^ k0, p1 & mask, (p0 >> bits) ^ c3 ^ k1, p0 & mask
        k0, k1 = (k0 + KEY_STEPS[bits][0]) & mask, (k1 + KEY_STEPS[bits][1]) & mask
    return [c0, c1, c2, c3]


def words(text):
    return [int(word, 16) for word in text.split()]


def random():
    rng = np.random.default_rng(300)
    for _ in range(20):
        counter, key = ([int(w) for w in rng.integers(0, 1 << 63, size=n)] for n in (4, 2))
        generator = np.random.Philox(counter=np.array(counter, np.uint64), key=np.array(key, np.uint64))
        # NumPy counts first and draws then.
        assert philox([counter[0] + 1, *counter[1:]], key, 64) == [int(w) for w in generator.random_raw(4)]
    cases = []
    for counter, key, output in PUBLISHED:
        assert philox(words(counter), words(key), 32) == words(output)
        cases.append({"source": "Random123", "counter": words(counter), "key": words(key), "output": words(output)})
    for _ in range(20):
        counter, key = ([int(w) for w in rng.integers(0, 1 << 32, size=n)] for n in (4, 2))
        cases.append({"source": "philox()", "counter": counter, "key": key, "output": philox(counter, key, 32)})
    return cases


# ---------------------------------------------------------------------------------------------------- small networks


class Small:
    """A network: its nodes, and the same as a function of its inputs and what it learns. `statistics`: running ones, by
    PyTorch's names; `stored_once`: names that the file does not have, and the equal constants that it has instead."""

    def __init__(self, name, nodes, forward, inputs, parameters, statistics=(), stored_once=None):
        self.name, self.nodes, self.forward, self.inputs = name, nodes, forward, inputs
        self.parameters = {key: torch.from_numpy(value).requires_grad_() for key, value in parameters.items()}
        self.statistics = {key: torch.from_numpy(value) for key, value in dict(statistics).items()}
        self.stored_once = stored_once or {}
        self.save()

    def save(self):
        def info(name, array):
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

        constants = {key: value.detach().numpy() for key, value in (self.parameters | self.statistics).items()}
        assert all(np.array_equal(constants[key], constants[value]) for key, value in self.stored_once.items())
        stored = [numpy_helper.from_array(value, key) for key, value in constants.items() if key not in self.stored_once]
        nodes = [helper.make_node(op, [self.stored_once.get(x, x) for x in xs], [y], y, **attrs)
                 for op, xs, y, attrs in self.nodes]  # fmt: skip
        outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [None, None])]
        graph = helper.make_graph(nodes, self.name, [info(*item) for item in self.inputs.items()], outputs, stored)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        onnx.save(model, FOLDER / f"small_{self.name}.onnx")

    def train(self, steps=5, rate=0.1):
        optimizer = torch.optim.SGD(self.parameters.values(), lr=rate)
        inputs = [torch.from_numpy(x) for x in self.inputs.values()]
        state, losses = self.parameters | self.statistics, []
        target = torch.from_numpy(noise(9, len(self.inputs["x"]), 3))
        for _ in range(steps):
            optimizer.zero_grad()
            loss = F.mse_loss(self.forward(state, True, *inputs), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        outputs = self.forward(state, False, *inputs).detach().numpy()
        left = {key: value.detach().numpy() for key, value in state.items() if key not in self.stored_once}
        return {"name": self.name, "lr": rate, "inputs": list(self.inputs.values()), "target": target.numpy(),
                "losses": np.array(losses, np.float32), "state": left, "outputs": outputs}  # fmt: skip


def norm(x, s, training, scale=None):
    return F.batch_norm(x, s["mean"], s["variance"], s["scale"] if scale is None else scale, s["offset"], training)


def small_networks():
    ones, zeros = np.ones(4, np.float32), np.zeros(4, np.float32)
    norm_of = ("scale", "offset", "mean", "variance")

    def fresh_statistics():
        return {"mean": zeros.copy(), "variance": ones.copy()}

    def clip(s, training, x, low):
        return torch.clamp(x @ s["w"], min=low) @ s["v"]

    yield Small("clip_from_input", [("MatMul", ["x", "w"], "a", {}), ("Clip", ["a", "low"], "b", {}),
                                    ("MatMul", ["b", "v"], "y", {})], clip,
                {"x": noise(1, 6, 4), "low": np.array(-0.5, np.float32)},
                {"w": noise(2, 4, 4), "v": noise(3, 4, 3)})  # fmt: skip

    def looked_up(s, training, x, row):
        y = norm(x @ s["w"], s, training, scale=s["table"][row])
        return torch.relu(y) @ s["v"]

    yield Small("norm_by_table", [("Gather", ["table", "row"], "scale", {}), ("MatMul", ["x", "w"], "a", {}),
                                  ("BatchNormalization", ["a", *norm_of], "b", {}), ("Relu", ["b"], "c", {}),
                                  ("MatMul", ["c", "v"], "y", {})], looked_up,
                {"x": noise(4, 16, 4), "row": np.array(1, np.int64)},
                {"table": noise(5, 2, 4) + 2, "w": noise(6, 4, 4), "offset": noise(7, 4), "v": noise(8, 4, 3)},
                fresh_statistics())  # fmt: skip

    def plain(s, training, x):
        return torch.relu(norm(x @ s["w"], s, training)) @ s["v"]

    nodes = [("MatMul", ["x", "w"], "a", {}), ("BatchNormalization", ["a", *norm_of], "b", {}), ("Relu", ["b"], "c", {}),
             ("MatMul", ["c", "v"], "y", {})]  # fmt: skip
    yield Small("equal_constants", nodes, plain, {"x": noise(10, 16, 4, scale=3) + 1},
                {"w": noise(11, 4, 4), "scale": ones.copy(), "offset": zeros.copy(), "v": noise(12, 4, 3)},
                fresh_statistics(), {"variance": "scale", "mean": "offset"})  # fmt: skip

    def far(s, training, x):
        return norm(x, s, training) @ s["v"]

    yield Small("far_mean", [("BatchNormalization", ["x", *norm_of], "b", {}), ("MatMul", ["b", "v"], "y", {})], far,
                {"x": noise(13, 32, 4) + np.float32(5e3)},
                {"scale": ones.copy(), "offset": zeros.copy(), "v": noise(14, 4, 3)}, fresh_statistics())  # fmt: skip

    def twice(s, training, x, z):
        a, b = (torch.relu(norm(part @ s["w"], s, training)) for part in (x, z))
        return (a - b) @ s["v"]

    branches = [node for x, b in (("x", "1"), ("z", "2"))
                for node in [("MatMul", [x, "w"], "a" + b, {}), ("BatchNormalization", ["a" + b, *norm_of], "b" + b, {}),
                             ("Relu", ["b" + b], "c" + b, {})]]  # fmt: skip
    yield Small("module_twice", branches + [("Sub", ["c1", "c2"], "d", {}), ("MatMul", ["d", "v"], "y", {})], twice,
                {"x": noise(15, 16, 4), "z": noise(16, 16, 4, scale=3) + 2},
                {"w": noise(17, 4, 4), "scale": noise(18, 4) + 1, "offset": noise(19, 4), "v": noise(20, 4, 3)},
                fresh_statistics())  # fmt: skip


def main():
    source = f"torch {torch.__version__.split('+')[0]}, numpy {np.__version__}"
    golden_json.write(FOLDER / "losses.json", {"source": source, "cases": losses()})
    golden_json.write(FOLDER / "optimizers.json", {"source": source} | optimizers())
    golden_json.write(FOLDER / "schedules.json", {"source": source, "cases": schedules()})
    golden_json.write(FOLDER / "random.json", {"source": source, "cases": random()})
    golden_json.write(FOLDER / "small.json", {"source": source, "cases": [n.train() for n in small_networks()]})


if __name__ == "__main__":
    main()
