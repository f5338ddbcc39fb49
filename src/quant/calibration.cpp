// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration.hpp"

#include <utility>

#include "base/file.hpp"
#include "quant/fingerprint.hpp"
#include "quant/observe/bytes.hpp"

namespace qtn::quant {
namespace {

constexpr std::string_view kMagic = "QTNCALIB";
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kMaxSamples = std::uint64_t{1} << 48;  // so that sums never overflow

void check_together(const Calibration &a, const Calibration &b) {
  if (a.model != b.model) fail(QTN_EINVAL, "calibration: ", b.source, " is of another model than ", a.source);
  if (a.recipe != b.recipe)
    fail(QTN_EINVAL, "calibration: ", b.source, " is of config \"", b.recipe, "\", ", a.source, " of \"", a.recipe,
         "\"");
  for (std::size_t i = 0; i < std::min(a.entries.size(), b.entries.size()); ++i) {
    const Calibration::Entry &x = a.entries[i], &y = b.entries[i];
    if (x.tensor == y.tensor && x.observer->kind() != y.observer->kind())
      fail(QTN_EINVAL, "calibration: ", b.source, " has observer \"", y.observer->kind(), "\" at tensor \"", y.tensor,
           "\", ", a.source, " has \"", x.observer->kind(), "\"");
  }
  if (a.config != b.config)
    fail(QTN_EINVAL, "calibration: ", b.source, " is of config \"", b.recipe, "\" with other settings than ", a.source);
}

std::vector<Calibration::Entry> merged(const Calibration &a, const Calibration &b) {
  check_together(a, b);
  if (a.entries.size() != b.entries.size())
    fail(QTN_EINVAL, "calibration: ", b.source, " has ", b.entries.size(), " observers, ", a.source, " has ",
         a.entries.size());
  std::vector<Calibration::Entry> sum;
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    const Calibration::Entry &x = a.entries[i], &y = b.entries[i];
    if (x.tensor != y.tensor)
      fail(QTN_EINVAL, "calibration: observer ", i, " of ", b.source, " is of tensor \"", y.tensor, "\", that of ",
           a.source, " of \"", x.tensor, "\"");
    sum.push_back({x.tensor, x.observer->clone()});
    try {
      sum.back().observer->merge(*y.observer);
    } catch (const Error &e) {
      fail(e.status(), "calibration: ", b.source, ", tensor \"", y.tensor, "\": ", e.what());
    }
  }
  return sum;
}

}  // namespace

Calibration calibration_of(const PreparedModel &prepared) {
  Calibration c{"the model", prepared.model, fingerprint(prepared.placement), prepared.config.name(), prepared.samples,
                {}};
  for (std::size_t i = 0; i < prepared.observers.size(); ++i)
    if (prepared.observers[i])
      c.entries.push_back(
          {prepared.graph.value(prepared.placement.groups[i].members[0]).name, prepared.observers[i]->clone()});
  return c;
}

void add(PreparedModel &prepared, const Calibration &more) {
  std::vector<Calibration::Entry> sum = merged(calibration_of(prepared), more);
  std::size_t next = 0;
  for (std::unique_ptr<Observer> &observer : prepared.observers)
    if (observer) observer = std::move(sum[next++].observer);
  prepared.samples += more.samples;
}

void add(Calibration &calibration, const Calibration &more) {
  calibration.entries = merged(calibration, more);
  calibration.samples += more.samples;
}

void save_calibration(const Calibration &calibration, const std::string &path) {
  ByteWriter out;
  for (const char c : kMagic) out.u8(static_cast<std::uint8_t>(c));
  out.u32(kVersion);
  out.u64(calibration.model);
  out.u64(calibration.config);
  out.text(calibration.recipe);
  out.u64(calibration.samples);
  out.u64(calibration.entries.size());
  for (const Calibration::Entry &entry : calibration.entries) {
    out.text(entry.tensor);
    out.bytes(entry.observer->save());
  }
  const std::vector<std::byte> bytes = out.take();
  write_file(path, {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
}

Calibration load_calibration(const std::string &path) {
  const std::vector<char> file = read_file(path);
  ByteReader in(std::as_bytes(std::span(file)), path);
  if (!std::string_view(file.data(), file.size()).starts_with(kMagic)) in.broken("not a calibration file");
  in.bytes(kMagic.size());
  if (const std::uint32_t version = in.u32(); version != kVersion)
    fail(QTN_EUNSUPPORTED, path, ": is a calibration file of version ", version, ", only ", kVersion, " is read");
  Calibration c{path, in.u64(), in.u64(), in.text(), in.u64(), {}};
  if (c.samples > kMaxSamples) in.broken("the number of samples is too large");
  for (std::size_t left = in.length(in.u64(), 12); left > 0; --left) {
    std::string tensor = in.text();
    try {
      std::unique_ptr<Observer> observer = load_observer(in.bytes(in.length(in.u64(), 1)));
      c.entries.push_back({std::move(tensor), std::move(observer)});
    } catch (const Error &e) {
      fail(e.status(), path, ": tensor \"", tensor, "\": ", e.what());
    }
  }
  if (in.remaining() != 0) in.broken("has bytes after its end");
  return c;
}

}  // namespace qtn::quant
