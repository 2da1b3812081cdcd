#include "executor/checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>  // NOLINT(modernize-deprecated-headers): renameat2 is Linux's

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <system_error>

#include "executor/checkpoint/manifest.h"
#include "executor/checkpoint/run_id.h"
#include "executor/storage/durable_file.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kPartial = ".partial";
constexpr std::string_view kAside = ".run-";

[[noreturn]] void fail(const fs::path& path, const char* what, const std::error_code& error) {
  throw IoError(fmt::format("{}: {}: {}", path.string(), what, error.message()));
}

/// Whether it is a folder itself, not a link to one.
bool is_folder(const fs::directory_entry& entry) {
  std::error_code error;
  return fs::is_directory(entry.symlink_status(error));
}

/// Takes a checkpoint's name away, so that what is half removed has it no longer.
void unname(const fs::path& folder, std::int64_t step) {
  std::error_code error;
  fs::remove_all(folder / partial_name(step), error);
  fs::rename(folder / complete_name(step), folder / partial_name(step), error);
  if (error) fail(folder / complete_name(step), "cannot be removed", error);
}

/// Renames what another run has there: "step-00000020.run-1a2b3c4d".
void set_aside(const fs::path& folder, std::int64_t step, std::string_view run) {
  const std::string from = (folder / complete_name(step)).string();
  std::error_code error;
  for (int copy = 1; copy < 100; ++copy) {
    const fs::path to = fmt::format("{}{}{}{}", from, kAside, short_run_id(run),
                                    copy > 1 ? fmt::format(".{}", copy) : "");
    if (fs::exists(fs::symlink_status(to, error))) continue;
    fs::rename(from, to, error);
    if (error) break;
    return sync_folder(folder);
  }
  fail(from, "cannot be renamed", error);
}

}  // namespace

fs::path complete_name(std::int64_t step) { return fmt::format("{}{:08}", kPrefix, step); }

fs::path partial_name(std::int64_t step) {
  return fmt::format("{}{}", complete_name(step).string(), kPartial);
}

std::optional<std::int64_t> step_in_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::int64_t step = -1;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), step);
  const bool whole = read.ec == std::errc() && read.ptr == name.data() + name.size();
  return whole && step >= 0 ? std::optional(step) : std::nullopt;
}

bool is_partial(std::string_view name) {
  if (!name.ends_with(kPartial)) return false;
  const std::optional<std::int64_t> step =
      step_in_name(name.substr(0, name.size() - kPartial.size()));
  return step && name == partial_name(*step).string();
}

bool is_set_aside(std::string_view name) {
  const std::size_t end = name.find(kAside);
  if (end == std::string_view::npos) return false;
  const std::optional<std::int64_t> step = step_in_name(name.substr(0, end));
  return step && name.substr(0, end) == complete_name(*step).string();
}

std::vector<std::int64_t> complete_steps(const fs::path& folder) {
  std::vector<std::int64_t> steps;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::optional<std::int64_t> step = step_in_name(entry.path().filename().string());
    if (!step || entry.path().filename() != complete_name(*step)) continue;
    if (is_folder(entry)) steps.push_back(*step);
  }
  std::ranges::sort(steps);
  return steps;
}

fs::path begin_checkpoint(const fs::path& folder, std::int64_t step) {
  make_folder(folder);
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (is_partial(entry.path().filename().string())) fs::remove_all(entry.path(), ignored);
  }
  const fs::path made = folder / partial_name(step);
  std::error_code error;
  const bool is_new = fs::create_directory(made, error);
  // Nobody else's folder, and no link to one.
  if (!is_new && !error) error = std::make_error_code(std::errc::file_exists);
  if (error) fail(made, "cannot be created", error);
  return made;
}

void complete_checkpoint(const fs::path& folder, std::int64_t step, std::string_view run) {
  const fs::path from = folder / partial_name(step);
  const fs::path to = folder / complete_name(step);
  if (const auto other = run_of_checkpoint(to); other && *other != run) {
    set_aside(folder, step, *other);
  }
  std::error_code error;
  fs::rename(from, to, error);
  const bool again = error == std::errc::directory_not_empty || error == std::errc::file_exists ||
                     error == std::errc::not_a_directory;
  if (again) {
    // A run that was resumed from an earlier checkpoint comes by here again: at every moment one of
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

void remove_old_checkpoints(const fs::path& folder, std::int64_t step, std::int64_t keep,
                            std::string_view run) {
  if (keep == 0) return;
  std::vector<std::int64_t> steps = complete_steps(folder);
  std::erase_if(steps, [&](std::int64_t each) {
    return each > step || run_of_checkpoint(folder / complete_name(each)) != run;
  });
  const std::int64_t gone = std::max<std::int64_t>(0, std::ssize(steps) - keep);
  for (std::int64_t i = 0; i < gone; ++i) {
    try {
      remove_checkpoints(folder, {steps[static_cast<std::size_t>(i)]});
    } catch (const IoError&) {  // NOLINT(bugprone-empty-catch): it stays
    }
  }
}

void remove_checkpoints(const fs::path& folder, std::vector<std::int64_t> steps) {
  if (steps.empty()) return;
  std::ranges::sort(steps, std::greater<>());
  for (const std::int64_t step : steps) unname(folder, step);
  sync_folder(folder);
  std::error_code ignored;
  for (const std::int64_t step : steps) fs::remove_all(folder / partial_name(step), ignored);
}

}  // namespace shardwise::exec
