// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

import java.nio.file.Path;

/** What Java adds to configurations. */
abstract class ConfigBase extends NativeObject {
  ConfigBase(long box) {
    super(box);
  }

  /** Reads what {@link Config#save(String)} has written. */
  public static Config load(Path path) {
    return Config.load(path.toString());
  }

  /** Writes the configuration as JSON. */
  public final void save(Path path) {
    ((Config) this).save(path.toString());
  }
}
