// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

/** What Java adds to layers. */
abstract class LayerBase extends NativeObject {
  LayerBase(long box) {
    super(box);
  }
}
