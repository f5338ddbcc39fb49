// SPDX-License-Identifier: Apache-2.0
#include "base/buffer_reuse.hpp"

#include <vector>

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

void what_is_left_stays_for_the_next_scope(void **) {
  KeptBlocks blocks(0.25);
  std::byte *first = nullptr;
  {
    const BufferReuse reuse(blocks);
    assert_true(BufferReuse::is_on());
    first = made_and_given_back(kMany);
  }
  assert_false(BufferReuse::is_on());
  assert_null(BufferReuse::take(kMany).bytes);
  const BufferReuse reuse(blocks);
  assert_ptr_equal(made_and_given_back(kMany), first);
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

void of_several_that_fit_the_smallest_is_taken(void **) {
  const BufferReuse reuse;
  AlignedBuffer larger(kMany + 2000), smaller(kMany + 1000), largest(kMany + 3000);
  std::byte *const wanted = smaller.data();
  larger = AlignedBuffer();
  smaller = AlignedBuffer();
  largest = AlignedBuffer();
  const AlignedBuffer taken(kMany);
  assert_ptr_equal(taken.data(), wanted);
}

void no_more_than_so_many_are_kept(void **) {
  constexpr std::size_t kKept = 64, kSize = std::size_t{1} << 20;
  const BufferReuse reuse;
  std::vector<AlignedBuffer> buffers;
  for (std::size_t i = 0; i <= kKept; ++i) buffers.emplace_back(kSize);
  std::byte *const second = buffers[1].data();
  buffers.clear();
  std::vector<AlignedBuffer> again;
  bool found = false;
  for (std::size_t i = 0; i < kKept; ++i) {
    again.emplace_back(kSize);
    found = found || again.back().data() == second;
  }
  assert_true(found);
  assert_null(BufferReuse::take(kSize).bytes);
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
      cmocka_unit_test(what_is_left_stays_for_the_next_scope),
      cmocka_unit_test(outside_of_a_scope_nothing_is_kept),
      cmocka_unit_test(what_outlives_the_scope_is_given_back_later),
      cmocka_unit_test(of_several_that_fit_the_smallest_is_taken),
      cmocka_unit_test(no_more_than_so_many_are_kept),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
