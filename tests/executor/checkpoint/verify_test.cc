#include "executor/checkpoint/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "executor/checkpoint/checkpoint_folder.h"
#include "executor/checkpoint/manifest.h"
#include "tests/executor/checkpoint/checkpoint_run.h"
#include "tests/support/scratch.h"

namespace shardwise::exec::test {
namespace {

namespace fs = std::filesystem;

using shardwise::test::bytes_of_file;
using shardwise::test::Scratch;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kRun = "0123456789abcdef0123456789abcdef";

/// Checkpoints of steps 1 to 3 of two ranks, and ways to spoil them.
class VerifiedCheckpoints : public testing::Test {
 protected:
  VerifiedCheckpoints() {
    train_from(laptop_plan("shardwise", layout_of(3, 2), 1, false), scratch_.folder(), 0, 3, 0,
               kRun);
  }
  fs::path at(std::int64_t step) const { return scratch_.folder() / complete_name(step); }
  std::string file(std::int64_t step, const std::string& name) const {
    return (complete_name(step) / name).string();
  }
  std::string bytes(std::int64_t step, const std::string& name) const {
    return bytes_of_file(at(step) / name);
  }
  void put(std::int64_t step, const std::string& name, const std::string& bytes) const {
    scratch_.write_bytes(file(step, name), bytes);
  }
  void replace(std::int64_t step, const std::string& from, const std::string& to) const {
    std::string text = bytes(step, kManifestName);
    const std::size_t found = text.find(from);
    ASSERT_NE(found, std::string::npos) << from;
    put(step, kManifestName, with_checksum(text.replace(found, from.size(), to)));
  }
  VerifiedFolder verify() const { return verify_checkpoints(scratch_.folder(), nullptr); }
  /// States in the order of the list.
  std::vector<CheckpointState> states() const {
    std::vector<CheckpointState> states;
    for (const VerifiedCheckpoint& each : verify().checkpoints) states.push_back(each.state);
    return states;
  }
  /// What is wrong with a checkpoint; empty when nothing is.
  std::string problems(const std::string& name) const {
    for (const VerifiedCheckpoint& each : verify().checkpoints) {
      if (each.name == name) return each.problems.empty() ? "" : to_string(each.problems);
    }
    return "not listed";
  }
  std::string problems(std::int64_t step) const { return problems(complete_name(step).string()); }

  static constexpr const char* kRank = "rank-00001.safetensors";
  Scratch scratch_{shardwise::test::memory_folder()};
};

using State = CheckpointState;

TEST_F(VerifiedCheckpoints, AreAllGoodAsTheyWereWritten) {
  std::vector<std::string> told;
  const VerifiedFolder found = verify_checkpoints(
      scratch_.folder(), [&](const VerifiedCheckpoint& each) { told.push_back(each.name); });
  EXPECT_TRUE(found.all_good());
  EXPECT_THAT(told, ElementsAre("step-00000001", "step-00000002", "step-00000003"));
  ASSERT_THAT(found.checkpoints, testing::SizeIs(3));
  const VerifiedCheckpoint& last = found.checkpoints.back();
  EXPECT_EQ(last.state, State::good);
  EXPECT_EQ(last.run, kRun);
  EXPECT_EQ(last.step, 3);
  EXPECT_EQ(last.files, 2);
  EXPECT_EQ(last.bytes,
            std::ssize(bytes(3, "rank-00000.safetensors")) + std::ssize(bytes(3, kRank)));
  EXPECT_THAT(last.notes, IsEmpty());
  // One alone, by its folder.
  const VerifiedFolder one = verify_checkpoints(at(2).string() + "/", nullptr);
  ASSERT_THAT(one.checkpoints, testing::SizeIs(1));
  EXPECT_EQ(one.checkpoints.front().name, "step-00000002");
  EXPECT_TRUE(one.all_good());
}

TEST_F(VerifiedCheckpoints, NameTheFileAndTheTensorThatIsDamaged) {
  std::string flipped = bytes(1, kRank);
  flipped.back() = static_cast<char>(flipped.back() ^ 4);
  put(1, kRank, flipped);
  const std::string last_byte = std::to_string(flipped.size() - 1);
  const std::string whole = bytes(2, kRank);
  put(2, kRank, whole.substr(0, whole.size() / 2));
  fs::remove(at(3) / kRank);
  EXPECT_THAT(states(), ElementsAre(State::damaged, State::damaged, State::damaged));
  EXPECT_FALSE(verify().all_good());
  EXPECT_THAT(problems(1), AllOf(HasSubstr("step-00000001/rank-00001.safetensors: /second_moment/"),
                                 HasSubstr("was altered: its checksum differs (bytes "),
                                 HasSubstr(" to " + last_byte + " of the file)")));
  EXPECT_THAT(problems(2), HasSubstr("step-00000002/rank-00001.safetensors"));
  EXPECT_THAT(problems(3), HasSubstr("rank-00001.safetensors: no such file"));
}

TEST_F(VerifiedCheckpoints, NameAManifestThatIsNotTheirs) {
  // Of another step of the run; of another plan; cut off; a step that its name does not have.
  put(1, kManifestName, bytes(2, kManifestName));
  EXPECT_THAT(problems(1),
              HasSubstr("manifest.json: /step: is 2, which is not that of its folder"));
  replace(1, "\"step\": 2", "\"step\": 1");
  EXPECT_THAT(problems(1), HasSubstr("was altered: its checksum differs"));
  const Scratch other(shardwise::test::memory_folder());
  train_from(laptop_plan("shardwise", layout_of(1, 3), 1, false), other.folder(), 0, 2);
  put(2, kManifestName, bytes_of_file(other.folder() / complete_name(2) / kManifestName));
  EXPECT_THAT(problems(2), HasSubstr("rank-00002.safetensors: no such file"));
  const std::string manifest = bytes(3, kManifestName);
  put(3, kManifestName, manifest.substr(0, manifest.size() / 2));
  EXPECT_THAT(problems(3), HasSubstr("the manifest is truncated or was altered"));
  EXPECT_THAT(states(), ElementsAre(State::damaged, State::damaged, State::damaged));
}

// A manifest that somebody made, its checksum right: nothing that it says is taken before it is
// found in the files.
TEST_F(VerifiedCheckpoints, TakeNoMemoryForSizesThatAManifestClaims) {
  const auto first_length = [&] {
    const std::string text = bytes(1, kManifestName);
    const std::size_t begin = text.find("\"bytes\": ");
    return text.substr(begin, text.find(',', begin) - begin);
  }();
  replace(1, first_length, "\"bytes\": 1152921504606846976");
  EXPECT_THAT(problems(1), HasSubstr("bytes, the manifest has 1152921504606846976"));
  // A file as long as it says, and nothing in it.
  replace(2, first_length, "\"bytes\": 1099511627776");
  fs::resize_file(at(2) / "rank-00000.safetensors", 1099511627776);
  EXPECT_THAT(problems(2), HasSubstr("rank-00000.safetensors"));
  std::string header = bytes(3, kRank);
  for (std::size_t i = 0; i < 8; ++i) header[i] = static_cast<char>(i < 7 ? 0xFF : 0x7F);
  put(3, kRank, header);
  EXPECT_THAT(problems(3), HasSubstr("rank-00001.safetensors: a header of 9223372036854775807"));
}

TEST_F(VerifiedCheckpoints, FollowNoLinkAndSaySoOfWhatOnlyLooksLikeACheckpoint) {
  fs::rename(at(3) / kRank, scratch_.path("elsewhere"));
  fs::create_symlink(scratch_.path("elsewhere"), at(3) / kRank);
  EXPECT_THAT(problems(3), HasSubstr("rank-00001.safetensors: a symbolic link"));
  fs::create_directory_symlink(at(1), at(4));
  fs::copy(at(1), scratch_.folder() / "step-7", fs::copy_options::recursive);
  EXPECT_THAT(problems(4), HasSubstr("step-00000004: a symbolic link, which is not followed"));
  EXPECT_THAT(problems("step-7"), HasSubstr("not named as shardwise-run names checkpoints"));
  EXPECT_THAT(states(),
              ElementsAre(State::good, State::good, State::damaged, testing::_, testing::_));
  const VerifiedFolder found = verify();
  EXPECT_EQ(found.count(State::skipped), 2);
  fs::remove_all(at(3));
  EXPECT_FALSE(verify().all_good());
}

// None of these keeps a run from being resumed.
TEST_F(VerifiedCheckpoints, AreGoodBesideUnfinishedOnesAndFilesThatNobodyReads) {
  fs::copy(at(1), scratch_.folder() / partial_name(9), fs::copy_options::recursive);
  put(2, "notes.txt", "mine");
  put(2, "a\xE2\x80\xAE", "");
  fs::rename(at(3), at(3).string() + ".run-12345678");
  scratch_.write_bytes("step-notes", "");
  const VerifiedFolder found = verify();
  EXPECT_TRUE(found.all_good());
  ASSERT_THAT(states(), ElementsAre(State::good, State::good, State::good, State::unfinished));
  EXPECT_THAT(found.checkpoints[1].notes,
              ElementsAre("not in the manifest, and never read: a\\u202e, notes.txt"));
  EXPECT_EQ(found.checkpoints[2].name, "step-00000003.run-12345678");
  EXPECT_EQ(found.checkpoints[3].name, "step-00000009.partial");
}

TEST_F(VerifiedCheckpoints, AreSkippedWhereTheyAreOfAnotherRunThanTheFolder) {
  scratch_.write_bytes(
      "run.json", R"({"schema": "shardwise.run/1", "run": ")" + std::string(32, 'a') + "\"}\n");
  const VerifiedFolder found = verify();
  EXPECT_FALSE(found.all_good());
  EXPECT_EQ(found.count(State::skipped), std::ssize(found.checkpoints));
  EXPECT_THAT(
      to_string(found.checkpoints.front().problems),
      HasSubstr("but the folder's run.json names aaaaaaaa, whose --resume latest skips it"));
  scratch_.write_bytes("run.json", R"({"schema": "shardwise.run/1", "run": "x"})");
  EXPECT_THAT(to_string(verify().problems), HasSubstr("run.json:1:"));
  EXPECT_FALSE(verify().all_good());
}

}  // namespace
}  // namespace shardwise::exec::test
