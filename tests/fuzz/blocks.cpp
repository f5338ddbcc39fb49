// SPDX-License-Identifier: Apache-2.0
// Several nodes at once, as exporters write them: what single nodes hardly ever come to, and sessions run as one step.
#include "growing.hpp"

namespace fuzz {
namespace {

using Shape = std::vector<std::int64_t>;

Attribute int_attr(const char *name, std::int64_t value) {
  return {.name = name, .kind = 'i', .i = value, .s = {}, .ints = {}, .floats = {}};
}
Attribute ints_attr(const char *name, Shape values) {
  return {.name = name, .kind = 'I', .s = {}, .ints = std::move(values), .floats = {}};
}
Attribute text_attr(const char *name, const char *text) {
  return {.name = name, .kind = 's', .s = text, .ints = {}, .floats = {}};
}

}  // namespace

void Growing::add_block() {
  try {
    switch (bytes_.byte() % 4) {
      case 0:
        return add_recurrent();
      case 1:
        return add_table();
      default:
        return add_attention();
    }
  } catch (const Refused &) {
  }
}

NamedTensor Growing::sequence() {
  for (std::size_t i = pool_.size(); i-- > 0;) {
    const qtensor *t = pool_[i].get();
    if (qtensor_dtype(t) != QTN_FLOAT32 || qtensor_rank(t) < 3 || qtensor_rank(t) > 4 || bytes_.one_in(4)) continue;
    if (qtensor_rank(t) == 3) return value(i);
    // Pixels become places, as those of an image.
    const NamedTensor flat = node("Reshape", {value(i), ints({0, 0, -1})});
    return node("Transpose", {flat}, {ints_attr("perm", {0, 2, 1})});
  }
  throw Refused();
}

NamedTensor Growing::weight(const Shape &shape) { return constant(filled(QTN_FLOAT32, shape, bytes_.byte())); }

NamedTensor Growing::ints(const Shape &values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return constant(make<Tensor>(qtensor_create, QTN_INT64, &count, std::size_t{1}, nullptr, values.data(),
                               values.size() * sizeof(std::int64_t)));
}

NamedTensor Growing::scalar(float value) {
  return constant(make<Tensor>(qtensor_create, QTN_FLOAT32, nullptr, std::size_t{0}, nullptr, &value, sizeof value));
}

NamedTensor Growing::projected(const NamedTensor &x, std::int64_t features) {
  NamedTensor y = node("MatMul", {x, perhaps_on_grid(weight({shape_of(x.tensor).back(), features}))});
  if (bytes_.one_in(2)) y = node("Add", {y, weight({features})});
  return perhaps_on_grid(y);
}

void Growing::add_attention() {
  const NamedTensor x = perhaps_on_grid(sequence()), others = bytes_.one_in(3) ? sequence() : x;
  const std::int64_t heads = bytes_.in(1, 3), depth = bytes_.one_in(4) ? bytes_.in(6, 20) : bytes_.in(1, 5);
  const auto split = [&](const NamedTensor &rows, bool turned) {
    const NamedTensor parts =
        node("Reshape", {rows, ints({0, bytes_.one_in(3) ? -1 : shape_of(rows.tensor)[1], heads, depth})});
    return node("Transpose", {parts}, {ints_attr("perm", turned ? Shape{0, 2, 3, 1} : Shape{0, 2, 1, 3})});
  };
  NamedTensor q, k, v;
  const bool turned = bytes_.one_in(2);  // keys at once, or by a node of their own
  if (bytes_.one_in(3)) {                // one product for all three
    const Shape shape = shape_of(x.tensor);
    const NamedTensor all = projected(x, 3 * heads * depth);
    const NamedTensor parts = node("Reshape", {all, ints({shape[0], shape[1], 3, heads, depth})});
    const NamedTensor lists = node("Transpose", {parts}, {ints_attr("perm", {2, 0, 3, 1, 4})});
    const bool gathered = bytes_.one_in(2);
    std::vector<NamedTensor> list;
    if (gathered)
      for (std::int64_t i = 0; i < 3; ++i)
        list.push_back(node(
            "Gather",
            {lists, constant(make<Tensor>(qtensor_create, QTN_INT64, nullptr, std::size_t{0}, nullptr, &i, sizeof i))},
            {int_attr("axis", 0)}));
    else
      for (const NamedTensor &part : nodes("Split", {lists, ints({1, 1, 1})}, {int_attr("axis", 0)}, 3))
        list.push_back(node("Squeeze", {part, ints({0})}));
    q = list[0], k = list[1], v = list[2];
    if (turned) k = node("Transpose", {k}, {ints_attr("perm", {0, 1, 3, 2})});
  } else {
    q = split(projected(x, heads * depth), false);
    k = split(projected(others, heads * depth), turned);
    v = split(projected(others, heads * depth), false);
  }
  if (!turned) k = node("Transpose", {k}, {ints_attr("perm", {0, 1, 3, 2})});
  const bool early = bytes_.one_in(2);
  if (early) q = node("Mul", {q, scalar(static_cast<float>(bytes_.in(1, 16)) / 16)});
  NamedTensor scores = perhaps_on_grid(node("MatMul", {q, k}));
  if (!early && !bytes_.one_in(4)) scores = node("Div", {scores, scalar(static_cast<float>(bytes_.in(1, 16)) / 4)});
  const Shape shape = shape_of(scores.tensor);
  for (int masks = bytes_.in(0, 2); masks > 0; --masks) {
    Shape mask = shape;
    for (std::size_t axis = 0; axis < 3; ++axis)
      if (bytes_.one_in(2)) mask[axis] = 1;
    if (bytes_.one_in(3)) mask.erase(mask.begin(), mask.begin() + bytes_.in(1, 3));
    if (bytes_.one_in(3))
      scores = node("Where",
                    {constant(filled(QTN_BOOL, mask, bytes_.byte())), scores, scalar(bytes_.one_in(4) ? -1e9F : -8)});
    else
      scores = node("Add", {scores, weight(mask)});
  }
  const NamedTensor shares = perhaps_on_grid(node("Softmax", {scores}, {int_attr("axis", bytes_.one_in(2) ? -1 : 3)}));
  const NamedTensor read =
      node("Transpose", {perhaps_on_grid(node("MatMul", {shares, v}))}, {ints_attr("perm", {0, 2, 1, 3})});
  const NamedTensor joined = node("Reshape", {read, ints({shape[0], shape[2], heads * depth})});
  if (bytes_.one_in(3)) return;
  const NamedTensor y = projected(joined, shape_of(x.tensor)[2]);
  if (bytes_.one_in(2)) node("Add", {x, y});
}

void Growing::add_recurrent() {
  constexpr const char *kOps[] = {"LSTM", "GRU", "RNN"};
  const NamedTensor x = perhaps_on_grid(sequence());
  const std::string op = bytes_.one_of(kOps);
  const std::int64_t gates = op == "LSTM"  ? 4
                             : op == "GRU" ? 3
                                           : 1,
                     features = shape_of(x.tensor)[2], hidden = bytes_.one_in(4) ? bytes_.in(6, 20) : bytes_.in(1, 5);
  const bool both = bytes_.one_in(3), samples_first = bytes_.one_in(3);
  const std::int64_t directions = both ? 2 : 1, samples = shape_of(x.tensor)[samples_first ? 0 : 1];
  std::vector<NamedTensor> operands = {x, perhaps_on_grid(weight({directions, gates * hidden, features})),
                                       perhaps_on_grid(weight({directions, gates * hidden, hidden}))};
  std::vector<Attribute> attrs = {int_attr("hidden_size", hidden), int_attr("layout", samples_first ? 1 : 0),
                                  text_attr("direction", both               ? "bidirectional"
                                                         : bytes_.one_in(3) ? "reverse"
                                                                            : "forward")};
  operands.push_back(bytes_.one_in(4) ? NamedTensor{"", nullptr} : weight({directions, 2 * gates * hidden}));
  operands.push_back({"", nullptr});
  if (bytes_.one_in(3))
    operands.push_back(weight(samples_first ? Shape{samples, directions, hidden} : Shape{directions, samples, hidden}));
  while (operands.back().tensor == nullptr) operands.pop_back();
  if (op == "GRU") attrs.push_back(int_attr("linear_before_reset", bytes_.one_in(2)));
  const std::vector<NamedTensor> y =
      nodes(op.c_str(), operands, attrs, static_cast<std::size_t>(bytes_.in(1, op == "LSTM" ? 3 : 2)));
  if (bytes_.one_in(3)) return;
  NamedTensor rows;
  if (!both && bytes_.one_in(2)) {
    rows = node("Squeeze", {y[0], ints({samples_first ? 2 : 1})});
  } else {
    const NamedTensor parts = samples_first ? y[0] : node("Transpose", {y[0]}, {ints_attr("perm", {0, 2, 1, 3})});
    rows = node("Reshape", {parts, ints({0, 0, -1})});
  }
  if (bytes_.one_in(2)) projected(rows, bytes_.in(1, 5));
}

void Growing::add_table() {
  // Labels of inputs are from -2 to 4. A table that becomes integers has 1024 elements or more.
  const Shape lengths = bytes_.one_in(2) ? Shape{bytes_.in(5, 9), bytes_.in(1, 9)} : Shape{128, bytes_.in(8, 12)};
  const NamedTensor table = perhaps_on_grid(weight(lengths));
  const qdtype dtype = bytes_.one_in(3) ? QTN_INT32 : QTN_INT64;
  const Shape places = {bytes_.in(1, 2), bytes_.in(1, 9)};
  given_.push_back(filled(dtype, places, bytes_.byte()));
  if (!given_.back()) throw std::bad_alloc();
  const NamedTensor ids{"i" + std::to_string(given_.size() - 1), given_.back().get()};
  graph_.inputs.push_back(ids);
  NamedTensor x = node("Gather", {table, ids}, {int_attr("axis", 0)});
  if (bytes_.one_in(2)) x = node("Add", {x, weight({shape_of(x.tensor)[1], shape_of(x.tensor)[2]})});
  if (bytes_.one_in(2))
    node("LayerNormalization", {x, weight({shape_of(x.tensor)[2]}), weight({shape_of(x.tensor)[2]})});
}

}  // namespace fuzz
