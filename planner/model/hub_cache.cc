#include "planner/model/hub_cache.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <system_error>

namespace shardwise {
namespace {

namespace fs = std::filesystem;

/// The folder that a variable names; empty when it is not set.
fs::path folder_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? fs::path() : fs::path(value);
}

/// Empty where no variable names one. XDG_CACHE_HOME and HOME that are relative would be of the
/// current folder.
fs::path hub_folder() {
  if (fs::path hub = folder_of("HF_HUB_CACHE"); !hub.empty()) return hub;
  if (const fs::path home = folder_of("HF_HOME"); !home.empty()) return home / "hub";
  if (const fs::path cache = folder_of("XDG_CACHE_HOME"); cache.is_absolute()) {
    return cache / "huggingface" / "hub";
  }
  const fs::path home = folder_of("HOME");
  return home.is_absolute() ? home / ".cache" / "huggingface" / "hub" : fs::path();
}

std::string joined_by_dashes(std::string_view repository) {
  std::string name = "models--";
  for (const char c : repository) name += c == '/' ? std::string("--") : std::string(1, c);
  return name;
}

/// What is written in a file of one short line. Empty for a pipe, which may never have any.
std::string line_of(const fs::path& file) {
  constexpr std::streamsize kLongest = 200;
  std::error_code unknown;
  if (!fs::is_regular_file(file, unknown)) return "";
  std::string line(kLongest, '\0');
  std::ifstream stream(file);
  stream.read(line.data(), kLongest);
  line.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  return line.substr(0, line.find_first_of(" \r\n"));
}

bool is_one_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
}

}  // namespace

std::optional<fs::path> config_in_hub_cache(const std::string& repository) {
  const fs::path hub = hub_folder();
  if (hub.empty()) return std::nullopt;
  const fs::path folder = hub / joined_by_dashes(repository);
  std::error_code unknown;
  const auto config_of = [&](const std::string& revision) {
    return folder / "snapshots" / revision / "config.json";
  };
  const std::string main = line_of(folder / "refs" / "main");
  if (is_one_name(main) && fs::is_regular_file(config_of(main), unknown)) return config_of(main);
  std::string last;
  for (const fs::directory_entry& each : fs::directory_iterator(folder / "snapshots", unknown)) {
    const std::string revision = each.path().filename().string();
    std::error_code missing;
    if (revision > last && fs::is_regular_file(config_of(revision), missing)) last = revision;
  }
  if (last.empty()) return std::nullopt;
  return config_of(last);
}

}  // namespace shardwise
