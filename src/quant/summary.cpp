// SPDX-License-Identifier: Apache-2.0
#include "quant/summary.hpp"

#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "base/digits.hpp"
#include "base/error.hpp"
#include "io/json_events.hpp"

namespace qtn::quant {
namespace {

/// Every value of a JSON text by its path: "trials.0.name".
class Fields final : public io::JsonEvents {
 public:
  void null() override { add({{}, std::numeric_limits<double>::infinity()}); }  // which JSON cannot say
  void boolean(bool truth) override { add({{}, truth ? 1.0 : 0.0}); }
  void integer(std::int64_t number) override { add({{}, static_cast<double>(number)}); }
  void real(double number) override { add({{}, number}); }
  void text(std::string text) override { add({std::move(text), {}}); }
  void begin_object() override { begin(false); }
  void key(std::string name) override { open_.back().key = std::move(name); }
  void end_object() override { end(); }
  void begin_list() override { begin(true); }
  void end_list() override { end(); }
  std::string place() const override { return cat("report: ", path()); }

  bool has(const std::string &path) const { return values_.contains(path); }

  double number(const std::string &path) const {
    const auto found = values_.find(path);
    if (found == values_.end() || !found->second.number) refuse(path, "number");
    return *found->second.number;
  }

  const std::string &words(const std::string &path) const {
    const auto found = values_.find(path);
    if (found == values_.end() || found->second.number) refuse(path, "text");
    return found->second.text;
  }

 private:
  struct Value {
    std::string text;
    std::optional<double> number;
  };
  struct Level {
    bool list;
    std::size_t index;
    std::string key;
  };

  [[noreturn]] static void refuse(const std::string &path, const char *what) {
    fail(QTN_EFORMAT, "report: has no ", what, " \"", path, "\"");
  }

  std::string path() const {
    std::string path;
    for (const Level &level : open_) {
      if (!path.empty()) path += '.';
      path += level.list ? std::to_string(level.index) : level.key;
    }
    return path;
  }

  void add(Value value) {
    values_[path()] = std::move(value);
    next();
  }
  void begin(bool list) {
    constexpr std::size_t kDeepest = 16;
    if (open_.size() == kDeepest) fail(QTN_EFORMAT, place(), ": is nested too deep for a report");
    open_.push_back({list, 0, {}});
  }
  void end() {
    open_.pop_back();
    next();
  }
  void next() {
    if (!open_.empty() && open_.back().list) ++open_.back().index;
  }

  std::vector<Level> open_;
  std::map<std::string, Value> values_;
};

std::string one_decimal(double number) { return digits_of(number, std::chars_format::fixed, 1); }
std::string count(double number) { return digits_of(number, std::chars_format::fixed, 0); }
std::string decibels(double number) { return one_decimal(number) + " dB"; }

/// "name.0", "name.1" ... for as long as these have `member`.
template <class Item>
void each(const Fields &report, const std::string &name, const char *member, Item &&item) {
  for (std::size_t i = 0;; ++i) {
    const std::string path = cat(name, ".", i, ".");
    if (!report.has(path + member)) return;
    item(path, i);
  }
}

/// What a trial was compared with is said where it is not the first one.
std::string trials(const Fields &report) {
  std::string line, first;
  each(report, "trials", "name", [&](const std::string &trial, std::size_t i) {
    const std::string reached = decibels(report.number(trial + "sqnr_db"));
    if (i == 0) first = reached;
    const std::string without =
        report.has(trial + "without_db") ? decibels(report.number(trial + "without_db")) : first;
    std::string remark = without == first ? "" : "from " + without;
    if (report.number(trial + "kept") != 0) remark += remark.empty() ? "kept" : ", kept";
    line += cat(i ? ", " : "tried: ", report.words(trial + "name"), " ", reached, remark.empty() ? "" : " (", remark,
                remark.empty() ? "" : ")");
  });
  return line.empty() ? line : line + "\n";
}

std::string milliseconds(double ms) { return digits_of(ms, std::chars_format::general, 3) + " ms"; }

std::string modes(const Fields &report) {
  std::string line;
  each(report, "modes", "mode", [&](const std::string &mode, std::size_t i) {
    line += cat(i ? ", " : "modes that reach the target: ", report.words(mode + "mode"), " ",
                milliseconds(report.number(mode + "ms")), report.number(mode + "kept") != 0 ? " (kept)" : "");
  });
  return line.empty() ? line : line + "\n";
}

std::string choices(const Fields &report) {
  std::string lines;
  each(report, "observers", "tensor", [&](const std::string &choice, std::size_t) {
    lines += cat(report.words(choice + "tensor"), ": ", report.words(choice + "chosen"), " (");
    each(report, choice + "candidates", "observer", [&](const std::string &candidate, std::size_t i) {
      lines +=
          cat(i ? ", " : "", report.words(candidate + "observer"), " ", decibels(report.number(candidate + "sqnr_db")));
    });
    lines += ")\n";
  });
  return lines;
}

std::string fallen(const Fields &report, const char *list, const char *how) {
  constexpr std::size_t kShown = 8;  // those that cost most come first
  std::string lines;
  std::size_t all = 0;
  each(report, list, "node", [&](const std::string &layer, std::size_t i) {
    all = i + 1;
    if (i >= kShown) return;
    lines += cat(report.words(layer + "node"), ": ", how, " (alone it costs down to ",
                 decibels(report.number(layer + "alone_sqnr_db")), ")\n");
  });
  if (all > kShown) lines += cat("and ", all - kShown, " more: ", how, "\n");
  return lines;
}

std::string target(const Fields &report, const std::string &name) {
  const std::string path = cat("targets.", name, ".");
  if (!report.has(path + "wanted")) return "";
  const auto general = [&](const char *member) {
    return digits_of(report.number(path + member), std::chars_format::general, 6);
  };
  return cat(name, " ", general("wanted"), report.number(path + "holds") != 0 ? ": reached, " : ": NOT reached, ",
             general("reached"), "\n");
}

std::string accuracy(const Fields &report) {
  if (!report.has("accuracy.sqnr_db")) return "";
  const double samples = report.number("accuracy.samples");
  std::string line =
      report.number("accuracy.held_back") != 0
          ? cat("accuracy on ", count(samples), samples == 1 ? " held-back sample" : " held-back samples")
          : std::string(samples == 1 ? "accuracy on the sample that calibrated"
                                     : "accuracy on the samples that calibrated");
  line += ": SQNR " + decibels(report.number("accuracy.sqnr_db"));
  if (report.has("accuracy.worst_db"))
    line += cat(" (mean of the outputs, of the worst ", decibels(report.number("accuracy.worst_db")), ")");
  if (report.has("accuracy.top1_agreement"))
    line += cat(", ", one_decimal(100 * report.number("accuracy.top1_agreement")), " % of the decisions as in float");
  return line + "\n";
}

/// How many nodes compute in integers; why others do not, with how many nodes of which operators.
std::string nodes(const Fields &report) {
  const auto all = count(report.number("nodes.all")), in_int8 = count(report.number("nodes.int8"));
  std::string lines = cat("nodes: ", in_int8, " of ", all, " in int8\n");
  std::map<std::string, std::map<std::string, std::size_t>> in_float;
  each(report, "float_nodes", "node", [&](const std::string &node, std::size_t) {
    ++in_float[report.words(node + "reason")][report.words(node + "op")];
  });
  for (const auto &[reason, ops] : in_float) {
    std::string list;
    for (const auto &[op, how_many] : ops) list += cat(list.empty() ? "" : ", ", how_many, " ", op);
    lines += cat("  in float: ", list, ": ", reason, "\n");
  }
  return lines;
}

std::string training(const Fields &report) {
  if (!report.has("training.steps")) return "";
  const auto planned = count(report.number("training.planned")), done = count(report.number("training.steps"));
  std::string line = cat("training: ", done, " of ", planned, " steps");
  std::size_t epochs = 0;
  while (report.has(cat("training.losses.", epochs))) ++epochs;
  const auto loss = [&](std::size_t epoch) {
    return digits_of(report.number(cat("training.losses.", epoch)), std::chars_format::general, 3);
  };
  if (epochs > 0) line += cat(", mean loss of the first epoch ", loss(0), ", of the last ", loss(epochs - 1));
  return line + "\n";
}

std::string speed(const Fields &report) {
  if (!report.has("speed.int8_ms")) return "";
  const double real = report.number("speed.float_ms"), quantized = report.number("speed.int8_ms");
  return cat("speed: ", milliseconds(quantized), ", in float here ", milliseconds(real), ": ",
             one_decimal(real / quantized), " times as fast (batch ", count(report.number("speed.batch")), ")\n");
}

std::string warnings(const Fields &report) {
  std::string lines;
  for (std::size_t i = 0; report.has(cat("warnings.", i)); ++i)
    lines += cat("warning: ", report.words(cat("warnings.", i)), "\n");
  return lines;
}

}  // namespace

std::string summary_of(std::string_view report) {
  Fields fields;
  io::parse_json(report, "report", fields);
  fields.number("samples");
  std::string text = trials(fields) + modes(fields) + choices(fields) + fallen(fields, "in_float", "left in float") +
                     fallen(fields, "in_int16", "activations of 16 bits") + target(fields, "target_sqnr") +
                     target(fields, "target_top1") + accuracy(fields) + training(fields) + nodes(fields) +
                     speed(fields) + warnings(fields);
  if (fields.has("next") && !fields.words("next").empty()) text += cat("next: ", fields.words("next"), "\n");
  return text;
}

}  // namespace qtn::quant
