// SPDX-License-Identifier: Apache-2.0
// A network that grows step by step, with numbers of its own.
#pragma once

#include <random>

#include "networks.hpp"

namespace qtn::test {

class RandomNetwork {
 protected:
  explicit RandomNetwork(unsigned seed) : engine_(seed) {}

  int pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(engine_); }
  bool chance(double p) { return std::bernoulli_distribution(p)(engine_); }
  float number(float low, float high) { return std::uniform_real_distribution<float>(low, high)(engine_); }
  std::string name(const char *what) { return what + std::to_string(made_++); }
  Tensor random(const Shape &shape, float deviation) { return normal(shape, engine_(), deviation); }

  /// The name of a new constant.
  std::string constant(const Tensor &t) {
    const std::string constant = name("c");
    builder_.constant(constant, t);
    return constant;
  }

  /// Appends a node that reads the last value, and `inputs` after it.
  void step(const char *op, std::vector<std::string> inputs, const Attrs &attrs = {}) {
    const std::string y = name("t");
    inputs.insert(inputs.begin(), last_);
    builder_.node(op, name(op), inputs, {y}, attrs);
    last_ = y;
  }

  GraphBuilder builder_;
  std::string last_ = "x0";

 private:
  std::minstd_rand engine_;
  int made_ = 1;
};

}  // namespace qtn::test
