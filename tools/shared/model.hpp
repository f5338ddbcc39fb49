// SPDX-License-Identifier: Apache-2.0
// Models and sessions as the subcommands use them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/array.hpp"
#include "shared/handles.hpp"

namespace tool {

/// "0.1.0"
std::string library_version();

Model load_model(const std::string &path);

/// The size of a model's file, and that of its parameters where the file is too small to hold them: they lie beside it.
std::uintmax_t stored_bytes(const std::string &path, const qmodel *model);

/// `threads` 0: as many as the library takes by itself.
Session open_session(const qmodel *model, const std::string &engine, int64_t threads);

std::vector<const qtensor *> borrow(const std::vector<Tensor> &tensors);

/// Runs once. Outputs come in the order of the model, as plain row-major tensors.
std::vector<Tensor> run_session(const qmodel *model, const qsession *session, const std::vector<Tensor> &inputs);

/// The same numbers in another type.
Tensor cast(const qtensor *tensor, qdtype dtype);

/// The elements of a row-major tensor of any stored type.
std::vector<double> values_of(const qtensor *tensor);

Shape shape_of(const qtensor *tensor);

}  // namespace tool
