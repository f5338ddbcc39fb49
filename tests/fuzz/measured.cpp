// SPDX-License-Identifier: Apache-2.0
#include "measured.hpp"

#include <array>
#include <cctype>
#include <sstream>

namespace fuzz {
namespace {

/// A form of an operator. Attributes are NAME=LENGTH, NAME=[LENGTH,...] or NAME=:TEXT. Operands are KIND:LENGTH,...: `?` in front of
/// one that may be absent, `&` of one that is there where the one before it is, "-" for none. A LENGTH is a sum of
/// products of digits and letters; a letter has the same value everywhere.
struct Form {
  const char *op, *attrs, *operands;
};

constexpr Form kForms[] = {
    {"Adagrad", "", "f: T: f:b,d f:b,d f:b,d"},
    {"Adam", "", "f: T: f:b,d f:b,d f:b,d f:b,d"},
    {"Momentum", "", "f: T: f:b,d f:b,d f:b,d"},
    {"Attention", "", "f:b,h,q,d f:b,g,k,d f:b,g,k,v ?m:q,k - - ?L:b"},
    {"Attention", "", "f:b,h,q,d f:b,g,k,d f:b,g,k,v ?m:1,h,q,p+k f:b,g,p,d f:b,g,p,v"},
    {"Attention", "q_num_heads=h kv_num_heads=g", "f:b,q,h*d f:b,k,g*d f:b,k,g*v ?m:b,1,q,k"},
    {"BitShift", "", "u:b,q u:b,q"},
    {"BitwiseAnd", "", "u:b,q u:b,q"},
    {"CausalConvWithState", "", "f:b,c,q f:c,1,e+1 ?f:c ?f:b,c,e"},
    {"CenterCropPad", "", "f:b,q L:2"},
    {"Compress", "", "f:b,q B:q"},
    {"DeformConv", "kernel_shape=[2,2] pads=[0,0,0,0] strides=[1,1] dilations=[1,1] group=1 offset_group=1",
     "f:b,c,3,3 f:v,c,2,2 f:b,8,2,2 ?f:v ?f:b,4,2,2"},
    {"DFT", "", "f:b,q,1 ?T: ?T:"},
    {"GRU", "hidden_size=d", "f:q,b,v f:1,3*d,v f:1,3*d,d ?f:1,6*d ?l:b ?f:1,b,d"},
    {"GRU", "hidden_size=d direction=:bidirectional", "f:q,b,v f:2,3*d,v f:2,3*d,d ?f:2,6*d ?l:b ?f:2,b,d"},
    {"GatherElements", "axis=1", "f:b,q P:b,k"},
    {"GatherND", "batch_dims=0", "f:b,q P:k,1"},
    {"GridSample", "", "f:b,c,q,k f:b,v,d,2"},
    {"GroupNormalization", "num_groups=g", "f:b,h,q f:h f:h"},
    {"GroupQueryAttention", "num_heads=h kv_num_heads=g", "f:b,q,h*d+2*g*d - - f:b,g,p,d f:b,g,p,d l:b t:1"},
    {"GroupQueryAttention", "num_heads=h kv_num_heads=g",
     "f:b,q,2*h*e f:b,q,2*g*e f:b,q,2*g*e ?f:b,g,p,2*e &f:b,g,p,2*e l:b t:1 ?f:9,e &f:9,e ?P:b,q"},
    {"GroupQueryAttention", "num_heads=h kv_num_heads=g local_window_size=2 sliding_window_cache=1",
     "f:b,q,h*d+2*g*d - - f:b,g,2*p,d f:b,g,2*p,d l:b t:1 - - - - ?f:h"},
    {"GroupQueryAttention",
     "num_heads=h kv_num_heads=g kv_cache_bit_width=4 k_quant_type=:PER_TENSOR v_quant_type=:PER_TENSOR",
     "f:b,q,2*h*d f:b,q,2*g*d f:b,q,2*g*d ?u:b,g,p,d &u:b,g,p,d l:b t:1 - - - ?f:1,h,q,k ?f:h f:1 f:1"},
    {"LSTM", "hidden_size=d", "f:q,b,v f:1,4*d,v f:1,4*d,d ?f:1,8*d ?l:b ?f:1,b,d ?f:1,b,d ?f:1,3*d"},
    {"LSTM", "hidden_size=d direction=:bidirectional",
     "f:q,b,v f:2,4*d,v f:2,4*d,d ?f:2,8*d ?l:b ?f:2,b,d ?f:2,b,d ?f:2,3*d"},
    {"LinearAttention", "q_num_heads=h kv_num_heads=g", "f:b,q,h*d f:b,q,g*d f:b,q,g*v ?f:b,g,d,v ?f:b,q,g ?f:b,q,1"},
    {"MaxUnpool", "kernel_shape=[2,2] strides=[2,2] pads=[0,0,0,0]", "f:b,c,q,k P:b,c,q,k"},
    {"MoE", "k=1", "f:q,d f:q,h f:h,v,d ?f:h,v f:h,d,v ?f:h,d ?f:h,v,d &f:h,v"},
    {"Mod", "", "f:b,q f:b,q"},
    {"MultiHeadAttention", "num_heads=h", "f:b,q,h*d f:b,k,h*d f:b,k,h*v ?f:2*h*d+h*v ?l:b,k ?f:1,h,q,k"},
    {"MultiHeadAttention", "num_heads=h", "f:b,q,h*d f:b,h,k,d f:b,h,k,v - ?l:2*b ?f:b,1,q,p+k f:b,h,p,d f:b,h,p,v"},
    {"NegativeLogLikelihoodLoss", "", "f:b,c,q P:b,q ?f:c"},
    {"NonMaxSuppression", "", "f:b,q,4 f:b,c,q ?T: ?f: ?f:"},
    {"OneHot", "", "P:b,q T: f:2"},
    {"QMoE", "k=1 expert_weight_bits=8", "f:q,d f:q,h u:h,v,d f:h,v ?f:h,v u:h,d,v f:h,d ?f:h,d - - - ?u:h,v ?u:h,d"},
    {"RMSNormalization", "axis=2", "f:b,q,d f:d"},
    {"RNN", "hidden_size=d", "f:q,b,v f:1,d,v f:1,d,d ?f:1,2*d ?l:b ?f:1,b,d"},
    {"RNN", "hidden_size=d direction=:bidirectional", "f:q,b,v f:2,d,v f:2,d,d ?f:2,2*d ?l:b ?f:2,b,d"},
    {"ReverseSequence", "", "f:q,b,d P:b"},
    {"RoiAlign", "", "f:b,c,q,k f:p,4 P:p"},
    {"RotaryEmbedding", "num_heads=h", "f:b,q,2*h*e f:9,e f:9,e P:b,q"},
    {"RotaryEmbedding", "", "f:b,h,q,2*e f:b,q,e f:b,q,e"},
    {"ScatterElements", "axis=1", "f:b,q P:b,k f:b,k"},
    {"ScatterND", "", "f:b,q P:k,1 f:k,q"},
    {"SimplifiedLayerNormalization", "axis=2", "f:b,q,d f:d"},
    {"SoftmaxCrossEntropyLoss", "", "f:b,c,q P:b,q ?f:c"},
    {"SwiGLU", "", "f:b,d f:b,d"},
    {"TensorScatter", "axis=1", "f:b,q+k,d f:b,k,d ?P:b"},
    {"TfIdfVectorizer",
     "min_gram_length=1 max_gram_length=2 ngram_counts=[0,2] ngram_indexes=[0,e,d] pool_int64s=[0,1,0,1]", "P:b,q"},
    {"TopK", "", "f:b,q L:1"},
    {"Trilu", "", "f:b,q,k ?T:"},
};

class Drawing {
 public:
  explicit Drawing(Bytes &bytes) : bytes_(bytes) {
    for (std::int64_t &value : values_) value = bytes.one_in(16) ? 0 : bytes.in(1, 5);
    of('b') = bytes.one_in(12) ? 0 : bytes.in(1, 2);
    of('g') = bytes.in(1, 2);
    of('h') = of('g') * bytes.in(1, 2);
    constexpr qdtype kOthers[] = {QTN_FLOAT64, QTN_FLOAT16, QTN_BFLOAT16};
    real_ = bytes.one_in(8) ? bytes.one_of(kOthers) : QTN_FLOAT32;
  }

  std::int64_t length(const std::string &text) {
    std::int64_t sum = 0, product = 1;
    for (const char c : text + "+") {
      if (c == '+')
        sum += product, product = 1;
      else if (std::isdigit(static_cast<unsigned char>(c)))
        product *= c - '0';
      else if (c != '*')
        product *= of(c);
    }
    return bytes_.one_in(96) ? bytes_.in(0, 6) : sum;
  }

  std::vector<std::int64_t> lengths(const std::string &text) {
    std::vector<std::int64_t> list;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) list.push_back(length(part));
    return list;
  }

  Operand operand(const std::string &text) {
    const std::vector<std::int64_t> shape = lengths(text.substr(2));
    Operand operand;
    switch (text[0]) {
      case 'f':
        operand.made = filled(real_, shape, bytes_.byte());
        break;
      case 'm': {
        const qdtype dtype = bytes_.one_in(2) ? QTN_BOOL : real_;
        operand.made = filled(dtype, shape, bytes_.byte());
        break;
      }
      case 'B':
        operand.made = filled(QTN_BOOL, shape, bytes_.byte());
        break;
      case 'u':
        operand.made = filled(QTN_UINT8, shape, bytes_.byte());
        break;
      case 'P':
        operand.made = numbers<std::int64_t>(QTN_INT64, shape, 3);
        break;
      case 'L':
      case 'T':
        operand.made = numbers<std::int64_t>(QTN_INT64, shape, 8);
        break;
      case 'l':
        operand.made = numbers<std::int32_t>(QTN_INT32, shape, 4);
        break;
      default:
        operand.made = numbers<std::int32_t>(QTN_INT32, shape, 9);
    }
    return operand;
  }

 private:
  std::int64_t &of(char letter) { return values_[static_cast<std::size_t>(letter - 'a') % values_.size()]; }

  /// From 0 to `most`; seldom one that no honest caller gives.
  template <typename T>
  Tensor numbers(qdtype dtype, const std::vector<std::int64_t> &shape, int most) {
    std::size_t count = 1;
    for (const std::int64_t dim : shape) count *= static_cast<std::size_t>(dim);
    std::vector<T> values;
    for (std::size_t i = 0; i < count; ++i)
      values.push_back(static_cast<T>(bytes_.one_in(64) ? awkward_int(bytes_) : bytes_.in(0, most)));
    return make<Tensor>(qtensor_create, dtype, shape.data(), shape.size(), nullptr, values.data(),
                        values.size() * sizeof(T));
  }

  Bytes &bytes_;
  std::array<std::int64_t, 26> values_{};
  qdtype real_;
};

}  // namespace

std::optional<Measured> measured(const std::string &op, Bytes &bytes) {
  std::vector<const Form *> forms;
  for (const Form &form : kForms)
    if (op == form.op) forms.push_back(&form);
  if (forms.empty() || bytes.one_in(16)) return {};
  const Form &form = *forms[bytes.byte() % forms.size()];
  Drawing drawing(bytes);
  Measured result;
  std::istringstream attrs(form.attrs);
  for (std::string text; attrs >> text;) {
    const std::size_t at = text.find('=');
    Attribute attr;
    attr.name = text.substr(0, at);
    attr.kind = text[at + 1] == '[' ? 'I' : text[at + 1] == ':' ? 's' : 'i';
    if (attr.kind == 's')
      attr.s = text.substr(at + 2);
    else if (attr.kind == 'I')
      attr.ints = drawing.lengths(text.substr(at + 2, text.size() - at - 3));
    else
      attr.i = bytes.one_in(32) ? awkward_int(bytes) : drawing.length(text.substr(at + 1));
    result.attrs.push_back(std::move(attr));
  }
  std::istringstream operands(form.operands);
  bool there = true;
  for (std::string text; operands >> text;) {
    if (text[0] == '?') there = bytes.one_in(2);
    if (text[0] != '?' && text[0] != '&') there = true;
    if (text[0] == '?' || text[0] == '&') text.erase(0, 1);
    result.operands.push_back(there && text != "-" ? drawing.operand(text) : Operand{});
  }
  while (!result.operands.empty() && result.operands.back().absent()) result.operands.pop_back();
  return result;
}

}  // namespace fuzz
