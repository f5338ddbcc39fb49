// SPDX-License-Identifier: Apache-2.0
// The trained transformers of examples/transformers in every mode, on data that they have not seen, compared with what ONNX Runtime makes
// of them in float and by its dynamic quantization (tests/golden/make_transformers.py).
#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "qtensor/qtensor.hpp"

// Last: it uses what the others declare.
extern "C" {
#include <cmocka.h>
}

namespace {

const std::string kDigits = QTN_DIGITS, kTransformers = QTN_TRANSFORMERS;
constexpr int64_t kTokens = 96, kLength = 128;

qtn::Tensor golden(const std::string &name) { return qtn::Tensor::load_named(QTN_GOLDEN, name); }
qtn::Model letters() { return qtn::Model::load(kTransformers + "/letters.onnx"); }
qtn::Model vit() { return qtn::Model::load(kTransformers + "/vit.onnx"); }

class Rows : public qtn::Samples {
 public:
  explicit Rows(const std::string &path) : data_(qtn::Tensor::load_npy(path)) {}
  size_t count() override { return static_cast<size_t>(data_.shape()[0]); }
  qtn::Tensors sample(size_t index) override {
    const auto row = static_cast<int64_t>(index);
    return {data_.slice(0, row, row + 1)};
  }

 private:
  qtn::Tensor data_;
};

/// The bits that each character but the first takes, by the scores before it.
double bits_of(const qtn::Tensor &logits, const qtn::Tensor &tokens) {
  const float *score = logits.as<float>();
  const int64_t *token = tokens.as<int64_t>();
  double sum = 0;
  for (int64_t i = 0; i + 1 < tokens.numel(); ++i, score += kTokens) {
    const double most = *std::max_element(score, score + kTokens);
    double total = 0;
    for (int64_t j = 0; j < kTokens; ++j) total += std::exp(score[j] - most);
    if ((i + 1) % kLength) sum += std::log2(total) - (score[token[i + 1]] - most) / std::log(2.0);
  }
  return sum / static_cast<double>(tokens.numel() - tokens.numel() / kLength);
}

double bits(const qtn::Model &model) {
  const qtn::Tensor tokens = qtn::Tensor::load_npy(kTransformers + "/letters_test.npy");
  const qtn::Session session = qtn::Session::create(model);
  double sum = 0;
  constexpr int64_t kBatch = 16;
  for (int64_t i = 0; i < tokens.shape()[0]; i += kBatch) {
    const qtn::Tensor some = tokens.slice(0, i, i + kBatch);
    sum += bits_of(session.run({some})[0], some) * kBatch;
  }
  return sum / static_cast<double>(tokens.shape()[0]);
}

qtn::Tensor scores(const qtn::Model &model) {
  return qtn::Session::create(model).run({qtn::Tensor::load_npy(kDigits + "/test_images.npy")})[0];
}

/// How many of the 540 images are what they show.
int right(const qtn::Tensor &scores) {
  const qtn::Tensor labels = qtn::Tensor::load_npy(kDigits + "/test_labels.npy");
  int count = 0;
  for (int64_t i = 0; i < labels.numel(); ++i) {
    const float *score = scores.as<float>() + i * 10;
    count += std::max_element(score, score + 10) - score == labels.as<int64_t>()[i];
  }
  return count;
}

double sqnr(const qtn::Tensor &want, const qtn::Tensor &got) {
  double signal = 0, noise = 0;
  assert_int_equal(want.numel(), got.numel());
  for (int64_t i = 0; i < want.numel(); ++i) {
    const double a = want.as<float>()[i], b = got.as<float>()[i];
    signal += a * a;
    noise += (a - b) * (a - b);
  }
  return 10 * std::log10(signal / noise);
}

qtn::Attrs four_bits() { return qtn::Attrs().set_string("dtype", "int4").set_int("block_size", 32); }
qtn::Attrs per_tensor() { return qtn::Attrs().set_string("granularity", "tensor"); }

void letters_in_float(void **) {
  const qtn::Tensor first = qtn::Tensor::load_npy(kTransformers + "/letters_test.npy").slice(0, 0, 1);
  assert_true(sqnr(golden("letters.logits"), qtn::Session::create(letters()).run({first})[0]) > 110);
  assert_float_equal(bits(letters()), golden("letters.bits").as<double>()[0], 1e-5);
}

/// In parts of what each character takes in float.
void letters_in_each_mode(void **) {
  const qtn::Model model = letters();
  const double exact = golden("letters.bits").as<double>()[0], peer = golden("letters.bits").as<double>()[1] / exact;
  const qtn::Config config = qtn::Config::create("onnx");
  Rows samples(kTransformers + "/letters_calibration.npy");
  const double dynamic = bits(model.quantize_dynamic(config)) / exact;
  const double tensor = bits(model.quantize_dynamic(config, per_tensor())) / exact;
  const double fixed = bits(model.quantize(config, samples)) / exact;
  const double weights = bits(model.quantize_weights()) / exact,
               four = bits(model.quantize_weights(four_bits())) / exact;
  print_message("dynamic %.4f, per tensor %.4f (ONNX Runtime %.4f), static %.4f, weights only %.4f, int4 %.4f\n",
                dynamic, tensor, peer, fixed, weights, four);
  assert_true(1 < dynamic && dynamic < 1.002 && dynamic < peer);
  assert_true(dynamic < tensor && tensor < 1.01);  // whose tensor is a batch of 16 sequences
  assert_true(1 < fixed && fixed < 1.01);
  assert_true(1 < weights && weights < 1.001);
  assert_true(1.02 < four && four < 1.05);
}

void vit_in_each_mode(void **) {
  const qtn::Model model = vit();
  const qtn::Tensor exact = golden("vit.scores"), peer = golden("vit.dynamic_scores");
  const qtn::Config config = qtn::Config::create("onnx");
  Rows samples(kDigits + "/calibration.npy");
  const qtn::Tensor dynamic = scores(model.quantize_dynamic(config)), fixed = scores(model.quantize(config, samples)),
                    weights = scores(model.quantize_weights()), four = scores(model.quantize_weights(four_bits()));
  print_message("dynamic %.1f dB (ONNX Runtime %.1f), static %.1f, weights only %.1f, int4 %.1f\n",
                sqnr(exact, dynamic), sqnr(exact, peer), sqnr(exact, fixed), sqnr(exact, weights), sqnr(exact, four));
  assert_int_equal(right(exact), 522);
  assert_true(sqnr(exact, scores(model)) > 110);
  assert_true(sqnr(exact, dynamic) > sqnr(exact, peer) && sqnr(exact, dynamic) > 38);
  assert_true(sqnr(exact, fixed) > 33 && sqnr(exact, weights) > 40);
  assert_true(sqnr(exact, four) > 16 && sqnr(exact, four) < 24);
  for (const qtn::Tensor &some : {dynamic, fixed, weights, four}) assert_true(right(some) >= 520);
}

/// The scores of each character, which come one by one with keys and values as state. After the prompt each character is the
/// most likely one.
std::vector<float> write_text(const qtn::Model &step, int64_t prompt, std::vector<int64_t> &text) {
  qtn::Session session = qtn::Session::create(step);
  for (size_t i = 1; i < step.input_count(); ++i) session.bind(i, i);
  qtn::Tensors inputs(step.input_count());
  std::vector<float> logits;
  for (size_t i = 0; i < text.size(); ++i) {
    inputs[0] = qtn::Tensor::int64s({1, 1}, {text[i]});
    const qtn::Tensor scores = session.run(inputs)[0];
    const float *score = scores.as<float>();
    logits.insert(logits.end(), score, score + kTokens);
    if (static_cast<int64_t>(i) + 1 >= prompt && i + 1 < text.size())
      text[i + 1] = std::max_element(score, score + kTokens) - score;
  }
  return logits;
}

/// Character by character the text is that of the whole sequence in ONNX Runtime, and so are its scores; in int8 they are those of
/// our whole sequence in int8, since each row has a scale of its own.
void text_by_characters(void **) {
  const qtn::Tensor want = golden("letters.text");
  constexpr int64_t kPrompt = 12;
  const qtn::Model step = qtn::Model::load(kTransformers + "/letters_step.onnx");
  const qtn::Config config = qtn::Config::create("onnx");
  const auto same = [](const std::vector<float> &step_by_step, const qtn::Model &whole,
                       const std::vector<int64_t> &text) {
    const qtn::Tensor logits =
        qtn::Session::create(whole).run({qtn::Tensor::int64s({1, static_cast<int64_t>(text.size())}, text)})[0];
    return sqnr(logits, qtn::Tensor::floats({logits.numel()}, step_by_step));
  };
  std::vector<int64_t> text(want.as<int64_t>(), want.as<int64_t>() + kPrompt);
  text.resize(static_cast<size_t>(want.numel()));
  const std::vector<float> logits = write_text(step, kPrompt, text);
  assert_memory_equal(text.data(), want.data(), want.nbytes());
  assert_true(same(logits, letters(), text) > 110);

  const std::vector<float> int8 = write_text(step.quantize_dynamic(config), want.numel(), text);
  print_message("int8 by characters and as a whole: %.1f dB\n", same(int8, letters().quantize_dynamic(config), text));
  assert_true(same(int8, letters().quantize_dynamic(config), text) > 50);
  assert_true(same(int8, letters(), text) < 40);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(letters_in_float),
      cmocka_unit_test(letters_in_each_mode),
      cmocka_unit_test(vit_in_each_mode),
      cmocka_unit_test(text_by_characters),
  };
  return cmocka_run_group_tests_name("transformers", tests, nullptr, nullptr);
}
