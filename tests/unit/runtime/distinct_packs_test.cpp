// SPDX-License-Identifier: Apache-2.0
#include "runtime/distinct_packs.hpp"

#include <cstring>

#include "support.hpp"

namespace qtn::test {
namespace {

using runtime::DistinctPacks;
using runtime::PackedPtr;
using runtime::PackedWeights;

/// Zeros, and one byte among them.
PackedPtr made(std::size_t size, std::size_t at, std::byte value, std::vector<std::size_t> offsets = {0}) {
  PackedWeights packed{AlignedBuffer(size), std::move(offsets)};
  std::memset(packed.bytes.data(), 0, size);
  packed.bytes.data()[at] = value;
  return packed;
}

void equal_packs_become_one(void **) {
  for (const std::size_t size : {1, 63, 64, 1000, 100000}) {
    DistinctPacks packs;
    const PackedPtr first = packs.add(made(size, size - 1, std::byte{1}));
    assert_ptr_equal(packs.add(made(size, size - 1, std::byte{1})).get(), first.get());
    assert_ptr_equal(packs.add(first).get(), first.get());
    assert_int_equal(packs.bytes(), size);
  }
}

void others_do_not(void **) {
  constexpr std::size_t kSize = 5000;
  DistinctPacks packs;
  std::vector<PackedPtr> all{packs.add(made(kSize, 0, std::byte{0})),
                             packs.add(made(kSize, 0, std::byte{0}, {0, 64})),
                             packs.add(made(kSize + 1, 0, std::byte{0}))};
  for (std::size_t at = 0; at < kSize; ++at) all.push_back(packs.add(made(kSize, at, std::byte{1})));
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) assert_ptr_not_equal(all[i].get(), all[j].get());
  for (std::size_t at = 0; at < kSize; ++at) assert_int_equal(all[3 + at]->bytes.data()[at], 1);
}

/// A layer through which a network passes several times.
void sessions_hold_the_weights_of_a_layer_once(void **) {
  for (const char *op : {"MatMul", "Gemm"}) {
    const auto passes = [&](int count) {
      GraphBuilder b;
      b.input("x", {3, 40});
      b.constant("w", random({40, 40}, -1, 1, 1));
      std::string x = "x";
      for (int i = 0; i < count; ++i) {
        const std::string sums = cat("sums", i), y = cat("y", i);
        b.node(op, sums, {x, "w"}, {sums}).node("Tanh", y, {sums}, {y});
        x = y;
      }
      const runtime::Session session(b.build({x}), {runtime::Engine::native, 1});
      const Tensor input = random({3, 40}, -1, 1, 2);
      const Tensor *inputs[] = {&input};
      return nlohmann::json::parse(session.profile(inputs)).at("weights_bytes").get<std::size_t>();
    };
    const std::size_t once = passes(1);
    assert_true(once >= 40 * 40 * sizeof(float));
    assert_int_equal(passes(7), once);
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {cmocka_unit_test(equal_packs_become_one), cmocka_unit_test(others_do_not),
                              cmocka_unit_test(sessions_hold_the_weights_of_a_layer_once)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
