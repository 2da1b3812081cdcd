#pragma once

#include <filesystem>

#include "planner/spec/text/csv.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// read_file, then parse_csv.
Result<CsvTable> read_csv(const std::filesystem::path& path);

}  // namespace shardwise
