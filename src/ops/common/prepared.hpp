// SPDX-License-Identifier: Apache-2.0
// What an operator works out before it touches elements, made once for calls that are repeated.
#pragma once

#include <optional>

#include "ops/op.hpp"

namespace qtn::ops {

/// OpDef::prepare of an operator whose preparation is a T, made of a call.
template <class T>
std::unique_ptr<Prepared> prepare(const Call &call) {
  return std::make_unique<T>(call);
}

/// The T of a call: the one that is kept, or one that is made now.
template <class T>
class Ready {
 public:
  explicit Ready(const Call &call) : at_(call.prepared ? static_cast<const T *>(call.prepared) : &own_.emplace(call)) {}
  Ready(const Ready &) = delete;
  Ready &operator=(const Ready &) = delete;

  const T &operator*() const { return *at_; }
  const T *operator->() const { return at_; }

 private:
  std::optional<T> own_;
  const T *at_;
};

}  // namespace qtn::ops
