#include "planner/spec/json/reader.h"

#include <fmt/format.h>

#include <cstring>

#include "planner/spec/json/regular_file.h"
#include "planner/spec/text/error.h"

namespace shardwise {
std::string json_pointer(const std::string& object, std::string_view key) {
  std::string path = object + "/";
  for (const char c : key) {
    if (c == '~') {
      path += "~0";
    } else if (c == '/') {
      path += "~1";
    } else {
      path += c;
    }
  }
  return path;
}

const JsonValue* JsonValue::find(std::string_view key) const {
  for (const auto& [name, value] : members) {
    if (name == key) return &value;
  }
  return nullptr;
}

Result<std::string> read_file(const std::filesystem::path& path) {
  const std::string name = path.string();
  int error = 0;
  const Result<int> file = open_regular_file(path, SymbolicLinks::followed, &error);
  if (error != 0) throw IoError(fmt::format("{}: {}", name, std::strerror(error)));
  if (!file) return file.problems();
  return read_open_file(*file, name);
}

Result<JsonValue> read_json(const std::filesystem::path& path, std::size_t most_values) {
  Result<std::string> text = read_file(path);
  if (!text) return text.problems();
  return parse_json(*text, path.string(), most_values);
}

}  // namespace shardwise
