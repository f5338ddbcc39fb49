// SPDX-License-Identifier: Apache-2.0
// Which operators walk over the steps of a sequence.
#pragma once

#include "ops/op.hpp"

namespace qtn::ops {

/// LSTM, GRU, RNN: inputs 1 and 2 are weights [directions][rows of the gates][depth].
inline bool is_recurrent(const OpDef &op) { return &op == &kLSTM || &op == &kGRU || &op == &kRNN; }

}  // namespace qtn::ops
