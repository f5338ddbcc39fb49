// SPDX-License-Identifier: Apache-2.0
// What qtensor.hpp adds to C: ownership, exceptions, lists, callbacks. What the functions compute, other tests say.
#include <atomic>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <type_traits>

#include "qtensor/qtensor.hpp"

// Last: it uses what the others declare.
extern "C" {
#include <cmocka.h>
}

namespace {

const std::string kDigits = QTN_DIGITS;

template <class F>
void fails(qtn::Status status, const std::string &text, F &&f) {
  try {
    f();
  } catch (const qtn::Error &e) {
    if (e.status() == status && std::string(e.what()).find(text) != std::string::npos) return;
    fail_msg("threw %s \"%s\", not \"%s\"", qtn::Lib::status_name(e.status()).c_str(), e.what(), text.c_str());
  }
  fail_msg("did not throw \"%s\"", text.c_str());
}

qtn::Tensor matrix() { return qtn::Tensor::floats({2, 3}, {-1, 0, 0.5f, 1, 1.5f, 2}); }

void lists_and_values(void **) {
  const qtn::Tensor x = matrix();
  assert_int_equal(x.shape()[0], 2);
  assert_int_equal(x.shape().size, 3 - 1);
  assert_int_equal(x.strides()[0], 3);
  assert_int_equal(x.numel(), 6);
  assert_true(x.as<float>()[3] == 1);
  assert_true(x.select(0, 1).select(0, 2).item() == 2);
  assert_true(x.reshape({3, 2}).slice(0, 1, 2).select(1, 0).item() == 0.5);
  assert_true(x.permute({1, 0}).contiguous().as<float>()[1] == 1);
  assert_true(x.equal(matrix()));
  assert_string_equal(x.describe().substr(0, 7).c_str(), "tensor(");
  const qtn::Tensor labels = qtn::Tensor::int64s({2}, {7, 9});
  assert_int_equal(labels.dtype(), QTN_INT64);
  assert_int_equal(labels.as<int64_t>()[1], 9);
  assert_true(qtn::Tensor::create(QTN_FLOAT32, {}).item() == 0);
  assert_string_equal(qtn::Lib::dtype_name(QTN_INT8).c_str(), "int8");
  assert_string_equal(qtn::Lib::version().c_str(), QTN_VERSION_STRING);
}

void errors_are_thrown(void **) {
  fails(QTN_ESHAPE, "reshape", [] { matrix().reshape({4, 2}); });
  fails(QTN_EIO, "nowhere.onnx", [] { qtn::Model::load("nowhere.onnx"); });
  fails(QTN_EINVAL, "unknown", [] { qtn::Observer::create("minmax", qtn::Attrs().set_int("binz", 3)); });
  fails(QTN_EINVAL, "2 scales, but 1 zero points", [] {
    qtn::Quantizer::create(QTN_INT8, QTN_PER_CHANNEL_AFFINE, 0, {1, 2}, {0});
  });
  fails(QTN_EINVAL, "2 names, but 1 tensors", [] { qtn::Tensor::save_all("x.safetensors", {"a", "b"}, {matrix()}); });
  fails(QTN_EINVAL, "is NULL", [] { qtn::Op::relu(qtn::Tensor()); });
  fails(QTN_EINVAL, "nbytes is 0", [] { qtn::Tensor::floats({3}, {}); });
  fails(QTN_EINVAL, "nbytes is 0", [] { qtn::Tensor::int64s({2}, {}); });
  assert_int_equal(qtn::Tensor::floats({0, 2}, {}).numel(), 0);
  fails(QTN_EINVAL, "axis 4294967297 is outside a tensor of rank 2", [] { matrix().permute({(1LL << 32) + 1, 0}); });
}

// Any int is a value of these, so that a wrong one can be refused.
static_assert(std::is_same_v<std::underlying_type_t<qtn::Mode>, int> &&
              std::is_same_v<std::underlying_type_t<qtn::Status>, int> &&
              std::is_same_v<std::underlying_type_t<qtn::DType>, int> &&
              std::is_same_v<std::underlying_type_t<qtn::Scheme>, int>);

void settings_that_name_nothing_change_nothing(void **) {
  qtn::Lib::set_limits(qtn::Attrs().set_int("nodes", 5000));
  qtn::Lib::set_limits({});
  assert_int_equal(qtn::Lib::limit("nodes"), 5000);
  qtn::Lib::set_limits();
  assert_true(qtn::Lib::limit("nodes") > 5000);
  qtn::Config::create("onnx").set("op:Conv", {}).set("tensor:image", {});
  fails(QTN_EINVAL, "tensor:image", [] { qtn::Config::create("onnx").leave_in_float("tensor:image"); });
  qtn::Trainer trainer = qtn::Trainer::create(qtn::Model::load(kDigits + "/digits.onnx"));
  trainer.set_group("*", {});
  trainer.set({});
}

void indices_out_of_range(void **) {
  const qtn::Model model = qtn::Model::load(kDigits + "/digits.onnx");
  assert_string_equal(model.input_name(0).c_str(), "image");
  fails(QTN_EINVAL, "the model has no input 1", [&] { model.input_name(1); });
  fails(QTN_EINVAL, "the model has no input 99", [&] { model.input_dtype(99); });
  fails(QTN_EINVAL, "the model has no input 1", [&] { model.input_shape(1); });
  fails(QTN_EINVAL, "the model has no output 1", [&] { model.output_name(1); });
  fails(QTN_EINVAL, "the model has no tensor 1000", [&] { model.tensor_name(1000); });
}

void copies_are_one_object(void **) {
  qtn::Tensor a = matrix(), b = a;
  static_cast<float *>(b.data_mut())[0] = 5;
  assert_true(a.select(0, 0).select(0, 0).item() == 5);
  a = qtn::Tensor();
  assert_false(static_cast<bool>(a));
  assert_true(b.as<float>()[0] == 5);
  qtn::Config config = qtn::Config::create("onnx");
  config.set("op:Conv", qtn::Attrs())
      .set("*", qtn::Attrs().set_string("observer", "entropy"))
      .leave_in_float("op:Gemm");
}

void a_quantizer_outlives_its_tensor(void **) {
  qtn::Quantizer q;
  assert_false(static_cast<bool>(matrix().quantizer()));
  {
    const qtn::Tensor x = matrix().quantize(qtn::Quantizer::per_tensor(QTN_UINT8, 0.5, 3));
    q = x.quantizer();
    assert_int_equal(static_cast<const uint8_t *>(x.int_repr().data())[0], 1);
  }
  assert_true(q.scales()[0] == 0.5);
  assert_int_equal(q.zero_points()[0], 3);
  assert_int_equal(q.quant_max(), 255);
  assert_true(matrix().quantize(q).dequantize().equal(matrix()));
}

void absent_arguments(void **) {
  const qtn::Tensor x = matrix(), w = qtn::Tensor::floats({1, 3}, {1, 2, 4}), b = qtn::Tensor::floats({1}, {10});
  assert_true(qtn::Op::linear(x, w).select(0, 0).item() == 1);
  assert_true(qtn::Op::linear(x, w, b).select(0, 0).item() == 11);
  assert_true(
      qtn::Op::run("Clip", {x, qtn::Tensor(), qtn::Tensor::floats({}, {1})})[0].select(0, 1).select(0, 2).item() == 1);
  const qtn::Tensors parts = qtn::Op::run("Split", {x}, qtn::Attrs().set_int("axis", 1).set_int("num_outputs", 3), 3);
  assert_int_equal(parts.size(), 3);
  assert_true(qtn::Op::cat(parts, 1).equal(x));
}

void other_libraries_memory(void **) {
  static int freed;
  float values[] = {1, 2, 3};
  freed = 0;
  {
    const qtn::Tensor t = qtn::Tensor::wrap(QTN_FLOAT32, {3}, values, sizeof values, [](void *, void *) { ++freed; });
    assert_ptr_equal(t.data(), values);
    const qtn::Tensor again = qtn::Tensor::from_dlpack(t.to_dlpack());
    assert_ptr_equal(again.data(), values);
    assert_ptr_equal(qtn::Tensor::from_dlpack_versioned(again.to_dlpack_versioned()).data(), values);
  }
  assert_int_equal(freed, 1);
}

void observers(void **) {
  qtn::Observer o = qtn::Observer::create("minmax", qtn::Attrs().set_string("dtype", "uint8"));
  o.observe(matrix());
  const qtn::Blob saved = o.save();
  const qtn::Observer again = qtn::Observer::load({saved.data(), saved.size()});
  assert_true(again.quantizer().scales()[0] == o.quantizer().scales()[0]);
}

/// Rows of a .npy file; throws where it is told to.
class Digits : public qtn::Samples {
 public:
  explicit Digits(size_t bad = SIZE_MAX) : bad_(bad) {}

  size_t count() override { return 20; }
  qtn::Tensors sample(size_t index) override {
    if (index == bad_) throw std::runtime_error("sample 7 is missing");
    const auto row = static_cast<int64_t>(index);
    return {images_.slice(0, row, row + 1)};
  }

 private:
  const qtn::Tensor images_ = qtn::Tensor::load_npy(kDigits + "/calibration.npy");
  const size_t bad_;
};

class Limited : public qtn::Progress {
 public:
  explicit Limited(int limit) : limit_(limit) {}
  bool advance(const std::string &stage, size_t done, size_t total) override {
    if (stage.empty() || done > total) throw std::runtime_error("progress beyond the end of " + stage);
    return ++calls_ < limit_;
  }
  int calls() const { return calls_; }

 private:
  const int limit_;
  int calls_ = 0;
};

void models_from_samples(void **) {
  const qtn::Model model = qtn::Model::load(kDigits + "/digits.onnx");
  assert_string_equal(model.input_name(0).c_str(), "image");
  assert_int_equal(model.input_shape(0)[3], 8);
  const qtn::Config config = qtn::Config::create("onnx");
  Digits samples;
  Limited patient(1000);
  std::string report;
  const qtn::Model int8 = model.quantize(config, samples, {}, &patient, &report);
  assert_true(patient.calls() >= 20);
  assert_non_null(strstr(report.c_str(), "\"scale\""));

  qtn::Model prepared = model.prepare(config);
  for (size_t i = 0; i < samples.count(); ++i) prepared.calibrate(samples.sample(i));
  const qtn::Tensors x = samples.sample(3);
  const qtn::Tensor scores = qtn::Session::create(int8).run(x)[0];
  const qtn::Model plain = model.quantize(config, samples, qtn::Attrs().set_int("plain", 1));
  assert_true(qtn::Session::create(prepared.convert()).run(x)[0].equal(qtn::Session::create(plain).run(x)[0]));

  const qtn::Session session = qtn::Session::create(int8);
  std::atomic<int> equal{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { equal += session.run(x)[0].equal(scores); });
  for (std::thread &t : threads) t.join();
  assert_int_equal(equal, 8);
}

void what_callbacks_throw_comes_out(void **) {
  const qtn::Model model = qtn::Model::load(kDigits + "/digits.onnx");
  const qtn::Config config = qtn::Config::create("onnx");
  Digits broken(7), samples;
  try {
    model.quantize(config, broken);
    fail_msg("did not throw");
  } catch (const std::runtime_error &e) {
    assert_string_equal(e.what(), "sample 7 is missing");
  }
  Limited impatient(5);
  fails(QTN_ECANCELED, "", [&] { model.quantize(config, samples, {}, &impatient); });
  assert_int_equal(impatient.calls(), 5);
}

/// Changes the configuration that it is asked for, in the midst of it.
class Meddler : public Digits {
 public:
  explicit Meddler(qtn::Config config) : config_(std::move(config)) {}
  qtn::Tensors sample(size_t index) override {
    config_.save("/dev/null");  // reading it disturbs nobody
    config_.leave_in_float("op:Gemm");
    return Digits::sample(index);
  }

 private:
  qtn::Config config_;
};

void nobody_changes_what_another_call_uses(void **) {
  const qtn::Config config = qtn::Config::create("onnx");
  Meddler meddler(config);
  fails(QTN_ESTATE, "in use by another call",
        [&] { qtn::Model::load(kDigits + "/digits.onnx").quantize(config, meddler); });
  qtn::Config(config).leave_in_float("op:Gemm");

  qtn::Tensor x = matrix().quantize(qtn::Quantizer::per_tensor(QTN_UINT8, 0.5, 3));
  const qtn::Quantizer before = x.quantizer();
  x.copy(x);
  x.copy(matrix().quantize(qtn::Quantizer::per_tensor(QTN_UINT8, 0.25, 3)));
  assert_true(before.scales()[0] == 0.5 && x.quantizer().scales()[0] == 0.25);
}

void threads_that_change_one_object(void **) {
  constexpr int kThreads = 4, kTimes = 500;
  qtn::Observer observer = qtn::Observer::create("histogram", {});
  std::atomic<int> done{0}, refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < kTimes; ++k) try {
          observer.observe(matrix());
          observer.quantizer();
          ++done;
        } catch (const qtn::Error &e) {
          if (e.status() == QTN_ESTATE) ++refused;
        }
    });
  for (std::thread &t : threads) t.join();
  assert_int_equal(done + refused, kThreads * kTimes);
  assert_true(done > 0);
  observer.merge(observer);
  observer.quantizer();
}

void trainers(void **) {
  const qtn::Model model = qtn::Model::load(kDigits + "/digits.onnx");
  qtn::Trainer trainer = qtn::Trainer::create(model, qtn::Attrs().set_float("lr", 0.01));
  const qtn::Tensor x = qtn::Tensor::load_npy(kDigits + "/calibration.npy").slice(0, 0, 4);
  const qtn::Tensor labels = qtn::Tensor::int64s({4}, {1, 2, 3, 4});
  const double first = trainer.step({x}, {labels});
  for (int i = 0; i < 20; ++i) trainer.step({x}, {labels});
  assert_true(trainer.backward({x}, {labels}) < first);
  trainer.update();
  trainer.set(qtn::Attrs().set_float("lr", 0.001));
  trainer.set_group("parameter:*", qtn::Attrs().set_float("lr_factor", 0.5));
  assert_true(trainer.parameter_count() > 0 && !trainer.parameter_name(0).empty());
  assert_true(trainer.gradient(0).numel() == trainer.parameter(0).numel());
  assert_true(qtn::Session::create(trainer.model()).run({x})[0].equal(trainer.evaluate({x})[0]));
}

/// One batch again and again; of the second epoch there is none.
class Few : public qtn::Batches {
 public:
  size_t count() override { return 2; }
  qtn::Tensors batch(size_t epoch, size_t index) override {
    if (epoch == 1) throw std::runtime_error("epoch 1 is missing");
    const auto first = static_cast<int64_t>(4 * index);
    return {images_.slice(0, first, first + 4), qtn::Tensor::int64s({4}, {1, 2, 3, 4})};
  }

 private:
  qtn::Tensor images_ = qtn::Tensor::load_npy(kDigits + "/calibration.npy");
};

class Once : public qtn::TrainingProgress {
 public:
  explicit Once(Answer after_epoch) : after_epoch_(after_epoch) {}
  Answer advance(const std::string &stage, size_t done, size_t, double loss) override {
    if (stage != "training") return Answer::go_on;
    loss_ = loss;
    return done < 2 ? Answer::go_on : after_epoch_;
  }
  double loss() const { return loss_; }

 private:
  Answer after_epoch_;
  double loss_ = 0;
};

void layers(void **) {
  const qtn::Tensor weight = qtn::Tensor::floats({2, 3}, {1, -2, 3, 0.5f, 0.25f, -0.125f});
  const qtn::Tensor x = qtn::Tensor::floats({1, 3}, {1, 2, 3}), bias = qtn::Tensor::floats({2}, {1, 2});
  const qtn::Layer layer = qtn::Layer::create("linear", weight, bias, qtn::Config::create("fbgemm"));
  assert_true(layer.run(x).equal(qtn::Op::linear(x, layer.weight(), bias)));
  assert_true(layer.bias().equal(bias));
  const qtn::Layer same = qtn::Layer::create("linear", layer.weight());
  assert_true(same.weight().equal(layer.weight()) && !same.bias());
  fails(QTN_EINVAL, "there is no config", [&] { qtn::Layer::create("linear", weight); });
}

void reports_in_words(void **) {
  const std::string text = qtn::Model::report_summary(R"({"samples": 1, "nodes": {"all": 3, "int8": 2}})");
  assert_string_equal(text.c_str(), "nodes: 2 of 3 in int8\n");
  fails(QTN_EFORMAT, "is no JSON", [] { qtn::Model::report_summary("{"); });
}

void training_in_one_call(void **) {
  const qtn::Model model = qtn::Model::load(kDigits + "/untrained.onnx");
  const qtn::Config config = qtn::Config::create("onnx");
  Few batches;
  std::string report;
  Once once(Once::Answer::finish), never(Once::Answer::cancel);
  const qtn::Model int8 = model.quantize_qat(config, batches, {}, &once, &report);
  assert_true(once.loss() > 0 && report.find("\"steps\":2,\"planned\":10") != std::string::npos);
  assert_int_equal(qtn::Session::create(int8).run({batches.batch(0, 0)[0]})[0].numel(), 40);
  fails(QTN_ECANCELED, "2 of 10", [&] { model.quantize_qat(config, batches, {}, &never); });
  try {
    model.quantize_qat(config, batches);
    fail_msg("did not throw");
  } catch (const std::runtime_error &e) {
    assert_string_equal(e.what(), "epoch 1 is missing");
  }
  qtn::Trainer trainer = qtn::Trainer::create(model);
  assert_true(trainer.buffer_count() > 0 && trainer.buffer(0).numel() > 0);
  assert_true(trainer.buffer_name(0).find(".running_mean") != std::string::npos);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(lists_and_values),
      cmocka_unit_test(errors_are_thrown),
      cmocka_unit_test(settings_that_name_nothing_change_nothing),
      cmocka_unit_test(indices_out_of_range),
      cmocka_unit_test(copies_are_one_object),
      cmocka_unit_test(a_quantizer_outlives_its_tensor),
      cmocka_unit_test(absent_arguments),
      cmocka_unit_test(other_libraries_memory),
      cmocka_unit_test(observers),
      cmocka_unit_test(models_from_samples),
      cmocka_unit_test(what_callbacks_throw_comes_out),
      cmocka_unit_test(nobody_changes_what_another_call_uses),
      cmocka_unit_test(threads_that_change_one_object),
      cmocka_unit_test(trainers),
      cmocka_unit_test(layers),
      cmocka_unit_test(reports_in_words),
      cmocka_unit_test(training_in_one_call),
  };
  return cmocka_run_group_tests_name("cpp", tests, nullptr, nullptr);
}
