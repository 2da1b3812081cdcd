#include "executor/storage/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "planner/spec/error.h"

namespace shardwise::exec {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 18;

/// \returns 0, or the error that stopped it
int write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

DurableFile::DurableFile(const std::filesystem::path& path)
    : path_(path), beside_(fmt::format("{}.{}.part", path.string(), ::getpid())) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  constexpr int kMode = 0666;
  file_ = FileDescriptor(::open(beside_.c_str(), kFlags, kMode));
  if (!file_.is_open()) fail(errno);
}

DurableFile::~DurableFile() {
  if (!file_.is_open()) return;
  std::error_code ignored;
  std::filesystem::remove(beside_, ignored);
}

void DurableFile::fail(int error) const {
  throw IoError(fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(error)));
}

void DurableFile::flush() {
  const int error = write_all(file_.number(), waiting_);
  if (error != 0) fail(error);
  waiting_.clear();
}

void DurableFile::write(std::span<const std::byte> bytes) {
  bytes_ += std::ssize(bytes);
  crc32_ = crc32_of(crc32_, bytes);
  if (waiting_.size() + bytes.size() > kBuffer) flush();
  if (bytes.size() <= kBuffer) {
    waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
    return;
  }
  const int error = write_all(file_.number(), bytes);
  if (error != 0) fail(error);
}

void DurableFile::finish() {
  flush();
  if (::fsync(file_.number()) != 0) fail(errno);
  std::error_code moved;
  std::filesystem::rename(beside_, path_, moved);
  if (moved) fail(moved.value());
  const int error = file_.close();
  if (error != 0) fail(error);
  sync_folder(path_.parent_path());
}

void sync_folder(const std::filesystem::path& folder) {
  const std::string name = folder.empty() ? "." : folder.string();
  const FileDescriptor opened(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems do not synchronise folders and say so with EINVAL.
  if (opened.is_open() && (::fsync(opened.number()) == 0 || errno == EINVAL)) return;
  throw IoError(fmt::format("{}: cannot be synchronised: {}", name, std::strerror(errno)));
}

void make_folder(const std::filesystem::path& folder) {
  const std::filesystem::path whole = std::filesystem::absolute(folder);
  std::filesystem::path made;
  for (const std::filesystem::path& part : whole) {
    const std::filesystem::path above = made;
    made /= part;
    std::error_code error;
    if (std::filesystem::is_directory(made, error)) continue;
    if (std::filesystem::create_directory(made, error)) sync_folder(above);
    if (error) throw IoError(fmt::format("{}: cannot be made: {}", made.string(), error.message()));
  }
}

std::uint32_t crc32_of(std::uint32_t crc32, std::span<const std::byte> bytes) {
  const auto* const first = reinterpret_cast<const Bytef*>(bytes.data());
  return static_cast<std::uint32_t>(::crc32_z(crc32, first, bytes.size()));
}

}  // namespace shardwise::exec
