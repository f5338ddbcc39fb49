// SPDX-License-Identifier: Apache-2.0
package org.qtensor;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/** Loads the library: from java.library.path, else from what the jar holds for this platform. */
final class NativeLibrary {
  private static final String NAME = "qtensorjni";

  private NativeLibrary() {}

  static void load() {
    try {
      System.loadLibrary(NAME);
    } catch (UnsatisfiedLinkError notInPath) {
      try {
        loadFromJar(notInPath);
      } catch (IOException e) {
        throw new UncheckedIOException("qtensor: the native library cannot be extracted: " + e.getMessage(), e);
      }
    }
  }

  private static void loadFromJar(UnsatisfiedLinkError notInPath) throws IOException {
    String platform = platform(System.getProperty("os.name"), System.getProperty("os.arch"));
    List<String> names = list(platform);
    if (names.isEmpty()) {
      UnsatisfiedLinkError error = new UnsatisfiedLinkError("qtensor: there are no natives for " + platform
          + " in the jar, and java.library.path does not help: " + notInPath.getMessage());
      error.addSuppressed(notInPath);
      throw error;
    }
    // Libraries are kept until the end, since BLAS is loaded when it is first needed.
    Path folder = Files.createTempDirectory("qtensor-");
    Runtime.getRuntime().addShutdownHook(new Thread(() -> remove(folder, names)));
    for (String name : names) {
      try (InputStream in = open(platform, name)) {
        Files.copy(in, folder.resolve(name));
      }
    }
    System.load(folder.resolve(System.mapLibraryName(NAME)).toString());
  }

  static String platform(String system, String architecture) {
    String os = system.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9].*", "");
    return os + "-" + switch (architecture) {
      case "amd64", "x86_64" -> "x86-64";
      case "arm64" -> "aarch64";
      default -> architecture;
    };
  }

  /** The files for a platform, which the build lists since the entries of a jar cannot be. */
  private static List<String> list(String platform) throws IOException {
    try (InputStream in = open(platform, "files.txt")) {
      return in == null ? List.of() : new String(in.readAllBytes(), StandardCharsets.UTF_8).lines().toList();
    }
  }

  private static InputStream open(String platform, String name) {
    return NativeLibrary.class.getResourceAsStream("natives/" + platform + "/" + name);
  }

  private static void remove(Path folder, List<String> names) {
    try {
      for (String name : names) {
        Files.deleteIfExists(folder.resolve(name));
      }
      Files.deleteIfExists(folder);
    } catch (IOException e) {
      // What cleans the temporary folder will find it.
    }
  }
}
