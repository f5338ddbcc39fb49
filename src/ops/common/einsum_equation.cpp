// SPDX-License-Identifier: Apache-2.0
#include "ops/common/einsum_equation.hpp"

namespace qtn::ops {
namespace {

constexpr std::size_t kLetters = 128;  // ASCII; those of the ellipsis follow, the last axis first
constexpr std::string_view kEllipsis = "...";

class Parser {
 public:
  Parser(const std::string &text, std::span<const Tensor *const> operands) : operands_(operands) {
    for (const char c : text)
      if (c != ' ') text_ += c;
    equation_.dims.assign(kLetters + kMaxRank, 1);
  }

  EinsumEquation parse() {
    const std::size_t arrow = text_.find("->");
    std::string_view left = std::string_view(text_).substr(0, arrow);
    std::vector<std::string_view> terms;
    for (;;) {
      const std::size_t comma = left.find(',');
      terms.push_back(left.substr(0, comma));
      if (comma == left.npos) break;
      left.remove_prefix(comma + 1);
    }
    if (terms.size() != operands_.size())
      refuse(cat("names ", terms.size(), " operands, there are ", operands_.size()));
    for (std::size_t i = 0; i < terms.size(); ++i) add_operand(terms[i], operands_[i]->shape());
    if (arrow == std::string::npos)
      for (std::size_t label = kLetters + most_; label-- > kLetters;) equation_.result.push_back(label);
    if (arrow == std::string::npos)
      for (std::size_t c = 0; c < kLetters; ++c) {
        if (times_[c] == 1) equation_.result.push_back(c);
      }
    else
      add_result(std::string_view(text_).substr(arrow + 2));
    return std::move(equation_);
  }

 private:
  [[noreturn]] void refuse(const std::string &what) const {
    fail(QTN_EINVAL, "Einsum: equation \"", text_, "\" ", what);
  }

  /// Labels of a term whose ellipsis stands for `rest` axes.
  std::vector<std::size_t> labels_of(std::string_view term, std::size_t rest) const {
    std::vector<std::size_t> labels;
    bool dots = false;
    for (std::size_t i = 0; i < term.size(); ++i) {
      const char c = term[i];
      if (term.substr(i).starts_with(kEllipsis) && !dots) {
        for (std::size_t k = rest; k-- > 0;) labels.push_back(kLetters + k);
        i += kEllipsis.size() - 1;
        dots = true;
      } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
        labels.push_back(static_cast<std::size_t>(c));
      } else {
        refuse(cat("has \"", std::string(term), "\", which is no list of letters"));
      }
    }
    return labels;
  }

  void add_operand(std::string_view term, const Shape &shape) {
    const bool dots = term.find(kEllipsis) != term.npos;
    const std::size_t letters = term.size() - (dots ? kEllipsis.size() : 0);
    if (dots ? letters > shape.size() : letters != shape.size())
      refuse(cat("has \"", std::string(term), "\" for an operand of ", to_string(shape)));
    most_ = std::max(most_, shape.size() - letters);
    std::vector<std::size_t> labels = labels_of(term, shape.size() - letters);
    for (std::size_t axis = 0; axis < labels.size(); ++axis) {
      std::int64_t &dim = equation_.dims[labels[axis]];
      if (dim != 1 && shape[axis] != 1 && dim != shape[axis])
        refuse(cat("meets dimensions of ", dim, " and ", shape[axis], " under one label"));
      if (dim == 1) dim = shape[axis];
      if (labels[axis] < kLetters) times_[labels[axis]] += 1;
    }
    equation_.operands.push_back(std::move(labels));
  }

  void add_result(std::string_view term) {
    equation_.result = labels_of(term, most_);
    for (std::size_t i = 0; i < equation_.result.size(); ++i) {
      const std::size_t label = equation_.result[i];
      if (label < kLetters && times_[label] == 0) refuse(cat("makes \"", static_cast<char>(label), "\" of nothing"));
      if (std::count(equation_.result.begin(), equation_.result.end(), label) > 1)
        refuse(cat("makes \"", static_cast<char>(label), "\" twice"));
    }
  }

  std::string text_;
  std::span<const Tensor *const> operands_;
  EinsumEquation equation_;
  std::array<std::size_t, kLetters> times_{};  ///< that a letter is in operands
  std::size_t most_ = 0;                       ///< axes of the ellipsis
};

}  // namespace

EinsumEquation parse_equation(const std::string &text, std::span<const Tensor *const> operands) {
  return Parser(text, operands).parse();
}

}  // namespace qtn::ops
