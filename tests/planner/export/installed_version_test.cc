#include "planner/export/framework/installed_version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwise {
namespace {

std::string note(const std::string& installed) {
  Framework framework;
  framework.label = "DeepSpeed";
  framework.version = "0.19.8";
  const Result<std::string> said = version_note(framework, installed, "--installed");
  return said ? *said : "refused: " + to_string(said.problems());
}

TEST(InstalledVersion, IsSaidWhereItIsAnother) {
  for (const char* same : {"", "0.19.8", "0.19.8+cu130", "0.19.8.0"}) EXPECT_EQ(note(same), "");
  for (const char* newer : {"0.20", "0.19.10", "1", "0.19.8.1", "0.20.0rc1"}) {
    EXPECT_THAT(note(newer), testing::HasSubstr("is newer than 0.19.8")) << newer;
  }
  for (const char* older : {"0.19.7", "0.9.20", "0.19", "0"}) {
    EXPECT_THAT(note(older), testing::HasSubstr("is older than 0.19.8")) << older;
  }
}

TEST(InstalledVersion, IsNoOtherText) {
  for (const char* wrong :
       {"main", "v1", "-1", ".", "99999999999999999999", "0..1", "0.20.0; rm", "\x1b[31m"}) {
    EXPECT_THAT(note(wrong), testing::StartsWith("refused: command line: --installed: ")) << wrong;
    EXPECT_THAT(note(wrong), testing::Not(testing::HasSubstr("\x1b"))) << wrong;
  }
}

}  // namespace
}  // namespace shardwise
