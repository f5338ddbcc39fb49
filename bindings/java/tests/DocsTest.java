// SPDX-License-Identifier: Apache-2.0

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Snippets of docs/java.md, the later ones at the end of the first one's main, compile and print what they say. */
class DocsTest {
  @Test
  void thoseOfThePageRun(@TempDir Path folder) throws Exception {
    String page = Files.readString(Data.ROOT.resolve("docs/java.md"));
    List<String> snippets = groups("(?ms)^```java\n(.*?)^```", page);
    assertTrue(snippets.size() > 5);
    String first = snippets.get(0);
    int end = first.lastIndexOf("  }\n}");
    String program = first.substring(0, end) + String.join("", snippets.subList(1, snippets.size())) + first.substring(end);
    Path source = Files.writeString(folder.resolve("Quantize.java"), program);
    String classpath = System.getProperty("qtensor.classpath");
    ByteArrayOutputStream said = new ByteArrayOutputStream();
    assertEquals(0, ToolProvider.getSystemJavaCompiler().run(null, said, said, "-cp", classpath, source.toString()),
        said::toString);

    Files.createSymbolicLink(folder.resolve("examples"), Data.ROOT.resolve("examples"));
    Process process = new ProcessBuilder(ProcessHandle.current().info().command().orElseThrow(), "-Xcheck:jni", "-cp",
        classpath + ":" + folder, "Quantize").directory(folder.toFile()).redirectErrorStream(true).start();
    String printed = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(0, process.waitFor(), printed);
    List<String> promised = groups("println\\(.*\\); +// (.+)\n", program);
    assertTrue(promised.size() > 4);
    assertEquals(promised, printed.lines().filter(promised::contains).collect(Collectors.toList()), printed);
    assertTrue(Files.exists(folder.resolve("digits-int8.onnx")));
  }

  private static List<String> groups(String pattern, String text) {
    return Pattern.compile(pattern).matcher(text).results().map((MatchResult found) -> found.group(1)).toList();
  }
}
