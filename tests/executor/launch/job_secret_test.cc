#include "executor/launch/job_secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <string>

#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"

namespace shardwise::exec::test {
namespace {

using testing::HasSubstr;

constexpr const char* kGood = "0123456789abcdef";

class FindSecret : public testing::Test {
 protected:
  /// Ranks that meet over a network, unless `here`.
  FindSecret() {
    launcher_.rendezvous = Rendezvous{"node7", 29501, 16, "job", "", false};
    launcher_.ranks = 2;
  }
  /// The problem; "believed" where there is none.
  std::string found(const std::map<std::string, std::string>& environment) {
    LauncherVariables from([&](const char* name) -> const char* {
      const auto at = environment.find(name);
      return at == environment.end() ? nullptr : at->second.c_str();
    });
    const Diagnostics problems = find_secret(from, launcher_);
    return problems.empty() ? "believed" : to_string(problems.front());
  }
  std::string file(const std::string& text, mode_t mode) const {
    const std::string path = scratch_.write_bytes("secret", text);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  const std::string& secret() const { return launcher_.rendezvous->secret; }

  Launcher launcher_;
  Scratch scratch_;
};

// (D1): without one, whatever reaches the port would be a rank.
TEST_F(FindSecret, IsNeededWhereRanksMeetOverANetwork) {
  EXPECT_THAT(found({}),
              HasSubstr("environment: SHARDWISE_SECRET: is not set, and ranks connect to "
                        "node7 over a network\n    set it on all ranks"));
  EXPECT_EQ(found({{"SHARDWISE_SECRET", kGood}}), "believed");
  EXPECT_EQ(secret(), kGood);
}

TEST_F(FindSecret, IsNotNeededOnOneHostAndNotWhereTheUserSaysSo) {
  EXPECT_EQ(found({{"SHARDWISE_INSECURE", "1"}}), "believed");
  EXPECT_THAT(found({{"SHARDWISE_INSECURE", "0"}}), HasSubstr("SHARDWISE_INSECURE: 0 is not"));
  launcher_.rendezvous->this_host_only = true;
  EXPECT_EQ(found({}), "believed");
  EXPECT_EQ(secret(), "");
  EXPECT_EQ(found({{"SHARDWISE_SECRET", kGood}}), "believed");
  EXPECT_EQ(secret(), kGood);
}

TEST_F(FindSecret, IsNotShownWhereItIsTooShort) {
  const std::string said = found({{"SHARDWISE_SECRET", "tiger"}});
  EXPECT_THAT(said, HasSubstr("SHARDWISE_SECRET: has 5 characters, not 16 to 4096"));
  EXPECT_THAT(said, testing::Not(HasSubstr("tiger")));
  EXPECT_THAT(found({{"SHARDWISE_SECRET", ""}}), HasSubstr("has 0 characters"));
}

TEST_F(FindSecret, IsReadFromAFileThatIsItsOwnersAlone) {
  const std::string path = file(std::string(kGood) + "\n", 0600);
  EXPECT_EQ(found({{"SHARDWISE_SECRET_FILE", path}}), "believed");
  EXPECT_EQ(secret(), kGood);
  EXPECT_THAT(found({{"SHARDWISE_SECRET_FILE", path}, {"SHARDWISE_SECRET", kGood}}),
              HasSubstr("SHARDWISE_SECRET_FILE: is set, and SHARDWISE_SECRET is too"));
  for (const mode_t mode : {mode_t{0640}, mode_t{0604}, mode_t{0602}, mode_t{0610}}) {
    file(kGood, mode);
    EXPECT_THAT(found({{"SHARDWISE_SECRET_FILE", path}}),
                HasSubstr("others may read or write it\n    chmod 600"))
        << mode;
  }
}

TEST_F(FindSecret, RefusesFilesThatHoldNone) {
  const std::string no_file = scratch_.path("no-secret");
  EXPECT_THAT(found({{"SHARDWISE_SECRET_FILE", no_file}}), HasSubstr("No such file or directory"));
  EXPECT_THAT(found({{"SHARDWISE_SECRET_FILE", file("short\n", 0600)}}),
              HasSubstr("its secret is not 16 to 4096 bytes long"));
  EXPECT_THAT(found({{"SHARDWISE_SECRET_FILE", file(std::string(5000, 'x'), 0600)}}),
              HasSubstr("its secret is not 16 to 4096 bytes long"));
  const std::string pipe = scratch_.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(found({{"SHARDWISE_SECRET_FILE", pipe}}), HasSubstr("is not a regular file"));
}

TEST_F(FindSecret, EndsARunThatHasNone) {
  const shardwise::test::Outcome refused = shardwise::test::run_program(
      "env", {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=192.0.2.77", "MASTER_PORT=29500",
              shardwise::test::built("shardwise-run"),
              scratch_.write(tiny_plan("shardwise", 0, 2, 1)), "--data", "README.md"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("MASTER_ADDR: 192.0.2.77 is not an address of this host, where "
                        "rank 0 runs"));
  EXPECT_THAT(refused.err,
              HasSubstr("SHARDWISE_SECRET: is not set, and ranks connect to 192.0.2.77"));
}

}  // namespace
}  // namespace shardwise::exec::test
