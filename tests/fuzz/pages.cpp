// SPDX-License-Identifier: Apache-2.0
#include "pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace fuzz {
namespace {

std::size_t page() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

struct Pages {
  explicit Pages(std::size_t used)
      : room((used + page() - 1) / page() * page()),
        begin(static_cast<char *>(
            mmap(nullptr, room + page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    require(begin != MAP_FAILED && mprotect(begin + room, page(), PROT_NONE) == 0, "pages");
  }
  ~Pages() { munmap(begin, room + page()); }
  Pages(const Pages &) = delete;
  Pages &operator=(const Pages &) = delete;

  const std::size_t room;
  char *const begin;
};

}  // namespace

Tensor at_the_end_of_a_page(const qtensor *t) {
  const std::size_t bytes = qtensor_nbytes(t);
  auto pages = std::make_unique<Pages>(bytes);
  char *const place = pages->begin + pages->room - bytes;
  if (bytes > 0) std::memcpy(place, qtensor_data(t), bytes);
  Tensor wrapped = make<Tensor>(
      qtensor_wrap, qtensor_dtype(t), qtensor_shape(t), qtensor_rank(t), nullptr, static_cast<void *>(place), bytes,
      [](void *, void *all) { delete static_cast<Pages *>(all); }, static_cast<void *>(pages.get()));
  require(wrapped != nullptr, std::string("wrapping: ") + qerror_message());
  static_cast<void>(pages.release());
  return wrapped;
}

}  // namespace fuzz
