// SPDX-License-Identifier: Apache-2.0
#include "ops/common/control.hpp"

namespace qtn::ops {
namespace {

constexpr AttrSpec kAttrs[] = {{"num_scan_inputs", AttrSpec::kInt},
                               {"scan_input_axes", AttrSpec::kInts},
                               {"scan_input_directions", AttrSpec::kInts},
                               {"scan_output_axes", AttrSpec::kInts},
                               {"scan_output_directions", AttrSpec::kInts}};

}  // namespace

const OpDef kScan{.name = "Scan",
                  .min_inputs = 1,
                  .max_inputs = kVariadic,
                  .max_outputs = kVariadic,
                  .attrs = kAttrs,
                  .infer = infer_control,
                  .run = run_control};

}  // namespace qtn::ops
