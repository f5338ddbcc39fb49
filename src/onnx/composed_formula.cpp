// SPDX-License-Identifier: Apache-2.0
// Nodes from a text, which takes less code than a call for each.
#include <charconv>
#include <limits>

#include "onnx/composing.hpp"

namespace qtn::onnx {
namespace {

/// Cuts off what is in front of the next separator.
std::string_view next_of(std::string_view &text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view first = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return first;
}

std::int64_t integer(std::string_view text) {
  std::int64_t value = std::numeric_limits<std::int64_t>::max();  // which is the end
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Attr number_or_list(std::string_view text) {
  if (text[0] != '[') return integer(text);
  std::vector<std::int64_t> list;
  for (text = text.substr(1, text.size() - 2); !text.empty();) list.push_back(integer(next_of(text, ',')));
  return list;
}

}  // namespace

std::string Composing::formula(std::string_view text, std::initializer_list<std::string_view> given,
                               const std::string &output) {
  Names made;
  while (!text.empty()) {
    std::string_view node = next_of(text, ';');
    const std::string op(next_of(node, ' '));
    Names operands;
    Attrs attrs;
    while (!node.empty()) {
      std::string_view word = next_of(node, ' ');
      if (word.find('=') != word.npos) {
        const std::string name(next_of(word, '='));
        attrs.set(name, number_or_list(word));
      } else if (word[0] >= 'a' && word != "end") {
        operands.emplace_back(given.begin()[word[0] - 'a']);
      } else if (word[0] >= 'A' && word[0] <= 'Z') {
        operands.push_back(made[static_cast<std::size_t>(word[0] - 'A')]);
      } else {
        operands.push_back(make(*tensor_of(number_or_list(word))));
      }
    }
    made.push_back(one(op.c_str(), std::move(operands), attrs, text.empty() ? output : ""));
  }
  return made.back();
}

std::string move_first_axis(Composing &c, const std::string &x, std::int64_t axis, const std::string &output) {
  // D is an error where x has no such axis.
  const std::int64_t behind = axis == -1 ? std::numeric_limits<std::int64_t>::max() : axis < 0 ? axis + 1 : axis;
  return c.formula(
      "Shape a;Slice A [0] [1] [0];Slice A [1] [end] [0];Gather A b;Mul D 0;Add E c;Slice C [0] F [0];"
      "Slice C F [end] [0];ReduceProd G;ReduceProd H;Concat B I J axis=0;Reshape a K allowzero=1;"
      "Transpose L perm=[1,0,2];Concat G B H axis=0;Reshape M N allowzero=1",
      {x, c.make_ints({axis}), c.make_ints({behind})}, output);
}

}  // namespace qtn::onnx
