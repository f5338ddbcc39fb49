// SPDX-License-Identifier: Apache-2.0

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.qtensor.Config;
import org.qtensor.DType;
import org.qtensor.Model;
import org.qtensor.QTensorException;
import org.qtensor.Samples;
import org.qtensor.Session;
import org.qtensor.Status;
import org.qtensor.Tensor;
import org.qtensor.Trainer;

/** Objects in the hands of many threads. */
class ThreadsTest {
  static <T> List<T> inThreads(int count, Callable<T> work) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(count);
    try {
      List<T> results = new ArrayList<>();
      for (Future<T> result : pool.invokeAll(Collections.nCopies(count, work))) {
        results.add(result.get());
      }
      return results;
    } catch (ExecutionException e) {
      throw new AssertionError(e.getCause());
    } finally {
      pool.shutdown();
    }
  }

  @Test
  void eightThreadsGetTheBitsOfOne() throws Exception {
    Session session = new Session(Data.digits().quantize(Samples.rows(Data.IMAGES)));
    float[] want = session.run(Data.IMAGES)[0].toFloatArray();
    inThreads(8, () -> {
      for (int i = 0; i < 20; ++i) {
        assertArrayEquals(want, session.run(Data.IMAGES)[0].toFloatArray());
      }
      return null;
    });
  }

  @Test
  void closingWhileOthersRunEndsInAnExceptionOrNothing() throws Exception {
    for (int round = 0; round < 50; ++round) {
      Session session = new Session(Data.digits());
      Tensor input = Data.IMAGES.share();
      Thread closer = new Thread(() -> {
        try {
          Thread.sleep(2);
        } catch (InterruptedException e) {
          throw new AssertionError(e);
        }
        session.close();
        input.close();
      });
      closer.start();
      List<String> ends = inThreads(4, () -> {
        try {
          while (true) {
            session.run(input);
          }
        } catch (IllegalStateException e) {
          return e.getMessage();
        }
      });
      closer.join();
      for (String end : ends) {
        assertTrue(List.of("Session is closed", "Tensor is closed").contains(end), end);
      }
    }
  }

  @Test
  void whatOneThreadHoldsAnotherMayDrop() throws Exception {
    inThreads(4, () -> {
      for (int i = 0; i < 2000; ++i) {
        Tensor t = Tensor.of(new float[] {i, 1});
        Tensor view = t.select(0, 0);
        t.close();
        assertEquals(i, view.item());
      }
      return null;
    });
  }

  @Test
  void oneTrainerForManyThreads() throws Exception {
    Trainer trainer = new Trainer(Data.digits(), Map.of("lr", 0.001));
    Tensor[] images = {Data.IMAGES.slice(0, 0, 8)};
    Tensor[] labels = {Tensor.create(DType.INT64, 8)};
    List<Integer> steps = inThreads(4, () -> {
      int done = 0;
      for (int i = 0; i < 40; ++i) {
        try {
          assertTrue(Double.isFinite(trainer.step(images, labels)));
          ++done;
        } catch (QTensorException e) {
          assertEquals(Status.ESTATE, e.status(), e.getMessage());
        }
      }
      return done;
    });
    assertTrue(steps.stream().mapToInt(Integer::intValue).sum() > 0);
  }

  @Test
  void aCallbackThatChangesWhatItsCallWorksOn() {
    Model model = Data.digits();
    Config config = new Config("onnx");
    List<Executable> changes = List.of(() -> model.calibrate(Data.IMAGES), () -> config.leaveInFloat("op:Conv"));
    for (Executable change : changes) {
      QTensorException thrown = assertThrows(QTensorException.class,
          () -> model.quantize(Samples.rows(Data.IMAGES), config, null, (stage, done, total) -> {
            try {
              change.execute();
            } catch (Throwable e) {
              throw(QTensorException) e;
            }
            return true;
          }));
      assertEquals(Status.ESTATE, thrown.status());
      assertEquals("the object is in use by another call, which this one would disturb", thrown.getMessage());
    }
  }
}
