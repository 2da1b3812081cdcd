// Power that is lost while checkpoints are written: whatever the disk has not been asked to keep
// may be there or not, in any combination.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>

#include "executor/checkpoint/checkpoint_folder.h"
#include "executor/checkpoint/folder_lock.h"
#include "executor/checkpoint/folder_owner.h"
#include "executor/checkpoint/saved_checkpoint.h"
#include "tests/executor/checkpoint/checkpoint_run.h"
#include "tests/executor/checkpoint/lost_power.h"
#include "tests/support/scratch.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::bytes_of_file;
using shardwise::test::memory_folder;
using shardwise::test::Scratch;

constexpr std::uint32_t kSeed = 20261122;
constexpr int kRandom = 12;  // combinations a moment, besides those of one operation

using Fates = std::map<std::size_t, Fate>;

/// Every file of a folder, by its path in it.
std::map<std::string, std::string> files_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[entry.path().lexically_relative(folder)] = bytes_of_file(entry.path());
  }
  return files;
}

/// Whether it can be gone on from: whole, of its step, and every checksum right.
std::string problems_of(const std::filesystem::path& folder, std::int64_t step) {
  const Result<SavedCheckpoint> saved = SavedCheckpoint::open(folder / complete_name(step));
  if (!saved) return to_string(saved.problems());
  if (saved->manifest().step != step) return fmt::format("has step {}", saved->manifest().step);
  const Diagnostics altered = saved->altered(0, 1);
  return altered.empty() ? "" : to_string(altered);
}

/// Combinations of what is lost: all, nothing, one operation alone, all but one, and some at
/// random.
std::vector<Fates> ways_to_lose(const std::vector<std::size_t>& open, std::mt19937& random) {
  std::vector<Fates> ways(2);
  for (const std::size_t each : open) ways[1][each] = Fate::lost;
  for (const std::size_t each : open) {
    ways.push_back({{each, Fate::lost}});
    ways.push_back(ways[1]);
    ways.back().erase(each);
  }
  for (int i = 0; i < kRandom; ++i) {
    Fates some;
    for (const std::size_t each : open) some[each] = static_cast<Fate>(random() % 4);
    ways.push_back(std::move(some));
  }
  return ways;
}

class PowerLoss : public testing::Test {
 protected:
  /// Two ranks train from one step to another, with a checkpoint after each step and two that stay.
  void run(std::int64_t begin, std::int64_t end) {
    const Result<FolderLock> lock = FolderLock::take(written_.folder());
    ASSERT_TRUE(lock) << to_string(lock.problems());
    const Diagnostics problems = claim_folder(written_.folder(), {kRun, begin, true, false});
    ASSERT_TRUE(problems.empty()) << to_string(problems);
    train_from(laptop_plan("shardwise", layout_of(3, 2), 1, true), written_.folder(), begin, end, 2,
               kRun);
    complete_.emplace_back(log_.operations().size(), end);
  }

  /// The step whose checkpoint was complete when so many operations were done.
  std::int64_t complete_after(std::size_t operations) const {
    std::int64_t step = 0;
    for (const auto& [done, end] : complete_) step = done <= operations ? end : step;
    return step;
  }

  /// What has the name of a checkpoint is one, and the last that was complete, or a newer one, is
  /// there.
  void expect_whole(const Disk& disk, std::int64_t complete) {
    std::vector<std::int64_t> steps;
    for (const auto& [name, folder] : disk.folders.at(kRoot)) {
      for (std::int64_t step = 1; step <= kLast; ++step) {
        if (name == complete_name(step)) steps.push_back(step);
      }
    }
    ASSERT_GE(steps.empty() ? 0 : *std::ranges::max_element(steps), complete);
    Disk whole = disk;
    std::erase_if(whole.folders.at(kRoot),
                  [](const auto& entry) { return entry.first.ends_with(".partial"); });
    if (!seen_.insert(text_of(whole)).second) return;
    const Scratch found(memory_folder());
    whole.write(found.folder());
    ASSERT_EQ(complete_steps(found.folder()), steps);
    for (const std::int64_t step : steps) ASSERT_EQ(problems_of(found.folder(), step), "");
    const FolderContents contents = contents_of(found.folder());
    if (steps.empty()) return;
    ASSERT_TRUE(contents.recorded) << "the folder has a checkpoint and no owner";
    ASSERT_EQ(contents.owner, kRun);
  }

  static constexpr std::int64_t kLast = 4;
  inline static const std::string kRun = "aaaaaaaa000000000000000000000001";
  Scratch written_{memory_folder()};
  FileLog log_{written_.folder()};
  std::vector<std::pair<std::size_t, std::int64_t>> complete_;  // operations, step

 private:
  /// The same for disks that have the same files.
  static std::string text_of(const Disk& disk) {
    std::string text;
    for (const auto& [name, folder] : disk.folders.at(kRoot)) {
      text += fmt::format("{} {}:", name, folder);
      const auto names = disk.folders.find(folder);
      if (names == disk.folders.end()) continue;
      for (const auto& [file_name, file] : names->second) {
        const auto bytes = disk.files.find(file);
        text +=
            fmt::format(" {} {} {}", file_name, file,
                        bytes == disk.files.end() ? 0 : std::hash<std::string>()(bytes->second));
      }
    }
    return text;
  }

  std::set<std::string> seen_;
};

// The third run goes by step 3 again, as if that were damaged: another one takes its place.
TEST_F(PowerLoss, LeavesWhateverHasTheNameOfACheckpointWholeAtEveryMoment) {
  run(0, 2);
  run(2, 3);
  run(2, kLast);
  const std::span<const FileOperation> all = log_.operations();
  const Scratch again(memory_folder());
  disk_after(all, {}).write(again.folder());
  ASSERT_EQ(files_of(again.folder()), files_of(written_.folder())) << "the log is not all of it";
  std::mt19937 random(kSeed);
  for (std::size_t done = 1; done <= all.size(); ++done) {
    const std::span<const FileOperation> before = all.first(done);
    for (const Fates& fates : ways_to_lose(not_kept(before), random)) {
      SCOPED_TRACE(fmt::format("seed {}, after {} of {} operations", kSeed, done, all.size()));
      expect_whole(disk_after(before, fates), complete_after(done));
      if (HasFatalFailure()) return;
    }
  }
}

// Until the folder has the new run's name, all of the old one's is there; from then on nothing of
// it is taken for the new one's.
TEST_F(PowerLoss, LeavesAFolderWithItsOldRunOrItsNewOneWhileThatReplacesIt) {
  run(0, 2);
  const std::string next = "bbbbbbbb000000000000000000000002";
  const std::size_t before = log_.operations().size();
  ASSERT_TRUE(claim_folder(written_.folder(), {next, 0, false, true}).empty());
  const std::span<const FileOperation> all = log_.operations();
  std::mt19937 random(kSeed);
  bool old = false;
  bool fresh = false;
  for (std::size_t done = before; done <= all.size(); ++done) {
    for (const Fates& fates : ways_to_lose(not_kept(all.first(done)), random)) {
      SCOPED_TRACE(fmt::format("seed {}, after {} of {} operations", kSeed, done, all.size()));
      const Scratch found(memory_folder());
      disk_after(all.first(done), fates).write(found.folder());
      const FolderContents contents = contents_of(found.folder());
      ASSERT_TRUE(contents.recorded);
      for (const NamedCheckpoint& each : contents.checkpoints) {
        ASSERT_EQ(each.run, kRun);
        ASSERT_EQ(problems_of(found.folder(), each.step), "");
      }
      if (contents.owner == kRun) {
        ASSERT_EQ(contents.checkpoints.size(), 2U);
        old = true;
      } else {
        ASSERT_EQ(contents.owner, next);
        fresh = true;
      }
    }
  }
  EXPECT_TRUE(old && fresh);
  EXPECT_TRUE(complete_steps(written_.folder()).empty());
}

}  // namespace
}  // namespace shardwise::exec::test
