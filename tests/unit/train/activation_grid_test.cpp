// SPDX-License-Identifier: Apache-2.0
// What a grid makes of the extents that it is shown.
#include "check.hpp"
#include "train/quantization.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

ActivationGrid new_grid() {
  Attrs a;
  a.set("averaging_constant", 0.5);
  a.set("numerics", "onnx");
  return {"t", quant::make_observer("minmax", a)->settings(), nullptr};
}

void expect_extent(const ActivationGrid &grid, float min, float max) {
  if (grid.range().min != min || grid.range().max != max)
    fail_test("the grid is over [", grid.range().min, ", ", grid.range().max, "], not [", min, ", ", max, "]");
}

void steps_are_averaged(void **) {
  ActivationGrid grid = new_grid();
  grid.observe(-1, 3);
  grid.commit();
  expect_extent(grid, -1, 3);
  grid.observe(-2, 5);
  grid.commit();
  expect_extent(grid, -1.5f, 4);
}

/// Operands of a Concat share a grid.
void tensors_of_a_step_are_one_extent(void **) {
  ActivationGrid grid = new_grid();
  for (int step = 0; step < 3; ++step) {
    grid.observe(0, 9);
    grid.observe(-1, 1);
    grid.commit();
    expect_extent(grid, -1, 9);
  }
  assert_true(grid.quantizer()->scale() == static_cast<double>(static_cast<float>(10.0 / 255)));
}

/// Integers reach to -128, which is more than calibration has seen.
void symmetric_grids_begin_with_what_was_seen(void **) {
  for (const char *numerics : {"onnx", "fbgemm", "nvidia", "tflite"}) {
    const auto observer = quant::make_observer(
        "max", attrs({{"numerics", numerics}, {"dtype", "int8"}, {"scheme", "per_tensor_symmetric"}}));
    observer->observe(floats({2}, {-2, 1}));
    ActivationGrid grid{"t", observer->settings(), nullptr};
    grid.begin_with(*observer->quantizer());
    if (!(std::fabs(grid.range().min + 2) < 1e-6f && std::fabs(grid.range().max - 2) < 1e-6f))
      fail_test(numerics, ": the grid is over [", grid.range().min, ", ", grid.range().max, "], not [-2, 2]");
  }
}

void a_failed_step_leaves_no_trace(void **) {
  ActivationGrid grid = new_grid();
  grid.observe(-1, 3);
  grid.commit();
  grid.observe(-100, 100);
  grid.revert();
  grid.observe(-1, 3);
  grid.commit();
  expect_extent(grid, -1, 3);
}

}  // namespace
}  // namespace qtn::train

int main() {
  using namespace qtn::train;
  const CMUnitTest tests[] = {
      cmocka_unit_test(steps_are_averaged),
      cmocka_unit_test(tensors_of_a_step_are_one_extent),
      cmocka_unit_test(symmetric_grids_begin_with_what_was_seen),
      cmocka_unit_test(a_failed_step_leaves_no_trace),
  };
  return cmocka_run_group_tests_name("activation_grid", tests, nullptr, nullptr);
}
