// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;

/**
 * An object of the library. Its memory goes with {@link #close}, or after the last reference to it: use
 * try-with-resources where objects are large, since the garbage collector does not see their memory.
 */
public abstract class NativeObject implements AutoCloseable {
  static final Cleaner CLEANER = Cleaner.create();

  /** The address of a box, which lives as long as this object; SWIG's code has the name. */
  final long swigCPtr;

  NativeObject(long box) {
    swigCPtr = box;
    CLEANER.register(this, () -> free(box));
  }

  static long box(NativeObject object) {
    return object == null ? 0 : object.swigCPtr;
  }

  /**
   * Frees the object. Whatever is asked of it afterwards throws an IllegalStateException; calls that other threads are
   * in end as if nothing had happened. Closing again does nothing.
   */
  @Override
  public final void close() {
    empty(swigCPtr);
    Reference.reachabilityFence(this);
  }

  private static native void empty(long box);

  private static native void free(long box);
}
