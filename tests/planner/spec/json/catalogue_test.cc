#include "planner/spec/json/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace shardwise {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;

/// A folder of files that is gone after the test, named by SHARDWISE_CONFIGS.
class Catalogue : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("catalogue_") + info->name());
    fs::remove_all(folder_);
    write("models/small-model.json");
    write("models/large-model.json");
    write("mine/config.json");
    write("mine/other.json");
    write("empty/readme.txt");
    ::setenv("SHARDWISE_CONFIGS", folder_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("SHARDWISE_CONFIGS");
    fs::remove_all(folder_);
  }
  void write(const std::string& name) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << "{}\n";
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

TEST_F(Catalogue, FindsAnEntryByName) {
  const auto found = find_in_catalogue("models", "small-model");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->path, folder_ / "models/small-model.json");
  EXPECT_EQ(found->name, "small-model");
  EXPECT_TRUE(found->from_catalogue);
}

// It was passed over, and another catalogue answered.
TEST_F(Catalogue, OfTheEnvironmentIsAFolderWithOneOfItsKinds) {
  EXPECT_EQ(to_string(check_catalogue()), to_string(Diagnostics{}));
  ::setenv("SHARDWISE_CONFIGS", "", 1);
  EXPECT_EQ(to_string(check_catalogue()), to_string(Diagnostics{}));
  for (const auto& [path, said] :
       {std::pair{at("nope"), at("nope") + " is not a folder"},
        {at("mine/config.json"), at("mine/config.json") + " is not a folder"},
        {at("empty"), at("empty") + " has none of the folders models, gpus, clusters, "
                                    "collectives, engines, data, frameworks"}}) {
    ::setenv("SHARDWISE_CONFIGS", path.c_str(), 1);
    ASSERT_EQ(check_catalogue().size(), 1U) << path;
    EXPECT_EQ(to_string(check_catalogue().front()),
              "environment: SHARDWISE_CONFIGS: " + said +
                  "\n    name the folder configs/ of Shardwise, or unset it");
  }
}

TEST_F(Catalogue, FallsBackToTheOneOfTheSourceTree) {
  const auto found = find_in_catalogue("models", "gpt2");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->path.filename(), "gpt2.json");
  EXPECT_THAT(catalogue_names("models"), Contains("gpt2"));
  EXPECT_THAT(catalogue_names("models"), Contains("small-model"));
}

TEST_F(Catalogue, TakesAPath) {
  const auto file = find_in_catalogue("models", at("mine/other.json"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->name, "other");
  EXPECT_FALSE(file->from_catalogue);
  // A config.json is called as the folder it was downloaded to.
  EXPECT_EQ(find_in_catalogue("models", at("mine/config.json"))->name, "mine");
}

TEST_F(Catalogue, TakesAFolderWithAConfig) {
  for (const char* name : {"mine", "mine/"}) {
    const auto found = find_in_catalogue("models", at(name));
    ASSERT_TRUE(found.ok()) << name;
    EXPECT_EQ(found->path.filename(), "config.json") << name;
    EXPECT_EQ(found->name, "mine") << name;
  }
  const auto empty = find_in_catalogue("models", at("empty"));
  ASSERT_FALSE(empty.ok());
  EXPECT_EQ(to_string(empty.problems()[0]), "command line: --model: the folder " + at("empty") +
                                                " has no config.json\n    name the file itself");
}

TEST_F(Catalogue, LeavesAMissingFileToTheReader) {
  EXPECT_EQ(find_in_catalogue("models", "no/such.json")->path, "no/such.json");
  EXPECT_FALSE(find_in_catalogue("models", "no/such.json")->exists);
}

TEST_F(Catalogue, SuggestsTheNearestName) {
  const auto found = find_in_catalogue("models", "smal-model");
  ASSERT_FALSE(found.ok());
  const Diagnostic& problem = found.problems()[0];
  EXPECT_EQ(problem.path, "--model");
  EXPECT_EQ(problem.message, "\"smal-model\" is not in the catalogue of models");
  EXPECT_THAT(problem.hint, testing::StartsWith("did you mean small-model?\n"));
  EXPECT_THAT(problem.hint, HasSubstr("shardwise list models shows all "));
  EXPECT_THAT(problem.hint, testing::EndsWith("; or give the path of a file"));
}

// 105 names do not help somebody who asked for one.
TEST_F(Catalogue, SuggestsAFewNamesThatBeginOrContainTheWord) {
  const auto hint = [](std::string_view kind, const std::string& name) {
    return find_in_catalogue(kind, name).problems().at(0).hint;
  };
  EXPECT_THAT(hint("models", "large"), HasSubstr("large-model"));
  EXPECT_THAT(hint("clusters", "b200"), HasSubstr("dgx-b200"));
  const std::string llamas = hint("models", "llama");
  EXPECT_THAT(llamas, testing::StartsWith("did you mean llama-"));
  EXPECT_EQ(std::count(llamas.begin(), llamas.end(), ','), 3);  // four names
  EXPECT_THAT(hint("models", "zzzzzzzzzz"), testing::StartsWith("shardwise list models"));
}

TEST_F(Catalogue, SaysWhenThereIsNone) {
  const auto found = find_in_catalogue("spaceships", "enterprise");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(to_string(found.problems()[0]),
            "command line: --spaceship: \"enterprise\" is not a file, and there is no catalogue\n"
            "    set SHARDWISE_CONFIGS to the folder configs/ of Shardwise");
  EXPECT_FALSE(find_in_catalogue("models", "").ok());
}

TEST_F(Catalogue, IsSearchedInOrder) {
  EXPECT_EQ(catalogue_folders().front(), folder_);
  ::setenv("SHARDWISE_CONFIGS", "", 1);
  EXPECT_EQ(catalogue_folders().size(), 2U);
  EXPECT_THAT(catalogue_folders().back().filename(), "configs");
}

// (D11) `shardwise list models` waited for a writer that never came.
TEST_F(Catalogue, PassesOverPipesAndFolders) {
  ASSERT_EQ(::mkfifo(at("models/pipe.json").c_str(), 0600), 0);
  fs::create_directory(at("models/folder.json"));
  EXPECT_THAT(catalogue_names("models"), Contains("small-model"));
  EXPECT_THAT(catalogue_names("models"), testing::Not(Contains("pipe")));
  EXPECT_THAT(catalogue_names("models"), testing::Not(Contains("folder")));
  EXPECT_FALSE(find_in_catalogue("models", "pipe").ok());
}

}  // namespace
}  // namespace shardwise
