// SPDX-License-Identifier: Apache-2.0
// ONNX's own tests as models, on both engines. usage: node_tests FOLDER
//
// A case in failing.json must fail, so that the list stays true; every other one must pass.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "qtensor/qtensor.h"

namespace {

using Json = nlohmann::json;
using Bytes = std::vector<unsigned char>;

struct Free {
  void operator()(qtensor *t) const { qtensor_free(t); }
  void operator()(qmodel *m) const { qmodel_free(m); }
  void operator()(qsession *s) const { qsession_free(s); }
  void operator()(qattrs *a) const { qattrs_free(a); }
};
template <class T>
using Handle = std::unique_ptr<T, Free>;

struct Failed {
  std::string why;
};

void check(qstatus status) {
  if (status != QTN_OK) throw Failed{qerror_message()};
}

Bytes decode(const std::string &text) {
  Bytes bytes;
  unsigned buffer = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    const char *alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    buffer = buffer << 6 | static_cast<unsigned>(std::strchr(alphabet, c) - alphabet);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<unsigned char>(buffer >> bits & 255));
  }
  return bytes;
}

Handle<qtensor> tensor_of(const Json &j) {
  const auto shape = j.at("shape").get<std::vector<std::int64_t>>();
  const Bytes data = decode(j.at("data").get<std::string>());
  qtensor *t = nullptr;
  const unsigned char none = 0;
  check(qtensor_create(&t, static_cast<qdtype>(j.at("dtype").get<int>()), shape.data(), shape.size(), nullptr,
                       data.empty() ? &none : data.data(), data.size()));
  return Handle<qtensor>(t);
}

/// Values as double: types that are only stored through Cast, which has tests of its own.
std::vector<double> values(const qtensor *given) {
  qtensor *t = nullptr;
  qattrs *attrs = nullptr;
  check(qattrs_create(&attrs));
  const Handle<qattrs> holder(attrs);
  check(qattrs_set_int(attrs, "to", QTN_FLOAT64));
  check(qop_run(&t, 1, "Cast", &given, 1, attrs));
  const Handle<qtensor> flat(t);
  const auto *data = static_cast<const double *>(qtensor_data(t));
  return {data, data + qtensor_numel(t)};
}

void compare(const qtensor *got, const qtensor *want, double rtol, double atol) {
  if (qtensor_dtype(got) != qtensor_dtype(want))
    throw Failed{std::string("gives ") + qdtype_name(qtensor_dtype(got)) + ", not " + qdtype_name(qtensor_dtype(want))};
  if (qtensor_rank(got) != qtensor_rank(want) ||
      !std::equal(qtensor_shape(got), qtensor_shape(got) + qtensor_rank(got), qtensor_shape(want)))
    throw Failed{"gives another shape"};
  const std::vector<double> a = values(got), b = values(want);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(b[i]) ? std::isnan(a[i]) : a[i] == b[i] || std::abs(a[i] - b[i]) <= atol + rtol * std::abs(b[i]))
      continue;
    throw Failed{"element " + std::to_string(i) + " is " + std::to_string(a[i]) + ", not " + std::to_string(b[i])};
  }
}

void run(const Json &c, const char *engine) {
  const Bytes bytes = decode(c.at("model").get<std::string>());
  qmodel *model = nullptr;
  qsession *session = nullptr;
  qattrs *attrs = nullptr;
  check(qmodel_load_bytes(&model, bytes.data(), bytes.size()));
  const Handle<qmodel> model_holder(model);
  check(qattrs_create(&attrs));
  const Handle<qattrs> attrs_holder(attrs);
  check(qattrs_set_string(attrs, "engine", engine));
  check(qsession_create(&session, model, attrs));
  const Handle<qsession> session_holder(session);
  std::vector<Handle<qtensor>> inputs;
  std::vector<const qtensor *> operands;
  for (const Json &j : c.at("inputs")) {
    inputs.push_back(tensor_of(j));
    operands.push_back(inputs.back().get());
  }
  std::vector<qtensor *> raw(qmodel_output_count(model));
  check(qsession_run(raw.data(), raw.size(), session, operands.data(), operands.size()));
  std::vector<Handle<qtensor>> outputs(raw.begin(), raw.end());
  if (outputs.size() != c.at("outputs").size()) throw Failed{"gives another number of outputs"};
  for (std::size_t i = 0; i < outputs.size(); ++i)
    compare(outputs[i].get(), tensor_of(c.at("outputs")[i]).get(), c.at("rtol").get<double>(),
            c.at("atol").get<double>());
}

/// Why a case fails, "" where it passes on both engines.
std::string outcome(const Json &c) {
  for (const char *engine : {"reference", "native"}) {
    try {
      run(c, engine);
    } catch (const Failed &failed) {
      return std::string(engine) + ": " + failed.why;
    }
  }
  return "";
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  Json known;
  std::ifstream(folder / "failing.json") >> known;
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    if (entry.path().stem() != "failing" && entry.path().stem() != "out_of_scope") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::size_t total = 0, passed = 0, wrong = 0;
  for (const auto &path : files) {
    Json cases;
    std::ifstream(path) >> cases;
    std::size_t passed_here = 0;
    for (const Json &c : cases) {
      const auto name = c.at("name").get<std::string>();
      const std::string why = outcome(c);
      passed_here += why.empty();
      if (why.empty() != known.contains(name)) continue;
      ++wrong;
      std::printf("%s %s%s\n", name.c_str(), why.empty() ? "passes, but is in failing.json" : "FAILED  ", why.c_str());
    }
    std::printf("%-24s %zu of %zu\n", path.stem().c_str(), passed_here, cases.size());
    total += cases.size();
    passed += passed_here;
  }
  std::printf("%zu of %zu cases pass; %zu not as expected\n", passed, total, wrong);
  return total > 0 && wrong == 0 ? 0 : 1;
}
