// SPDX-License-Identifier: Apache-2.0
#include "io/dlpack.hpp"

#include <array>
#include <cstddef>
#include <string>

#include "base/error.hpp"

namespace qtn::io {
namespace {

constexpr std::int32_t kCpu = 1;
constexpr std::uint32_t kMajorVersion = 1;

static_assert(sizeof(DLTensor) == 48 && sizeof(DLManagedTensor) == 64 && sizeof(DLManagedTensorVersioned) == 80,
              "DLPack's structures are those of a 64-bit ABI");

enum Code : std::uint8_t {
  kInt = 0,
  kUint = 1,
  kFloat = 2,
  kBfloat = 4,
  kBool = 6,
  kFloat8E4m3fn = 10,
  kFloat8E4m3fnuz = 11,
  kFloat8E5m2 = 12,
  kFloat8E5m2fnuz = 13,
  kFloat8E8m0fnu = 14,
  kFloat4E2m1fn = 17
};

struct TypeCode {
  qdtype dtype;
  Code code;
  std::uint8_t bits;
};

constexpr std::array<TypeCode, 23> kTypes = {{{QTN_FLOAT64, kFloat, 64},
                                              {QTN_FLOAT32, kFloat, 32},
                                              {QTN_FLOAT16, kFloat, 16},
                                              {QTN_BFLOAT16, kBfloat, 16},
                                              {QTN_FLOAT8E4M3FN, kFloat8E4m3fn, 8},
                                              {QTN_FLOAT8E5M2, kFloat8E5m2, 8},
                                              {QTN_FLOAT8E4M3FNUZ, kFloat8E4m3fnuz, 8},
                                              {QTN_FLOAT8E5M2FNUZ, kFloat8E5m2fnuz, 8},
                                              {QTN_FLOAT8E8M0, kFloat8E8m0fnu, 8},
                                              {QTN_FLOAT4E2M1, kFloat4E2m1fn, 4},
                                              {QTN_INT64, kInt, 64},
                                              {QTN_INT32, kInt, 32},
                                              {QTN_UINT64, kUint, 64},
                                              {QTN_UINT32, kUint, 32},
                                              {QTN_INT16, kInt, 16},
                                              {QTN_UINT16, kUint, 16},
                                              {QTN_INT8, kInt, 8},
                                              {QTN_UINT8, kUint, 8},
                                              {QTN_BOOL, kBool, 8},
                                              {QTN_INT4, kInt, 4},
                                              {QTN_UINT4, kUint, 4},
                                              {QTN_INT2, kInt, 2},
                                              {QTN_UINT2, kUint, 2}}};

/// Packed types have no strides in bytes, and how DLPack lays them out depends on the producer.
void refuse_packed(const TypeCode &type) {
  if (type.bits < 8)
    fail(QTN_EUNSUPPORTED, "dlpack: ", dtype_name(type.dtype), " has ", int{type.bits}, " bits, less than a byte");
}

const TypeCode &type_of(qdtype dtype) {
  for (const TypeCode &type : kTypes)
    if (type.dtype == dtype) return type;
  fail(QTN_EUNSUPPORTED, "dlpack: has no ", dtype_name(dtype));
}

qdtype dtype_of(const DLDataType &dtype) {
  if (dtype.lanes != 1) fail(QTN_EUNSUPPORTED, "dlpack: ", dtype.lanes, " lanes are not supported, only 1");
  for (const TypeCode &type : kTypes)
    if (type.code == dtype.code && type.bits == dtype.bits) {
      refuse_packed(type);
      return type.dtype;
    }
  fail(QTN_EUNSUPPORTED, "dlpack: element type code ", int{dtype.code}, " of ", int{dtype.bits},
       " bits is not supported");
}

std::string device_text(const DLDevice &device) {
  constexpr std::array<const char *, 11> kNames = {nullptr, "CPU",    "CUDA",  "CUDA host", "OpenCL", nullptr,
                                                   nullptr, "Vulkan", "Metal", "VPI",       "ROCm"};
  const auto number = static_cast<std::size_t>(device.device_type);
  const char *name = number < kNames.size() ? kNames[number] : nullptr;
  return name ? cat(device.device_type, " (", name, ")") : cat(device.device_type);
}

Shape strides_of(const DLTensor &dl, const Shape &shape, std::size_t element_size) {
  if (!dl.strides) return contiguous_strides(shape);
  const Shape strides(std::span(dl.strides, shape.size()));
  auto extent = static_cast<std::int64_t>(element_size);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 2) continue;
    std::int64_t span = 0;
    if (strides[i] < 0) fail(QTN_EUNSUPPORTED, "dlpack: stride ", strides[i], " of dimension ", i, " is negative");
    if (__builtin_mul_overflow(strides[i], shape[i] - 1, &span) ||
        __builtin_mul_overflow(span, static_cast<std::int64_t>(element_size), &span) ||
        __builtin_add_overflow(extent, span, &extent))
      fail(QTN_EINVAL, "dlpack: stride ", strides[i], " of dimension ", i, " leads out of memory");
  }
  return strides;
}

/// The tensor without its owner.
Tensor view_of(const DLTensor &dl) {
  if (dl.device.device_type != kCpu)
    fail(QTN_EUNSUPPORTED, "dlpack: device type ", device_text(dl.device), " is not supported, only CPU (1)");
  const qdtype dtype = dtype_of(dl.dtype);
  const std::size_t size = dtype_size(dtype);
  if (dl.ndim < 0) fail(QTN_EINVAL, "dlpack: ndim is ", dl.ndim);
  if (dl.ndim > 0 && !dl.shape) fail(QTN_EINVAL, "dlpack: shape is NULL, ndim is ", dl.ndim);
  const Shape shape(std::span<const std::int64_t>(dl.shape, static_cast<std::size_t>(dl.ndim)));
  const std::int64_t count = element_count(shape);
  const Shape strides = strides_of(dl, shape, size);
  if (count == 0) return Tensor(dtype, shape, contiguous_strides(shape), dl.data, nullptr);
  if (!dl.data) fail(QTN_EINVAL, "dlpack: data is NULL for a ", to_string(shape), " tensor");
  if (dl.byte_offset > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(dl.data))
    fail(QTN_EINVAL, "dlpack: byte offset ", dl.byte_offset, " leads out of memory");
  auto *data = static_cast<std::byte *>(dl.data) + dl.byte_offset;
  if (reinterpret_cast<std::uintptr_t>(data) % size != 0)
    fail(QTN_EINVAL, "dlpack: data at byte offset ", dl.byte_offset, " is not aligned for ", dtype_name(dtype));
  return Tensor(dtype, shape, strides, data, nullptr);
}

void check_version(const DLManagedTensor &) {}
void check_version(const DLManagedTensorVersioned &managed) {
  if (managed.version.major != kMajorVersion)
    fail(QTN_EUNSUPPORTED, "dlpack: version ", managed.version.major, ".", managed.version.minor,
         " is not supported, only ", kMajorVersion);
  if (managed.flags & kDLReadOnly) fail(QTN_EUNSUPPORTED, "dlpack: the tensor is read-only; hand over a copy");
}

void set_version(DLManagedTensor &) {}
void set_version(DLManagedTensorVersioned &managed) {
  managed.version = {kMajorVersion, 0};
  managed.flags = 0;
}

/// Storage of another library. It is taken over last, when nothing can fail any more.
template <class Managed>
struct Imported {
  Managed *managed = nullptr;

  Imported() = default;
  Imported(const Imported &) = delete;
  Imported &operator=(const Imported &) = delete;
  ~Imported() {
    if (managed && managed->deleter) managed->deleter(managed);
  }
};

/// Our storage in the hands of another library.
template <class Managed>
struct Exported {
  explicit Exported(const Tensor &t) : shape(t.shape()), strides(t.strides()), storage(t) {}

  Managed managed{};
  Shape shape, strides;
  Tensor storage;
};

}  // namespace

template <class Managed>
Managed *to_dlpack(const Tensor &t) {
  if (t.quantized())
    fail(QTN_EDTYPE,
         "dlpack: has no quantized tensors; hand over the integers that qtensor_int_repr takes of this one, "
         "or the values that qtensor_dequantize gives");
  const TypeCode &type = type_of(t.dtype());
  refuse_packed(type);
  auto *exported = new Exported<Managed>(t);
  Managed &managed = exported->managed;
  set_version(managed);
  managed.manager_ctx = exported;
  managed.deleter = [](Managed *self) { delete static_cast<Exported<Managed> *>(self->manager_ctx); };
  managed.dl_tensor = {t.data(),
                       {kCpu, 0},
                       static_cast<std::int32_t>(t.rank()),
                       {type.code, type.bits, 1},
                       exported->shape.begin(),
                       exported->strides.begin(),
                       0};
  return &managed;
}

template <class Managed>
Tensor from_dlpack(Managed *managed) {
  check_version(*managed);
  const Tensor view = view_of(managed->dl_tensor);
  auto owner = std::make_shared<Imported<Managed>>();
  Imported<Managed> &imported = *owner;
  Tensor t(view.dtype(), view.shape(), view.strides(), view.data(), std::move(owner));
  imported.managed = managed;
  return t;
}

template DLManagedTensor *to_dlpack(const Tensor &t);
template DLManagedTensorVersioned *to_dlpack(const Tensor &t);
template Tensor from_dlpack(DLManagedTensor *managed);
template Tensor from_dlpack(DLManagedTensorVersioned *managed);

}  // namespace qtn::io
