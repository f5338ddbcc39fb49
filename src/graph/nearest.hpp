// SPDX-License-Identifier: Apache-2.0
// What a caller may have meant by a name that is not there.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace qtn::graph {

/// "; nearest are: a b c", the end of a message; empty where there are no names.
std::string nearest(std::string_view name, std::span<const std::string_view> names);

}  // namespace qtn::graph
