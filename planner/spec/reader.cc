#include "planner/spec/reader.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "planner/spec/error.h"

namespace shardwise {
namespace {

constexpr std::size_t kLargestFile = 100'000'000;

}  // namespace

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
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return Diagnostic{name, 0, 0, "", "no such file", ""};
  if (std::filesystem::is_directory(status)) {
    return Diagnostic{name, 0, 0, "", "a folder, not a file", ""};
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw IoError(fmt::format("{}: {}", name, std::strerror(errno)));
  // Read in blocks, not by the size the file states: a pipe or a device states none.
  std::string text;
  std::vector<char> block(1 << 16);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > kLargestFile) {
      return Diagnostic{name,
                        0,
                        0,
                        "",
                        fmt::format("larger than {} MB", kLargestFile / 1'000'000),
                        "a description of a model, machine or plan has a few kB"};
    }
  }
  if (file.bad()) throw IoError(fmt::format("{}: {}", name, std::strerror(errno)));
  return text;
}

Result<JsonValue> read_json(const std::filesystem::path& path, std::size_t most_values) {
  Result<std::string> text = read_file(path);
  if (!text) return text.problems();
  return parse_json(*text, path.string(), most_values);
}

}  // namespace shardwise
