// SPDX-License-Identifier: Apache-2.0
//
// qtensor/qtensor.hpp: the C API for C++17. q<noun>_<verb> is qtn::<Noun>::<verb>; what it does, and what its arguments
// mean, qtensor.h says. What differs:
//
//   - a status other than QTN_OK is thrown as qtn::Error;
//   - objects free themselves. A copy is another name for the same object, and costs no more than a shared_ptr;
//   - const members may be called from many threads at once. One that changes an object while another call uses it, in
//     a thread or in a callback, throws QTN_ESTATE, and so does one that comes while the object is being changed;
//   - where C takes NULL for an argument that may be absent, an object made without arguments stands for it: Tensor(),
//     Quantizer(), Attrs(). Attrs() as settings is an empty set, where NULL would undo settings: what that does has a
//     function of its own, leave_in_float(), set_limits();
//   - lists are taken as Ints, Doubles, Strings and Tensors, which braces make: t.reshape({2, 3}). Ints and Doubles own
//     nothing: as an argument they need to live for the call only, as a result they live as long as what gave them.
//
// The C functions can be called beside it: get() gives the handle, adopt() takes one over.
#ifndef QTENSOR_QTENSOR_HPP
#define QTENSOR_QTENSOR_HPP

#include <atomic>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "qtensor/qtensor.h"
#include "qtensor/version.h"

// Marks what a result refers to: Clang then warns where that is gone while the result is still in use (-Wdangling).
#ifdef __has_cpp_attribute
#if __has_cpp_attribute(clang::lifetimebound)
#define QTN_LIFETIMEBOUND [[clang::lifetimebound]]
#endif
#endif
#ifndef QTN_LIFETIMEBOUND
#define QTN_LIFETIMEBOUND
#endif

namespace qtn {
#ifndef SWIG  // which would write qtn::cpp:: where programs write qtn::
// Apart from what the library itself is made of, for programs that link it statically.
inline namespace cpp {
#endif

using DType = qdtype;
using Scheme = qscheme;
using Mode = qmode;
using Status = qstatus;

/// A status other than QTN_OK; what() is the line of qerror_message().
class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string &message) : std::runtime_error(message), status_(status) {}

  Status status() const noexcept { return status_; }

 private:
  Status status_;
};

namespace detail {

inline void check(qstatus status) {
  if (status != QTN_OK) throw Error(status, qerror_message());
}

/// Counts the calls that use an object, so that none changes it meanwhile. Nobody waits: who would have to, fails.
class Guard {
 public:
  bool enter() noexcept {
    int calls = calls_.load(std::memory_order_relaxed);
    do {
      if (calls == kChanging) return false;
    } while (!calls_.compare_exchange_weak(calls, calls + 1, std::memory_order_acquire, std::memory_order_relaxed));
    return true;
  }
  bool enter_alone() noexcept {
    int none = 0;
    return calls_.compare_exchange_strong(none, kChanging, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void leave() noexcept { calls_.fetch_sub(1, std::memory_order_release); }
  void leave_alone() noexcept { calls_.store(0, std::memory_order_release); }

 private:
  static constexpr int kChanging = -1;
  std::atomic<int> calls_{0};
};

/// A handle that is in use for as long as this lives: mostly for the call that it is an argument of.
template <class T>
class Held {
 public:
  Held() = default;
  Held(T *handle, Guard *guard, bool alone) : handle_(handle), guard_(guard), alone_(alone) {
    if (guard && !(alone ? guard->enter_alone() : guard->enter()))
      throw Error(QTN_ESTATE, alone ? "the object is in use by another call, which this one would disturb"
                                    : "another call is changing the object");
  }
  Held(Held &&other) noexcept : handle_(other.handle_), guard_(other.guard_), alone_(other.alone_) {
    other.guard_ = nullptr;
  }
  Held &operator=(Held &&) = delete;
  ~Held() {
    if (guard_) alone_ ? guard_->leave_alone() : guard_->leave();
  }

  operator T *() const { return handle_; }

 private:
  T *handle_ = nullptr;
  Guard *guard_ = nullptr;
  bool alone_ = false;
};

/// Shares a handle; the last one frees it.
template <class T, void (*free)(T *)>
class Handle {
 public:
  Handle() = default;

  /// Takes over what a C function has made.
  explicit Handle(T *handle) {
    if (!handle) return;
    std::unique_ptr<T, void (*)(T *)> saved(handle, free);
    auto object = std::make_shared<Object>();
    object->handle = saved.release();
    *this = Handle(std::move(object));
  }

  /// What `make`, a call of a C function, writes. All memory that this takes is there before the call: what has succeeded,
  /// and perhaps has taken over memory of the caller's, does not fail afterwards.
  template <class F>
  static Handle made(F &&make) {
    auto object = std::make_shared<Object>();
    check(make(&object->handle));
    return Handle(std::move(object));
  }

  /// What it writes into an array.
  template <class F>
  static std::vector<Handle> made(size_t count, F &&make) {
    std::vector<std::shared_ptr<Object>> objects(count);
    for (auto &object : objects) object = std::make_shared<Object>();
    std::vector<T *> raw(count, nullptr);
    std::vector<Handle> handles;
    handles.reserve(count);
    check(make(raw.data()));
    for (size_t i = 0; i < count; ++i) {
      objects[i]->handle = raw[i];
      handles.push_back(Handle(std::move(objects[i])));
    }
    return handles;
  }

  /// Lends what lives in another object, as long as that, and does not change.
  template <class Owner>
  Handle(const Owner &owner, T *inside) : owner_(owner.owner_), handle_(inside) {}

  /// What the library lends for the time of a callback.
  static Handle lent(T *handle) {
    Handle lent;
    lent.handle_ = handle;
    return lent;
  }

  T *get() const { return handle_; }
  /// For a call beside which others may use the object.
  Held<T> use() const { return {handle_, guard_, false}; }
  /// For a call that changes it.
  Held<T> change() const { return {handle_, guard_, true}; }
  /// For a call that changes `other`, which may be the same object.
  Held<T> use_beside(const Handle &other) const { return {handle_, guard_ == other.guard_ ? nullptr : guard_, false}; }

 private:
  template <class U, void (*)(U *)>
  friend class Handle;

  struct Object {
    T *handle = nullptr;
    Guard guard;
    ~Object() { free(handle); }
  };

  explicit Handle(std::shared_ptr<Object> object) : handle_(object->handle), guard_(&object->guard) {
    owner_ = std::move(object);
  }

  std::shared_ptr<void> owner_;
  T *handle_ = nullptr;
  Guard *guard_ = nullptr;
};

}  // namespace detail

// --- lists, which are borrowed for a call

/// Integers that live elsewhere, as a std::span of C++20. Made of braces or of a vector for an argument, it is valid
/// until that call returns: do not keep it. Given by an accessor, such as Tensor::shape(), it is valid as long as the
/// object that was asked: Tensor::load(path).shape() is dangling at the end of its statement.
struct Ints {
  const int64_t *data = nullptr;
  size_t size = 0;

  Ints() = default;
  Ints(const int64_t *first, size_t count) : data(first), size(count) {}
  Ints(std::initializer_list<int64_t> list QTN_LIFETIMEBOUND) {
    data = list.begin();
    size = list.size();
  }
  Ints(const std::vector<int64_t> &list QTN_LIFETIMEBOUND) : data(list.data()), size(list.size()) {}

  const int64_t *begin() const { return data; }
  const int64_t *end() const { return data + size; }
  int64_t operator[](size_t index) const { return data[index]; }
};

/// Real numbers that live elsewhere: what is said of Ints holds for them.
struct Doubles {
  const double *data = nullptr;
  size_t size = 0;

  Doubles() = default;
  Doubles(const double *first, size_t count) : data(first), size(count) {}
  Doubles(std::initializer_list<double> list QTN_LIFETIMEBOUND) {
    data = list.begin();
    size = list.size();
  }
  Doubles(const std::vector<double> &list QTN_LIFETIMEBOUND) : data(list.data()), size(list.size()) {}

  const double *begin() const { return data; }
  const double *end() const { return data + size; }
  double operator[](size_t index) const { return data[index]; }
};

/// Memory of the caller's, which a call reads and does not keep.
struct Bytes {
  const void *data = nullptr;
  size_t size = 0;
};

using Strings = std::vector<std::string>;

/// Bytes that the library made.
class Blob {
 public:
  static Blob adopt(qblob *b) { return Blob(b); }
  qblob *get() const { return handle_.get(); }

  /// Lives as long as the blob.
  const void *data() const QTN_LIFETIMEBOUND { return qblob_data(get()); }
  size_t size() const { return qblob_size(get()); }
  std::string text() const { return std::string(static_cast<const char *>(data()), size()); }

 private:
  explicit Blob(qblob *b) : handle_(b) {}
  detail::Handle<qblob, qblob_free> handle_;
};

class Tensor;

/// Named options: qattrs. Members that set one return the object, so that calls can be chained.
class Attrs {
 public:
  Attrs() = default;
  static Attrs adopt(qattrs *a) {
    Attrs attrs;
    attrs.handle_ = decltype(attrs.handle_)(a);
    return attrs;
  }
  qattrs *get() const { return handle_.get(); }
  detail::Held<qattrs> use() const { return handle_.use(); }

  size_t count() const { return qattrs_count(use()); }
  std::string key(size_t index) const { return text(qattrs_key(use(), index)); }
  /// "" for a key that is absent.
  std::string kind(const std::string &key) const { return text(qattrs_kind(use(), key.c_str())); }
  int64_t get_int(const std::string &key, int64_t otherwise = 0) const {
    if (!get()) return otherwise;
    detail::check(qattrs_get_int(&otherwise, use(), key.c_str(), otherwise));
    return otherwise;
  }
  double get_float(const std::string &key, double otherwise = 0) const {
    if (!get()) return otherwise;
    detail::check(qattrs_get_float(&otherwise, use(), key.c_str(), otherwise));
    return otherwise;
  }
  std::string get_string(const std::string &key, const std::string &otherwise = "") const {
    if (!get()) return otherwise;
    const char *value = nullptr;
    detail::check(qattrs_get_string(&value, use(), key.c_str(), otherwise.c_str()));
    return value;
  }
  /// These two live as long as the attributes do not change; without elements for a key that is absent.
  Ints get_ints(const std::string &key) const QTN_LIFETIMEBOUND {
    Ints values;
    if (get()) detail::check(qattrs_get_ints(&values.data, &values.size, use(), key.c_str()));
    return values;
  }
  Doubles get_floats(const std::string &key) const QTN_LIFETIMEBOUND {
    Doubles values;
    if (get()) detail::check(qattrs_get_floats(&values.data, &values.size, use(), key.c_str()));
    return values;
  }
  Tensor get_tensor(const std::string &key) const;

  Attrs &set_int(const std::string &key, int64_t value) {
    return set([&](qattrs *a) { return qattrs_set_int(a, key.c_str(), value); });
  }
  Attrs &set_float(const std::string &key, double value) {
    return set([&](qattrs *a) { return qattrs_set_float(a, key.c_str(), value); });
  }
  Attrs &set_string(const std::string &key, const std::string &value) {
    return set([&](qattrs *a) { return qattrs_set_string(a, key.c_str(), value.c_str()); });
  }
  Attrs &set_ints(const std::string &key, Ints values) {
    return set([&](qattrs *a) { return qattrs_set_ints(a, key.c_str(), values.data, values.size); });
  }
  Attrs &set_floats(const std::string &key, Doubles values) {
    return set([&](qattrs *a) { return qattrs_set_floats(a, key.c_str(), values.data, values.size); });
  }

 private:
  friend class Call;
  static std::string text(const char *name) { return name ? name : ""; }

  template <class F>
  Attrs &set(F &&f) {
    if (!get()) {
      qattrs *a = nullptr;
      detail::check(qattrs_create(&a));
      handle_ = decltype(handle_)(a);
    }
    detail::check(f(handle_.change()));
    return *this;
  }

  detail::Handle<qattrs, qattrs_free> handle_;
};

namespace detail {

/// Settings, for what takes NULL as something else than none, or not at all.
inline Attrs some(const Attrs &attrs) {
  if (attrs.get()) return attrs;
  qattrs *none = nullptr;
  check(qattrs_create(&none));
  return Attrs::adopt(none);
}

}  // namespace detail

// --- the library

/// Settings of the process: qlib_*.
struct Lib {
  static std::string version() {
    const uint32_t v = qlib_version();
    return std::to_string(v >> 16) + "." + std::to_string(v >> 8 & 255) + "." + std::to_string(v & 255);
  }
  static std::string isa() { return qlib_isa(); }
  static void set_isa(const std::string &isa) { detail::check(qlib_set_isa(isa.c_str())); }
  static void set_threads(int32_t count) { detail::check(qlib_set_threads(count)); }
  /// All limits are what they were at the start.
  static void set_limits() { detail::check(qlib_set_limits(nullptr)); }
  /// Limits that are not named stay as they are.
  static void set_limits(const Attrs &limits) { detail::check(qlib_set_limits(detail::some(limits).use())); }
  static int64_t limit(const std::string &name) {
    int64_t number = 0;
    detail::check(qlib_limit(&number, name.c_str()));
    return number;
  }
  static std::string status_name(Status status) { return qstatus_name(status); }
  static std::string dtype_name(DType dtype) { return qdtype_name(dtype); }
};

// --- tensors and their grids

using Tensors = std::vector<Tensor>;

/// A mapping between reals and integers: qquantizer. Immutable; safe from many threads at once.
class Quantizer {
 public:
  /// No quantizer: what is absent.
  Quantizer() = default;
  /// From scales and zero points. Throws QTN_EINVAL where there are zero points, and not as many as scales.
  static Quantizer create(DType dtype, Scheme scheme, int32_t axis, Doubles scales, Ints zero_points = {},
                          const Attrs &attrs = {}) {
    if (zero_points.size > 0 && scales.size > 0 && zero_points.size != scales.size)
      throw Error(QTN_EINVAL, "quantizer: " + std::to_string(scales.size) + " scales, but " +
                                  std::to_string(zero_points.size) + " zero points");
    qquantizer *q = nullptr;
    detail::check(qquantizer_create(&q, dtype, scheme, axis, scales.data,
                                    zero_points.size > 0 ? zero_points.data : nullptr, scales.size, attrs.use()));
    return adopt(q);
  }
  /// One scale and zero point for all elements.
  static Quantizer per_tensor(DType dtype, double scale, int64_t zero_point, const Attrs &attrs = {}) {
    return create(dtype, QTN_PER_TENSOR_AFFINE, 0, {scale}, {zero_point}, attrs);
  }
  /// From observed ranges: as many lower bounds as upper ones.
  static Quantizer choose(DType dtype, Scheme scheme, int32_t axis, Doubles mins, Doubles maxs,
                          const Attrs &attrs = {}) {
    if (mins.size != maxs.size)
      throw Error(QTN_EINVAL,
                  "quantizer: " + std::to_string(mins.size) + " mins, but " + std::to_string(maxs.size) + " maxs");
    qquantizer *q = nullptr;
    detail::check(qquantizer_choose(&q, dtype, scheme, axis, mins.data, maxs.data, mins.size, attrs.use()));
    return adopt(q);
  }
  /// From the tensor's own values.
  static Quantizer choose_dynamic(DType dtype, const Tensor &x, const Attrs &attrs = {});
  /// Takes a handle over, here and below: it is freed with the last object that shares it.
  static Quantizer adopt(qquantizer *q) { return Quantizer(Shared(q)); }
  /// The handle, which stays this object's; NULL for an object without one, here and below.
  qquantizer *get() const { return handle_.get(); }
  explicit operator bool() const { return get() != nullptr; }

  DType dtype() const { return qquantizer_dtype(get()); }
  Scheme scheme() const { return qquantizer_scheme(get()); }
  int32_t axis() const { return qquantizer_axis(get()); }
  size_t count() const { return qquantizer_count(get()); }
  /// These three live as long as the quantizer. Those that are floats are empty for schemes without them.
  Doubles scales() const QTN_LIFETIMEBOUND { return {qquantizer_scales(get()), count()}; }
  Ints zero_points() const QTN_LIFETIMEBOUND { return {qquantizer_zero_points(get()), count()}; }
  Doubles float_zero_points() const QTN_LIFETIMEBOUND {
    const double *zeros = qquantizer_float_zero_points(get());
    return {zeros, zeros ? count() : 0};
  }
  int64_t block_size() const { return qquantizer_block_size(get()); }
  int64_t quant_min() const { return qquantizer_quant_min(get()); }
  int64_t quant_max() const { return qquantizer_quant_max(get()); }
  std::string numerics() const { return qquantizer_numerics(get()); }

 private:
  friend class Tensor;
  using Shared = detail::Handle<qquantizer, qquantizer_free>;
  explicit Quantizer(Shared handle) : handle_(std::move(handle)) {}
  Shared handle_;
};

/// An n-dimensional array: qtensor.
class Tensor {
 public:
  /// No tensor: what is absent.
  Tensor() = default;
  /// Zeros where there is no data.
  static Tensor create(DType dtype, Ints shape, const Quantizer &quantizer = {}, Bytes data = {}) {
    return made([&](qtensor **t) {
      return qtensor_create(t, dtype, shape.data, shape.size, quantizer.get(), data.data, data.size);
    });
  }
  /// A float32 tensor with these elements, row-major, copied.
  static Tensor floats(Ints shape, const std::vector<float> &values) {
    return create(QTN_FLOAT32, shape, {}, bytes(values));
  }
  /// An int64 tensor with these elements, row-major, copied.
  static Tensor int64s(Ints shape, const std::vector<int64_t> &values) {
    return create(QTN_INT64, shape, {}, bytes(values));
  }
  /// Over the caller's memory, without a copy, until `deleter` is called.
  static Tensor wrap(DType dtype, Ints shape, void *data, size_t nbytes, qtensor_deleter_cb deleter = nullptr,
                     void *ctx = nullptr, const Quantizer &quantizer = {}) {
    return made([&](qtensor **t) {
      return qtensor_wrap(t, dtype, shape.data, shape.size, quantizer.get(), data, nbytes, deleter, ctx);
    });
  }
  static Tensor adopt(qtensor *t) { return Tensor(Shared(t)); }
  qtensor *get() const { return handle_.get(); }
  detail::Held<qtensor> use() const { return handle_.use(); }
  explicit operator bool() const { return get() != nullptr; }

  /// A second handle on the same storage, for another thread.
  Tensor share() const {
    return made([&](qtensor **t) { return qtensor_share(t, use()); });
  }

  DType dtype() const { return qtensor_dtype(use()); }
  size_t rank() const { return qtensor_rank(use()); }
  /// These two live as long as the tensor.
  Ints shape() const QTN_LIFETIMEBOUND { return {qtensor_shape(use()), rank()}; }
  Ints strides() const QTN_LIFETIMEBOUND { return {qtensor_strides(use()), rank()}; }
  int64_t numel() const { return qtensor_numel(use()); }
  size_t nbytes() const { return qtensor_nbytes(use()); }
  /// Without arguments where the tensor is not quantized. It stays what it is when copy() gives this tensor another.
  Quantizer quantizer() const {
    if (!qtensor_quantizer(use())) return Quantizer();
    const Tensor own = share();
    return Quantizer(Quantizer::Shared(own.handle_, const_cast<qquantizer *>(qtensor_quantizer(own.get()))));
  }
  /// The first element; lives as long as the storage.
  const void *data() const { return qtensor_data(use()); }
  /// The same, to write: every handle on the storage sees it.
  void *data_mut() {
    void *data = nullptr;
    detail::check(qtensor_data_mut(&data, use()));
    return data;
  }
  /// The elements of a contiguous tensor of this type.
  template <class T>
  const T *as() const {
    return static_cast<const T *>(data());
  }

  /// From float32 to the quantizer's integers, and back.
  Tensor quantize(const Quantizer &quantizer) const {
    return made([&](qtensor **t) { return qtensor_quantize(t, use(), quantizer.get()); });
  }
  Tensor dequantize() const {
    return made([&](qtensor **t) { return qtensor_dequantize(t, use()); });
  }
  /// Views, here and below: they share storage with this tensor where strides allow it.
  Tensor int_repr() const {
    return made([&](qtensor **t) { return qtensor_int_repr(t, use()); });
  }
  Tensor select(int32_t axis, int64_t index) const {
    return made([&](qtensor **t) { return qtensor_select(t, use(), axis, index); });
  }
  Tensor slice(int32_t axis, int64_t start, int64_t stop, int64_t step = 1) const {
    return made([&](qtensor **t) { return qtensor_slice(t, use(), axis, start, stop, step); });
  }
  Tensor permute(Ints axes) const {
    std::vector<int32_t> narrow;
    for (const int64_t axis : axes) {
      narrow.push_back(static_cast<int32_t>(axis));
      if (narrow.back() != axis)
        throw Error(QTN_EINVAL,
                    "permute: axis " + std::to_string(axis) + " is outside a tensor of rank " + std::to_string(rank()));
    }
    return made([&](qtensor **t) { return qtensor_permute(t, use(), narrow.data(), narrow.size()); });
  }
  Tensor reshape(Ints shape) const {
    return made([&](qtensor **t) { return qtensor_reshape(t, use(), shape.data, shape.size); });
  }
  Tensor contiguous() const {
    return made([&](qtensor **t) { return qtensor_contiguous(t, use()); });
  }
  bool equal(const Tensor &other) const {
    int32_t equal = 0;
    detail::check(qtensor_equal(&equal, use(), other.use()));
    return equal != 0;
  }
  /// Writes what `source` holds into this tensor's storage.
  void copy(const Tensor &source) { detail::check(qtensor_copy(handle_.change(), source.handle_.use_beside(handle_))); }
  /// The value of a tensor of one element.
  double item() const {
    double value = 0;
    detail::check(qtensor_item(&value, use()));
    return value;
  }
  /// As text, for people.
  std::string describe() const {
    size_t length = 0;
    detail::check(qtensor_describe(nullptr, 0, &length, use()));
    std::string text(length + 1, '\0');
    detail::check(qtensor_describe(&text[0], text.size(), &length, use()));
    text.resize(length);
    return text;
  }

  /// Files: safetensors, and .npy where the name says so.
  void save(const std::string &path) const { detail::check(qtensor_save(use(), path.c_str())); }
  void save_npy(const std::string &path) const { detail::check(qtensor_save_npy(use(), path.c_str())); }
  static void save_all(const std::string &path, const Strings &names, const Tensors &tensors);
  static Tensor load(const std::string &path) {
    return made([&](qtensor **t) { return qtensor_load(t, path.c_str()); });
  }
  static Tensor load_named(const std::string &path, const std::string &name) {
    return made([&](qtensor **t) { return qtensor_load_named(t, path.c_str(), name.c_str()); });
  }
  static Tensor load_npy(const std::string &path) {
    return made([&](qtensor **t) { return qtensor_load_npy(t, path.c_str()); });
  }
  /// Rows of the only tensor of a file if `name` is empty.
  static Tensor load_rows(const std::string &path, const std::string &name, int64_t start, int64_t stop) {
    const char *which = name.empty() ? nullptr : name.c_str();
    return made([&](qtensor **t) { return qtensor_load_rows(t, path.c_str(), which, start, stop); });
  }
  /// What is in a file, as JSON.
  static std::string inspect(const std::string &path) {
    qblob *b = nullptr;
    detail::check(qtensor_inspect(&b, path.c_str()));
    return Blob::adopt(b).text();
  }

  /// DLPack, without a copy. What is lent belongs to the library that takes it; what is taken belongs to the tensor.
  DLManagedTensor *to_dlpack() const {
    DLManagedTensor *managed = nullptr;
    detail::check(qtensor_to_dlpack(&managed, use()));
    return managed;
  }
  DLManagedTensorVersioned *to_dlpack_versioned() const {
    DLManagedTensorVersioned *managed = nullptr;
    detail::check(qtensor_to_dlpack_versioned(&managed, use()));
    return managed;
  }
  static Tensor from_dlpack(DLManagedTensor *managed) {
    return made([&](qtensor **t) { return qtensor_from_dlpack(t, managed); });
  }
  static Tensor from_dlpack_versioned(DLManagedTensorVersioned *managed) {
    return made([&](qtensor **t) { return qtensor_from_dlpack_versioned(t, managed); });
  }

 private:
  friend struct Op;
  friend class Session;
  friend class Trainer;
  using Shared = detail::Handle<qtensor, qtensor_free>;
  explicit Tensor(Shared handle) : handle_(std::move(handle)) {}

  /// An empty vector has no address, which would ask for zeros.
  template <class T>
  static Bytes bytes(const std::vector<T> &values) {
    static const T none = 0;
    return {values.empty() ? &none : values.data(), values.size() * sizeof(T)};
  }

  template <class F>
  static Tensor made(F &&f) {
    return Tensor(Shared::made(f));
  }
  template <class F>
  static std::vector<Tensor> made(size_t count, F &&f) {
    std::vector<Tensor> tensors;
    tensors.reserve(count);
    for (Shared &handle : Shared::made(count, f)) tensors.push_back(Tensor(std::move(handle)));
    return tensors;
  }

  Shared handle_;
};

inline Tensor Attrs::get_tensor(const std::string &key) const {
  qtensor *t = nullptr;
  if (get()) detail::check(qattrs_get_tensor(&t, use(), key.c_str()));
  return Tensor::adopt(t);
}

inline Quantizer Quantizer::choose_dynamic(DType dtype, const Tensor &x, const Attrs &attrs) {
  qquantizer *q = nullptr;
  detail::check(qquantizer_choose_dynamic(&q, dtype, x.use(), attrs.use()));
  return adopt(q);
}

namespace detail {

/// Arguments, in use for the time of a call.
class Operands {
 public:
  explicit Operands(const Tensors &tensors) {
    held_.reserve(tensors.size());
    handles_.reserve(tensors.size());
    for (const Tensor &t : tensors) {
      held_.push_back(t.use());
      handles_.push_back(held_.back());
    }
  }
  const qtensor *const *data() const { return handles_.data(); }
  size_t size() const { return handles_.size(); }

 private:
  std::vector<Held<qtensor>> held_;
  std::vector<const qtensor *> handles_;
};

inline std::vector<const char *> texts(const Strings &strings) {
  std::vector<const char *> texts;
  for (const std::string &s : strings) texts.push_back(s.c_str());
  return texts;
}

}  // namespace detail

inline void Tensor::save_all(const std::string &path, const Strings &names, const Tensors &tensors) {
  if (names.size() != tensors.size())
    throw Error(QTN_EINVAL, "save_all: " + std::to_string(names.size()) + " names, but " +
                                std::to_string(tensors.size()) + " tensors");
  detail::check(
      qtensor_save_all(path.c_str(), detail::texts(names).data(), detail::Operands(tensors).data(), tensors.size()));
}

/// One call of a registered operator, for as long as its callback runs: qcall.
class Call {
 public:
  explicit Call(qcall *c) : handle_(c) {}
  qcall *get() const { return handle_; }

  size_t input_count() const { return qcall_input_count(get()); }
  bool has_input(size_t index) const { return qcall_input_shape(get(), index) != nullptr; }
  /// The number 0, and no dimensions, where the input is absent.
  DType input_dtype(size_t index) const { return qcall_input_dtype(get(), index); }
  Ints input_shape(size_t index) const QTN_LIFETIMEBOUND {
    return {qcall_input_shape(get(), index), qcall_input_rank(get(), index)};
  }
  /// A copy, which may be kept; Tensor() where the input is absent, and in infer() where its value is not known.
  Tensor input(size_t index) const {
    const qtensor *x = qcall_input(get(), index);
    if (!x) return {};
    qtensor *t = nullptr;
    detail::check(qtensor_create(&t, qtensor_dtype(x), qtensor_shape(x), qtensor_rank(x), qtensor_quantizer(x),
                                 qtensor_data(x), qtensor_nbytes(x)));
    return Tensor::adopt(t);
  }
  /// For the time of the callback.
  Attrs attrs() const {
    Attrs attrs;
    attrs.handle_ = decltype(attrs.handle_)::lent(const_cast<qattrs *>(qcall_attrs(get())));
    return attrs;
  }
  size_t output_count() const { return qcall_output_count(get()); }
  void set_output_type(size_t index, DType dtype, Ints shape) const {
    detail::check(qcall_set_output_type(get(), index, dtype, shape.data, shape.size));
  }
  /// Copies a result into its place. A quantized output takes integers on its grid, and reals, which it rounds to it.
  void set_output(size_t index, const Tensor &t) const {
    qtensor *y = qcall_output(get(), index);
    if (!y) return;
    const Ints want(qtensor_shape(y), qtensor_rank(y)), shape = t.shape();
    if (!t || want.size != shape.size || std::memcmp(want.data, shape.data, want.size * sizeof(int64_t)) != 0)
      throw Error(QTN_ESHAPE,
                  "result " + std::to_string(index) + " is " + text(shape) + ", not " + text(want) + " as infer said");
    detail::check(qtensor_copy(y, t.use()));
  }
  /// The grid of an output in run_quantized(); Quantizer() for one that is not quantized.
  Quantizer output_quantizer(size_t index) const {
    qtensor *y = qcall_output(get(), index), *shared = nullptr;
    if (!y || !qtensor_quantizer(y)) return {};
    detail::check(qtensor_share(&shared, y));
    return Tensor::adopt(shared).quantizer();
  }
  void fail(Status status, const std::string &message) const { qcall_fail(get(), status, message.c_str()); }

 private:
  static std::string text(Ints shape) {
    std::string text;
    for (const int64_t dim : shape) text += (text.empty() ? "" : "x") + std::to_string(dim);
    return text.empty() ? "a scalar" : text;
  }

  qcall *handle_;
};

/// What Op::register_operator() adds. What a function throws fails the call of the library that it is part of. Many
/// threads may call one object.
class Operator {
 public:
  virtual ~Operator() = default;
  /// Types and shapes of all outputs. false: these follow from the value of an input that is not known yet.
  virtual bool infer(const Call &call) = 0;
  virtual void run(const Call &call) = 0;
  /// Whether there is a run_quantized(): asked once.
  virtual bool has_quantized() { return false; }
  /// false: run() is to compute these.
  virtual bool run_quantized(const Call &call) { return static_cast<void>(call), false; }
  /// The last call: nothing uses the object any more.
  virtual void released() {}
};

namespace detail {

/// Calls an object of C++ from C.
class OperatorCallbacks {
 public:
  static qstatus infer(qcall *c, void *ctx) {
    return guarded(c, [&](const Call &call) { return self(ctx).infer(call) ? QTN_OK : QTN_ESTATE; });
  }
  static qstatus run(qcall *c, void *ctx) {
    return guarded(c, [&](const Call &call) { return self(ctx).run(call), QTN_OK; });
  }
  static qstatus run_quantized(qcall *c, void *ctx) {
    return guarded(c, [&](const Call &call) { return self(ctx).run_quantized(call) ? QTN_OK : QTN_EUNSUPPORTED; });
  }
  static void released(void *ctx) { self(ctx).released(); }

 private:
  static Operator &self(void *ctx) { return *static_cast<Operator *>(ctx); }

  template <class F>
  static qstatus guarded(qcall *c, F &&f) {
    try {
      return f(Call(c));
    } catch (const Error &e) {
      return qcall_fail(c, e.status(), e.what());
    } catch (const std::bad_alloc &) {
      return qcall_fail(c, QTN_ENOMEM, "out of memory");
    } catch (const std::exception &e) {
      return qcall_fail(c, QTN_EINVAL, e.what());
    }
  }
};

}  // namespace detail

/// Operators on tensors, one at a time: qop_*. Operands may be quantized; section 6 of qtensor.h says what comes out.
struct Op {
  /// Any operator by its ONNX name.
  static Tensors run(const std::string &op, const Tensors &inputs, const Attrs &attrs = {}, size_t output_count = 1) {
    const detail::Operands operands(inputs);
    return Tensor::made(output_count, [&](qtensor **out) {
      return qop_run(out, output_count, op.c_str(), operands.data(), operands.size(), attrs.use());
    });
  }
  /// qop_register: `op` must live until its released() is called. unregister_operator() takes it back.
  static void register_operator(const std::string &domain, const std::string &name, int64_t since_version,
                                Operator &op) {
    detail::check(qop_register(domain.c_str(), name.c_str(), since_version, detail::OperatorCallbacks::infer,
                               detail::OperatorCallbacks::run,
                               op.has_quantized() ? detail::OperatorCallbacks::run_quantized : nullptr,
                               detail::OperatorCallbacks::released, &op));
  }
  static void unregister_operator(const std::string &domain, const std::string &name, int64_t since_version) {
    detail::check(qop_unregister(domain.c_str(), name.c_str(), since_version));
  }
  static Tensor relu(const Tensor &x) {
    return Tensor::made([&](qtensor **out) { return qop_relu(out, x.use()); });
  }
  static Tensor fake_quantize(const Tensor &x, const Quantizer &quantizer) {
    return Tensor::made([&](qtensor **out) { return qop_fake_quantize(out, x.use(), quantizer.get()); });
  }
  static Tensor fake_quantize_backward(const Tensor &dy, const Tensor &x, const Quantizer &quantizer) {
    return Tensor::made(
        [&](qtensor **out) { return qop_fake_quantize_backward(out, dy.use(), x.use(), quantizer.get()); });
  }
  static Tensor add(const Tensor &a, const Tensor &b, const Quantizer &out_quantizer = {}) {
    return Tensor::made([&](qtensor **out) { return qop_add(out, a.use(), b.use(), out_quantizer.get()); });
  }
  static Tensor matmul(const Tensor &a, const Tensor &b, const Quantizer &out_quantizer = {}) {
    return Tensor::made([&](qtensor **out) { return qop_matmul(out, a.use(), b.use(), out_quantizer.get()); });
  }
  static Tensor cat(const Tensors &inputs, int32_t axis, const Quantizer &out_quantizer = {}) {
    const detail::Operands operands(inputs);
    return Tensor::made(
        [&](qtensor **out) { return qop_cat(out, operands.data(), operands.size(), axis, out_quantizer.get()); });
  }
  static Tensor max_pool2d(const Tensor &x, const Attrs &attrs = {}) {
    return Tensor::made([&](qtensor **out) { return qop_max_pool2d(out, x.use(), attrs.use()); });
  }
  static Tensor avg_pool2d(const Tensor &x, const Quantizer &out_quantizer = {}, const Attrs &attrs = {}) {
    return Tensor::made([&](qtensor **out) { return qop_avg_pool2d(out, x.use(), out_quantizer.get(), attrs.use()); });
  }
  static Tensor linear(const Tensor &x, const Tensor &weight, const Tensor &bias = {},
                       const Quantizer &out_quantizer = {}) {
    return Tensor::made(
        [&](qtensor **out) { return qop_linear(out, x.use(), weight.use(), bias.use(), out_quantizer.get()); });
  }
  static Tensor conv2d(const Tensor &x, const Tensor &weight, const Tensor &bias = {},
                       const Quantizer &out_quantizer = {}, const Attrs &attrs = {}) {
    return Tensor::made([&](qtensor **out) {
      return qop_conv2d(out, x.use(), weight.use(), bias.use(), out_quantizer.get(), attrs.use());
    });
  }
};

// --- quantizing models

/// Statistics of tensors, from which a quantizer is chosen: qobserver.
class Observer {
 public:
  Observer() = default;
  static Observer create(const std::string &kind, const Attrs &attrs = {}) {
    return made([&](qobserver **o) { return qobserver_create(o, kind.c_str(), attrs.use()); });
  }
  static Observer adopt(qobserver *o) { return Observer(o); }
  qobserver *get() const { return handle_.get(); }
  detail::Held<qobserver> use() const { return handle_.use(); }
  explicit operator bool() const { return get() != nullptr; }

  void observe(const Tensor &x) { detail::check(qobserver_observe(handle_.change(), x.use())); }
  void merge(const Observer &other) {
    detail::check(qobserver_merge(handle_.change(), other.handle_.use_beside(handle_)));
  }
  Quantizer quantizer() const {
    qquantizer *q = nullptr;
    detail::check(qobserver_quantizer(&q, use()));
    return Quantizer::adopt(q);
  }
  /// What it has seen, as bytes or in a file.
  Blob save() const {
    qblob *b = nullptr;
    detail::check(qobserver_save(&b, use()));
    return Blob::adopt(b);
  }
  void save_file(const std::string &path) const { detail::check(qobserver_save_file(use(), path.c_str())); }
  static Observer load(Bytes saved) {
    return made([&](qobserver **o) { return qobserver_load(o, saved.data, saved.size); });
  }
  static Observer load_file(const std::string &path) {
    return made([&](qobserver **o) { return qobserver_load_file(o, path.c_str()); });
  }

 private:
  explicit Observer(qobserver *o) : handle_(o) {}

  template <class F>
  static Observer made(F &&f) {
    Observer made;
    made.handle_ = decltype(made.handle_)::made(f);
    return made;
  }

  detail::Handle<qobserver, qobserver_free> handle_;
};

/// What is quantized in a model, and how: qconfig.
class Config {
 public:
  Config() = default;
  /// The recipe of that name.
  static Config create(const std::string &name) {
    return made([&](qconfig **c) { return qconfig_create(c, name.c_str()); });
  }
  static Config load(const std::string &path) {
    return made([&](qconfig **c) { return qconfig_load(c, path.c_str()); });
  }
  static Config adopt(qconfig *c) { return Config(c); }
  qconfig *get() const { return handle_.get(); }
  detail::Held<qconfig> use() const { return handle_.use(); }
  explicit operator bool() const { return get() != nullptr; }

  /// Refines it for the nodes or the tensor of a selector.
  Config &set(const std::string &selector, const Attrs &settings) {
    detail::check(qconfig_set(handle_.change(), selector.c_str(), detail::some(settings).use()));
    return *this;
  }
  /// Nodes of the selector compute in float.
  Config &leave_in_float(const std::string &selector) {
    detail::check(qconfig_set(handle_.change(), selector.c_str(), nullptr));
    return *this;
  }
  void save(const std::string &path) const { detail::check(qconfig_save(use(), path.c_str())); }

 private:
  explicit Config(qconfig *c) : handle_(c) {}

  template <class F>
  static Config made(F &&f) {
    Config made;
    made.handle_ = decltype(made.handle_)::made(f);
    return made;
  }

  detail::Handle<qconfig, qconfig_free> handle_;
};

/// Data to calibrate with, or to measure with. What a function throws ends the call that asked it, and comes out there.
class Samples {
 public:
  virtual ~Samples() = default;
  virtual size_t count() = 0;
  /// One tensor for each input of the model.
  virtual Tensors sample(size_t index) = 0;
};

/// Told how far a long call is.
class Progress {
 public:
  virtual ~Progress() = default;
  /// false cancels: the call throws QTN_ECANCELED.
  virtual bool advance(const std::string &stage, size_t done, size_t total) = 0;
};

/// Data to train with. What a function throws ends the call that asked it, and comes out there.
class Batches {
 public:
  virtual ~Batches() = default;
  virtual size_t count() = 0;  ///< of an epoch
  virtual size_t target_count() { return 1; }
  /// One tensor for each input of the model, then one for each target.
  virtual Tensors batch(size_t epoch, size_t index) = 0;
};

/// Told how far a training is.
class TrainingProgress {
 public:
  enum Answer : int { go_on, finish, cancel };  ///< the numbers of qanswer
  virtual ~TrainingProgress() = default;
  /// finish: what has been learned is converted. cancel: the call throws QTN_ECANCELED.
  virtual Answer advance(const std::string &stage, size_t done, size_t total, double loss) = 0;
};

/// A graph of operators with its weights: qmodel.
class Model {
 public:
  Model() = default;
  /// An ONNX file, or its bytes.
  static Model load(const std::string &path) {
    return made([&](qmodel **m) { return qmodel_load(m, path.c_str()); });
  }
  static Model load_bytes(Bytes onnx) {
    return made([&](qmodel **m) { return qmodel_load_bytes(m, onnx.data, onnx.size); });
  }
  static Model adopt(qmodel *m) { return Model(m); }
  qmodel *get() const { return handle_.get(); }
  detail::Held<qmodel> use() const { return handle_.use(); }
  explicit operator bool() const { return get() != nullptr; }

  size_t input_count() const { return qmodel_input_count(use()); }
  /// Throws QTN_EINVAL for an index out of range, here and below.
  std::string input_name(size_t index) const { return text(qmodel_input_name(use(), index), "input", index); }
  DType input_dtype(size_t index) const {
    input_name(index);
    return qmodel_input_dtype(use(), index);
  }
  /// -1 for a symbolic dimension. Lives as long as the model.
  Ints input_shape(size_t index) const QTN_LIFETIMEBOUND {
    input_name(index);
    return {qmodel_input_shape(use(), index), qmodel_input_rank(use(), index)};
  }
  size_t output_count() const { return qmodel_output_count(use()); }
  std::string output_name(size_t index) const { return text(qmodel_output_name(use(), index), "output", index); }
  size_t tensor_count() const { return qmodel_tensor_count(use()); }
  std::string tensor_name(size_t index) const { return text(qmodel_tensor_name(use(), index), "tensor", index); }
  /// A copy. "conv.weight" finds "conv.weight_quantized", too.
  Tensor tensor(const std::string &name) const {
    qtensor *t = nullptr;
    detail::check(qmodel_tensor(&t, use(), name.c_str()));
    return Tensor::adopt(t);
  }
  void set_tensor(const std::string &name, const Tensor &t) {
    detail::check(qmodel_set_tensor(handle_.change(), name.c_str(), t.use()));
  }
  /// What is in the model as a session runs it, as JSON.
  std::string inspect() const {
    qblob *b = nullptr;
    detail::check(qmodel_inspect(&b, use()));
    return Blob::adopt(b).text();
  }
  /// An ONNX file, or its bytes.
  void save(const std::string &path, const Attrs &attrs = {}) const {
    detail::check(qmodel_save(use(), path.c_str(), attrs.use()));
  }
  Blob save_bytes(const Attrs &attrs = {}) const {
    qblob *b = nullptr;
    detail::check(qmodel_save_bytes(&b, use(), attrs.use()));
    return Blob::adopt(b);
  }

  /// A copy in which a chain of nodes has become one.
  Model fuse(const Strings &nodes) const {
    const auto names = detail::texts(nodes);
    return made([&](qmodel **m) { return qmodel_fuse(m, use(), names.data(), names.size()); });
  }
  /// The steps of quantization: a copy with observers, which sees samples and becomes the int8 model.
  Model prepare(const Config &config, Mode mode = QTN_PTQ) const {
    return made([&](qmodel **m) { return qmodel_prepare(m, use(), config.use(), mode); });
  }
  void calibrate(const Tensors &inputs) {
    detail::check(qmodel_calibrate(handle_.change(), detail::Operands(inputs).data(), inputs.size()));
  }
  void save_calibration(const std::string &path) const { detail::check(qmodel_save_calibration(use(), path.c_str())); }
  void load_calibration(const std::string &path) {
    detail::check(qmodel_load_calibration(handle_.change(), path.c_str()));
  }
  static void merge_calibrations(const std::string &path, const Strings &parts) {
    detail::check(qmodel_merge_calibrations(path.c_str(), detail::texts(parts).data(), parts.size()));
  }
  Model convert(const Attrs &attrs = {}) const {
    return made([&](qmodel **m) { return qmodel_convert(m, use(), attrs.use()); });
  }

  /// All steps in one call. `report`: receives JSON, of which report_summary() makes sentences.
  Model quantize(const Config &config, Samples &samples, const Attrs &attrs = {}, Progress *progress = nullptr,
                 std::string *report = nullptr) const;
  Model quantize_qat(const Config &config, Batches &batches, const Attrs &attrs = {},
                     TrainingProgress *progress = nullptr, std::string *report = nullptr) const;
  /// Without samples: grids of activations at every run, or weights only.
  Model quantize_dynamic(const Config &config, const Attrs &attrs = {}) const {
    return made([&](qmodel **m) { return qmodel_quantize_dynamic(m, use(), config.use(), attrs.use()); });
  }
  Model quantize_weights(const Attrs &attrs = {}) const {
    return made([&](qmodel **m) { return qmodel_quantize_weights(m, use(), attrs.use()); });
  }
  /// What a report of quantize() or quantize_qat() says, for people.
  static std::string report_summary(const std::string &report) {
    qblob *b = nullptr;
    detail::check(qreport_summary(&b, report.c_str()));
    return Blob::adopt(b).text();
  }

 private:
  explicit Model(qmodel *m) : handle_(m) {}

  static std::string text(const char *name, const char *noun, size_t index) {
    if (!name) throw Error(QTN_EINVAL, std::string("the model has no ") + noun + " " + std::to_string(index));
    return name;
  }

  template <class F>
  static Model made(F &&f) {
    Model made;
    made.handle_ = decltype(made.handle_)::made(f);
    return made;
  }

  detail::Handle<qmodel, qmodel_free> handle_;
};

namespace detail {

/// What callbacks throw waits here until the library has returned.
class Thrown {
 public:
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 protected:
  template <class R, class F>
  R guarded(R stop, F &&f) noexcept {
    try {
      return f();
    } catch (...) {
      thrown_ = std::current_exception();
      return stop;
    }
  }

 private:
  std::exception_ptr thrown_;
};

/// Gives tensors to the library. `of` says whose they are: "sample 3 has 2 tensors, ...".
inline void give(qtensor **handles, size_t count, const Tensors &tensors, const std::string &of, const char *what) {
  if (tensors.size() != count)
    throw Error(QTN_EINVAL, of + " has " + std::to_string(tensors.size()) + " tensors, but the model " +
                                std::to_string(count) + " " + what);
  for (size_t i = 0; i < count; ++i) check(qtensor_share(&handles[i], tensors[i].use()));
}

/// What the library calls back while a model is quantized.
class Callbacks : public Thrown {
 public:
  Callbacks(Samples &samples, Progress *progress) : samples_(samples), progress_(progress) {}

  static qstatus sample(qtensor **inputs, size_t input_count, size_t index, void *ctx) {
    auto &self = *static_cast<Callbacks *>(ctx);
    return self.guarded(QTN_ECANCELED, [&] {
      give(inputs, input_count, self.samples_.sample(index), "sample " + std::to_string(index), "inputs");
      return QTN_OK;
    });
  }

  static qanswer progress(const char *stage, size_t done, size_t total, void *ctx) {
    auto &self = *static_cast<Callbacks *>(ctx);
    return self.guarded(QTN_CANCEL,
                        [&] { return self.progress_->advance(stage, done, total) ? QTN_CONTINUE : QTN_CANCEL; });
  }

 private:
  Samples &samples_;
  Progress *const progress_;
};

/// The same while it is trained, too.
class TrainingCallbacks : public Thrown {
 public:
  TrainingCallbacks(Batches &batches, TrainingProgress *progress) : batches_(batches), progress_(progress) {}

  static qstatus batch(qtensor **inputs, size_t input_count, qtensor **targets, size_t target_count, size_t epoch,
                       size_t index, void *ctx) {
    auto &self = *static_cast<TrainingCallbacks *>(ctx);
    return self.guarded(QTN_ECANCELED, [&] {
      const Tensors all = self.batches_.batch(epoch, index);
      const size_t split = all.size() < input_count ? all.size() : input_count;
      const auto first_target = all.begin() + static_cast<std::ptrdiff_t>(split);
      const std::string of = "batch " + std::to_string(index);
      give(inputs, input_count, Tensors(all.begin(), first_target), of, "inputs");
      give(targets, target_count, Tensors(first_target, all.end()), of, "targets");
      return QTN_OK;
    });
  }

  static qanswer progress(const char *stage, size_t done, size_t total, double loss, void *ctx) {
    auto &self = *static_cast<TrainingCallbacks *>(ctx);
    return self.guarded(QTN_CANCEL,
                        [&] { return static_cast<qanswer>(self.progress_->advance(stage, done, total, loss)); });
  }

 private:
  Batches &batches_;
  TrainingProgress *const progress_;
};

}  // namespace detail

inline Model Model::quantize(const Config &config, Samples &samples, const Attrs &attrs, Progress *progress,
                             std::string *report) const {
  detail::Callbacks callbacks(samples, progress);
  const size_t count = samples.count();
  return made([&](qmodel **m) {
    qblob *text = nullptr;
    const qstatus status = qmodel_quantize(m, report ? &text : nullptr, use(), config.use(), callbacks.sample, count,
                                           attrs.use(), progress ? callbacks.progress : nullptr, &callbacks);
    const Blob blob = Blob::adopt(text);
    callbacks.rethrow();
    if (status == QTN_OK && report) *report = blob.text();
    return status;
  });
}

inline Model Model::quantize_qat(const Config &config, Batches &batches, const Attrs &attrs, TrainingProgress *progress,
                                 std::string *report) const {
  detail::TrainingCallbacks callbacks(batches, progress);
  const size_t count = batches.count(), targets = batches.target_count();
  return made([&](qmodel **m) {
    qblob *text = nullptr;
    const qstatus status =
        qmodel_quantize_qat(m, report ? &text : nullptr, use(), config.use(), callbacks.batch, count, targets,
                            attrs.use(), progress ? callbacks.progress : nullptr, &callbacks);
    const Blob blob = Blob::adopt(text);
    callbacks.rethrow();
    if (status == QTN_OK && report) *report = blob.text();
    return status;
  });
}

/// A model made ready to run: qsession. Safe from many threads at once, without state.
class Session {
 public:
  Session() = default;
  static Session create(const Model &model, const Attrs &attrs = {}) {
    qsession *s = nullptr;
    detail::check(qsession_create(&s, model.use(), attrs.use()));
    return Session(s, model.output_count());
  }
  static Session adopt(qsession *s, size_t output_count) { return Session(s, output_count); }
  qsession *get() const { return handle_.get(); }
  explicit operator bool() const { return get() != nullptr; }
  size_t output_count() const { return output_count_; }

  /// One tensor for each input of the model, in its order, an empty one for state; gives one for each output.
  Tensors run(const Tensors &inputs) const {
    const detail::Operands operands(inputs);
    return Tensor::made(output_count_, [&](qtensor **out) {
      return qsession_run(out, output_count_, handle_.use(), operands.data(), operands.size());
    });
  }
  /// An output of each run is an input of the next one.
  void bind(size_t output, size_t input) { detail::check(qsession_bind(handle_.change(), output, input)); }
  /// The next run begins as the first one did.
  void reset() { detail::check(qsession_reset(handle_.change())); }
  /// Time, kernel and bytes of each step of a run, as JSON.
  std::string profile(const Tensors &inputs) const {
    qblob *b = nullptr;
    detail::check(qsession_profile(&b, handle_.use(), detail::Operands(inputs).data(), inputs.size()));
    return Blob::adopt(b).text();
  }

 private:
  Session(qsession *s, size_t output_count) : handle_(s), output_count_(output_count) {}
  detail::Handle<qsession, qsession_free> handle_;
  size_t output_count_ = 0;
};

/// One layer with weights in integers: qlayer. Safe from many threads at once.
class Layer {
 public:
  Layer() = default;
  static Layer create(const std::string &kind, const Tensor &weight, const Tensor &bias = {}, const Config &config = {},
                      const Quantizer &x_quantizer = {}, const Quantizer &out_quantizer = {}, const Attrs &attrs = {}) {
    qlayer *l = nullptr;
    detail::check(qlayer_create(&l, kind.c_str(), weight.use(), bias.use(), config.use(), x_quantizer.get(),
                                out_quantizer.get(), attrs.use()));
    return Layer(l);
  }
  static Layer adopt(qlayer *l) { return Layer(l); }
  qlayer *get() const { return handle_.get(); }
  explicit operator bool() const { return get() != nullptr; }

  Tensor run(const Tensor &x) const {
    qtensor *t = nullptr;
    detail::check(qlayer_run(&t, get(), x.use()));
    return Tensor::adopt(t);
  }
  Tensor weight() const {
    qtensor *t = nullptr;
    detail::check(qlayer_weight(&t, get()));
    return Tensor::adopt(t);
  }
  /// Tensor() where the layer has none.
  Tensor bias() const {
    qtensor *t = nullptr;
    detail::check(qlayer_bias(&t, get()));
    return t ? Tensor::adopt(t) : Tensor();
  }

 private:
  explicit Layer(qlayer *l) : handle_(l) {}
  detail::Handle<qlayer, qlayer_free> handle_;
};

// --- training

/// A model that is being trained, with its optimizer: qtrainer.
class Trainer {
 public:
  Trainer() = default;
  /// A trainer of a float model, or of one that was prepared with QTN_QAT.
  static Trainer create(const Model &model, const Attrs &attrs = {}) {
    qtrainer *t = nullptr;
    detail::check(qtrainer_create(&t, model.use(), attrs.use()));
    return Trainer(t, model.output_count());
  }
  qtrainer *get() const { return handle_.get(); }
  explicit operator bool() const { return get() != nullptr; }

  /// step() is backward() and update(). Both give the mean loss of the batch.
  double step(const Tensors &inputs, const Tensors &targets) { return loss(qtrainer_step, inputs, targets); }
  double backward(const Tensors &inputs, const Tensors &targets) { return loss(qtrainer_backward, inputs, targets); }
  void update() { detail::check(qtrainer_update(handle_.change())); }
  /// What the model answers with its current weights.
  Tensors evaluate(const Tensors &inputs) {
    const detail::Operands operands(inputs);
    return Tensor::made(output_count_, [&](qtensor **out) {
      return qtrainer_evaluate(out, output_count_, handle_.change(), operands.data(), operands.size());
    });
  }
  void set(const Attrs &attrs) { detail::check(qtrainer_set(handle_.change(), detail::some(attrs).use())); }
  void set_group(const std::string &selector, const Attrs &settings) {
    detail::check(qtrainer_set_group(handle_.change(), selector.c_str(), detail::some(settings).use()));
  }

  size_t parameter_count() const { return qtrainer_parameter_count(handle_.use()); }
  std::string parameter_name(size_t index) const {
    const char *name = qtrainer_parameter_name(handle_.use(), index);
    return name ? name : "";
  }
  /// These share storage with the trainer, here and below: what is written to them counts.
  Tensor parameter(size_t index) { return tensor(qtrainer_parameter, index); }
  Tensor gradient(size_t index) { return tensor(qtrainer_gradient, index); }

  size_t buffer_count() const { return qtrainer_buffer_count(handle_.use()); }
  std::string buffer_name(size_t index) const {
    const char *name = qtrainer_buffer_name(handle_.use(), index);
    return name ? name : "";
  }
  Tensor buffer(size_t index) { return tensor(qtrainer_buffer, index); }

  /// The model with its current weights.
  Model model() const {
    qmodel *m = nullptr;
    detail::check(qtrainer_model(&m, handle_.use()));
    return Model::adopt(m);
  }
  /// Checkpoints, in files or as bytes: a trainer that loads one goes on with the same bits.
  void save(const std::string &path) const { detail::check(qtrainer_save(handle_.use(), path.c_str())); }
  void load(const std::string &path) { detail::check(qtrainer_load(handle_.change(), path.c_str())); }
  Blob save_bytes() const {
    qblob *b = nullptr;
    detail::check(qtrainer_save_bytes(&b, handle_.use()));
    return Blob::adopt(b);
  }
  void load_bytes(Bytes saved) { detail::check(qtrainer_load_bytes(handle_.change(), saved.data, saved.size)); }

 private:
  Trainer(qtrainer *t, size_t output_count) : handle_(t), output_count_(output_count) {}

  template <class F>
  double loss(F *function, const Tensors &inputs, const Tensors &targets) {
    double loss = 0;
    const detail::Operands x(inputs), y(targets);
    detail::check(function(&loss, handle_.change(), x.data(), x.size(), y.data(), y.size()));
    return loss;
  }

  template <class F>
  Tensor tensor(F *function, size_t index) {
    qtensor *t = nullptr;
    detail::check(function(&t, handle_.change(), index));
    return Tensor::adopt(t);
  }

  detail::Handle<qtrainer, qtrainer_free> handle_;
  size_t output_count_ = 0;
};

#ifndef SWIG
}  // namespace cpp
#endif
}  // namespace qtn

#undef QTN_LIFETIMEBOUND

#endif  // QTENSOR_QTENSOR_HPP
