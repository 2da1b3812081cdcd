#include "cli/write_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
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

FilesTogether::~FilesTogether() {
  std::error_code ignored;
  for (const Written& file : written_) fs::remove(file.beside, ignored);
  // Those in which somebody else wrote meanwhile are not empty, and stay.
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) fs::remove(*folder, ignored);
}

void FilesTogether::add_folder(const fs::path& path) {
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error)) return;
  add_folder(path.parent_path());
  if (fs::create_directory(path, error)) made_.push_back(path);
  if (error || !fs::is_directory(path)) {
    throw IoError(fmt::format("{}: cannot be made: {}", path.string(),
                              error ? error.message() : "there is a file of that name"));
  }
}

void FilesTogether::add(const std::string& path, const std::string& text) {
  std::error_code ignored;
  const fs::file_status there = fs::status(path, ignored);
  if (fs::is_directory(there)) fail(path, EISDIR);
  if (fs::exists(there) && !fs::is_regular_file(there)) {
    const int error = write_all(path, text);
    if (error != 0) fail(path, error);
    return;
  }
  written_.push_back({path, fmt::format("{}.{}.part", path, ::getpid())});
  const int error = write_all(written_.back().beside, text);
  if (error != 0) fail(path, error);
}

void FilesTogether::keep() {
  made_.clear();
  std::error_code error;
  for (const Written& file : written_) {
    fs::rename(file.beside, file.path, error);
    if (error) fail(file.path, error.value());
  }
  written_.clear();
}

void write_file(const std::string& path, const std::string& text) {
  FilesTogether files;
  files.add(path, text);
  files.keep();
}

}  // namespace shardwise::cli
