// SPDX-License-Identifier: Apache-2.0
// Beside the kernels of training stands the copy that memory allows: memcpy, where as many bytes are read and written.
#include "kernels/fake/fake.hpp"

#include <cstring>

#include "micro.hpp"

namespace qtn::micro {
namespace {

using kernels::FakeKernel;
using kernels::FakeSums;
using kernels::PlanesMoments;
using kernels::PlanesSums;

struct Shape {
  const char *name;
  std::size_t rows, columns;
};

/// Planes of MobileNet v2 and ResNet-50 in the second level of caches, in the third, and beyond.
constexpr Shape kShapes[] = {{"160x7x7", 160, 49},
                             {"64x28x28", 64, 784},
                             {"64x56x56", 64, 3136},
                             {"96x112x112", 96, 12544},
                             {"16M", 1, 16 << 20}};

/// x, dy, and a result; the parameters of rows.
struct Operands {
  explicit Operands(const Shape &s) : n(s.rows * s.columns), bytes(3 * n * sizeof(float)), zero(s.rows, 3) {
    fill(x(), n, -100, 100);
    fill(dy(), n, -3, 3);
    scale.assign(s.rows, 0.7f);
    shift.assign(s.rows, 1.5f);
    fake_sums.resize(s.rows);
    sums.resize(s.rows);
    moments.resize(s.rows);
  }
  float *x() { return bytes.as<float>(); }
  float *dy() { return x() + n; }
  float *y() { return x() + 2 * n; }

  std::size_t n;
  AlignedBuffer bytes;
  std::vector<float> scale, shift;
  std::vector<std::int32_t> zero;
  std::vector<FakeSums> fake_sums;
  std::vector<PlanesSums> sums;
  std::vector<PlanesMoments> moments;
};

/// Runs body(operands) and counts `streams` floats in and out for each element.
template <class Body>
void add(const std::string &name, const Shape &shape, int streams, Body body) {
  benchmark::RegisterBenchmark(name.c_str(), [=, &shape](benchmark::State &state) {
    Operands o(shape);
    for (auto _ : state) {
      body(o);
      benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(o.n) * streams * 4);
  })->Unit(benchmark::kMicrosecond);
}

void register_kernel(const FakeKernel &kernel, const Shape &s) {
  const std::string at = std::string("/") + kernel.name + "/" + s.name;
  const auto grids = [](const Operands &o, Rounding rounding) {
    return kernels::FakeGrids{o.scale.data(), o.zero.data(), -128, 127, rounding, false};
  };
  const auto planes = [=, &s](Operands &o, const kernels::FakeGrids *grid) {
    return kernels::PlanesArgs{s.rows, s.columns, o.x(), o.scale.data(), o.shift.data(), 0.0f, 60.0f, grid};
  };
  for (const Rounding rounding : {Rounding::reciprocal, Rounding::division})
    add((rounding == Rounding::reciprocal ? "fake_quantize" : "fake_quantize_division") + at, s, 2,
        [=, &s](Operands &o) {
          kernel.quantize({s.rows, s.columns, false, grids(o, rounding), o.x(), o.y()});
        });
  add("fake_backward" + at, s, 3, [=, &s](Operands &o) {
    kernel.backward({s.rows, s.columns, false, grids(o, Rounding::reciprocal), o.x(), o.dy(), o.y(), nullptr});
  });
  add("fake_learned_backward" + at, s, 3, [=, &s](Operands &o) {
    kernel.backward(
        {s.rows, s.columns, false, grids(o, Rounding::reciprocal), o.x(), o.dy(), o.y(), o.fake_sums.data()});
  });
  add("fake_learned_by_column" + at, s, 3, [=, &s](Operands &o) {
    kernel.backward(
        {s.columns, s.rows, true, grids(o, Rounding::reciprocal), o.x(), o.dy(), o.y(), o.fake_sums.data()});
  });
  add("fake_moments" + at, s, 1,
      [=, &s](Operands &o) { kernel.moments(s.rows, s.columns, o.x(), o.shift.data(), o.moments.data()); });
  add("fake_normalize" + at, s, 2, [=](Operands &o) {
    const auto grid = grids(o, Rounding::reciprocal);
    kernel.normalize(planes(o, &grid), o.y());
  });
  add("fake_normalize_sums" + at, s, 2, [=](Operands &o) {
    const auto grid = grids(o, Rounding::reciprocal);
    kernel.normalize_sums(planes(o, &grid), o.dy(), o.sums.data());
  });
  add("fake_normalize_backward" + at, s, 3, [=](Operands &o) {
    const auto grid = grids(o, Rounding::reciprocal);
    kernel.normalize_backward({planes(o, &grid), o.dy(), o.scale.data(), o.shift.data(), o.shift.data(), o.y()});
  });
}

}  // namespace

void register_fake() {
  for (const Shape &shape : kShapes) {
    add(std::string("fake_limit/copy/") + shape.name, shape, 2,
        [](Operands &o) { std::memcpy(o.y(), o.x(), o.n * sizeof(float)); });
    each_kernel(kernels::fake_kernels(), [&](const FakeKernel &kernel) { register_kernel(kernel, shape); });
  }
}

}  // namespace qtn::micro
