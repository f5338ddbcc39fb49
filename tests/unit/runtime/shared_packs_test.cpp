// SPDX-License-Identifier: Apache-2.0
#include "runtime/shared_packs.hpp"

#include "check.hpp"
#include "kernels/kernel.hpp"

namespace qtn::test {
namespace {

using runtime::PackedPtr;
using runtime::PackedWeights;
using runtime::RealWeights;
using runtime::SharedPacks;

Tensor some_weights() { return Tensor(QTN_FLOAT32, Shape{4, 3}); }
RealWeights columns(const Tensor &weight, const Tensor &bias = {}) { return {weight, bias, 1, 4, 3}; }

const kernels::GemmRealKernel &kernel() { return kernels::gemm_real_kernels().front(); }

PackedPtr packed(const RealWeights &w, const kernels::GemmRealKernel &of = kernel()) {
  return SharedPacks::get(w, of, [] { return PackedWeights(); });
}

void the_same_weights_are_packed_once(void **) {
  const SharedPacks scope;
  const Tensor weight = some_weights(), bias(QTN_FLOAT32, Shape{4});
  const PackedPtr first = packed(columns(weight)), with_bias = packed(columns(weight, bias));
  assert_ptr_equal(packed(columns(weight)).get(), first.get());
  assert_ptr_equal(packed(columns(weight, bias)).get(), with_bias.get());
  assert_ptr_not_equal(with_bias.get(), first.get());
}

void what_is_packed_otherwise_is_not_shared(void **) {
  const SharedPacks scope;
  const Tensor weight = some_weights();
  const PackedPtr first = packed(columns(weight));
  RealWeights rows = columns(weight);
  rows.is_matrix = true;
  assert_ptr_not_equal(packed(rows).get(), first.get());
  RealWeights groups = columns(weight);
  groups.groups = 2, groups.out = 2;
  assert_ptr_not_equal(packed(groups).get(), first.get());
  assert_ptr_not_equal(packed(columns(some_weights())).get(), first.get());
  if (kernels::gemm_real_kernels().size() > 1)
    assert_ptr_not_equal(packed(columns(weight), kernels::gemm_real_kernels().back()).get(), first.get());
}

/// Another tensor may come to lie where one was.
void packs_go_with_their_tensors(void **) {
  const SharedPacks scope;
  std::weak_ptr<const PackedWeights> weights, biases;
  const Tensor stays = some_weights();
  {
    const Tensor gone = some_weights(), bias(QTN_FLOAT32, Shape{4});
    weights = packed(columns(gone));
    biases = packed(columns(stays, bias));
    assert_false(weights.expired());
  }
  packed(columns(stays));
  assert_true(weights.expired());
  assert_true(biases.expired());
}

void nothing_is_shared_outside_of_a_scope(void **) {
  const Tensor weight = some_weights();
  const PackedPtr before = packed(columns(weight));
  {
    const SharedPacks scope;
    assert_ptr_not_equal(packed(columns(weight)).get(), before.get());
  }
  assert_ptr_not_equal(packed(columns(weight)).get(), packed(columns(weight)).get());
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(the_same_weights_are_packed_once), cmocka_unit_test(what_is_packed_otherwise_is_not_shared),
      cmocka_unit_test(packs_go_with_their_tensors), cmocka_unit_test(nothing_is_shared_outside_of_a_scope)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
