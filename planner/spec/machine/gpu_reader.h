#pragma once

#include <filesystem>
#include <string>

#include "planner/spec/json/reader.h"
#include "planner/spec/machine/gpu_spec.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

// Bounds of the figures of a GPU and of a cluster: wide enough for any to come, narrow enough to
// catch a slip of the unit.
inline constexpr double kLeastGbPerS = 1e-3;
inline constexpr double kMostGbPerS = 1e6;
inline constexpr double kMostLatencyUs = 1e6;
inline constexpr double kMostDollarsPerGpuHour = 1e4;

/// Reads a GPU file, schema "shardwise.gpu/1": docs/formats.md.
Result<GpuSpec> read_gpu(const std::filesystem::path& path);

/// Finds what `--gpu` names: a name of the catalogue (configs/gpus) or the path of a file.
Result<GpuSpec> find_gpu(const std::string& name_or_path);

/// Reads a GPU from a JSON value.
/// \param file  the name put into diagnostics
/// \param path  JSON pointer of `root` in the file
Result<GpuSpec> gpu_from_json(const JsonValue& root, const std::string& file,
                              const std::string& path = "");

}  // namespace shardwise
