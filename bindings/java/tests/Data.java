// SPDX-License-Identifier: Apache-2.0

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.qtensor.Model;
import org.qtensor.Tensor;

/** The network and the pictures of examples/digits. */
final class Data {
  static final Path ROOT = Path.of(System.getProperty("qtensor.root"));
  static final Path DIGITS = ROOT.resolve("examples/digits");
  static final Tensor IMAGES = Tensor.loadNpy(DIGITS.resolve("calibration.npy")).slice(0, 0, 40);

  private Data() {}

  static Model digits() {
    return Model.load(DIGITS.resolve("digits.onnx"));
  }

  static List<Tensor[]> rows() {
    List<Tensor[]> rows = new ArrayList<>();
    for (long i = 0; i < IMAGES.shape()[0]; ++i) {
      rows.add(new Tensor[] {IMAGES.slice(0, i, i + 1)});
    }
    return rows;
  }
}
