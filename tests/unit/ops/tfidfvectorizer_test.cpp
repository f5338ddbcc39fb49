// SPDX-License-Identifier: Apache-2.0
// TfIdfVectorizer where a sequence stands in a row more often than a float32 counts by ones.
#include "support.hpp"

namespace qtn {
namespace {

using namespace qtn::test;

void counts_of_millions(void **) {
  constexpr std::int64_t kLength = 6000, kPairs = kLength * (kLength - 1) / 2;
  static_assert(kPairs > 1 << 24 && static_cast<std::int64_t>(static_cast<float>(kPairs)) == kPairs);
  const Tensor words = Tensor::from<std::int64_t>(QTN_INT64, {kLength}, std::vector<std::int64_t>(kLength, 7));
  const Attrs a = attrs({{"min_gram_length", std::int64_t{1}},
                         {"max_gram_length", std::int64_t{2}},
                         {"max_skip_count", std::numeric_limits<std::int64_t>::max()},
                         {"mode", std::string("TF")},
                         {"ngram_counts", Ints{0, 1}},
                         {"ngram_indexes", Ints{1, 0}},
                         {"pool_int64s", Ints{7, 7, 7}}});
  const Inputs inputs{&words};
  const Tensor y = ops::run_op(*ops::find_op("TfIdfVectorizer"), ops::Call{a, inputs, 1})[0];
  assert_true(y.as<float>()[0] == static_cast<float>(kPairs));
  assert_true(y.as<float>()[1] == static_cast<float>(kLength));
}

}  // namespace
}  // namespace qtn

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(qtn::counts_of_millions)};
  return cmocka_run_group_tests_name("ops/tfidfvectorizer", tests, nullptr, nullptr);
}
