#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/checkpoint/manifest.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

// Rules for slices in a manifest, by any writer.

/// Why a tensor of a shape cannot be cut as a row says, its dimension, parts and steps of each
/// piece; nothing where it can.
std::string unfit_cut(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& row);

/// Finds tensors whose slices in all files together are not every element once.
/// \pre their cuts fit
void check_cover(const Manifest& manifest, const std::string& file, Diagnostics& problems);

}  // namespace shardwise::exec
