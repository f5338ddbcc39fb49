// SPDX-License-Identifier: Apache-2.0
// Writes the schemas of all operators as rows for calls.cpp, or with an argument their names as a dictionary for
// libFuzzer: so a new operator is fuzzed without a word about it.
#include <cstdio>
#include <set>
#include <string>

#include "onnx/composing.hpp"
#include "ops/op.hpp"

namespace {

void print_rows() {
  for (const qtn::ops::OpDef *op : qtn::ops::all_ops()) {
    std::printf("{\"%s\", \"%s\", %zu, %zu, %zu, {", op->name, op->domain, op->min_inputs, op->max_inputs,
                op->max_outputs);
    for (const qtn::AttrSpec &attr : op->attrs)
      std::printf("{\"%.*s\", '%c'}, ", static_cast<int>(attr.name.size()), attr.name.data(), "ifsIFTS"[attr.kind]);
    std::printf("}},\n");
  }
}

void print_words() {
  std::set<std::string> words;
  for (const auto *rules : {&qtn::onnx::kSequenceRules, &qtn::onnx::kFusedRules, &qtn::onnx::kAttentionRules})
    for (const qtn::onnx::ComposedRule &rule : *rules) words.insert({rule.op, rule.domain});
  words.erase("");
  for (const qtn::ops::OpDef *op : qtn::ops::all_ops()) {
    words.insert(op->name);
    for (const qtn::AttrSpec &attr : op->attrs) words.emplace(attr.name);
  }
  for (const std::string &word : words) std::printf("\"%s\"\n", word.c_str());
}

}  // namespace

int main(int count, char **) { count > 1 ? print_words() : print_rows(); }
