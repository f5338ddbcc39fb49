// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.hpp"
#include "ops/common/indices.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {
    {"interleaved", AttrSpec::kInt}, {"num_heads", AttrSpec::kInt}, {"rotary_embedding_dim", AttrSpec::kInt}};
constexpr const char *kName = "RotaryEmbedding";

/// x as heads of rows: [batch][head][place][feature], or [batch][place][head][feature].
struct Heads {
  explicit Heads(const Call &call) {
    const Shape &x = call.in(0)->shape();
    const std::int64_t given = call.attrs.get_int("num_heads", 0);
    if (x.size() == 4) {
      batches = x[0], heads = x[1], places = x[2], features = x[3];
    } else if (x.size() == 3) {
      if (given < 1 || x[2] % given != 0) fail(QTN_EINVAL, kName, ": num_heads is ", given, ", x is ", to_string(x));
      batches = x[0], heads = given, places = x[1], features = x[2] / given;
    } else {
      fail(QTN_ESHAPE, kName, ": x must have 3 or 4 axes, it is ", to_string(x));
    }
    by_head = x.size() == 4;
    const std::int64_t rotated = call.attrs.get_int("rotary_embedding_dim", 0);
    if (rotated < 0 || rotated > features || (rotated == 0 ? features : rotated) % 2 != 0)
      fail(QTN_EINVAL, kName, ": rotary_embedding_dim is ", rotated, ", heads of x ", to_string(x), " have ", features,
           " features");
    half = (rotated == 0 ? features : rotated) / 2;
  }

  std::int64_t batches, heads, places, features, half;
  bool by_head;
};

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  require_real(kName, "x", &x);
  const Heads h(call);
  const Tensor *ids = call.in(3);
  if (ids) {
    require_dtype(kName, "position_ids", *ids, {QTN_INT64});
    if (!(ids->shape() == Shape{h.batches, h.places}))
      fail(QTN_ESHAPE, kName, ": position_ids is ", to_string(ids->shape()), ", x ", to_string(x.shape()));
  }
  for (const std::size_t i : {1, 2}) {
    const Tensor &cache = *call.in(i);
    require_same_dtype(kName, x, cache);
    const bool fits = ids ? cache.rank() == 2 && cache.dim(1) == h.half && cache.shape() == call.in(1)->shape()
                          : cache.shape() == Shape{h.batches, h.places, h.half};
    if (!fits)
      fail(QTN_ESHAPE, kName, ": ", i == 1 ? "cos_cache" : "sin_cache", " is ", to_string(cache.shape()), ", x is ",
           to_string(x.shape()), ", of which ", h.half, " pairs of each head turn");
  }
  return {{x.dtype(), x.shape()}};
}

/// Angles of as many pairs, whose elements lie side by side or `half` apart.
template <class T>
struct Angles {
  const T *cosines, *sines;
  std::int64_t half;
};

template <class T>
void rotate_halves(const Angles<T> &by, const T *__restrict x, T *__restrict y) {
  for (std::int64_t k = 0; k < by.half; ++k) {
    const T a = x[k], b = x[k + by.half], cosine = by.cosines[k], sine = by.sines[k];
    y[k] = cosine * a - sine * b;
    y[k + by.half] = sine * a + cosine * b;
  }
}

template <class T>
void rotate_neighbours(const Angles<T> &by, const T *__restrict x, T *__restrict y) {
  for (std::int64_t k = 0; k < by.half; ++k) {
    const T a = x[2 * k], b = x[2 * k + 1], cosine = by.cosines[k], sine = by.sines[k];
    y[2 * k] = cosine * a - sine * b;
    y[2 * k + 1] = sine * a + cosine * b;
  }
}

template <class T>
void rotate(const Call &call, const Tensor &y) {
  const Heads h(call);
  const bool interleaved = call.attrs.get_int("interleaved", 0) != 0;
  const T *cosines = call.in(1)->as<const T>(), *sines = call.in(2)->as<const T>();
  std::vector<std::int64_t> rows;  // of the caches, for each place
  if (call.in(3))
    rows = indices_within(kName, *call.in(3), call.in(1)->shape(), 0);
  else
    for (std::int64_t i = 0; i < h.batches * h.places; ++i) rows.push_back(i);
  parallel_for(static_cast<std::size_t>(h.batches * h.heads * h.places), [&](std::size_t index) {
    const auto i = static_cast<std::int64_t>(index);
    const std::int64_t batch = i / (h.heads * h.places);
    const std::int64_t place = h.by_head ? i % h.places : i / h.heads % h.places;
    const std::int64_t row = rows[static_cast<std::size_t>(batch * h.places + place)] * h.half;
    const T *from = call.in(0)->as<const T>() + i * h.features;
    T *to = y.as<T>() + i * h.features;
    const Angles<T> by{cosines + row, sines + row, h.half};
    interleaved ? rotate_neighbours(by, from, to) : rotate_halves(by, from, to);
    std::copy_n(from + 2 * h.half, h.features - 2 * h.half, to + 2 * h.half);
  });
}

void run(const Call &call, std::span<Tensor> outputs) {
  call.in(0)->dtype() == QTN_FLOAT64 ? rotate<double>(call, outputs[0]) : rotate<float>(call, outputs[0]);
}

}  // namespace

const OpDef kRotaryEmbedding{
    .name = kName, .min_inputs = 3, .max_inputs = 4, .max_outputs = 1, .attrs = kAttrs, .infer = infer, .run = run};

}  // namespace qtn::ops
