// The library of GPUs as shardwise-run finds it: which files it takes and what it says of others.
#include "executor/launch/gpu_library.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "planner/spec/text/error.h"
#include "tests/support/scratch.h"

namespace shardwise::exec {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const std::string& folder) {
  try {
    static_cast<void>(open_gpu_library({folder}));
  } catch (const IoError& broken) {
    return broken.what();
  }
  return {};
}

TEST(GpuLibrary, IsMissingWhereNoFolderHasIt) {
  const GpuLibrary none = open_gpu_library({"/nowhere", "/neither"});
  EXPECT_EQ(none.platform, nullptr);
#ifndef SHARDWISE_NO_GPUS
  EXPECT_THAT(none.why_none, AllOf(HasSubstr("/nowhere"), HasSubstr("/neither")));
#else
  EXPECT_THAT(none.why_none, HasSubstr("built without code for GPUs"));
#endif
}

TEST(GpuLibrary, SaysWhyAFileDoesNotLoad) {
  const shardwise::test::Scratch folder;
  folder.write_bytes(kGpuPluginFile, "no library");
  EXPECT_THAT(refusal(folder.folder().string()),
              AllOf(HasSubstr("cannot open"), HasSubstr(kGpuPluginFile)));
}

TEST(GpuLibrary, OfAnotherBuildIsNamedWithBothNumbers) {
  const shardwise::test::Scratch folder;
  std::filesystem::copy_file(OTHER_BUILD, folder.path(kGpuPluginFile));
  EXPECT_THAT(refusal(folder.folder().string()),
              AllOf(HasSubstr("0.0.1, ABI 999"), HasSubstr("this shardwise-run")));
}

TEST(GpuLibrary, ThatOthersMayWriteIsPassedOverForOneToTrust) {
  const shardwise::test::Scratch first;
  const shardwise::test::Scratch second;
  std::filesystem::copy_file(OTHER_BUILD, first.path(kGpuPluginFile));
  std::filesystem::permissions(first.path(kGpuPluginFile), std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  const GpuLibrary none = open_gpu_library({first.folder().string()});
  EXPECT_EQ(none.platform, nullptr);
  EXPECT_TRUE(none.refused);
  EXPECT_THAT(none.why_none, AllOf(HasSubstr(first.path(kGpuPluginFile) + " is not trusted"),
                                   HasSubstr("owner "), HasSubstr("mode 0")));
  second.write_bytes(kGpuPluginFile, "no library");
  try {
    static_cast<void>(open_gpu_library({first.folder().string(), second.folder().string()}));
    FAIL() << "no library was opened";
  } catch (const IoError& broken) {
    EXPECT_THAT(broken.what(), HasSubstr("cannot open " + second.path(kGpuPluginFile)));
  }
}

}  // namespace
}  // namespace shardwise::exec
