// SPDX-License-Identifier: Apache-2.0
#include "quant/samples.hpp"

#include <algorithm>
#include <iterator>

namespace qtn::quant {
namespace {

using Indices = std::vector<std::size_t>;

Indices spread(const Indices &all, std::size_t count) {
  Indices some;
  for (std::size_t i = 0; i < count; ++i) some.push_back(all[i * all.size() / count]);
  return some;
}

Indices each_of(const Samples &samples) {
  Indices indices;
  for (std::size_t i = 0; i < samples.count; ++i) indices.push_back(i);
  return indices;
}

}  // namespace

Samples marked(const Samples &samples) {
  return {samples.count,
          [&samples](std::size_t i) {
            try {
              return samples.read(i);
            } catch (const Error &e) {
              throw NotRead(e.status(), e.what());
            }
          },
          samples.numbers};
}

Samples counted(const Samples &samples, const char *stage, const Progress &progress) {
  return {samples.count,
          [&samples, stage, &progress](std::size_t i) {
            std::vector<Tensor> inputs = samples.read(i);
            if (progress) progress(stage, i + 1, samples.count);
            return inputs;
          },
          samples.numbers};
}

Samples chosen(const Samples &all, const Indices &indices) {
  Indices numbers;
  for (const std::size_t i : indices) numbers.push_back(all.number(i));
  return {indices.size(), [&all, indices](std::size_t i) { return all.read(indices[i]); }, numbers};
}

Samples joined(const Samples &first, const Samples &second) {
  Indices numbers;
  for (const Samples *part : {&first, &second})
    for (const std::size_t i : each_of(*part)) numbers.push_back(part->number(i));
  const auto read = [&first, &second](std::size_t i) {
    return i < first.count ? first.read(i) : second.read(i - first.count);
  };
  return {first.count + second.count, read, numbers};
}

Samples some_of(const Samples &all, std::size_t most) {
  return chosen(all, spread(each_of(all), std::min(all.count, most)));
}

Division divide(const Samples &all, std::size_t most) {
  if (all.count < 2) return {some_of(all, 1), some_of(all, 1), some_of(all, 0)};
  const std::size_t held = std::min(most, (all.count + 2) / 3);
  Indices held_back, others;
  for (const std::size_t i : each_of(all)) {
    const bool judges = held_back.size() < held && i == (2 * held_back.size() + 1) * all.count / (2 * held);
    (judges ? held_back : others).push_back(i);
  }
  const Indices fitted = spread(others, std::min(most, others.size()));
  Indices rest;
  const Indices every = each_of(all);
  std::set_difference(every.begin(), every.end(), fitted.begin(), fitted.end(), std::back_inserter(rest));
  return {chosen(all, fitted), chosen(all, held_back), chosen(all, rest)};
}

}  // namespace qtn::quant
