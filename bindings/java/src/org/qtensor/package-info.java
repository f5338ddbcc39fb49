// SPDX-License-Identifier: Apache-2.0

/**
 * Float neural networks to int8: tensors and their grids, ONNX models, sessions, training.
 *
 * <pre>{@code
 * Model model = Model.load(Path.of("net.onnx"));
 * Model int8 = model.quantize(Samples.rows(images)); // a tensor whose rows are samples
 * int8.save(Path.of("net-int8.onnx"));
 * float[] scores = new Session(int8).run(image)[0].toFloatArray();
 * }</pre>
 *
 * <p>Classes and methods have the names of the C API, {@code qtensor_load_npy} being {@code Tensor.loadNpy}, and its
 * header, qtensor.h, is the manual.
 */
package org.qtensor;
