#include <qtensor/qtensor.hpp>

class Rows : public qtn::Samples {
 public:
  size_t count() override { return 10; }
  qtn::Tensors sample(size_t index) override {
    const auto row = static_cast<int64_t>(index);
    return {data_.slice(0, row, row + 1)};
  }

 private:
  qtn::Tensor data_ = qtn::Tensor::load_npy("calibration.npy");
};

int main() {
  Rows samples;
  const qtn::Tensor x = samples.sample(0)[0];
//@ 1
  return scores[0].numel() == 10 ? 0 : 1;
}
