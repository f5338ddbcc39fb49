// SPDX-License-Identifier: Apache-2.0
// In builds with QTN_CHECKS the library knows which handles there are, and says so where it is given another pointer: a
// handle that was freed, or one of another noun. In others a tag takes no memory and no time.
#pragma once

namespace qtn::capi {

#ifdef QTN_CHECKS

/// The last member of every handle. A handle is found by its address, so nothing is read through a pointer that is
/// not one.
class Tag {
 public:
  Tag(const void *handle, const char *noun);
  Tag(const Tag &other);
  Tag &operator=(const Tag &) { return *this; }
  ~Tag();

  /// What kind of handle lives at this address; NULL: none.
  static const char *noun_at(const void *handle, const char *wanted);

 private:
  struct Table;

  const void *handle_;
  const char *noun_;
  Tag *next_ = nullptr;
};

#else

struct Tag {
  Tag(const void *, const char *) {}
};

#endif

}  // namespace qtn::capi
