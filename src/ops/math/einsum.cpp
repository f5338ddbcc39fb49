// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/counted.hpp"
#include "base/size.hpp"
#include "blas/gemm.hpp"
#include "ops/common/einsum_equation.hpp"
#include "ops/common/elementwise.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"equation", AttrSpec::kString}};

constexpr std::int64_t kFreeElements = std::int64_t{1} << 26, kPerElement = 64;

using Labels = std::vector<std::size_t>;

bool holds(const Labels &labels, std::size_t label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

/// An operand, or what some of them are together: one axis for each label, with any stride.
template <class T>
struct Part {
  Labels labels;
  std::vector<std::int64_t> steps;  ///< by axis
  const T *data;
  CountedVector<T> own;  ///< what data points to, where that is no operand
};

/// The products and sums of an equation: two parts become one until one is left.
template <class T>
class Contraction {
 public:
  Contraction(const EinsumEquation &equation, std::int64_t elements)
      : equation_(equation), most_(kFreeElements + Size(elements).as_signed() * kPerElement) {}

  void add(const Labels &labels, const Shape &shape, const T *data, CountedVector<T> own) {
    Part<T> part{{}, {}, data, std::move(own)};
    const Shape strides = contiguous_strides(shape);
    for (std::size_t axis = 0; axis < labels.size(); ++axis) {
      if (shape[axis] == 1) continue;  // read again and again where others are longer
      const auto at = std::find(part.labels.begin(), part.labels.end(), labels[axis]);
      if (at != part.labels.end()) {
        part.steps[static_cast<std::size_t>(at - part.labels.begin())] += strides[axis];  // a diagonal
      } else {
        part.labels.push_back(labels[axis]);
        part.steps.push_back(strides[axis]);
      }
    }
    parts_.push_back(std::move(part));
  }

  /// In the order of the result.
  CountedVector<T> run() {
    for (std::size_t i = 0; i < parts_.size(); ++i) sum_alone(i);
    while (parts_.size() > 1) {
      const std::size_t next = smallest_partner();
      Part<T> joined = join(parts_[0], parts_[next]);
      parts_.erase(parts_.begin() + static_cast<std::ptrdiff_t>(next));
      parts_[0] = std::move(joined);
      parts_[0].data = parts_[0].own.data();
    }
    Labels order;
    for (const std::size_t label : equation_.result)
      if (dim(label) != 1) order.push_back(label);
    return gathered(parts_[0], order);
  }

 private:
  std::int64_t dim(std::size_t label) const { return equation_.dims[label]; }

  std::int64_t size_of(const Labels &labels) const {
    Size size = 1;
    for (const std::size_t label : labels) size = size * dim(label);
    return size.as_signed();
  }

  /// Whether the result or a part other than these two has the label.
  bool needed(std::size_t label, std::size_t a, std::size_t b) const {
    if (holds(equation_.result, label)) return true;
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (i != a && i != b && holds(parts_[i].labels, label)) return true;
    return false;
  }

  /// Elements in the order of the labels, all of which the part has.
  CountedVector<T> gathered(const Part<T> &part, const Labels &order) const {
    const std::int64_t count = size_of(order);
    if (count > most_)
      fail(QTN_ENOMEM, "Einsum: ", count, " elements on the way to the result are over the limit of ", most_,
           " for operands of this size");
    CountedVector<T> out(static_cast<std::size_t>(count));
    if constexpr (std::is_floating_point_v<T>) {
      if (order.size() <= kMaxRank) {
        Shape dims, strides;
        for (const std::size_t label : order) {
          dims.push_back(dim(label));
          strides.push_back(part.steps[static_cast<std::size_t>(
              std::find(part.labels.begin(), part.labels.end(), label) - part.labels.begin())]);
        }
        const qdtype dtype = sizeof(T) == sizeof(float) ? QTN_FLOAT32 : QTN_FLOAT64;
        copy_elements(Tensor(dtype, dims, contiguous_strides(dims), out.data(), nullptr),
                      Tensor(dtype, dims, strides, const_cast<T *>(part.data), nullptr));
        return out;
      }
    }
    std::vector<std::int64_t> index(order.size(), 0), steps;
    for (const std::size_t label : order)
      steps.push_back(part.steps[static_cast<std::size_t>(std::find(part.labels.begin(), part.labels.end(), label) -
                                                          part.labels.begin())]);
    const T *from = part.data;
    for (T &element : out) {
      element = *from;
      for (std::size_t axis = order.size(); axis-- > 0;) {
        from += steps[axis];
        if (++index[axis] < dim(order[axis])) break;
        from -= steps[axis] * dim(order[axis]);
        index[axis] = 0;
      }
    }
    return out;
  }

  void replace(Part<T> &part, Labels labels, CountedVector<T> own) const {
    part.steps.assign(labels.size(), 1);
    for (std::size_t axis = labels.size(); axis-- > 1;) part.steps[axis - 1] = part.steps[axis] * dim(labels[axis]);
    part.labels = std::move(labels);
    part.own = std::move(own);
    part.data = part.own.data();
  }

  /// Sums over labels that nothing else has.
  void sum_alone(std::size_t i) {
    Part<T> &part = parts_[i];
    Labels order, summed;
    for (const std::size_t label : part.labels) (needed(label, i, i) ? order : summed).push_back(label);
    if (summed.empty()) return;
    const std::int64_t rows = size_of(order), length = size_of(summed);
    Labels both = order;
    both.insert(both.end(), summed.begin(), summed.end());
    const CountedVector<T> all = gathered(part, both);
    CountedVector<T> sums(static_cast<std::size_t>(rows));
    for (std::int64_t row = 0; row < rows; ++row) {
      Sum sum = 0;
      for (std::int64_t k = 0; k < length; ++k)
        sum += static_cast<Sum>(all[static_cast<std::size_t>(row * length + k)]);
      sums[static_cast<std::size_t>(row)] = static_cast<T>(sum);
    }
    replace(part, std::move(order), std::move(sums));
  }

  /// Labels of two parts: in both and kept, of one alone, in both and summed.
  struct Product {
    Labels batch, rows, columns, summed;
  };
  Product product_of(std::size_t a, std::size_t b) const {
    Product p;
    for (const std::size_t label : parts_[a].labels)
      (!holds(parts_[b].labels, label) ? p.rows : needed(label, a, b) ? p.batch : p.summed).push_back(label);
    for (const std::size_t label : parts_[b].labels)
      if (!holds(parts_[a].labels, label)) p.columns.push_back(label);
    return p;
  }

  /// With which the first part makes the least.
  std::size_t smallest_partner() const {
    std::size_t best = 1;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 1; i < parts_.size(); ++i) {
      const Product p = product_of(0, i);
      double size = 1;
      for (const Labels *labels : {&p.batch, &p.rows, &p.columns})
        for (const std::size_t label : *labels) size *= static_cast<double>(dim(label));
      if (size < least) {
        least = size;
        best = i;
      }
    }
    return best;
  }

  static Labels joined_labels(const Labels &a, const Labels &b, const Labels &c) {
    Labels all = a;
    all.insert(all.end(), b.begin(), b.end());
    all.insert(all.end(), c.begin(), c.end());
    return all;
  }

  Part<T> join(const Part<T> &a, const Part<T> &b) const {
    const Product p = product_of(0, static_cast<std::size_t>(&b - parts_.data()));
    const std::int64_t batch = size_of(p.batch), m = size_of(p.rows), n = size_of(p.columns), k = size_of(p.summed);
    const CountedVector<T> left = gathered(a, joined_labels(p.batch, p.rows, p.summed)),
                           right = gathered(b, joined_labels(p.batch, p.summed, p.columns));
    if (size_of(joined_labels(p.batch, p.rows, p.columns)) > most_)
      fail(QTN_ENOMEM, "Einsum: products of ", batch, "x", m, "x", n, " are over the limit of ", most_,
           " elements for operands of this size");
    CountedVector<T> out(static_cast<std::size_t>(batch * m * n));
    for (std::int64_t i = 0; i < batch; ++i) {
      const T *x = left.data() + i * m * k, *w = right.data() + i * k * n;
      T *y = out.data() + i * m * n;
      if constexpr (std::is_floating_point_v<T>) {
        if (m > 0 && n > 0) blas::gemm(m, n, k, T(1), x, {k}, w, {n}, T(0), y, n);
      } else {
        for (std::int64_t row = 0; row < m; ++row)
          for (std::int64_t j = 0; j < k; ++j)
            for (std::int64_t column = 0; column < n; ++column)
              y[row * n + column] += x[row * k + j] * w[j * n + column];
      }
    }
    Part<T> part;
    replace(part, joined_labels(p.batch, p.rows, p.columns), std::move(out));
    return part;
  }

  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, T>;

  const EinsumEquation &equation_;
  const std::int64_t most_;
  std::vector<Part<T>> parts_;
};

EinsumEquation equation_of(const Call &call) {
  if (!call.attrs.has("equation")) fail(QTN_EINVAL, "Einsum: attribute \"equation\" is missing");
  return parse_equation(call.attrs.get_string("equation", ""), call.inputs);
}

Types infer(const Call &call) {
  constexpr std::size_t kMost = 64;
  if (call.inputs.size() > kMost)
    fail(QTN_EUNSUPPORTED, "Einsum: ", call.inputs.size(), " operands are over the limit of ", kMost);
  require_number("Einsum", "input 0", *call.in(0));
  for (const Tensor *x : call.inputs) require_same_dtype("Einsum", *call.in(0), *x);
  const EinsumEquation equation = equation_of(call);
  if (equation.result.size() > kMaxRank)
    fail(QTN_ESHAPE, "Einsum: the result has rank ", equation.result.size(), ", over the limit of ", kMaxRank);
  Shape shape;
  for (const std::size_t label : equation.result) shape.push_back(equation.dims[label]);
  return {{call.in(0)->dtype(), shape}};
}

/// Integers are summed in 64 bits and lose the high ones, as they do everywhere.
template <class T>
void run_as(const Call &call, const Tensor &y) {
  const EinsumEquation equation = equation_of(call);
  Size elements = y.count();
  for (const Tensor *x : call.inputs) elements = elements + x->count();
  Contraction<T> contraction(equation, elements.as_signed());
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor &x = *call.inputs[i];
    if constexpr (std::is_floating_point_v<T>) {
      contraction.add(equation.operands[i], x.shape(), x.as<const T>(), {});
    } else {
      CountedVector<T> wide(static_cast<std::size_t>(x.count()));
      dispatch_number(x.dtype(), [&](auto zero) {
        const auto *from = x.as<const decltype(zero)>();
        std::transform(from, from + x.count(), wide.begin(), [](auto v) { return static_cast<T>(v); });
      });
      const T *data = wide.data();
      contraction.add(equation.operands[i], x.shape(), data, std::move(wide));
    }
  }
  const CountedVector<T> result = contraction.run();
  dispatch_wrapping(y.dtype(), [&](auto zero) {
    using Y = decltype(zero);
    std::transform(result.begin(), result.end(), y.as<Y>(), [](T v) { return static_cast<Y>(v); });
  });
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Tensor &y = outputs[0];
  if (y.dtype() == QTN_FLOAT32) return run_as<float>(call, y);
  y.dtype() == QTN_FLOAT64 ? run_as<double>(call, y) : run_as<std::uint64_t>(call, y);
}

/// As a product of input 0 [m][k] and the largest of the others [k][n]: the root of mk * kn / mn.
double work(const Call &call) {
  const EinsumEquation equation = equation_of(call);
  double results = 1, other = 1;
  for (const std::size_t label : equation.result) results *= static_cast<double>(equation.dims[label]);
  for (std::size_t i = 1; i < call.inputs.size(); ++i)
    other = std::max(other, static_cast<double>(call.in(i)->count()));
  return std::sqrt(static_cast<double>(call.in(0)->count()) * other / std::max(1.0, results));
}

}  // namespace

const OpDef kEinsum{.name = "Einsum",
                    .min_inputs = 1,
                    .max_inputs = kVariadic,
                    .max_outputs = 1,
                    .attrs = kAttrs,
                    .infer = infer,
                    .run = run,
                    .work = work};

}  // namespace qtn::ops
