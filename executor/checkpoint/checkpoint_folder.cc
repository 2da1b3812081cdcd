#include "executor/checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>  // NOLINT(modernize-deprecated-headers): renameat2 is Linux's

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <system_error>

#include "executor/storage/durable_file.h"
#include "planner/spec/error.h"

namespace shardwise::exec {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kPartial = ".partial";

[[noreturn]] void fail(const fs::path& path, const char* what, const std::error_code& error) {
  throw IoError(fmt::format("{}: {}: {}", path.string(), what, error.message()));
}

/// The step of "step-00000020"; -1 for other names.
std::int64_t step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return -1;
  name.remove_prefix(kPrefix.size());
  std::int64_t step = -1;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), step);
  return read.ec == std::errc() && read.ptr == name.data() + name.size() ? step : -1;
}

}  // namespace

fs::path complete_name(std::int64_t step) { return fmt::format("{}{:08}", kPrefix, step); }

fs::path partial_name(std::int64_t step) {
  return fmt::format("{}{}", complete_name(step).string(), kPartial);
}

std::vector<std::int64_t> complete_steps(const fs::path& folder) {
  std::vector<std::int64_t> steps;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::int64_t step = step_of(entry.path().filename().string());
    if (step >= 0) steps.push_back(step);
  }
  std::ranges::sort(steps);
  return steps;
}

fs::path begin_checkpoint(const fs::path& folder, std::int64_t step) {
  make_folder(folder);
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kPrefix) && name.ends_with(kPartial)) {
      fs::remove_all(entry.path(), ignored);
    }
  }
  const fs::path made = folder / partial_name(step);
  std::error_code error;
  fs::create_directory(made, error);
  if (error) fail(made, "cannot be made", error);
  return made;
}

void complete_checkpoint(const fs::path& folder, std::int64_t step) {
  const fs::path from = folder / partial_name(step);
  const fs::path to = folder / complete_name(step);
  std::error_code error;
  fs::rename(from, to, error);
  const bool again = error == std::errc::directory_not_empty || error == std::errc::file_exists;
  if (again) {
    // A run that went on from an earlier checkpoint comes by here again: at every moment one of
    // the two has the name.
    error.clear();
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) != 0) {
      error = std::error_code(errno, std::system_category());
    }
  }
  if (error) fail(to, "cannot be completed", error);
  sync_folder(folder);
  // Not before the disk has the new name: what is removed could be what the old one stands for.
  std::error_code ignored;
  if (again) fs::remove_all(from, ignored);
}

void remove_old_checkpoints(const fs::path& folder, std::int64_t step, std::int64_t keep) {
  if (keep == 0) return;
  std::vector<std::int64_t> steps = complete_steps(folder);
  std::erase_if(steps, [&](std::int64_t each) { return each > step; });
  const std::int64_t gone = std::max<std::int64_t>(0, std::ssize(steps) - keep);
  for (std::int64_t i = 0; i < gone; ++i) {
    const std::int64_t old = steps[static_cast<std::size_t>(i)];
    // No longer complete once it begins to vanish.
    std::error_code error;
    fs::rename(folder / complete_name(old), folder / partial_name(old), error);
    if (error) continue;
    sync_folder(folder);
    fs::remove_all(folder / partial_name(old), error);
  }
}

}  // namespace shardwise::exec
