// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "measured.hpp"

namespace fuzz {

const std::vector<Schema> &schemas() {
  static const std::vector<Schema> rows = {
#include "schemas.inc"
  };
  return rows;
}

namespace {

using Shape = std::vector<std::int64_t>;

// What operands of an operator are like, one letter each; operand() says which. Behind ? they may be absent. Operators
// that are not here get values of the pool.
const std::map<std::string, const char *> kOperands = {
    {"Add", "xb"},
    {"And", "oo"},
    {"BatchNormalization", "xvvvp"},
    {"Clip", "x?s?s"},
    {"Concat", "xcc"},
    {"ConstantOfShape", "d"},
    {"Conv", "xw?V"},
    {"ConvInteger", "qW?z?Z"},
    {"ConvTranspose", "xt?V"},
    {"CumSum", "xA"},
    {"DequantizeLinear", "qS?z"},
    {"Div", "xb"},
    {"DynamicMatMul", "xm"},
    {"DynamicQuantizeConv", "xW?SZ?V"},
    {"DynamicQuantizeMatMul", "xM?SZ?N"},
    {"Equal", "xb"},
    {"Expand", "xe"},
    {"Gather", "xi"},
    {"Gemm", "xm?N"},
    {"Greater", "xb"},
    {"GreaterOrEqual", "xb"},
    {"InstanceNormalization", "xvv"},
    {"LayerNormalization", "xl?l"},
    {"Less", "xb"},
    {"LessOrEqual", "xb"},
    {"MatMul", "xm"},
    {"MatMulInteger", "qM?z?Z"},
    {"MatMulIntegerToFloat", "qMSS?z?Z?N"},
    {"MatMulNBits", "xGH?J"},
    {"Max", "xb"},
    {"Min", "xb"},
    {"Mul", "xb"},
    {"Not", "o"},
    {"Or", "oo"},
    {"PRelu", "xb"},
    {"Pad", "xP?s?a"},
    {"Pow", "xb"},
    {"QGemm", "qSzMSZ?NSz"},
    {"QLinearAdd", "qSzqSzSz"},
    {"QLinearAveragePool", "qSzSz"},
    {"QLinearConcat", "SzqSzqSz"},
    {"QLinearConv", "qSzWSZSz?Y"},
    {"QLinearGlobalAveragePool", "qSzSz"},
    {"QLinearLeakyRelu", "qSzSz"},
    {"QLinearMatMul", "qSzMSZSz"},
    {"QLinearMul", "qSzqSzSz"},
    {"QLinearSigmoid", "qSzSz"},
    {"QLinearSoftmax", "qSzSz"},
    {"QuantizeLinear", "xS?z"},
    {"ReduceMax", "x?a"},
    {"ReduceMean", "x?a"},
    {"ReduceMin", "x?a"},
    {"ReduceProd", "x?a"},
    {"ReduceSum", "x?a"},
    {"Reshape", "xh"},
    {"Resize", "x?rfu"},
    {"Slice", "xkkB?j"},
    {"Split", "x"},
    {"Squeeze", "x?a"},
    {"Sub", "xb"},
    {"Tile", "xT"},
    {"Unsqueeze", "xa"},
    {"Where", "oxb"},
};

// What texts an attribute may be; behind them some that it may not.
const std::map<std::string, std::vector<const char *>> kTexts = {
    {"auto_pad", {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}},
    {"coordinate_transformation_mode",
     {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"}},
    {"nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}},
    {"keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"}},
    {"approximate", {"none", "tanh"}},
    {"numerics", {"onnx", "fbgemm", "qnnpack"}},
    {"update_rule", {"linear", "gated", "delta", "gated_delta"}},
    {"activation", {"none", "silu", "swish"}},
    {"direction", {"forward", "reverse", "LEFT", "RIGHT"}},
    {"reduction", {"none", "add", "mul", "min", "max", "sum", "mean"}},
    {"padding_mode", {"zeros", "border", "reflection"}},
    {"equation", {"ij,jk->ik", "bij,bjk->bik", "...ii->...i", "ij->ji", "i,j->ij", "ij->"}},
};
const std::map<std::string, std::vector<const char *>> kModes = {{"Pad", {"constant", "reflect", "edge", "wrap"}},
                                                                 {"Resize", {"nearest", "linear", "cubic"}},
                                                                 {"DepthToSpace", {"DCR", "CRD"}},
                                                                 {"GridSample", {"linear", "nearest", "cubic"}},
                                                                 {"Momentum", {"standard", "nesterov"}},
                                                                 {"RoiAlign", {"avg", "max"}},
                                                                 {"TensorScatter", {"linear", "circular"}},
                                                                 {"TfIdfVectorizer", {"TF", "IDF", "TFIDF"}}};
// What activations gates may have; the last name is wrong.
constexpr const char *kGates[] = {"Sigmoid",    "Tanh",        "Relu", "Affine",   "LeakyRelu", "ThresholdedRelu",
                                  "ScaledTanh", "HardSigmoid", "Elu",  "Softsign", "Softplus",  "Gate"};
constexpr const char *kWrongTexts[] = {"", "?", "linear", "NOTSET", "onnx", "constant"};

constexpr const char *kLayers[] = {"Add",
                                   "AveragePool",
                                   "Clip",
                                   "Concat",
                                   "Conv",
                                   "Conv",
                                   "Conv",
                                   "Conv",
                                   "ConvTranspose",
                                   "Gemm",
                                   "Gemm",
                                   "Flatten",
                                   "HardSwish",
                                   "MatMul",
                                   "MatMul",
                                   "MaxPool",
                                   "Mul",
                                   "Pad",
                                   "ReduceMean",
                                   "Relu",
                                   "Relu",
                                   "Reshape",
                                   "Resize",
                                   "Sigmoid",
                                   "Slice",
                                   "Softmax",
                                   "Split",
                                   "Squeeze",
                                   "Transpose",
                                   "LayerNormalization",
                                   "PRelu",
                                   "Unsqueeze",
                                   "Sub",
                                   "LeakyRelu",
                                   "BatchNormalization",
                                   "GlobalAveragePool",
                                   "DepthToSpace",
                                   "Expand",
                                   "MatMul",
                                   "Gather"};
// Those of sequences. They have a part of the numbers of their own, so that inputs which are stored keep their meaning.
constexpr std::uint8_t kFirstSequence = 240;
constexpr const char *kSequenceLayers[] = {"LSTM",
                                           "GRU",
                                           "RNN",
                                           "Attention",
                                           "Attention",
                                           "MultiHeadAttention",
                                           "GroupQueryAttention",
                                           "RMSNormalization",
                                           "LayerNormalization",
                                           "RotaryEmbedding",
                                           "LinearAttention",
                                           "Gelu",
                                           "Tanh",
                                           "Einsum",
                                           "Swish",
                                           "Dropout"};

class Inventor {
 public:
  Inventor(Bytes &bytes, const std::vector<Tensor> &pool) : bytes_(bytes), pool_(pool) {}

  Called invent(bool layers) {
    const auto &all = schemas();
    call_.schema = &all[bytes_.byte() % all.size()];
    if (layers) {
      const std::uint8_t at = bytes_.byte();
      const std::string name =
          at >= kFirstSequence ? kSequenceLayers[at - kFirstSequence] : kLayers[at % std::size(kLayers)];
      for (const Schema &schema : all)
        if (schema.op == name) call_.schema = &schema;
    }
    call_.output_count =
        std::min<std::size_t>(call_.schema->max_outputs, 1 + (bytes_.one_in(4) ? bytes_.byte() % 4 : 0));
    codes_ = bytes_.one_in(3) ? QTN_INT8 : QTN_UINT8;
    weight_codes_ = bytes_.one_in(4) ? QTN_UINT8 : QTN_INT8;
    if (std::optional<Measured> made = measured(call_.schema->op, bytes_)) {
      take(std::move(*made));
      return std::move(call_);
    }
    choose_x();
    for (const AttrSchema &attr : call_.schema->attrs)
      if (attr.kind != 'T' && (!bytes_.one_in(left_out(attr.name)) || bytes_.one_in(16))) attribute(attr);
    const auto known = kOperands.find(call_.schema->op);
    std::string letters = known == kOperands.end() ? "" : known->second;
    if (letters.empty()) letters.assign(std::max<std::size_t>(1, call_.schema->min_inputs), 'x');
    if (is("Resize") && !bytes_.one_in(16)) letters = bytes_.one_in(2) ? "x?rf" : "x?rnu";
    parts_ = std::min<std::int64_t>(rank(), bytes_.in(0, 3));
    for (std::size_t i = 0; i < letters.size(); ++i) {
      const bool optional = letters[i] == '?';
      if (optional) ++i;
      call_.operands.push_back(optional && bytes_.one_in(2) ? Operand{} : operand(letters[i]));
      if (bytes_.one_in(64)) call_.operands.back() = of_pool(bytes_.byte() % pool_.size());
    }
    while (!call_.operands.empty() && call_.operands.back().absent()) call_.operands.pop_back();
    return std::move(call_);
  }

 private:
  /// The other attributes are as those of any operator.
  void take(Measured made) {
    call_.measured = true;
    call_.operands = std::move(made.operands);
    shape_ = shape_of(call_.operands.at(0).made.get());
    for (const AttrSchema &attr : call_.schema->attrs) {
      const auto is_made = [&](const Attribute &a) { return a.name == attr.name; };
      if (attr.kind != 'T' && std::none_of(made.attrs.begin(), made.attrs.end(), is_made) && bytes_.one_in(3))
        attribute(attr);
    }
    for (Attribute &attr : made.attrs) call_.attrs.push_back(std::move(attr));
  }

  bool is(const char *op) const { return std::strcmp(call_.schema->op, op) == 0; }
  bool is_windowed() const {
    for (const AttrSchema &attr : call_.schema->attrs)
      if (std::strcmp(attr.name, "auto_pad") == 0) return true;
    return false;
  }
  /// How seldom an attribute is left out: one time in so many. Some are nearly always.
  unsigned left_out(const std::string &name) const {
    static const std::set<std::string> wanted = {"kernel_shape", "perm", "to", "blocksize", "K", "N", "num_outputs"};
    static const std::set<std::string> rare = {"block_size",   "output_dtype", "precision",       "saturate",
                                               "antialias",    "_flatten",     "exclude_outside", "batch_axis",
                                               "value_floats", "value_ints"};
    if (wanted.count(name) != 0 || is("MatMulNBits")) return 16;
    return rare.count(name) != 0 ? 1 : 2;
  }

  const char *text(const std::string &name) {
    const auto &known = name == "mode" ? kModes : kTexts;
    const auto found = known.find(name == "mode" ? call_.schema->op : name);
    if (found == known.end() || bytes_.one_in(16)) return bytes_.one_of(kWrongTexts);
    return found->second[bytes_.byte() % found->second.size()];
  }

  /// Those of a recurrent layer in one direction.
  std::string gates() {
    const int honest = is("LSTM") ? 3 : is("GRU") ? 2 : 1;
    std::string names;
    for (int i = bytes_.one_in(16) ? bytes_.in(0, 7) : honest; i > 0; --i)
      names += std::string(names.empty() ? "" : " ") +
               (bytes_.one_in(32) ? std::end(kGates)[-1] : kGates[bytes_.byte() % (std::size(kGates) - 1)]);
    return names;
  }

  static Operand of_pool(std::size_t index) {
    Operand operand;
    operand.of_pool = static_cast<std::ptrdiff_t>(index);
    return operand;
  }

  Operand made(qdtype dtype, const Shape &shape) {
    Operand operand;
    operand.made = filled(dtype, shape, bytes_.byte());
    return operand;
  }

  template <typename T>
  static Operand made_of(qdtype dtype, const Shape &shape, const std::vector<T> &values) {
    Operand operand;
    operand.made = make<Tensor>(qtensor_create, dtype, shape.data(), shape.size(), nullptr, values.data(),
                                values.size() * sizeof(T));
    return operand;
  }

  static Operand vector_of(const std::vector<std::int64_t> &values) {
    return made_of(QTN_INT64, {static_cast<std::int64_t>(values.size())}, values);
  }

  /// The first operand: of a rank that windows fit, where the operator has such.
  void choose_x() {
    x_ = bytes_.one_in(2) ? pool_.size() - 1 : bytes_.byte() % pool_.size();
    for (std::size_t i = 0; i < pool_.size(); ++i, x_ = (x_ + 1) % pool_.size()) {
      const std::size_t rank = qtensor_rank(pool_[x_].get());
      const bool is_float = qtensor_dtype(pool_[x_].get()) == QTN_FLOAT32;
      if (is("DepthToSpace") || is("SpaceToDepth") || is("Resize") ? rank == 4
                                                                   : is_float && (rank >= 3 || !is_windowed()))
        break;
    }
    shape_ = shape_of(pool_[x_].get());
  }

  std::int64_t rank() const { return static_cast<std::int64_t>(shape_.size()); }
  std::int64_t dim(std::int64_t i) const { return i >= 0 && i < rank() ? shape_[static_cast<std::size_t>(i)] : 1; }
  std::int64_t axis() { return bytes_.in(-static_cast<int>(rank()), std::max(0, static_cast<int>(rank()) - 1)); }
  std::int64_t spatial() const { return std::max<std::int64_t>(1, rank() - 2); }

  std::int64_t odd(std::int64_t honest) { return bytes_.one_in(32) ? awkward_int(bytes_) : honest; }

  std::vector<std::int64_t> several(std::int64_t count, int low, int high) {
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(odd(bytes_.in(low, high)));
    if (bytes_.one_in(64)) values.push_back(awkward_int(bytes_));
    if (bytes_.one_in(64) && !values.empty()) values.pop_back();
    return values;
  }

  std::vector<std::int64_t> permutation() {
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < rank(); ++i) values.insert(values.begin() + bytes_.in(0, static_cast<int>(i)), i);
    return values;
  }

  std::vector<std::int64_t> axes() { return axes(bytes_.in(0, 3)); }

  std::vector<std::int64_t> axes(std::int64_t count) {
    std::vector<std::int64_t> all = permutation();
    all.resize(std::min(all.size(), static_cast<std::size_t>(count)));
    for (std::int64_t &value : all) value = odd(bytes_.one_in(2) ? value : value - rank());
    return all;
  }

  void attribute(const AttrSchema &schema) {
    Attribute attr;
    attr.name = schema.name;
    attr.kind = schema.kind;
    const std::string &name = attr.name;
    switch (schema.kind) {
      case 'i':
        if (name == "group")
          attr.i = odd(divisor_of_channels());
        else if (name == "axis" || name == "batch_axis")
          attr.i = odd(axis());
        else if (name == "to" || name == "output_dtype")
          attr.i = odd(bytes_.in(0, 26));
        else if (name == "K")
          attr.i = odd(dim(rank() - 1));
        else if (name == "N" || name == "num_outputs" || name == "blocksize")
          attr.i = odd(bytes_.in(1, 4));
        else if (name == "block_size")
          attr.i = odd(is("MatMulNBits") ? 16 << bytes_.in(0, 2) : bytes_.in(0, 4));
        else if (name == "bits")
          attr.i = odd(4);
        else
          attr.i = odd(bytes_.in(0, 1));
        break;
      case 'f':
        attr.f = bytes_.one_in(8) ? awkward_float(bytes_) : bytes_.in(1, 32) / 16.0;
        break;
      case 's':
        attr.s = text(name);
        break;
      case 'S':
        attr.s = gates();
        break;
      case 'F':
        for (int i = bytes_.in(0, 5); i > 0; --i) attr.floats.push_back(awkward_float(bytes_));
        break;
      default:
        if (name == "pads")
          attr.ints = several(2 * spatial(), 0, 2);
        else if (name == "kernel_shape" || name == "strides" || name == "dilations")
          attr.ints = several(spatial(), 1, 3);
        else if (name == "perm")
          attr.ints = permutation();
        else if (name == "axes")
          attr.ints = axes();
        else
          attr.ints = several(spatial(), -1, 4);
    }
    call_.attrs.push_back(std::move(attr));
  }

  const Attribute *attr(const char *name) const {
    for (const Attribute &a : call_.attrs)
      if (a.name == name) return &a;
    return nullptr;
  }

  std::int64_t group() const {
    const Attribute *a = attr("group");
    return a != nullptr && a->i > 0 && a->i <= 64 ? a->i : 1;
  }

  std::int64_t divisor_of_channels() {
    std::int64_t group = bytes_.one_in(2) ? dim(1) : bytes_.in(1, 3);
    while (group > 1 && dim(1) % group != 0) --group;
    return group;
  }

  Shape kernel() const {
    const Attribute *a = attr("kernel_shape");
    Shape k(static_cast<std::size_t>(spatial()), 2);
    for (std::size_t i = 0; a != nullptr && i < k.size() && i < a->ints.size(); ++i)
      k[i] = std::clamp<std::int64_t>(a->ints[i], 0, 8);
    return k;
  }

  Shape conv_weight(bool transposed) {
    const std::int64_t per = bytes_.in(1, 4);
    outputs_ = per * group();
    Shape w = transposed ? Shape{dim(1), per} : Shape{outputs_, dim(1) / group()};
    for (const std::int64_t k : kernel()) w.push_back(k);
    return w;
  }

  Shape matrix() {
    const std::int64_t n = bytes_.in(0, 9),
                       k = attr("transA") != nullptr && attr("transA")->i != 0 ? dim(0) : dim(rank() - 1);
    outputs_ = n;
    if (attr("transB") != nullptr && attr("transB")->i != 0) return {n, k};
    Shape m = {k, n};
    if (bytes_.one_in(4)) m.insert(m.begin(), dim(rank() - 3));
    return m;
  }

  Shape beside() {
    Shape b = shape_;
    b.erase(b.begin(), b.begin() + bytes_.in(0, static_cast<int>(b.size())));
    for (std::int64_t &d : b)
      if (bytes_.one_in(3)) d = 1;
    return b;
  }

  /// The same number of elements: neighbours merged, -1 and 0 for what they stand for.
  std::vector<std::int64_t> other_shape() {
    std::vector<std::int64_t> s = shape_;
    for (int i = bytes_.in(0, 2); i > 0 && s.size() > 1; --i) {
      const auto at = static_cast<std::size_t>(bytes_.byte()) % (s.size() - 1);
      s[at] *= s[at + 1];
      s.erase(s.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    if (bytes_.one_in(3)) s.insert(s.begin() + bytes_.in(0, static_cast<int>(s.size())), 1);
    if (!s.empty() && bytes_.one_in(2)) s[bytes_.byte() % s.size()] = -1;
    if (!s.empty() && bytes_.one_in(8)) s[bytes_.byte() % s.size()] = awkward_int(bytes_);
    return s;
  }

  Operand scale() {
    const bool channels = bytes_.one_in(3);
    const Attribute *a = attr("axis");
    const std::int64_t at = a == nullptr ? 1 : a->i < 0 ? a->i + rank() : a->i;
    const std::int64_t count = !channels ? 1 : outputs_ > 0 ? outputs_ : dim(at);
    per_channel_ = channels;
    std::vector<float> values;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(count, 4096); ++i)
      values.push_back(static_cast<float>(bytes_.one_in(64) ? awkward_float(bytes_) : bytes_.in(1, 64) / 512.0));
    return made_of(QTN_FLOAT32, channels ? Shape{static_cast<std::int64_t>(values.size())} : Shape{}, values);
  }

  Operand zero_point(qdtype dtype) {
    const Shape shape = per_channel_ && !call_.operands.empty() && call_.operands.back().made
                            ? shape_of(call_.operands.back().made.get())
                            : Shape{};
    Operand z = made(dtype, shape);
    return z;
  }

  Operand codes() {
    for (std::size_t i = 0; i < pool_.size(); ++i) {
      const std::size_t at = (x_ + i) % pool_.size();
      if (qtensor_dtype(pool_[at].get()) == codes_ && bytes_.one_in(2)) {
        shape_ = shape_of(pool_[at].get());
        return of_pool(at);
      }
    }
    return made(codes_, shape_);
  }

  std::vector<std::int64_t> scaled_sizes() {
    std::vector<std::int64_t> sizes = shape_;
    for (std::size_t i = 2; i < sizes.size(); ++i) sizes[i] = odd(bytes_.in(0, 9));
    return sizes;
  }

  Operand operand(char letter) {
    switch (letter) {
      case 'b':
        return bytes_.one_in(3) ? of_pool(bytes_.byte() % pool_.size()) : made(x_dtype(), beside());
      case 'c':
        return same_rank();
      case 'v':
        return made(QTN_FLOAT32, {dim(1)});
      case 'p':
        return positive(dim(1));
      case 'l':
        return made(QTN_FLOAT32, {dim(rank() - 1)});
      case 's':
        return made(x_dtype(), {});
      case 'w':
        return made(QTN_FLOAT32, conv_weight(false));
      case 't':
        return made(QTN_FLOAT32, conv_weight(true));
      case 'W':
        return made(weight_codes_, conv_weight(false));
      case 'm':
        return bytes_.one_in(4) ? same_rank() : made(QTN_FLOAT32, matrix());
      case 'M':
        return made(weight_codes_, matrix());
      case 'V':
      case 'N':
        return made(is("QGemm") ? QTN_INT32 : QTN_FLOAT32, {outputs_});
      case 'Y':
        return made(QTN_INT32, {outputs_});
      case 'q':
        return codes();
      case 'S':
        return scale();
      case 'z':
        return zero_point(codes_);
      case 'Z':
        return zero_point(weight_codes_);
      case 'o':
        return made(QTN_BOOL, beside());
      case 'a':
        return vector_of(axes());
      case 'A':
        return one_axis();
      case 'd':
        return vector_of(several(bytes_.in(0, 4), 0, 4));
      case 'e':
        return vector_of(expanded());
      case 'f':
        return factors();
      case 'h':
        return vector_of(other_shape());
      case 'i':
        return indices();
      case 'j':
        return vector_of(several(parts_, bytes_.one_in(2) ? -2 : 1, 2));
      case 'k':
        return vector_of(several(parts_, -4, 9));
      case 'B':
        return vector_of(axes(parts_));
      case 'n':
        return {};
      case 'P':
        return vector_of(several(2 * rank(), bytes_.one_in(4) ? -1 : 0, 2));
      case 'r':
        return made(QTN_FLOAT32, {bytes_.one_in(2) ? 0 : 2 * rank()});
      case 'T':
        return vector_of(several(rank(), 0, 3));
      case 'u':
        return vector_of(scaled_sizes());
      case 'G':
        return made(QTN_UINT8, {size("N"), blocks(), size("block_size") / 2});
      case 'H':
        return made(QTN_FLOAT32, {size("N") * blocks()});
      case 'J':
        return made(QTN_UINT8, {size("N") * ((blocks() + 1) / 2)});
      default:
        return call_.operands.empty() ? of_pool(x_) : of_pool(bytes_.byte() % pool_.size());
    }
  }

  qdtype x_dtype() const { return qtensor_dtype(pool_[x_].get()); }

  std::int64_t size(const char *name) const {
    const Attribute *a = attr(name);
    return a == nullptr ? 1 : std::clamp<std::int64_t>(a->i, 1, 64);
  }
  std::int64_t blocks() const { return (size("K") + size("block_size") - 1) / size("block_size"); }

  Shape several_dims() {
    Shape s;
    for (int i = bytes_.in(0, 3); i > 0; --i) s.push_back(bytes_.in(0, 3));
    return s;
  }

  // Numbers are taken in statements of their own, because compilers differ in the order of arguments.
  Operand indices() {
    const qdtype dtype = bytes_.one_in(2) ? QTN_INT64 : QTN_INT32;
    return made(dtype, several_dims());
  }

  Operand one_axis() {
    const Shape shape = bytes_.one_in(2) ? Shape{} : Shape{1};
    return made_of(QTN_INT64, shape, std::vector<std::int64_t>{axis()});
  }

  std::vector<std::int64_t> expanded() {
    std::vector<std::int64_t> s = beside();
    for (std::int64_t &d : s)
      if (d == 1 && bytes_.one_in(2)) d = bytes_.in(0, 4);
    if (s.size() < 5 && bytes_.one_in(3)) s.insert(s.begin(), bytes_.in(0, 3));
    return s;
  }

  Operand factors() {
    std::vector<float> values;
    for (std::int64_t i = 0; i < rank(); ++i)
      values.push_back(i < 2               ? 1.0F
                       : bytes_.one_in(32) ? static_cast<float>(awkward_float(bytes_))
                                           : static_cast<float>(bytes_.in(1, 12)) / 4);
    return made_of(QTN_FLOAT32, {rank()}, values);
  }

  Operand positive(std::int64_t count) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(count, 4096); ++i)
      values.push_back(static_cast<float>(bytes_.in(1, 64)) / 16);
    return made_of(QTN_FLOAT32, {static_cast<std::int64_t>(values.size())}, values);
  }

  Operand same_rank() {
    for (std::size_t i = 1; i < pool_.size(); ++i) {
      const std::size_t at = (x_ + i) % pool_.size();
      if (qtensor_rank(pool_[at].get()) == shape_.size() && qtensor_dtype(pool_[at].get()) == x_dtype() &&
          bytes_.one_in(2))
        return of_pool(at);
    }
    return of_pool(x_);
  }

  Bytes &bytes_;
  const std::vector<Tensor> &pool_;
  Called call_{};
  std::size_t x_ = 0;
  Shape shape_;
  qdtype codes_ = QTN_UINT8, weight_codes_ = QTN_INT8;
  std::int64_t outputs_ = 0, parts_ = 0;
  bool per_channel_ = false;
};

}  // namespace

Called invent(Bytes &bytes, const std::vector<Tensor> &pool, bool layers) {
  return Inventor(bytes, pool).invent(layers);
}

Attrs attrs_of(const std::vector<Attribute> &attributes) {
  Attrs attrs = make<Attrs>(qattrs_create);
  for (const Attribute &a : attributes) {
    const char *name = a.name.c_str();
    switch (a.kind) {
      case 'i':
        must(qattrs_set_int(attrs.get(), name, a.i), name);
        break;
      case 'f':
        must(qattrs_set_float(attrs.get(), name, a.f), name);
        break;
      case 's':
      case 'S':
        must(qattrs_set_string(attrs.get(), name, a.s.c_str()), name);
        break;
      case 'F':
        must(qattrs_set_floats(attrs.get(), name, a.floats.data(), a.floats.size()), name);
        break;
      default:
        must(qattrs_set_ints(attrs.get(), name, a.ints.data(), a.ints.size()), name);
    }
  }
  return attrs;
}

}  // namespace fuzz
