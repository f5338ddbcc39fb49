// SPDX-License-Identifier: Apache-2.0
// What most files of the library include of the standard library, which CMake has parsed once for all of them. A file names
// what it uses all the same: a release is built without this one, and finds what is missing.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
