// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

/** Java adds nothing to observers. */
abstract class ObserverBase extends NativeObject {
  ObserverBase(long box) {
    super(box);
  }
}
