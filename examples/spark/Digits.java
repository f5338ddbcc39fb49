// SPDX-License-Identifier: Apache-2.0
// Calibrates a network on Spark, each task with its partition, and predicts with what comes of that:
//
//     spark-submit --class Digits --jars qtensor.jar digits.jar net.onnx calibration.npy net-int8.onnx test.npy labels.npy
//
// net-int8.onnx is the same however Spark divides the samples, to the byte.

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.SparkSession;
import org.qtensor.*;

public final class Digits {
  private static final long[] SHAPE = {1, 1, 8, 8};

  /** The session of an executor: made at its first task, closed when its JVM ends. */
  private static final class Executor {
    private static Session session;

    static synchronized Session session(byte[] onnx) {
      if (session == null) {
        try (Model model = Model.load(onnx)) {
          session = new Session(model, Map.of("threads", 1)); // tasks run side by side
        }
        Runtime.getRuntime().addShutdownHook(new Thread(session::close));
      }
      return session;
    }
  }

  /** What the observers have seen of a partition. Spark may compute it twice, and takes one result. */
  private static Iterator<byte[]> calibrated(byte[] onnx, Iterator<float[]> samples) throws IOException {
    Path file = Files.createTempFile("part", ".qcal");
    try (Model model = Model.load(onnx); Config config = new Config("onnx"); Model prepared = model.prepare(config)) {
      while (samples.hasNext()) {
        try (Tensor sample = Tensor.of(samples.next(), SHAPE)) {
          prepared.calibrate(sample);
        }
      }
      prepared.saveCalibration(file.toString());
      return List.of(Files.readAllBytes(file)).iterator();
    } finally {
      Files.delete(file);
    }
  }

  /** The class of each image, computed as the iterator is asked, so that memory does not grow with the partition. */
  private static Iterator<Integer> classes(Session session, Iterator<float[]> images) {
    return new Iterator<>() {
      @Override
      public boolean hasNext() {
        return images.hasNext();
      }

      @Override
      public Integer next() {
        try (Tensor image = Tensor.of(images.next(), SHAPE); Tensor out = session.run(image)[0]) {
          float[] scores = out.toFloatArray();
          return IntStream.range(0, scores.length).reduce((a, b) -> scores[b] > scores[a] ? b : a).getAsInt();
        }
      }
    };
  }

  private static Dataset<float[]> dataset(SparkSession spark, String path, int partitions) {
    List<float[]> rows = new ArrayList<>();
    try (Tensor all = Tensor.loadNpy(Path.of(path))) {
      for (long i = 0; i < all.shape()[0]; ++i) {
        try (Tensor row = all.select(0, i)) {
          rows.add(row.toFloatArray());
        }
      }
    }
    return spark.createDataset(rows, Encoders.javaSerialization(float[].class)).repartition(partitions);
  }

  private static Model quantized(SparkSession spark, Model model, Dataset<float[]> samples) throws IOException {
    JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
    Broadcast<byte[]> onnx = context.broadcast(model.saveBytes()); // to each executor once
    MapPartitionsFunction<float[], byte[]> calibrate = rows -> calibrated(onnx.value(), rows);
    List<byte[]> parts = samples.mapPartitions(calibrate, Encoders.BINARY()).collectAsList(); // in the order of partitions
    Path file = Files.createTempFile("all", ".qcal");
    try (Config config = new Config("onnx"); Model prepared = model.prepare(config)) {
      for (byte[] part : parts) {
        Files.write(file, part);
        prepared.loadCalibration(file.toString());
      }
      return prepared.convert();
    } finally {
      Files.delete(file);
      onnx.destroy();
    }
  }

  public static void main(String[] arguments) throws IOException {
    SparkSession spark = SparkSession.builder().appName("digits").getOrCreate();
    try (Model model = Model.load(Path.of(arguments[0]));
         Model int8 = quantized(spark, model, dataset(spark, arguments[1], 4))) {
      int8.save(Path.of(arguments[2]));
      Broadcast<byte[]> onnx = JavaSparkContext.fromSparkContext(spark.sparkContext()).broadcast(int8.saveBytes());
      MapPartitionsFunction<float[], Integer> predict = rows -> classes(Executor.session(onnx.value()), rows);
      List<Integer> found = dataset(spark, arguments[3], 1).mapPartitions(predict, Encoders.INT()).collectAsList();
      try (Tensor labels = Tensor.loadNpy(Path.of(arguments[4]))) {
        long[] right = labels.toLongArray();
        long correct = IntStream.range(0, right.length).filter(i -> found.get(i) == right[i]).count();
        System.out.printf("top-1 %.2f %% of %d%n", 100.0 * correct / right.length, right.length);
      }
    } finally {
      spark.stop();
    }
  }
}
