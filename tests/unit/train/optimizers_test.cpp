// SPDX-License-Identifier: Apache-2.0
// Optimizers and clipping compared with torch.optim and torch.nn.utils.
#include <map>

#include "support.hpp"
#include "train/optimizer.hpp"
#include "train/optimizers/clip.hpp"

namespace qtn::train {
namespace {

using namespace qtn::test;

Parameter parameter(const char *name, const Tensor &value) {
  return {.name = name, .value = value.clone(), .gradient = Tensor(QTN_FLOAT32, value.shape())};
}

/// The order of operations is torch's; its vectors fuse some multiplications and additions.
void expect_near(const Tensor &got, const nlohmann::json &want, const std::string &what) {
  expect_equal(got, tensor_of(want), 1e-6, what);
}

void optimizers_equal_torch(void **) {
  const auto file = golden("training/optimizers.json");
  for (const auto &c : file.at("cases")) {
    std::vector<Parameter> parameters;
    for (const char *name : {"weight", "bias"})
      parameters.push_back(parameter(name, tensor_of(file.at("values").at(name))));
    parameters[1].rate_factor = c.at("bias_factor").get<float>();
    parameters[1].decays = c.at("bias_decays").get<int>() != 0;
    const auto optimizer = make_optimizer(attrs_of(c.at("attrs")), parameters);
    std::size_t shown = 0;
    for (std::size_t step = 0; step < 50; ++step) {
      for (const Parameter &p : parameters)
        copy_elements(p.gradient, tensor_of(file.at("gradients").at(step).at(p.name)));
      optimizer->step(file.at("rates").at("data").at(step).get<double>());
      if (c.at("after").at(shown).at("step").get<std::size_t>() != step + 1) continue;
      for (const Parameter &p : parameters)
        expect_near(p.value, c.at("after").at(shown).at("values").at(p.name),
                    cat(c.at("name").get<std::string>(), " ", p.name, " after step ", step + 1));
      ++shown;
    }
    assert_int_equal(shown, 5);
    std::size_t states = 0;
    optimizer->for_each_state([&](const std::string &name, const Tensor &state) {
      if (name == "step") return assert_true(item(state) == 50);
      const Tensor want = tensor_of(c.at("state").at(name));
      for (std::int64_t i = 0; i < want.count(); ++i)
        if (const float a = state.as<float>()[i], b = want.as<float>()[i]; !(std::fabs(a - b) <= 1e-6f * std::fabs(b)))
          fail_test(c.at("name").get<std::string>(), " ", name, " ", i, " is ", a, ", not ", b);
      ++states;
    });
    assert_int_equal(states, c.at("state").size());
  }
  assert_int_equal(file.at("cases").size(), 22);
}

void clipping_equals_torch(void **) {
  const auto file = golden("training/optimizers.json");
  for (const auto &c : file.at("clips")) {
    std::vector<Parameter> parameters;
    for (const auto &g : c.at("gradients")) {
      parameters.push_back(parameter("p", tensor_of(g)));
      copy_elements(parameters.back().gradient, tensor_of(g));
    }
    make_optimizer(attrs_of(c.at("attrs")), parameters)->step(0.1);
    for (std::size_t i = 0; i < parameters.size(); ++i)
      expect_near(parameters[i].gradient, c.at("clipped").at(i), cat(c.at("name").get<std::string>(), " ", i));
  }
  assert_int_equal(file.at("clips").size(), 7);
}

/// 3-4-12-84 over two tensors.
void the_norm_is_that_of_one_vector(void **) {
  std::vector<Parameter> parameters = {parameter("a", floats({2}, {0, 0})), parameter("b", floats({2}, {0, 0}))};
  copy_elements(parameters[0].gradient, floats({2}, {3, -4}));
  copy_elements(parameters[1].gradient, floats({2}, {12, 84}));
  assert_true(gradient_norm(parameters) == 85);
}

void steps(Optimizer &optimizer, const std::vector<Parameter> &parameters, int from, int to) {
  for (int step = from; step < to; ++step) {
    for (const Parameter &p : parameters) copy_elements(p.gradient, varied(p.value.shape(), step));
    optimizer.step(0.01);
  }
}

/// As a checkpoint does: values and states of one trainer become those of another.
void training_goes_on_from_its_state(void **) {
  for (const char *name : {"sgd", "adam", "adamw"}) {
    Attrs a = attrs({{"optimizer", name}, {"weight_decay", 0.1}});
    if (std::string(name) == "sgd") a.set("momentum", 0.9);
    std::vector<Parameter> whole = {parameter("w", varied({3, 5}, 9)), parameter("b", varied({3}, 8))};
    const auto straight = make_optimizer(a, whole);
    steps(*straight, whole, 0, 4);

    std::map<std::string, Tensor> saved;
    straight->for_each_state([&](const std::string &key, const Tensor &state) { saved[key] = state.clone(); });
    std::vector<Parameter> resumed = {parameter("w", whole[0].value), parameter("b", whole[1].value)};
    const auto second = make_optimizer(a, resumed);
    second->for_each_state([&](const std::string &key, const Tensor &state) { copy_elements(state, saved.at(key)); });

    steps(*straight, whole, 4, 8);
    steps(*second, resumed, 4, 8);
    for (std::size_t i = 0; i < whole.size(); ++i) assert_true(same_bits(whole[i].value, resumed[i].value));
    assert_true(saved.contains("step") && saved.size() == (std::string(name) == "sgd" ? 3 : 5));
  }
}

/// A large parameter between small ones.
void threads_change_no_bit(void **) {
  for (const char *name : {"sgd", "adamw"}) {
    const auto train = [&] {
      std::vector<Parameter> p = {parameter("a", varied({7}, 1)), parameter("b", varied({321, 457}, 2)),
                                  parameter("c", varied({1000}, 3))};
      const auto optimizer = make_optimizer(attrs({{"optimizer", name}, {"clip_norm", 0.5}, {"clip_value", 0.7}}), p);
      steps(*optimizer, p, 0, 3);
      return p;
    };
    set_default_threads(1);
    const std::vector<Parameter> one = train();
    for_thread_counts([&] {
      const std::vector<Parameter> got = train();
      for (std::size_t i = 0; i < one.size(); ++i) assert_true(same_bits(got[i].value, one[i].value));
    });
    assert_false(same_bits(one[1].value, varied({321, 457}, 2)));
  }
}

void options_are_checked(void **) {
  const auto expect = [](const Texts &texts, std::initializer_list<std::pair<const char *, Attr>> items) {
    expect_error(QTN_EINVAL, texts, [&] { make_optimizer(attrs(items), {}); });
  };
  expect({"\"lion\"", "sgd adam adamw"}, {{"optimizer", "lion"}});
  expect({"\"sgd\" has no \"beta1\"", "momentum"}, {{"beta1", 0.9}});
  expect({"\"adam\" has no \"momentum\"", "epsilon"}, {{"optimizer", "adam"}, {"momentum", 0.9}});
  expect({"momentum 1 ", "[0, 1)"}, {{"momentum", std::int64_t{1}}});
  expect({"nesterov"}, {{"nesterov", std::int64_t{1}}});
  expect({"weight_decay -0.1 "}, {{"weight_decay", -0.1}});
  expect({"adamw: beta2 1.5 "}, {{"optimizer", "adamw"}, {"beta2", 1.5}});
  expect({"clip_norm 0 "}, {{"clip_norm", 0.0}});
  expect({"clip_value -1 "}, {{"clip_value", -1.0}});
  make_optimizer(attrs({{"loss", "mse"}, {"lr", 0.1}}), {});
}

void gradients_fit_their_values(void **) {
  Parameter p = parameter("conv1.weight", floats({2, 2}, {1, 2, 3, 4}));
  p.gradient = floats({3}, {1, 2, 3});
  expect_error(QTN_ESHAPE, {"conv1.weight", "2x2", "3"}, [&] { make_optimizer({}, std::span(&p, 1)); });
}

}  // namespace
}  // namespace qtn::train

int main() {
  using namespace qtn::train;
  const CMUnitTest tests[] = {
      cmocka_unit_test(optimizers_equal_torch),         cmocka_unit_test(clipping_equals_torch),
      cmocka_unit_test(the_norm_is_that_of_one_vector), cmocka_unit_test(training_goes_on_from_its_state),
      cmocka_unit_test(threads_change_no_bit),          cmocka_unit_test(options_are_checked),
      cmocka_unit_test(gradients_fit_their_values),
  };
  return cmocka_run_group_tests_name("optimizers", tests, nullptr, nullptr);
}
