// SPDX-License-Identifier: Apache-2.0
#include "base/buffer_reuse.hpp"

#include "base/memory.hpp"
#include "check.hpp"

namespace qtn::test {
namespace {

constexpr std::size_t kMany = 8 << 20;

std::byte *made_and_given_back(std::size_t size) { return AlignedBuffer(size).data(); }

void what_was_given_back_is_taken_again(void **) {
  const BufferReuse reuse;
  std::byte *const first = made_and_given_back(kMany);
  const AlignedBuffer again(kMany - 1000);
  assert_ptr_equal(again.data(), first);
  assert_int_equal(again.size(), kMany - 1000);
}

void no_block_is_much_too_large_or_too_small(void **) {
  const BufferReuse reuse;
  made_and_given_back(kMany);
  assert_null(BufferReuse::take(2 * kMany).bytes);
  made_and_given_back(kMany);
  assert_null(BufferReuse::take(kMany / 2).bytes);
}

void small_memory_is_not_kept(void **) {
  const BufferReuse reuse;
  made_and_given_back(1000);
  assert_null(BufferReuse::take(1000).bytes);
}

void outside_of_a_scope_nothing_is_kept(void **) {
  { const BufferReuse reuse; }
  made_and_given_back(kMany);
  assert_null(BufferReuse::take(kMany).bytes);
}

void what_outlives_the_scope_is_given_back_later(void **) {
  AlignedBuffer buffer;
  {
    const BufferReuse reuse;
    made_and_given_back(kMany);
    buffer = AlignedBuffer(kMany);
  }
  buffer.data()[kMany - 1] = std::byte{1};
}

// So that kept and used ones together are not more than were used at once.
void what_does_not_fit_makes_room_for_what_is_taken(void **) {
  const BufferReuse reuse;
  made_and_given_back(kMany);
  const AlignedBuffer larger(2 * kMany);
  assert_null(BufferReuse::take(kMany).bytes);
}

}  // namespace
}  // namespace qtn::test

int main() {
  using namespace qtn::test;
  const CMUnitTest tests[] = {
      cmocka_unit_test(what_was_given_back_is_taken_again),
      cmocka_unit_test(no_block_is_much_too_large_or_too_small),
      cmocka_unit_test(what_does_not_fit_makes_room_for_what_is_taken),
      cmocka_unit_test(small_memory_is_not_kept),
      cmocka_unit_test(outside_of_a_scope_nothing_is_kept),
      cmocka_unit_test(what_outlives_the_scope_is_given_back_later),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
