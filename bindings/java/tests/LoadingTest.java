// SPDX-License-Identifier: Apache-2.0

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.qtensor.DType;
import org.qtensor.Lib;
import org.qtensor.Op;
import org.qtensor.Tensor;

/** Where the native library comes from: the jar, java.library.path, or nowhere. Each in a JVM of its own. */
class LoadingTest {
  @TempDir Path folder;

  /** Runs main below with options of the JVM, and gives what it said. */
  private String run(int status, String... options) throws Exception {
    List<String> command = new ArrayList<>(List.of(ProcessHandle.current().info().command().orElseThrow(),
        "-Djava.io.tmpdir=" + folder, "-cp", System.getProperty("qtensor.classpath")));
    command.addAll(List.of(options));
    command.add("LoadingTest");
    Path output = folder.resolve("said");
    Process process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile()).start();
    boolean ended = process.waitFor(60, TimeUnit.SECONDS);
    process.destroyForcibly();
    assertTrue(ended, "the program hangs");
    assertEquals(status, process.exitValue(), Files.readString(output));
    return Files.readString(output);
  }

  /**
   * Calls the library from two threads that begin at once, with different classes, then says where it lies, and its
   * BLAS.
   */
  public static void main(String[] arguments) throws Exception {
    Thread other = new Thread(() -> Tensor.create(DType.INT8));
    other.start();
    Lib.version();
    other.join();
    Op.matmul(Tensor.create(DType.FLOAT32, 2, 3), Tensor.create(DType.FLOAT32, 3, 2));
    Files.readString(Path.of("/proc/self/maps"))
        .lines()
        .filter(line -> line.contains("libqtensor"))
        .map(line -> line.substring(line.indexOf('/')))
        .distinct()
        .forEach(System.out::println);
    try (Stream<Path> made = Files.list(Path.of(System.getProperty("java.io.tmpdir")))) {
      for (Path path : made.filter(path -> path.getFileName().toString().startsWith("qtensor-")).toList()) {
        System.out.println(PosixFilePermissions.toString(Files.getPosixFilePermissions(path)));
      }
    }
  }

  private List<Path> left() throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.filter(path -> path.getFileName().toString().startsWith("qtensor-")).toList();
    }
  }

  @Test
  void fromTheJarOnceIntoAPrivateFolderThatGoes() throws Exception {
    List<String> said = run(0).lines().toList();
    List<String> libraries = said.stream().filter(line -> line.startsWith("/")).toList();
    assertTrue(libraries.stream().allMatch(path -> path.startsWith(folder + "/qtensor-")), said.toString());
    assertEquals(carried(), libraries.stream().map(path -> Path.of(path).getFileName().toString()).sorted().toList());
    assertEquals("rwx------", said.get(said.size() - 1));
    assertEquals(List.of(), left());
  }

  /** The names of the libraries in the jar: where the build has a BLAS to give, that is one of them. */
  private static List<String> carried() {
    List<String> names = new ArrayList<>(List.of("libqtensor.so.0", "libqtensorjni.so"));
    if (System.getProperty("qtensor.carries").equals("1")) {
      names.add("libqtensor_openblas.so.0");
    }
    return names.stream().sorted().toList();
  }

  @Test
  void theJarIsSmall() throws IOException {
    long size = Files.size(Path.of(System.getProperty("qtensor.classpath").split(":")[0]));
    assertTrue(size < 25_000_000, size + " bytes");
  }

  @Test
  void fromTheLibraryPath() throws Exception {
    String natives = System.getProperty("java.library.path");
    String said = run(0, "-Djava.library.path=" + natives);
    assertTrue(said.contains(natives + "/libqtensorjni.so"), said);
    assertFalse(said.contains(folder.toString()), said);
  }

  @Test
  void aPlatformWithoutNatives() throws Exception {
    for (String architecture : List.of("riscv64", "aarch64")) {
      String said = run(1, "-Dos.arch=" + architecture, "-Djava.library.path=/nowhere");
      assertTrue(
          said.contains("java.lang.UnsatisfiedLinkError: qtensor: there are no natives for linux-" + architecture
              + " in the jar, and java.library.path does not help: no qtensorjni in java.library.path: /nowhere\n"),
          said);
    }
  }
}
