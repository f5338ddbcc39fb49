# SPDX-License-Identifier: Apache-2.0
"""What others compute with a model."""

import onnx.reference
import onnxruntime


def by_onnx(model, inputs):
    return onnx.reference.ReferenceEvaluator(model).run(None, inputs)


def by_onnx_runtime(model, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, inputs)
