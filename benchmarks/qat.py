#!/usr/bin/env python3
"""Quantization-aware training compared with PyTorch's: top-1 of the digits networks after the same steps on the same batches.

Each network starts from its float weights, batch normalization in place. Both libraries train it with SGD, the same rates and the same
pictures in the same order, which the seed decides; in the last fifth of the steps ranges and running statistics stay.

  qtensor     the configuration `config`, with `bits` for weights and activations (inputs of the model have 8, its output is in float)
  torch       FX graph mode with these grids: moving averages over 0..2^bits-1, weights per channel over what they are now
  torch own   FX graph mode with get_default_qat_qconfig_mapping("fbgemm"), 8 bits

Columns: top-1 in percent of the float network (`float`), after calibration alone (`ptq`), of what is trained, floats on their grids
(`qat`), and of the converted model in a native session (`int8`); those of torch with fake quantization (`torch`, `torch_own`) and
converted (`torch_own_int8`). `differ`: test pictures that the floats on their grids and the session class otherwise; `steps`: the
largest difference of their outputs, in steps of an 8-bit grid over the outputs; `flips`: in percent, outputs that differ by more than
a hundredth of a step. What the trainer evaluates must have the bits of the session. Configurations but the first are trained with
seed 0 alone, except `onnx, equalized`: cross-layer equalization first, as the command does it by default.

Run again with:  $(benchmarks/peers/make-venv)/bin/python benchmarks/qat.py --csv qat.csv [--net mobile] [--bits 4]
"""

import argparse
import ctypes
import io
import math
import pathlib
import statistics
import warnings

import numpy as np
import torch
from torch import nn
from torch.ao import quantization as tq
from torch.ao.quantization import quantize_fx

import library
from models import digits_nets
import record

make_digits = digits_nets.make_digits
QTN_PTQ, QTN_QAT = 0, 1
BATCH, EPOCHS, MOMENTUM, SMOOTHING, FROZEN = 64, 10, 0.9, 0.05, 0.2
RATES = {8: 0.001, 4: 0.02}
RECIPE = f"SGD momentum {MOMENTUM}, label smoothing {SMOOTHING}, cosine from {RATES} to 0, {EPOCHS} epochs of batches of {BATCH}"
EQUALIZED = "onnx, equalized"
CONFIGS = ("onnx", EQUALIZED, "fbgemm", "x86", "qnnpack", "onednn", "nvidia", "tflite")
NETWORKS = {"plain": make_digits.make_network} | digits_nets.NETWORKS
TOP1 = ("float", "ptq", "qat", "int8", "torch", "torch_own", "torch_own_int8")
FIELDS = ("net", "bits", "config", "seed", *TOP1, "differ", "steps", "flips", "recipe", "torch_version", "cpu")


class Digits:
    def __init__(self):
        folder = digits_nets.DIGITS
        for name in ("train_images", "train_labels", "test_images", "test_labels", "calibration"):
            setattr(self, name, np.load(folder / f"{name}.npy"))

    def batches(self, seed):
        """Pictures moved by up to a pixel, as the float networks have seen them."""
        generator = torch.Generator().manual_seed(seed)
        images, labels = torch.from_numpy(self.train_images), torch.from_numpy(self.train_labels)
        for _ in range(EPOCHS):
            order = torch.randperm(len(images), generator=generator)[: len(images) // BATCH * BATCH]
            for batch in order.split(BATCH):
                yield make_digits.shift(images[batch], generator).numpy(), labels[batch].numpy()

    def steps(self):
        return EPOCHS * (len(self.train_images) // BATCH)

    def top1(self, scores):
        return 100 * float((scores.argmax(axis=1) == self.test_labels).mean())


class Library(library.Library):
    def options(self, **values):
        attrs = self.attrs(**{key: value for key, value in values.items() if isinstance(value, str)})
        for key, value in values.items():
            if isinstance(value, int):
                self.check(self.c.qattrs_set_int(attrs, key.encode(), ctypes.c_int64(value)))
            elif isinstance(value, float):
                self.check(self.c.qattrs_set_float(attrs, key.encode(), ctypes.c_double(value)))
        return attrs

    def config(self, name, bits):
        config = self.made(self.c.qconfig_create, name.split(",")[0].encode())
        if name == EQUALIZED:
            self.check(self.c.qconfig_set(config, b"*", self.options(equalize=1)))
        if bits < 8:
            limits = self.options(weight_bits=bits, activation_bits=bits)
            self.check(self.c.qconfig_set(config, b"*", limits))
        return config

    def prepared(self, model, config, mode):
        source = self.made(self.c.qmodel_load_bytes, model, ctypes.c_size_t(len(model)))
        return self.made(self.c.qmodel_prepare, source, config, mode)

    def scores(self, function, handle, images):
        x, out = self.tensor(np.ascontiguousarray(images)), (ctypes.c_void_p * 1)()
        self.check(function(out, ctypes.c_size_t(1), handle, (ctypes.c_void_p * 1)(x), ctypes.c_size_t(1)))
        scores = self.array(ctypes.c_void_p(out[0]), np.empty((len(images), 10), np.float32)).copy()
        self.c.qtensor_free(x)
        self.c.qtensor_free(ctypes.c_void_p(out[0]))
        return scores

    def converted_scores(self, prepared, images):
        model = self.made(self.c.qmodel_convert, prepared, None)
        return self.scores(self.c.qsession_run, self.made(self.c.qsession_create, model, None), images)

    def calibrated_scores(self, model, config, calibration, images):
        prepared = self.prepared(model, config, QTN_PTQ)
        for i in range(len(calibration)):
            x = self.tensor(calibration[i : i + 1])
            self.check(self.c.qmodel_calibrate(prepared, (ctypes.c_void_p * 1)(x), ctypes.c_size_t(1)))
            self.c.qtensor_free(x)
        return self.converted_scores(prepared, images)

    def trained_scores(self, model, config, rate, digits, seed):
        """Of the trainer, and of the converted model."""
        options = self.options(
            lr=rate, momentum=MOMENTUM, label_smoothing=SMOOTHING, schedule="cosine", total_steps=digits.steps(), threads=1
        )
        trainer = self.made(self.c.qtrainer_create, self.prepared(model, config, QTN_QAT), options)
        for step, (images, labels) in enumerate(digits.batches(seed)):
            if step == freeze_step(digits):
                self.check(self.c.qtrainer_set(trainer, self.options(freeze_bn=1, observers=0)))
            self.loss(self.c.qtrainer_step, trainer, images, labels)
        evaluated = self.scores(self.c.qtrainer_evaluate, trainer, digits.test_images)
        converted = self.converted_scores(self.made(self.c.qtrainer_model, trainer), digits.test_images)
        if evaluated.tobytes() != converted.tobytes():
            raise SystemExit("the trainer evaluates something else than the converted model")
        rounded = self.rounded_scores(trainer, digits.test_images)
        self.c.qtrainer_free(trainer)
        return rounded, converted

    def loss(self, function, trainer, images, labels):
        x, y, loss, one = self.tensor(images), self.tensor(labels), ctypes.c_double(), ctypes.c_size_t(1)
        self.check(function(ctypes.byref(loss), trainer, (ctypes.c_void_p * 1)(x), one, (ctypes.c_void_p * 1)(y), one))
        self.c.qtensor_free(x)
        self.c.qtensor_free(y)
        return loss.value

    def rounded_scores(self, trainer, images):
        """Of the floats on their grids that are trained, less their mean: what the losses of one picture are for each label tells it."""
        self.check(self.c.qtrainer_set(trainer, self.options(freeze_bn=1, observers=0)))
        losses = np.array(
            [[self.loss(self.c.qtrainer_backward, trainer, images[i : i + 1], np.array([k])) for k in range(10)] for i in range(len(images))]
        )
        mean = losses.mean(axis=1, keepdims=True)
        return (mean - losses) / (1 - SMOOTHING)


def freeze_step(digits):
    return math.ceil((1 - FROZEN) * digits.steps())


def onnx_bytes(network):
    """With batch normalizations as they are."""
    file = io.BytesIO()
    torch.onnx.export(
        network, (torch.zeros(1, 1, 8, 8),), file, dynamo=False, opset_version=17, input_names=["image"],
        output_names=["scores"], training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
        dynamic_axes={"image": {0: "batch"}, "scores": {0: "batch"}},
    )  # fmt: skip
    return file.getvalue()


def float_network(name, digits):
    path = digits_nets.folder() / f"{name}.pt"
    path.parent.mkdir(parents=True, exist_ok=True)
    if name == "plain" and not path.exists():
        torch.manual_seed(make_digits.SEED)
        network = make_digits.make_network()
        make_digits.train(network, torch.from_numpy(digits.train_images), torch.from_numpy(digits.train_labels))
        torch.save(network.state_dict(), path)
    elif not path.exists():
        digits_nets.make(path.parent)
    network = NETWORKS[name]().eval()
    network.load_state_dict(torch.load(path))
    return network


def fake_quantize_of(bits):
    return tq.FakeQuantize.with_args(
        observer=tq.MovingAverageMinMaxObserver, quant_min=0, quant_max=2**bits - 1, dtype=torch.quint8)  # fmt: skip


def same_grids(network, example, bits):
    """Prepared with the grids of the configuration "onnx"."""
    half = 2 ** (bits - 1)
    weight = tq.FakeQuantize.with_args(
        observer=tq.MovingAveragePerChannelMinMaxObserver, averaging_constant=1.0, dtype=torch.qint8,
        quant_min=1 - half, quant_max=half - 1, qscheme=torch.per_channel_symmetric)  # fmt: skip
    qconfig = tq.QConfig(activation=fake_quantize_of(bits), weight=weight)
    prepared = quantize_fx.prepare_qat_fx(network, tq.QConfigMapping().set_global(qconfig), example)
    calls = [node.target for node in prepared.graph.nodes if node.op == "call_module"]
    at = [target for target in calls if target.startswith("activation_post_process")]
    setattr(prepared, at[0], fake_quantize_of(8)())
    setattr(prepared, at[-1], nn.Identity())
    return prepared


def own_grids(network, example):
    return quantize_fx.prepare_qat_fx(network, tq.get_default_qat_qconfig_mapping("fbgemm"), example)


def freeze(module):
    """Weights without an average keep their grids over what they are now."""
    if isinstance(module, tq.FakeQuantizeBase) and getattr(module.activation_post_process, "averaging_constant", 0) != 1:
        module.disable_observer()
    torch.ao.nn.intrinsic.qat.freeze_bn_stats(module)


def torch_scores(prepared, rate, digits, seed):
    optimizer = torch.optim.SGD(prepared.parameters(), lr=rate, momentum=MOMENTUM)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, digits.steps())
    loss_of = nn.CrossEntropyLoss(label_smoothing=SMOOTHING)
    prepared.train()
    for step, (images, labels) in enumerate(digits.batches(seed)):
        if step == freeze_step(digits):
            prepared.apply(freeze)
        optimizer.zero_grad()
        loss_of(prepared(torch.from_numpy(images)), torch.from_numpy(labels)).backward()
        optimizer.step()
        schedule.step()
    prepared.eval().apply(tq.disable_observer)
    with torch.inference_mode():
        return prepared(torch.from_numpy(digits.test_images)).numpy()


def torch_columns(network, bits, digits, seed):
    example = (torch.zeros(1, 1, 8, 8),)
    fresh = lambda: network().train()  # noqa: E731
    columns = {"torch": torch_scores(same_grids(fresh(), example, bits), RATES[bits], digits, seed)}
    if bits == 8:
        own = own_grids(fresh(), example)
        columns["torch_own"] = torch_scores(own, RATES[bits], digits, seed)
        with torch.inference_mode():
            converted = quantize_fx.convert_fx(own)
            columns["torch_own_int8"] = converted(torch.from_numpy(digits.test_images)).numpy()
    return columns


def row(library, digits, name, bits, config_name, seed, beside):
    network = float_network(name, digits)
    model, config = onnx_bytes(network), library.config(config_name, bits)
    with torch.inference_mode():
        columns = {"float": network(torch.from_numpy(digits.test_images)).numpy()}
    columns["ptq"] = library.calibrated_scores(model, config, digits.calibration, digits.test_images)
    columns["qat"], columns["int8"] = library.trained_scores(model, config, RATES[bits], digits, seed)
    if beside:
        columns |= torch_columns(lambda: float_network(name, digits), bits, digits, seed)
    qat, int8 = columns["qat"], columns["int8"]
    apart = np.abs(qat - (int8 - int8.mean(axis=1, keepdims=True))) / ((int8.max() - int8.min()) / 255)
    return {
        "net": name, "bits": bits, "config": config_name, "seed": seed,
        **{who: f"{digits.top1(scores):.2f}" for who, scores in columns.items()},
        "differ": int((qat.argmax(axis=1) != int8.argmax(axis=1)).sum()), "steps": f"{apart.max():.3f}",
        "flips": f"{100 * (apart > 0.01).mean():.2f}",
    }  # fmt: skip


def print_means(rows):
    print("means over the seeds:")
    for net, bits, config in dict.fromkeys((r["net"], r["bits"], r["config"]) for r in rows if r["config"] in CONFIGS[:2]):
        of = [r for r in rows if (r["net"], r["bits"], r["config"]) == (net, bits, config)]
        means = {k: statistics.mean(float(r[k]) for r in of) for k in TOP1 if k in of[0]}
        print(net, f"{bits} bits, {config}:", ", ".join(f"{who} {mean:.2f}" for who, mean in means.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="build/release/capi/libqtensor.so", help="ours (%(default)s)")
    parser.add_argument("--net", choices=NETWORKS, action="append", help="networks (all)")
    parser.add_argument("--bits", type=int, choices=RATES, action="append", help="(8 and 4)")
    parser.add_argument("--config", choices=CONFIGS, action="append", help="configurations (all)")
    parser.add_argument("--seeds", type=int, default=5, help="(%(default)s)")
    parser.add_argument("--csv", type=pathlib.Path, help="file to write the table to")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    library, digits = Library(arguments.library), Digits()
    rows = []
    for name in arguments.net or NETWORKS:
        for bits in arguments.bits or RATES:
            for config in arguments.config or CONFIGS:
                first = config == CONFIGS[0]
                for seed in range(arguments.seeds if config in CONFIGS[:2] else 1):
                    try:
                        rows.append(row(library, digits, name, bits, config, seed, beside=first))
                    except RuntimeError as error:
                        print(f"{name}, {bits} bits, {config}, seed {seed}: left out: {error}", flush=True)
                        continue
                    print(*rows[-1].values(), flush=True)
    print_means(rows)
    if arguments.csv:
        tail = {"recipe": RECIPE, "torch_version": torch.__version__, "cpu": record.cpu_name()}
        record.write_csv(arguments.csv, [r | tail for r in rows], FIELDS)


if __name__ == "__main__":
    main()
