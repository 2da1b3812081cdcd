#include "cli/write_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "planner/spec/error.h"

namespace shardwise::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, int error) {
  throw IoError(fmt::format("{}: cannot be written: {}", path, std::strerror(error)));
}

/// \returns 0, or the error that stopped it
int write_all(const fs::path& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return 0;
  return errno != 0 ? errno : EIO;
}

}  // namespace

void write_file(const std::string& path, const std::string& text) {
  std::error_code ignored;
  const fs::file_status there = fs::status(path, ignored);
  if (fs::is_directory(there)) fail(path, EISDIR);
  if (fs::exists(there) && !fs::is_regular_file(there)) {
    const int error = write_all(path, text);
    if (error != 0) fail(path, error);
    return;
  }
  const fs::path beside = fmt::format("{}.{}.part", path, ::getpid());
  const int error = write_all(beside, text);
  std::error_code moved;
  if (error == 0) fs::rename(beside, path, moved);
  if (error == 0 && !moved) return;
  fs::remove(beside, ignored);
  fail(path, error != 0 ? error : moved.value());
}

}  // namespace shardwise::cli
