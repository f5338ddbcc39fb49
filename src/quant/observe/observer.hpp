// SPDX-License-Identifier: Apache-2.0
// Observers: streaming statistics of a tensor, from which a quantizer is chosen. Memory does not grow with the data.
//
// A new kind is one file and one row in observer.cpp.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/attrs.hpp"
#include "core/quantizer.hpp"
#include "core/tensor.hpp"

namespace qtn::quant {

class ByteReader;
class ByteWriter;

/// What every kind is told: the grid to choose, and the rule that leads from a range to a scale.
struct ObserverSettings {
  qdtype dtype = QTN_UINT8;
  qscheme scheme = QTN_PER_TENSOR_AFFINE;
  std::int32_t axis = 0;  ///< of per-channel and per-block schemes
  ChooseOptions choose;
  double averaging_constant = 0.01;  ///< "moving_average": weight of the newest batch
  std::int64_t bins = 2048;          ///< of kinds that count
  double percentile = 99.999;        ///< "percentile", "nvidia_percentile"
  bool absolute = true;              ///< "percentile": of |x|
  ScaleZero given = {0, 0};          ///< "fixed"; scale 0: not given

  friend bool operator==(const ObserverSettings &a, const ObserverSettings &b);
};

class Observer {
 public:
  virtual ~Observer() = default;
  Observer &operator=(const Observer &) = delete;

  /// Takes in a float32 tensor of any strides. An empty one changes nothing. Throws QTN_EDTYPE, QTN_ESHAPE (channel
  /// count differs from before), or QTN_EINVAL on NaN or infinity (the message has flat index and value); then nothing
  /// changed.
  void observe(const Tensor &x);

  /// The same for a float32 tensor that check_finite() has let pass.
  void observe_finite(const Tensor &x);

  /// As if this observer had seen the other's data too. Throws QTN_EINVAL unless kind and settings are equal.
  void merge(const Observer &other);

  /// Throws QTN_ESTATE before any data.
  QuantizerPtr quantizer() const;

  /// A small versioned binary, the same on every machine.
  std::vector<std::byte> save() const;

  virtual std::unique_ptr<Observer> clone() const = 0;
  virtual std::string_view kind() const = 0;
  virtual bool empty() const = 0;  ///< no data yet
  const ObserverSettings &settings() const { return settings_; }

 protected:
  explicit Observer(const ObserverSettings &settings) : settings_(settings) {}
  Observer(const Observer &) = default;

  /// `x` is contiguous, finite and not empty; the strong guarantee is the implementation's.
  virtual void take(const Tensor &x) = 0;
  virtual void take_from(const Observer &other) = 0;  ///< same kind and settings, not empty
  virtual QuantizerPtr choose() const = 0;            ///< not empty
  virtual void write(ByteWriter &out) const = 0;
  virtual void read(ByteReader &in) = 0;  ///< throws QTN_EFORMAT on impossible state

 private:
  friend std::unique_ptr<Observer> load_observer(std::span<const std::byte> bytes);
  ObserverSettings settings_;
};

/// The names of all kinds. docs/quantization.md says what each is.
std::vector<std::string_view> observer_kinds();

/// Throws QTN_EINVAL on an unknown kind, key or value (the message lists the valid ones) and QTN_EUNSUPPORTED on a
/// scheme that the kind does not offer. Keys: "dtype" "scheme" "axis", those of choose_options(), "averaging_constant"
/// "bins" "percentile" "absolute"; of "fixed" alone: "scale" and "zero_point", or "min" and "max".
std::unique_ptr<Observer> make_observer(const std::string &kind, const Attrs &attrs);

/// What save() wrote. Throws QTN_EFORMAT on anything else.
std::unique_ptr<Observer> load_observer(std::span<const std::byte> bytes);

/// Throws QTN_EINVAL naming the first NaN or infinity: "<who> has nan at index 17<where>".
void check_finite(const Tensor &x, std::string_view who, std::string_view where = {});

}  // namespace qtn::quant
