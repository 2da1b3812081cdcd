#include "planner/files/output_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "planner/files/atomic_file.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/text/error.h"
#include "tests/support/scratch.h"

namespace shardwise {
namespace {

namespace fs = std::filesystem;
using test::Scratch;

using Kind = OutputPlace::Kind;

TEST(FindOutput, KnowsWhatAPathLeadsTo) {
  const Scratch scratch;
  const std::string file = scratch.write_bytes("file", "");
  fs::create_symlink("file", scratch.path("link"));
  fs::create_symlink("/dev/stdout", scratch.path("out"));
  ASSERT_EQ(::mkfifo(scratch.path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(find_output(file).kind, Kind::regular);
  EXPECT_EQ(find_output(scratch.path("link")).path, file);
  EXPECT_EQ(find_output(scratch.path("new")).kind, Kind::regular);
  EXPECT_FALSE(find_output(scratch.path("new")).exists);
  EXPECT_EQ(find_output(scratch.folder().string()).kind, Kind::folder);
  EXPECT_EQ(find_output(scratch.path("pipe")).kind, Kind::stream);
  EXPECT_EQ(find_output("/dev/null").kind, Kind::stream);
  for (const std::string& path : {std::string("-"), std::string("/dev/stdout"),
                                  std::string("/dev/fd/1"), scratch.path("out")}) {
    EXPECT_EQ(find_output(path).kind, Kind::descriptor) << path;
    EXPECT_EQ(find_output(path).descriptor, 1) << path;
  }
}

// A stranger's link in a folder like /tmp had root overwrite what it led to, by the name of an
// output; his file stayed his, with what root wrote.
TEST(FindOutput, KnowsWhoPutItIntoAFolderThatAnybodyMayWrite) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  constexpr uid_t kStranger = 65534;
  const Scratch scratch;
  const fs::path folder = scratch.folder() / "sticky";
  fs::create_directory(folder);
  scratch.write_bytes("mine", "precious");
  scratch.write_bytes("sticky/file", "his");
  fs::create_symlink(scratch.path("mine"), folder / "link");
  fs::create_symlink(scratch.path("new"), folder / "to nothing");
  fs::create_symlink("link", folder / "own link to his");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const std::vector<std::string> names = {"file", "link", "to nothing", "pipe"};
  for (const std::string& name : names) {
    ASSERT_EQ(::lchown((folder / name).c_str(), kStranger, kStranger), 0);
  }
  const auto planted = [&] {
    std::vector<std::string> found;
    for (const fs::directory_entry& each : fs::directory_iterator(folder)) {
      const OutputPlace place = find_output(each.path().string());
      EXPECT_EQ(place.refusal().empty(), place.planted_by.empty());
      if (!place.planted_by.empty()) found.push_back(each.path().filename().string());
    }
    std::ranges::sort(found);
    return found;
  };
  ASSERT_EQ(::chmod(folder.c_str(), 01777), 0);
  EXPECT_EQ(planted(),
            (std::vector<std::string>{"file", "link", "own link to his", "pipe", "to nothing"}));
  fs::create_directory_symlink(scratch.folder(), folder / "way");
  ASSERT_EQ(::lchown((folder / "way").c_str(), kStranger, kStranger), 0);
  EXPECT_FALSE(find_output((folder / "way/new").string()).refusal().empty());
  fs::remove(folder / "way");
  EXPECT_THROW(AtomicFile((folder / "link").string()), IoError);
  const Diagnostics problems = check_outputs({{"-o", (folder / "file").string()}}, {});
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0].message, testing::HasSubstr("in a folder that anybody may write"));
  EXPECT_EQ(test::bytes_of_file(scratch.path("mine")), "precious");
  // His own folder is his to fill, and where nobody else may write nobody plants.
  ASSERT_EQ(::chown(folder.c_str(), kStranger, kStranger), 0);
  EXPECT_TRUE(planted().empty());
  ASSERT_EQ(::chown(folder.c_str(), 0, 0), 0);
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  EXPECT_TRUE(planted().empty());
}

std::vector<std::string> said(const std::vector<NamedFile>& outputs,
                              const std::vector<NamedFile>& inputs) {
  std::vector<std::string> lines;
  for (const Diagnostic& each : check_outputs(outputs, inputs)) {
    lines.push_back(each.path + ": " + each.message);
  }
  return lines;
}

// (D13)
TEST(CheckOutputs, FindsAnOutputThatIsAnInputByAnyName) {
  const Scratch scratch;
  const std::string plan = scratch.write_bytes("p.json", "{}");
  fs::create_symlink("p.json", scratch.path("link"));
  fs::create_hard_link(plan, scratch.path("hard"));
  fs::create_directory(scratch.path("d"));
  for (const char* name : {"p.json", "./p.json", "d/../p.json", "link", "hard"}) {
    const std::string output = scratch.path(name);
    EXPECT_THAT(said({{"--output", output}}, {{"PLAN", plan}}),
                testing::ElementsAre("--output: " + output + " is the same file as the input PLAN"))
        << name;
  }
  EXPECT_THAT(said({{"--output", scratch.path("q.json")}, {"--trace", ""}},
                   {{"PLAN", plan}, {"--import", ""}}),
              testing::IsEmpty());
}

TEST(CheckOutputs, FindsTwoOutputsThatAreOneFile) {
  const Scratch scratch;
  fs::create_directory(scratch.path("d"));
  fs::create_symlink("new", scratch.path("link"));
  for (const char* name : {"new", "./new", "d/../new", "link"}) {
    const std::string second = scratch.path(name);
    EXPECT_THAT(said({{"--output", scratch.path("new")}, {"--trace", second}}, {}),
                testing::ElementsAre("--trace: " + second + " is the same file as --output"))
        << name;
  }
  // A relative name and one that starts with "./" were two files where neither was there yet.
  fs::create_directory_symlink("d", scratch.path("e"));
  const fs::path before = fs::current_path();
  fs::current_path(scratch.folder());
  fs::create_symlink("../new", "d/up");
  const std::string whole = scratch.path("new");
  for (const auto& [first, second] : {std::pair<std::string, std::string>{"new", "./new"},
                                      {"./new", "new"},
                                      {"new", whole},
                                      {"link", "./new"},
                                      {"d/up", "new"},
                                      {"e/../new", "./new"},
                                      {"d/new", "e/new"},
                                      {"./d/new", "e/new"},
                                      {"folder/new", "./folder/new"},
                                      {"folder/", "./folder"},
                                      {"folder/./new", scratch.path("folder/new")}}) {
    EXPECT_THAT(said({{"--output", first}, {"--trace", second}}, {}), testing::SizeIs(1))
        << first << " " << second;
  }
  EXPECT_THAT(said({{"--output", "new"}, {"--trace", "d/new"}, {"--svg", "./newer"}}, {}),
              testing::IsEmpty());
  fs::current_path(before);
  EXPECT_THAT(said({{"--output", "-"}, {"--trace", "/dev/stdout"}}, {}), testing::SizeIs(1));
  EXPECT_THAT(said({{"--output", "/dev/null"}, {"--trace", "/dev/null"}}, {}), testing::IsEmpty());
}

TEST(CheckOutputs, LeavesAnInputWhoseLinksGoRoundInACircleToItsReader) {
  const Scratch scratch;
  fs::create_symlink("b", scratch.path("a"));
  fs::create_symlink("a", scratch.path("b"));
  EXPECT_THAT(said({{"--output", scratch.path("page")}}, {{"PLAN", scratch.path("a")}}),
              testing::IsEmpty());
  const Result<std::string> read = read_file(scratch.path("a"));
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.problems().front().message, testing::StartsWith("cannot be read: "));
}

TEST(IsInside, LooksThroughNamesLinksAndFoldersThatAreNotThereYet) {
  const Scratch scratch;
  fs::create_directory(scratch.path("d"));
  fs::create_directory_symlink("d", scratch.path("e"));
  fs::create_symlink("d/file", scratch.path("link"));
  for (const char* const name : {"d/x", "d", "d/", "./d/a/b", "e/x", "link", "d/../d/x"}) {
    EXPECT_TRUE(is_inside(scratch.path(name), scratch.path("d"))) << name;
    EXPECT_TRUE(is_inside(scratch.path(name), scratch.path("e/"))) << name;
  }
  EXPECT_TRUE(is_inside(scratch.path("new/a/b"), scratch.path("./new/")));
  EXPECT_TRUE(is_inside(scratch.path("new/a/b"), scratch.path("new/a")));
  for (const char* const name : {"dd", "x", "d/../x", "new"}) {
    EXPECT_FALSE(is_inside(scratch.path(name), scratch.path("d"))) << name;
  }
  EXPECT_FALSE(is_inside("-", scratch.path("d")));
  EXPECT_FALSE(is_inside("/dev/null", scratch.path("d")));
}

}  // namespace
}  // namespace shardwise
