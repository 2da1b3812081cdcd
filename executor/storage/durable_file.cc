#include "executor/storage/durable_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <system_error>

#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 18;

}  // namespace

DurableFile::DurableFile(const std::filesystem::path& path)
    : file_(path.string(), SymbolicLinks::refused) {}

void DurableFile::flush() {
  file_.write(waiting_);
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
  file_.write(bytes);
}

void DurableFile::finish() {
  flush();
  file_.finish();
  file_.publish();
  sync_folder(file_.folder());
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
    if (error)
      throw IoError(fmt::format("{}: cannot be created: {}", made.string(), error.message()));
  }
}

std::uint32_t crc32_of(std::uint32_t crc32, std::span<const std::byte> bytes) {
  const auto* const first = reinterpret_cast<const Bytef*>(bytes.data());
  return static_cast<std::uint32_t>(::crc32_z(crc32, first, bytes.size()));
}

}  // namespace shardwise::exec
