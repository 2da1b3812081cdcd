#include "executor/checkpoint/folder_owner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "executor/checkpoint/checkpoint_folder.h"
#include "executor/checkpoint/manifest.h"
#include "executor/checkpoint/run_id.h"
#include "executor/storage/durable_file.h"
#include "tests/support/scratch.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::bytes_of_file;
using shardwise::test::Scratch;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace fs = std::filesystem;

const std::string kOld(kUnnamedRun);
const std::string kA = "aaaaaaaa000000000000000000000001";
const std::string kB = "bbbbbbbb000000000000000000000002";

/// A folder with checkpoints of no tensors.
class OwnedFolder : public testing::Test {
 protected:
  void add(std::int64_t step, const std::string& run) const {
    Manifest manifest;
    manifest.run = run;
    manifest.step = step;
    const fs::path made = folder() / complete_name(step);
    fs::create_directories(made);
    std::ofstream(made / kManifestName, std::ios::binary) << to_json(manifest);
  }
  std::string claimed(const Claim& claim) const {
    const Diagnostics problems = claim_folder(folder(), claim);
    return problems.empty() ? "" : to_string(problems);
  }
  std::string run_of(std::int64_t step) const {
    return run_of_checkpoint(folder() / complete_name(step)).value_or("none");
  }
  const fs::path& folder() const { return scratch_.folder(); }

  Scratch scratch_{shardwise::test::memory_folder()};
};

TEST_F(OwnedFolder, IsThatOfTheRunWhichBeginsInIt) {
  EXPECT_FALSE(contents_of(folder()).owner);
  EXPECT_EQ(claimed({kA}), "");
  EXPECT_EQ(contents_of(folder()).owner, kA);
  add(3, kA);
  EXPECT_EQ(claimed({kA, 3, true}), "");
  // The run ended before its first checkpoint: nothing is lost with its name.
  fs::remove_all(folder() / complete_name(3));
  EXPECT_EQ(claimed({kB}), "");
  EXPECT_EQ(contents_of(folder()).owner, kB);
}

// (D8) Later steps of the run before were taken for the new run's.
TEST_F(OwnedFolder, IsRefusedToANewRunWhileItHasCheckpointsOfAnother) {
  add(20, kA);
  add(30, kA);
  const std::string refused = claimed({kB});
  EXPECT_THAT(refused, HasSubstr("--checkpoint-dir: has checkpoints of another run: run aaaaaaaa "
                                 "(steps 20, 30)\n    add --resume latest to continue that run, "
                                 "name another folder, or remove them with "
                                 "--replace-checkpoints"));
  EXPECT_FALSE(fs::exists(folder() / kOwnerName));
  EXPECT_THAT(claimed({kB, 10}), HasSubstr("of another run"));  // resumed from elsewhere
  EXPECT_EQ(claimed({kB, 0, false, true}), "");
  EXPECT_THAT(complete_steps(folder()), IsEmpty());
  EXPECT_EQ(contents_of(folder()).owner, kB);
}

// A kill while checkpoints are replaced leaves some of them under the new run's name.
TEST_F(OwnedFolder, NeverHasWhatIsLeftOfAReplacedRunTakenForTheNewOnes) {
  add(10, kA);
  ASSERT_EQ(claimed({kB, 0, false, true}), "");
  add(10, kA);
  const FolderContents contents = contents_of(folder());
  EXPECT_EQ(contents.owner, kB);
  EXPECT_TRUE(contents.recorded);
  EXPECT_THAT(claimed({kB, 0}), HasSubstr("run aaaaaaaa (step 10)"));
  EXPECT_EQ(claimed({kB, 0, false, true}), "");
  EXPECT_THAT(complete_steps(folder()), IsEmpty());
}

TEST_F(OwnedFolder, KeepsLaterCheckpointsOfTheRunUntilTheyAreReplaced) {
  ASSERT_EQ(claimed({kA}), "");
  for (const std::int64_t step : {10, 20, 30}) add(step, kA);
  add(25, kB);  // copied there: it is left alone
  EXPECT_THAT(claimed({kA, 10}),
              HasSubstr("has later checkpoints of this run than step 10: steps 20, 30\n    add "
                        "--resume latest, name another folder, or remove them with "
                        "--replace-checkpoints"));
  EXPECT_EQ(claimed({kA, 10, true}), "") << "those were found to be damaged";
  EXPECT_EQ(claimed({kA, 30}), "");
  EXPECT_THAT(complete_steps(folder()), ElementsAre(10, 20, 25, 30));
  EXPECT_EQ(claimed({kA, 10, false, true}), "");
  EXPECT_THAT(complete_steps(folder()), ElementsAre(10, 25));
}

// Manifests of before are read as those of one run.
TEST_F(OwnedFolder, OfCheckpointsWithoutARunIsOneRuns) {
  add(5, kOld);
  std::string text = bytes_of_file(folder() / complete_name(5) / kManifestName);
  const std::size_t run = text.find("  \"run\"");
  text.erase(run, text.find('\n', run) + 1 - run);
  std::ofstream(folder() / complete_name(5) / kManifestName, std::ios::binary)
      << with_checksum(text);
  ASSERT_THAT(text, Not(HasSubstr("\"run\"")));
  const Result<Manifest> read = read_manifest(folder() / complete_name(5));
  ASSERT_TRUE(read) << to_string(read.problems());
  EXPECT_EQ(read->run, kOld);
  EXPECT_EQ(run_of(5), kOld);
  EXPECT_EQ(contents_of(folder()).owner, kOld);
  EXPECT_THAT(claimed({kA}), HasSubstr("run 00000000 (step 5)"));
  EXPECT_EQ(claimed({kOld, 5, true}), "");
}

TEST_F(OwnedFolder, OfSeveralRunsIsNobodysUntilItsNameSays) {
  add(10, kA);
  add(20, kB);
  EXPECT_FALSE(contents_of(folder()).owner);
  EXPECT_EQ(contents_of(folder()).text(), "run aaaaaaaa (step 10), run bbbbbbbb (step 20)");
  EXPECT_EQ(claimed({kA, 10}), "") << "the user named a checkpoint of the run";
  EXPECT_EQ(contents_of(folder()).owner, kA);
}

TEST_F(OwnedFolder, PassesOverWhatIsNotACheckpointsName) {
  add(20, kA);
  fs::copy(folder() / complete_name(20), folder() / "step-20", fs::copy_options::recursive);
  const Scratch elsewhere;
  fs::create_directory_symlink(elsewhere.folder(), folder() / complete_name(40));
  scratch_.write_bytes("step-00000050", "");
  fs::create_directory(folder() / "step-by-step");
  fs::create_directory(folder() / partial_name(60));
  EXPECT_THAT(complete_steps(folder()), ElementsAre(20));
  const FolderContents contents = contents_of(folder());
  std::vector<std::string> others;
  for (const PassedOver& each : contents.others) {
    others.push_back(each.path.filename().string() + ": " + each.why);
  }
  EXPECT_THAT(others, testing::UnorderedElementsAre(
                          "step-20: not named as shardwise-run names checkpoints (step-00000020)",
                          "step-00000040: a symbolic link, which is not followed",
                          "step-00000050: not a folder"));
}

TEST_F(OwnedFolder, GivesACheckpointItsNameWhateverHasIt) {
  const auto complete = [&](std::int64_t step, const std::string& run) {
    const fs::path made = begin_checkpoint(folder(), step);
    Manifest manifest;
    manifest.run = run;
    manifest.step = step;
    std::ofstream(made / kManifestName, std::ios::binary) << to_json(manifest);
    complete_checkpoint(folder(), step, run);
  };
  const Scratch elsewhere;
  elsewhere.write_bytes("kept", "text");
  fs::create_directory_symlink(elsewhere.folder(), folder() / complete_name(1));
  complete(1, kA);
  EXPECT_EQ(run_of(1), kA);
  EXPECT_TRUE(fs::exists(elsewhere.path("kept")));
  fs::create_directory(folder() / complete_name(2));  // empty
  complete(2, kA);
  EXPECT_EQ(run_of(2), kA);
  add(3, kB);
  complete(3, kA);
  EXPECT_EQ(run_of(3), kA);
  EXPECT_EQ(run_of_checkpoint(folder() / "step-00000003.run-bbbbbbbb"), kB);
  EXPECT_THAT(complete_steps(folder()), ElementsAre(1, 2, 3));
}

TEST_F(OwnedFolder, KeepsSoManyOfTheRunAndAllOfOthers) {
  for (const std::int64_t step : {1, 3, 5, 6}) add(step, kA);
  for (const std::int64_t step : {2, 4}) add(step, kB);
  remove_old_checkpoints(folder(), 5, 2, kA);
  EXPECT_THAT(complete_steps(folder()), ElementsAre(2, 3, 4, 5, 6));
}

TEST(RunId, IsDrawnAnewForEveryRun) {
  const std::string one = new_run_id();
  EXPECT_TRUE(is_run_id(one)) << one;
  EXPECT_NE(one, new_run_id());
  EXPECT_NE(one, kUnnamedRun);
  EXPECT_FALSE(is_run_id(one.substr(1)));
  EXPECT_FALSE(is_run_id("g" + one.substr(1)));
}

}  // namespace
}  // namespace shardwise::exec::test
