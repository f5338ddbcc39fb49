// SPDX-License-Identifier: Apache-2.0
// Models that ask for what no honest one does: both engines give what ONNX's definitions give, or the error that says
// why not, soon and in little memory.
#include <pthread.h>
#include <sys/resource.h>

#include <functional>
#include <limits>
#include <map>

#include "base/limits.hpp"
#include "folder.hpp"
#include "graph/passes/passes.hpp"
#include "graph/pipelines.hpp"
#include "onnx/onnx.hpp"
#include "ops/support.hpp"
#include "quant/recover/layer.hpp"
#include "quant/recover/links.hpp"
#include "runtime/support.hpp"

namespace qtn::test {
namespace {

// The largest that this process ever was: what a run may take, and half of it.
#if defined(__SANITIZE_THREAD__)
constexpr long kKilobytes = 15 << 19;  // ThreadSanitizer keeps four times as much of its own for what was written
#elif defined(__SANITIZE_ADDRESS__)
constexpr long kKilobytes = 3 << 20;  // AddressSanitizer keeps what was freed for a while, and a shadow of all
#else
constexpr long kKilobytes = 3 << 19;
#endif

const std::map<std::string, qstatus> kStatuses = {{"QTN_OK", QTN_OK},
                                                  {"QTN_EINVAL", QTN_EINVAL},
                                                  {"QTN_ENOMEM", QTN_ENOMEM},
                                                  {"QTN_EFORMAT", QTN_EFORMAT},
                                                  {"QTN_ESHAPE", QTN_ESHAPE},
                                                  {"QTN_EDTYPE", QTN_EDTYPE},
                                                  {"QTN_EUNSUPPORTED", QTN_EUNSUPPORTED}};

std::string path_of(const std::string &name) { return cat(QTN_GOLDEN_DIR, "/hostile/", name, ".onnx"); }

/// On a thread with as little stack as languages give to theirs.
void with_little_stack(const std::function<void()> &body) {
  pthread_attr_t attributes;
  assert_int_equal(pthread_attr_init(&attributes), 0);
  assert_int_equal(pthread_attr_setstacksize(&attributes, std::size_t{1} << 19), 0);
  pthread_t thread;
  const auto call = [](void *of) -> void * {
    (*static_cast<const std::function<void()> *>(of))();
    return nullptr;
  };
  assert_int_equal(pthread_create(&thread, &attributes, call, const_cast<std::function<void()> *>(&body)), 0);
  assert_int_equal(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

Tensor run_model(const nlohmann::json &model, runtime::Engine engine) {
  const graph::Graph g = onnx::load(path_of(model.at("name")));
  const runtime::Session session(g, {engine, 1});
  const Tensor x = tensor_of(model.at("x")), *inputs[] = {&x};
  return session.run(inputs)[0].to_contiguous();
}

void expect_refused(const nlohmann::json &model, runtime::Engine engine) {
  const std::string at = model.at("at"), status = model.at("status");
  const std::string name = model.at("name");
  qstatus got = QTN_OK;
  std::string reached = "load";
  try {
    const graph::Graph g = onnx::load(path_of(name));
    reached = "session";
    const runtime::Session session(g, {engine, 1});
    reached = "run";
    if (model.contains("x")) {
      const Tensor x = tensor_of(model.at("x")), *inputs[] = {&x};
      session.run(inputs);
    }
  } catch (const Error &e) {
    got = e.status();
  }
  // The native engine plans before it runs, the reference engine does not.
  const bool early = at == "run" && reached == "session";
  const bool late = engine == runtime::Engine::reference && at == "session";
  if (!late && (got != kStatuses.at(status) || (reached != at && !early)))
    fail_test(name, ": ", got, " at ", reached, ", want ", status, " at ", at);
}

void results_or_errors(void **) {
  const auto models = golden("hostile/hostile.json").at("cases");
  assert_true(models.size() >= 20);
  for (const auto &model : models) {
    const std::string name = model.at("name");
    if (model.at("status") != "QTN_OK") {
      for (const runtime::Engine engine : {runtime::Engine::reference, runtime::Engine::native})
        expect_refused(model, engine);
    } else {
      const Tensor want = tensor_of(model.at("y"));
      expect_equal(run_model(model, runtime::Engine::reference), want, name + ", reference");
      each_isa([&](const char *isa) {
        expect_equal(run_model(model, runtime::Engine::native), want, name + ", native, " + isa);
      });
    }
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    if (used.ru_maxrss > kKilobytes) fail_test(name, " took ", used.ru_maxrss, " KB");
  }
}

// Eight tensors in a file that says it is large and holds nothing.
void sparse_external_data(void **) {
  const TemporaryFolder folder;
  std::filesystem::copy(path_of("sparse"), folder.file("sparse.onnx"));
  folder.put("sparse.bin", "");
  std::filesystem::resize_file(folder.file("sparse.bin"), std::uintmax_t{1} << 28);
  expect_error(QTN_EFORMAT, "sparse.bin", [&] { onnx::load(folder.file("sparse.onnx")); });
}

/// So many nodes that what compares each with each would take minutes.
graph::Graph chain_of(std::size_t count) {
  graph::Graph g;
  const auto value = [&](const std::string &name) {
    graph::Value v;
    v.name = name;
    v.dtype = QTN_FLOAT32;
    v.shape = Shape{1, 4};
    return g.add_value(std::move(v));
  };
  g.inputs = {value("x")};
  graph::ValueId last = g.inputs[0];
  for (std::size_t i = 0; i < count; ++i) {
    const graph::ValueId next = value("v" + std::to_string(i));
    g.nodes.push_back({"n" + std::to_string(i), &ops::kIdentity, {}, {last}, {next}, {}});
    last = next;
  }
  g.nodes.push_back({"last", &ops::kRelu, {}, {last}, {value("y")}, {}});
  g.outputs = g.nodes.back().outputs;
  return g;
}

void long_chains_become_one_node(void **) {
  graph::Graph g = chain_of(100000);
  graph::run_passes(g, graph::Pipeline::inference);
  assert_int_equal(g.nodes.size(), 1);
}

// A bias of one number for all channels is not written to as if it had one for each.
void layers_that_fit_nothing(void **) {
  assert_int_equal(quant::find_links(onnx::load(path_of("short_bias"))).size(), 0);
  assert_int_equal(quant::find_links(onnx::load(path_of("layer_without_groups"))).size(), 0);
}

/// Each branch is chosen by what a run made, and changes the shape of all that follows: no such If is a run within the
/// run of the one before.
void branches_one_after_another(void **) {
  constexpr int kBranches = 400;
  GraphBuilder b;
  b.input("y0", {-1}).constant("most", Tensor::scalar(1000));
  for (int i = 0; i < kBranches; ++i) {
    const std::string x = cat("y", i), sum = cat("sum", i), test = cat("test", i);
    b.node("ReduceSum", cat("add", i), {x}, {sum}, attrs({{"keepdims", std::int64_t{0}}}))
        .node("Less", cat("compare", i), {sum, "most"}, {test})
        .node("If", cat("branch", i), {test, x}, {cat("y", i + 1)});
  }
  graph::Graph g = b.build({cat("y", kBranches)});
  GraphBuilder same, twice;
  same.input("a", {-1}).node("Neg", "negate", {"a"}, {"b"});
  twice.input("a", {-1}).node("Concat", "repeat", {"a", "a"}, {"b"}, attrs({{"axis", std::int64_t{0}}}));
  for (graph::Node &node : g.nodes)
    if (node.op == &ops::kIf) {
      for (GraphBuilder *body : {&same, &twice})
        node.bodies.push_back(std::make_shared<const graph::Graph>(body->build({"b"})));
      node.captured = 1;
    }
  graph::sort_topologically(g);
  const runtime::Session session(g, {runtime::Engine::native, 1});
  const Tensor x = Tensor::from<float>(QTN_FLOAT32, {3}, std::vector<float>{1, 2, -4});
  Tensor y;
  with_little_stack([&] {
    const Tensor *inputs[] = {&x};
    y = session.run(inputs)[0];
  });
  expect_equal(y, x, 0, "negated so often");  // an even number of times
}

/// Neighbours among channels end where numbers end.
void channels_outside(void **) {
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  GraphBuilder b;
  b.input("x", {1, 3, 6, 6});
  add_conv(b, "conv", "x", "c", {5, 3, 3, 3}, {});
  b.constant("at", Tensor::from_ints(std::vector<std::int64_t>{0, 1}));
  b.node("Gather", "choose", {"c", "at"}, {"y"}, attrs({{"axis", std::int64_t{1}}}));
  graph::Graph g = quantized(b.build({"y"}));
  const auto at = std::ranges::find(g.values, "at", &graph::Value::name);
  assert_true(at != g.values.end());
  const Tensor x = random({1, 3, 6, 6}, -1, 1, 1), *inputs[] = {&x};
  for (const std::vector<std::int64_t> &indices :
       std::vector<std::vector<std::int64_t>>{{kLast}, {0, kLast}, {kLast - 1, kLast}, {0, 5}, {4, -6}}) {
    at->constant = Tensor::from_ints(indices);
    const std::int64_t wrong = indices[0] > 4 ? indices[0] : indices.back();
    expect_error(QTN_EINVAL, cat("Gather: index ", wrong, " is outside dimension 1"), [&] {
      runtime::Session(g, {runtime::Engine::native, 1}).run(inputs);
    });
  }
}

}  // namespace
}  // namespace qtn::test

int main() {
  // It would refuse the largest of these before they come to what they are made for.
  qtn::set_limit(qtn::Limit::tensor_elements, std::numeric_limits<std::int64_t>::max());
  const CMUnitTest tests[] = {
      cmocka_unit_test(qtn::test::results_or_errors),           cmocka_unit_test(qtn::test::sparse_external_data),
      cmocka_unit_test(qtn::test::long_chains_become_one_node), cmocka_unit_test(qtn::test::layers_that_fit_nothing),
      cmocka_unit_test(qtn::test::branches_one_after_another),  cmocka_unit_test(qtn::test::channels_outside)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
