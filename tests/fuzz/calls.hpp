// SPDX-License-Identifier: Apache-2.0
// Calls of operators out of bytes: operands that mostly fit, attributes that are mostly honest.
#pragma once

#include "fuzzing.hpp"

namespace fuzz {

struct AttrSchema {
  const char *name;
  char kind;  ///< i, f, s, I, F as in AttrSpec; T: a tensor; S: names, with a space between them
};

struct Schema {
  const char *op, *domain;
  std::size_t min_inputs, max_inputs, max_outputs;
  std::vector<AttrSchema> attrs;
};

const std::vector<Schema> &schemas();

struct Attribute {
  std::string name;
  char kind;
  std::int64_t i = 0;
  double f = 0;
  std::string s;
  std::vector<std::int64_t> ints;
  std::vector<double> floats;
};

/// One operand: a value that was there before, one that was made for this call, or none.
struct Operand {
  std::ptrdiff_t of_pool = -1;
  Tensor made;

  bool absent() const { return of_pool < 0 && !made; }
};

struct Called {
  const Schema *schema;
  std::vector<Operand> operands;
  std::vector<Attribute> attrs;
  std::size_t output_count;
  bool measured = false;  ///< all operands were made for the call
};

/// A call whose operands are of the pool, which is not empty, or made for it.
/// `layers`: of an operator that networks are made of.
Called invent(Bytes &bytes, const std::vector<Tensor> &pool, bool layers = false);

/// The attributes as the C API takes them.
Attrs attrs_of(const std::vector<Attribute> &attributes);

}  // namespace fuzz
