// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/json_writer.hpp"
#include "quant/quantize.hpp"

namespace qtn::quant {
namespace {

double decibels(double part) { return -10 * std::log10(part); }

void write_choice(JsonWriter &out, const ObserverChoice &choice) {
  out.begin_object();
  out.member("tensor", choice.tensor);
  out.member("chosen", choice.candidates[choice.chosen].observer);
  out.key("candidates");
  out.begin_list();
  for (const Candidate &candidate : choice.candidates) {
    out.begin_object();
    out.member("observer", candidate.observer);
    out.member("sqnr_db", decibels(candidate.loss));
    out.end_object();
  }
  out.end_list();
  out.end_object();
}

}  // namespace

std::string Account::json() const {
  JsonWriter out;
  out.begin_object();
  out.member("samples", samples);
  out.member("equalized", equalized);
  out.member("bias_corrected", bias_corrected);
  out.member("rounding_learned", rounding_learned);
  out.key("observers");
  out.begin_list();
  for (const ObserverChoice &choice : observers) write_choice(out, choice);
  out.end_list();
  out.key("in_float");
  out.begin_list();
  for (const Precision::Layer &layer : precision.in_float) {
    out.begin_object();
    out.member("node", layer.node);
    out.member("alone_sqnr_db", layer.alone_db);
    out.end_object();
  }
  out.end_list();
  out.key("layers");
  out.begin_list();
  for (const Damage &damage : layers) {
    out.begin_object();
    out.member("node", nodes[damage.node]);
    out.member("op", ops[damage.node]);
    out.member("alone_sqnr_db", damage.alone.sqnr_db());
    out.member("alone_cosine", damage.alone.cosine());
    out.member("accumulated_sqnr_db", damage.accumulated.sqnr_db());
    out.member("accumulated_cosine", damage.accumulated.cosine());
    out.end_object();
  }
  out.end_list();
  out.end_object();
  return out.take();
}

}  // namespace qtn::quant
