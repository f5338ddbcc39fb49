// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

import java.util.List;
import java.util.Map;

/**
 * An operator that a program adds to those that files may use. Many threads may call one at once. What its methods throw
 * comes out of the call that asked them as a QTensorException, whose message holds that of the exception.
 */
public interface Operator {
  /** What an output is. */
  record Type(DType dtype, long... shape) {}

  /** An input as {@link #infer} sees it; its value is null where it is not known before a run. */
  record Operand(DType dtype, long[] shape, Tensor value) {}

  /**
   * Says what the outputs are. Absent inputs are null.
   *
   * @param inputs what is known of the inputs
   * @param attributes of the node: Long, Double, String, long[], double[] or Tensor
   * @param outputs how many there are
   * @return a type for each; null: these follow from the value of an input that is not known yet
   */
  List<Type> infer(List<Operand> inputs, Map<String, Object> attributes, int outputs);

  /**
   * Computes the outputs. Tensors are copies, which may be kept, and absent inputs are null.
   *
   * @param inputs the inputs, not quantized
   * @param attributes of the node
   * @return a tensor for each output
   */
  Tensor[] run(Tensor[] inputs, Map<String, Object> attributes);

  /** Whether there is a {@link #runQuantized}: asked once. */
  default boolean hasQuantized() {
    return false;
  }

  /**
   * Computes in integers.
   *
   * @param inputs the inputs, of which some are quantized
   * @param attributes of the node
   * @param quantizers those of the outputs, null for one that is not quantized
   * @return a tensor for each output: on its quantizer, or real, which is rounded to it; null: run() is to compute these
   */
  default Tensor[] runQuantized(Tensor[] inputs, Map<String, Object> attributes, Quantizer[] quantizers) {
    return null;
  }

  /**
   * Adds an operator: from now on files may use it, as "domain::name".
   *
   * @param domain the domain of the operator, such as "com.example"; "" for one of ONNX's own that this version lacks
   * @param name what nodes call it
   * @param sinceVersion the first version of the domain that has this form of it
   * @param operator what computes it, which the library keeps
   */
  static void register(String domain, String name, long sinceVersion, Operator operator) {
    RegisteredOperator.register(domain, name, sinceVersion, operator);
  }

  /**
   * Takes register() back. Models and sessions that have the operator go on.
   *
   * @param domain as it was registered
   * @param name as it was registered
   * @param sinceVersion as it was registered
   */
  static void unregister(String domain, String name, long sinceVersion) {
    Op.unregisterOperator(domain, name, sinceVersion);
  }
}
