// SPDX-License-Identifier: Apache-2.0
// Drives the topologies of docs/kafka.md with Kafka's test kit. What comes out is what one process gives, to the byte.
//
//     Drive FLOAT.onnx CALIBRATION.npy IMAGES.npy LABELS.npy

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.state.KeyValueStore;
import org.qtensor.*;

public final class Drive {
  private static void check(boolean holds, String what) {
    if (!holds) throw new AssertionError(what);
  }

  private static List<byte[]> records(String path) {
    List<byte[]> found = new ArrayList<>();
    try (Tensor all = Tensor.loadNpy(Path.of(path))) {
      for (long i = 0; i < all.shape()[0]; ++i) {
        try (Tensor row = all.select(0, i)) {
          float[] pixels = row.toFloatArray();
          ByteBuffer record = ByteBuffer.allocate(pixels.length * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
          record.asFloatBuffer().put(pixels);
          found.add(record.array());
        }
      }
    }
    return found;
  }

  private static TopologyTestDriver driver(Topology topology) {
    Properties settings = new Properties();
    settings.putAll(Map.of("application.id", "test", "bootstrap.servers", "none:1"));
    return new TopologyTestDriver(topology, settings);
  }

  private static TestInputTopic<String, byte[]> input(TopologyTestDriver driver) {
    return driver.createInputTopic("images", Serdes.String().serializer(), Serdes.ByteArray().serializer());
  }

  private static TestOutputTopic<String, byte[]> output(TopologyTestDriver driver, String topic) {
    return driver.createOutputTopic(topic, Serdes.String().deserializer(), Serdes.ByteArray().deserializer());
  }

  /** The last file that a task sends after these images, where its store begins with `before`. */
  private static byte[] calibrated(Model model, List<byte[]> images, byte[] before) {
    try (TopologyTestDriver driver = driver(Stream.calibration(model))) {
      KeyValueStore<String, byte[]> store = driver.getKeyValueStore("calibration");
      if (before != null) store.put("all", before);
      TestInputTopic<String, byte[]> input = input(driver);
      images.forEach(image -> input.pipeInput("key", image));
      TestOutputTopic<String, byte[]> sent = output(driver, "calibration");
      check(sent.isEmpty(), "a file is sent before its time");
      driver.advanceWallClockTime(Duration.ofSeconds(10));
      List<KeyValue<String, byte[]>> files = sent.readKeyValuesToList();
      check(files.size() == 1 && files.get(0).key.equals("0_0"), "one file for each task");
      return files.get(0).value;
    }
  }

  private static void scored(Session session, List<byte[]> images, long[] labels) {
    int correct = 0;
    try (TopologyTestDriver driver = driver(Stream.scores(session))) {
      TestInputTopic<String, byte[]> input = input(driver);
      for (int i = 0; i < images.size(); ++i) input.pipeInput(String.valueOf(i), images.get(i));
      List<KeyValue<String, byte[]>> out = output(driver, "scores").readKeyValuesToList();
      check(out.size() == images.size(), "one record for each image");
      for (int i = 0; i < images.size(); ++i) {
        check(out.get(i).key.equals(String.valueOf(i)), "the keys of the images, in their order");
        try (Tensor image = Stream.image(images.get(i)); Tensor scores = session.run(image)[0]) {
          check(Arrays.equals(out.get(i).value, scores.toByteArray()), "the bytes of one process, image " + i);
          float[] values = scores.toFloatArray();
          int best = 0;
          for (int k = 1; k < values.length; ++k) if (values[k] > values[best]) best = k;
          if (best == labels[i]) ++correct;
        }
      }
    }
    System.out.printf("top-1 %.2f %% of %d%n", 100.0 * correct / images.size(), images.size());
  }

  public static void main(String[] arguments) throws Exception {
    List<byte[]> samples = records(arguments[1]);
    try (Model model = Model.load(Path.of(arguments[0])); Tensor labels = Tensor.loadNpy(Path.of(arguments[3]))) {
      byte[] first = calibrated(model, samples.subList(0, 60), null);
      byte[] moved = calibrated(model, samples.subList(60, 100), first); // the same task, somewhere else
      byte[] second = calibrated(model, samples.subList(100, samples.size()), null);
      try (Model int8 = Stream.converted(model, List.of(moved, second)); Config config = new Config("onnx");
           Model alone = model.prepare(config)) {
        for (byte[] sample : samples) {
          try (Tensor image = Stream.image(sample)) {
            alone.calibrate(image);
          }
        }
        try (Model want = alone.convert()) {
          check(Arrays.equals(int8.saveBytes(), want.saveBytes()), "the model of one process");
        }
        try (Session session = new Session(int8, Map.of("threads", 1))) {
          scored(session, records(arguments[2]), labels.toLongArray());
        }
      }
    }
  }
}
