// SPDX-License-Identifier: Apache-2.0
// Which keys a mask hides from a block of queries, so surely that whatever they hold makes no difference.
#include "runtime/steps/hidden_keys.hpp"

#include "kernels/kernel.hpp"
#include "support.hpp"

namespace qtn::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::size_t kQueries = 5, kKeys = 100, kFeatures = 3;

/// Queries of 1, keys of 2 and values of 3, and what is added to their scores: numbers below 6, times the factor.
struct Head {
  Tensor queries = random({kQueries, kFeatures}, 1, 1, 1), keys = random({kFeatures, kKeys}, 2, 2, 2),
         values = random({kKeys, kFeatures}, 3, 3, 3), addends = random({kQueries, kKeys}, 0, 0, 4);
  float factor = 1, filler = 0;
  bool adds = true;
  const float *repeated = nullptr;  ///< in place of values
  std::ptrdiff_t key_step = 1;      ///< elements from key to key
  std::uint8_t keeps = 1;
  std::vector<std::uint8_t> chosen{};

  /// Keeps the scores of keys before `first` for each query, and of one more for each of the next.
  Head &choose(std::size_t first, float by, std::uint8_t kept = 1) {
    chosen.assign(kQueries * kKeys, kept == 0 ? 1 : 0);
    for (std::size_t i = 0; i < kQueries; ++i) std::fill_n(&chosen[i * kKeys], first + i, kept);
    filler = by;
    keeps = kept;
    return *this;
  }

  /// Hides keys from `first` on from each query, and one more from each of the next.
  Head &hide(std::size_t first, float by, std::size_t more = 0) {
    for (std::size_t i = 0; i < kQueries; ++i)
      for (std::size_t j = first + i * more; j < kKeys; ++j) addends.as<float>()[i * kKeys + j] = by;
    return *this;
  }

  std::size_t in_sight() const {
    const auto matrix = [](const Tensor &t) { return runtime::HeadMatrix{t.as<const float>(), t.dim(1), 1}; };
    const runtime::HeadMatrix of_keys{keys.as<const float>(), static_cast<std::ptrdiff_t>(kKeys) * key_step, key_step};
    const runtime::HeadMatrix of_values = repeated ? runtime::HeadMatrix{repeated, 0, 0} : matrix(values);
    const runtime::HeadPart parts[] = {{of_keys, of_values, kKeys}};
    runtime::HeadSizes sizes{};
    sizes.keys = kKeys;
    sizes.features = sizes.values = kFeatures;
    const kernels::GridKernel &grid = kernels::choose(kernels::grid_kernels(), Isa::scalar);
    runtime::ScoreMask mask;
    if (adds) mask.addend = addends.as<const float>();
    mask.addend_row = kKeys;
    if (!chosen.empty()) mask.chosen = chosen.data();
    mask.chosen_row = kKeys;
    mask.keeps = keeps != 0;
    mask.filler = filler;
    return runtime::HiddenKeys(parts, sizes, grid).in_sight(matrix(queries), kQueries, factor, mask);
  }
};

void test_masks(void **) {
  assert_int_equal(Head().in_sight(), kKeys);
  assert_int_equal(Head().hide(64, -kInfinity).in_sight(), 64);
  assert_int_equal(Head().hide(65, -kInfinity).in_sight(), 96);
  assert_int_equal(Head().hide(60, -kInfinity, 1).in_sight(), 64);
  assert_int_equal(Head().hide(61, -kInfinity, 1).in_sight(), 96);
  assert_int_equal(Head().hide(97, -kInfinity).in_sight(), kKeys);
  assert_int_equal(Head().hide(1, std::numeric_limits<float>::lowest(), 1).in_sight(), 32);
}

/// A number hides what no score can make up for.
void test_weak_masks(void **) {
  assert_int_equal(Head().hide(32, -100).in_sight(), kKeys);
  assert_int_equal(Head().hide(32, -10000).in_sight(), 32);
  Head far = Head().hide(32, -10000);
  far.factor = -1000;
  assert_int_equal(far.in_sight(), kKeys);
  Head near = Head().hide(32, -10000);
  near.keys.as<float>()[200] = 5000;
  assert_int_equal(near.in_sight(), kKeys);
}

void test_choices(void **) {
  for (const bool adds : {false, true})
    for (const std::uint8_t kept : {0, 1}) {
      Head head = Head().choose(60, -kInfinity, kept);
      head.adds = adds;
      assert_int_equal(head.in_sight(), 64);
      assert_int_equal(head.choose(28, -10000, kept).in_sight(), 32);
      assert_int_equal(head.choose(28, -100, kept).in_sight(), kKeys);
      assert_int_equal(head.choose(0, -10000, kept).in_sight(), kKeys);  // the first query sees nothing
    }
  // Where both hide, and where what is added would lift what was chosen.
  assert_int_equal(Head().choose(90, -10000).hide(33, -10000).in_sight(), 64);
  assert_int_equal(Head().choose(33, -10000).hide(90, -10000).in_sight(), 64);
  assert_int_equal(Head().choose(33, -10000).hide(90, 9990).in_sight(), kKeys);
}

/// No more is read than there is of values that repeat, and of keys with something between all of them.
void test_strides(void **) {
  Head head = Head().hide(32, -kInfinity);
  const float value = 3;
  head.repeated = &value;
  assert_int_equal(head.in_sight(), 32);
  Head apart = Head().hide(32, -10000);
  apart.keys = random({kFeatures * kKeys * 2}, 2, 2, 2);
  for (std::int64_t i = 1; i < apart.keys.count(); i += 2) apart.keys.as<float>()[i] = 1e9f;
  apart.key_step = 2;
  assert_int_equal(apart.in_sight(), 32);
  apart.keys.as<float>()[apart.keys.count() - 2] = 1e9f;
  assert_int_equal(apart.in_sight(), kKeys);
}

/// Such shares are those of scores that are beside one another.
void test_queries_that_see_nothing(void **) {
  assert_int_equal(Head().hide(0, -10000, 40).in_sight(), kKeys);
  Head below = Head().hide(32, -10000);
  for (std::size_t j = 0; j < kKeys; ++j) below.addends.as<float>()[kKeys + j] -= 1;
  assert_int_equal(below.in_sight(), kKeys);
}

/// A share of 0 does not hide what is not finite.
void test_not_finite(void **) {
  for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()})
    for (Tensor Head::*const operand : {&Head::queries, &Head::keys, &Head::values}) {
      Head head = Head().hide(32, -kInfinity);
      Tensor &t = head.*operand;
      t.as<float>()[t.count() - 1] = bad;
      assert_int_equal(head.in_sight(), kKeys);
    }
  Head addend = Head().hide(32, -kInfinity);
  addend.addends.as<float>()[kKeys - 1] = std::numeric_limits<float>::quiet_NaN();
  assert_int_equal(addend.in_sight(), kKeys);
}

}  // namespace
}  // namespace qtn::test

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::test::test_masks),
                              cmocka_unit_test(qtn::test::test_weak_masks),
                              cmocka_unit_test(qtn::test::test_choices),
                              cmocka_unit_test(qtn::test::test_strides),
                              cmocka_unit_test(qtn::test::test_queries_that_see_nothing),
                              cmocka_unit_test(qtn::test::test_not_finite)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
