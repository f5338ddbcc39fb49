// SPDX-License-Identifier: Apache-2.0
// What a command writes, held against what it reads. Files are compared by what they are, whatever names and links lead
// to them.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace tool {

/// Fails early, before minutes of work: where an output cannot be made, is one of the files that are read, or is named
/// twice. A model may keep tensors in files beside it, which are read too. "" is no file.
void check_outputs(const std::vector<std::string> &outputs, const std::vector<std::string> &inputs,
                   const std::string &model = "");

/// Where a command talks: standard output; standard error where an output goes to the first, as /dev/stdout does.
std::FILE *talk_beside(const std::vector<std::string> &outputs);

}  // namespace tool
