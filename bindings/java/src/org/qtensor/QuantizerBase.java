// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

/** What Java adds to quantizers. */
abstract class QuantizerBase extends NativeObject {
  QuantizerBase(long box) {
    super(box);
  }

  /** The scale of a quantizer that has one. */
  public final double scale() {
    return self().scales()[onlyOne()];
  }

  /** The zero point of a quantizer that has one. */
  public final long zeroPoint() {
    return self().zeroPoints()[onlyOne()];
  }

  private int onlyOne() {
    if (self().count() != 1) {
      throw new IllegalStateException(
          "a quantizer " + self().scheme() + " has " + self().count() + " scales and zero points");
    }
    return 0;
  }

  @Override
  public String toString() {
    Quantizer q = self();
    String grids = q.count() == 1 ? "scale=" + q.scale() + ", zeroPoint=" + q.zeroPoint()
                                  : "axis=" + q.axis() + ", " + q.count() + " scales";
    String blocks = q.blockSize() > 0 ? ", blockSize=" + q.blockSize() : "";
    return "Quantizer(" + q.dtype() + ", " + q.scheme() + ", " + grids + blocks + ", " + q.numerics() + ")";
  }

  private Quantizer self() {
    return (Quantizer) this;
  }
}
