// SPDX-License-Identifier: Apache-2.0
// TfIdfVectorizer of integers: how often sequences of a pool stand in each row.
#include <map>

#include "ops/common/infer.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {
    {"max_gram_length", AttrSpec::kInt}, {"max_skip_count", AttrSpec::kInt},   {"min_gram_length", AttrSpec::kInt},
    {"mode", AttrSpec::kString},         {"ngram_counts", AttrSpec::kInts},    {"ngram_indexes", AttrSpec::kInts},
    {"pool_int64s", AttrSpec::kInts},    {"pool_strings", AttrSpec::kStrings}, {"weights", AttrSpec::kFloats}};
constexpr const char *kName = "TfIdfVectorizer";

using Ints = std::vector<std::int64_t>;

/// The pool as a tree: where a sequence leads to, and its number in the pool.
struct Tree {
  struct Place {
    std::map<std::int64_t, std::size_t> next;
    std::int64_t number = -1;
  };
  std::vector<Place> places{Place{}};  ///< the first one is where all sequences begin

  void add(std::span<const std::int64_t> gram, std::int64_t number) {
    std::size_t at = 0;
    for (const std::int64_t item : gram) {
      const auto [entry, is_new] = places[at].next.try_emplace(item, places.size());
      at = entry->second;
      if (is_new) places.emplace_back();
    }
    places[at].number = number;
  }
};

struct Form {
  explicit Form(const Attrs &attrs)
      : shortest(attrs.get_int("min_gram_length", 1)),
        longest(attrs.get_int("max_gram_length", 1)),
        skips(attrs.get_int("max_skip_count", 0)),
        columns(attrs.get_ints("ngram_indexes")),
        mode(attrs.get_string("mode", "TF")),
        weights(attrs.get_floats("weights")) {
    if (attrs.has("pool_strings")) fail(QTN_EUNSUPPORTED, kName, ": pool_strings holds strings, and tensors have none");
    if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
      fail(QTN_EINVAL, kName, ": mode is \"", mode, "\", not \"TF\", \"IDF\" or \"TFIDF\"");
    if (shortest < 1 || longest < shortest || skips < 0)
      fail(QTN_EINVAL, kName, ": min_gram_length is ", shortest, ", max_gram_length ", longest, ", max_skip_count ",
           skips);
    if (columns.empty()) fail(QTN_EINVAL, kName, ": ngram_indexes is empty");
    for (const std::int64_t column : columns) {
      if (column < 0) fail(QTN_EINVAL, kName, ": ngram_indexes has ", column);
      width = std::max(width, add_dims(kName, column, 1));
    }
    if (!weights.empty() && weights.size() != columns.size())
      fail(QTN_EINVAL, kName, ": ", weights.size(), " weights for ", columns.size(), " ngram_indexes");
  }

  std::int64_t shortest, longest, skips, width = 0;
  Ints columns;
  std::string mode;
  std::vector<double> weights;
};

Tree tree_of(const Form &f, const Attrs &attrs) {
  const Ints pool = attrs.get_ints("pool_int64s"), begins = attrs.get_ints("ngram_counts");
  const auto size = static_cast<std::int64_t>(pool.size());
  Tree tree;
  std::size_t number = 0;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const std::int64_t begin = begins[i], end = i + 1 < begins.size() ? begins[i + 1] : size,
                       length = static_cast<std::int64_t>(i) + 1;
    if (begin < 0 || end < begin || end > size || (end - begin) % length != 0)
      fail(QTN_EINVAL, kName, ": ngram_counts says that sequences of ", length, " are the elements from ", begin,
           " to ", end, " of the ", size, " of pool_int64s");
    for (std::int64_t at = begin; at < end; at += length, ++number) {
      if (number >= f.columns.size())
        fail(QTN_EINVAL, kName, ": pool_int64s has more sequences than the ", f.columns.size(), " of ngram_indexes");
      if (length >= f.shortest && length <= f.longest)
        tree.add(std::span(pool).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(length)),
                 static_cast<std::int64_t>(number));
    }
  }
  return tree;
}

Types infer(const Call &call) {
  const Tensor &x = *call.in(0);
  require_dtype(kName, "x", x, {QTN_INT64, QTN_INT32});
  const Form f(call.attrs);
  tree_of(f, call.attrs);
  if (x.rank() < 1 || x.rank() > 2) fail(QTN_ESHAPE, kName, ": x must have 1 or 2 axes, it is ", to_string(x.shape()));
  return {{QTN_FLOAT32, x.rank() == 1 ? Shape{f.width} : Shape{x.dim(0), f.width}}};
}

/// Where each element of a row leads to as the first one of a sequence, 0 where no sequence begins with it.
std::vector<std::size_t> beginnings(const Tree &tree, std::span<const std::int64_t> row) {
  std::vector<std::size_t> places(row.size());
  for (std::size_t i = 0; i < row.size(); ++i)
    if (const auto found = tree.places[0].next.find(row[i]); found != tree.places[0].next.end())
      places[i] = found->second;
  return places;
}

/// How often each sequence of the pool stands in a row, elements of one up to `skips` others apart.
Ints count(const Form &f, const Tree &tree, std::span<const std::int64_t> row) {
  Ints counts(f.columns.size());
  const auto length = static_cast<std::int64_t>(row.size());
  const std::vector<std::size_t> firsts = beginnings(tree, row);
  for (std::int64_t step = 1; step - 1 <= f.skips; ++step) {
    const std::int64_t shortest = step == 1 ? f.shortest : std::max<std::int64_t>(f.shortest, 2);
    // No sequence that is long enough begins behind these.
    const std::int64_t begins = shortest - 1 > (length - 1) / step ? 0 : length - (shortest - 1) * step;
    if (begins == 0) break;
    for (std::int64_t first = 0; first < begins; ++first) {
      std::size_t at = firsts[static_cast<std::size_t>(first)];
      for (std::int64_t taken = 1, i = first; at != 0; ++taken) {
        const auto &[next, number] = tree.places[at];
        if (taken >= shortest && number >= 0) ++counts[static_cast<std::size_t>(number)];
        if (taken == f.longest || next.empty() || length - i <= step) break;
        i += step;
        const auto found = next.find(row[static_cast<std::size_t>(i)]);
        at = found == next.end() ? 0 : found->second;
      }
    }
  }
  return counts;
}

void run(const Call &call, std::span<Tensor> outputs) {
  const Form f(call.attrs);
  const Tree tree = tree_of(f, call.attrs);
  const Ints x = int_values(*call.in(0), "x");
  const auto width = static_cast<std::size_t>(f.width);
  const std::size_t rows = call.in(0)->rank() == 1 ? 1 : static_cast<std::size_t>(call.in(0)->dim(0));
  const std::size_t length = rows == 0 ? 0 : x.size() / rows;
  for (std::size_t r = 0; r < rows; ++r) {
    const Ints counts = count(f, tree, std::span(x).subspan(r * length, length));
    Ints sums(width);
    for (std::size_t number = 0; number < counts.size(); ++number)
      sums[static_cast<std::size_t>(f.columns[number])] += counts[number];
    float *y = outputs[0].as<float>() + r * width;
    for (std::size_t c = 0; c < width; ++c) {
      const auto times = static_cast<float>(sums[c]);
      const float weight = c < f.weights.size() ? static_cast<float>(f.weights[c]) : 1;
      y[c] = f.mode == "TF" ? times : f.mode == "TFIDF" ? times * weight : times > 0 ? weight : 0;
    }
  }
}

/// Every element of a row begins a sequence for each distance.
double work(const Call &call) {
  const Form f(call.attrs);
  const Tensor &x = *call.in(0);
  const std::int64_t length = x.rank() == 0 ? 1 : x.shape().back();
  return static_cast<double>(length) * (static_cast<double>(std::min(f.skips, length)) + 1) *
         static_cast<double>(std::min(f.longest, length)) / static_cast<double>(f.width);
}

}  // namespace

const OpDef kTfIdfVectorizer{.name = kName,
                             .min_inputs = 1,
                             .max_inputs = 1,
                             .max_outputs = 1,
                             .attrs = kAttrs,
                             .infer = infer,
                             .run = run,
                             .work = work,
                             .output_dtype = makes<QTN_FLOAT32>};

}  // namespace qtn::ops
