#pragma once

#include <filesystem>

#include "planner/spec/csv.h"
#include "planner/spec/diagnostic.h"

namespace shardwise {

/// read_file, then parse_csv.
Result<CsvTable> read_csv(const std::filesystem::path& path);

}  // namespace shardwise
