// SPDX-License-Identifier: Apache-2.0
//
// Quantizes an ONNX model with one float32 input, in C++:
//
//     c++ -std=c++17 quantize.cpp $(pkg-config --cflags --libs qtensor) -o quantize
//     ./quantize digits.onnx digits-int8.onnx calibration.npy
//
// The .npy file holds float32 samples along its first axis.
#include <cmath>
#include <cstdio>
#include <qtensor/qtensor.hpp>

namespace {

/// The rows of a tensor, one at a time.
class Rows : public qtn::Samples {
 public:
  explicit Rows(qtn::Tensor data) : data_(std::move(data)) {}

  size_t count() override { return static_cast<size_t>(data_.shape()[0]); }
  qtn::Tensors sample(size_t index) override {
    const auto row = static_cast<int64_t>(index);
    return {data_.slice(0, row, row + 1)};
  }

 private:
  qtn::Tensor data_;
};

void quantize(const char *in, const char *out, const char *data) {
  Rows samples(qtn::Tensor::load_npy(data));
  const qtn::Model model = qtn::Model::load(in);
  const qtn::Model int8 = model.quantize(qtn::Config::create("onnx"), samples);
  int8.save(out);

  const qtn::Session before = qtn::Session::create(model), after = qtn::Session::create(int8);
  const qtn::Tensors sample = samples.sample(0);
  const qtn::Tensor want = before.run(sample)[0], got = after.run(sample)[0];
  double difference = 0;
  for (int64_t i = 0; i < want.numel(); ++i)
    difference = std::fmax(difference, std::fabs(want.as<float>()[i] - got.as<float>()[i]));
  std::printf("%s: quantized with %zu samples; outputs of the first differ by at most %g\n", out, samples.count(),
              difference);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: quantize IN.onnx OUT.onnx SAMPLES.npy\n");
    return 2;
  }
  try {
    quantize(argv[1], argv[2], argv[3]);
  } catch (const qtn::Error &e) {
    std::fprintf(stderr, "%s: %s\n", qtn::Lib::status_name(e.status()).c_str(), e.what());
    return 1;
  }
}
