// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace qtn {

/// A value that is made when it is first asked for, by one thread. Copies share it.
template <class T>
class Lazy {
 public:
  Lazy(T value = {}) : state_(std::make_shared<State>(State{nullptr, std::move(value)})) {}

  template <class Make>
  static Lazy by(Make make) {
    Lazy lazy;
    lazy.state_->make = std::move(make);
    return lazy;
  }

  const T &operator*() const {
    if (state_->make) {
      state_->value = state_->make();
      state_->make = nullptr;
    }
    return state_->value;
  }
  const T *operator->() const { return &**this; }

 private:
  struct State {
    std::function<T()> make;
    T value;
  };
  std::shared_ptr<State> state_;
};

}  // namespace qtn
