#include "planner/spec/reader.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "planner/spec/error.h"
#include "planner/spec/regular_file.h"

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
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return Diagnostic{name, 0, 0, "", "no such file", ""};
  if (std::filesystem::is_directory(status)) {
    return Diagnostic{name, 0, 0, "", "a folder, not a file", ""};
  }
  // A pipe is waited for. Files of the kernel that have no end say that there is nothing more yet.
  const int waits = std::filesystem::is_regular_file(status) ? O_NONBLOCK : 0;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | waits);  // NOLINT(*vararg*)
  if (file < 0) throw IoError(fmt::format("{}: {}", name, std::strerror(errno)));
  return read_open_file(file, name);
}

Result<JsonValue> read_json(const std::filesystem::path& path, std::size_t most_values) {
  Result<std::string> text = read_file(path);
  if (!text) return text.problems();
  return parse_json(*text, path.string(), most_values);
}

}  // namespace shardwise
