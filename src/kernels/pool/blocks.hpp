// SPDX-License-Identifier: Apache-2.0
// The loops of instruction sets without masks. The last block of channels starts early enough to be whole; where there are
// fewer channels than a vector has, it holds the first and the last of them, some maybe twice; fewer than four are left to
// `ref`. Their header has Saturate, load(), store() and scaled(); `V` adds:
//
//   Bytes                 a vector
//   max(a, b)
//   Words, none()         sums of bytes in 16 bits, and zero of them
//   add(words, bytes)
//   add(sums[4], words)   to sums in 32 bits
//   all(int32), all(float)
#pragma once

#include "kernels/ends.hpp"
#include "kernels/pool/pool.hpp"
#include "kernels/unroll.hpp"

namespace qtn::kernels {

namespace pool_ref {
void max(const PoolArgs &args);
void average(const PoolArgs &args);
}  // namespace pool_ref

namespace {

template <class E, class Body>
void for_each_pixel(const PoolArgs &args, const Body &body) {
  for (std::size_t p = 0; p < args.pixels; ++p) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(p) * args.pixel_step;
    const auto window = [&](std::size_t w) { return E::read(args.windows[w] + at, args.channels); };
    E::write(args.y + static_cast<std::ptrdiff_t>(p) * args.ldy, args.channels, body(window));
  }
}

/// body(window(w): the bytes of window w) gives the results of a vector of channels of one pixel.
template <class V, class Body>
void for_each_block(const PoolArgs &args, const Body &body) {
  constexpr std::size_t kVector = sizeof(typename V::Bytes);
  if (args.channels < 8) return for_each_pixel<Ends<V, std::uint32_t, 1>>(args, body);
  if (args.channels < 16) return for_each_pixel<Ends<V, std::uint64_t, 1>>(args, body);
  if constexpr (kVector > 16)
    if (args.channels < kVector) return for_each_pixel<Ends<V, std::uint64_t, 2>>(args, body);
  for (std::size_t p = 0; p < args.pixels; ++p) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(p) * args.pixel_step;
    std::uint8_t *y = args.y + static_cast<std::ptrdiff_t>(p) * args.ldy;
    for (std::size_t block = 0; block < args.channels; block += kVector) {
      const std::size_t c = block + kVector <= args.channels ? block : args.channels - kVector;
      const std::ptrdiff_t offset = at + static_cast<std::ptrdiff_t>(c);
      const auto window = [&](std::size_t w) { return load(args.windows[w] + offset); };
      store(y + c, body(window));
    }
  }
}

template <class V>
void max_blocks(const PoolArgs &args) {
  if (args.channels < kFewestOfEnds) return pool_ref::max(args);
  for_each_block<V>(args, [&](const auto &window) {
    auto v = window(0);
    for (std::size_t w = 1; w < args.window_count; ++w) v = V::max(v, window(w));
    return v;
  });
}

template <class V>
void average_blocks(const PoolArgs &args) {
  if (args.channels < kFewestOfEnds) return pool_ref::average(args);
  constexpr std::size_t kWords = 256;  // sums of bytes that 16 bits hold
  const Saturate saturate(args.range);
  const auto multiplier = V::all(args.multiplier);
  const auto offset = V::all(-static_cast<std::int32_t>(args.window_count) * args.x_zero);
  for_each_block<V>(args, [&](const auto &window) {
    decltype(V::all(0)) sum[4] = {offset, offset, offset, offset};
    for (std::size_t w = 0; w < args.window_count;) {
      const std::size_t end = args.window_count - w < kWords ? args.window_count : w + kWords;
      typename V::Words words = V::none();
      for (; w < end; ++w) V::add(words, window(w));
      V::add(sum, words);
    }
    unroll<4>([&](auto v) { sum[v] = saturate.round_any(scaled(sum[v], multiplier)); });
    return saturate.bytes(saturate.words(sum[0], sum[1]), saturate.words(sum[2], sum[3]));
  });
}

}  // namespace
}  // namespace qtn::kernels
