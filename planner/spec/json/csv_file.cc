#include "planner/spec/json/csv_file.h"

#include <string>

#include "planner/spec/json/reader.h"

namespace shardwise {

Result<CsvTable> read_csv(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.problems();
  return parse_csv(*text, path.string());
}

}  // namespace shardwise
