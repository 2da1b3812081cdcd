// The programs to which `run` and `view` hand over: which one is started, and which never.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/scratch.h"

namespace shardwise::cli {
namespace {

using test::built;
using test::Outcome;
using test::Scratch;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

namespace fs = std::filesystem;

class HandOver : public testing::Test {
 protected:
  void SetUp() override {
    fs::copy_file(built("shardwise"), scratch_.path("shardwise"));
    ::chmod(scratch_.folder().c_str(), 0755);
  }
  /// A program that says who it is. \returns its path
  static std::string plant(const std::string& path, const std::string& says) {
    Scratch made;
    fs::copy_file(made.write_bytes("script", "#!/bin/sh\necho " + says + " \"$@\"\n"), path);
    ::chmod(path.c_str(), 0755);
    return path;
  }
  /// `shardwise view plan.json` in a folder, with a PATH.
  Outcome view(const std::string& path = "/usr/bin:/bin", const std::string& in = "/") const {
    return test::run_program(
        "/bin/sh", {"-c", "cd \"$1\" && PATH=\"$2\" exec \"$3\" view plan.json", "sh", in, path,
                    scratch_.path("shardwise")});
  }
  Scratch scratch_;
};

TEST_F(HandOver, StartsTheProgramBesideIt) {
  plant(scratch_.path("shardwise-view"), "beside");
  EXPECT_EQ(view().out, "beside plan.json\n");
}

// Defect N2: a stranger adds a program to a folder like /tmp in which root's program is.
TEST_F(HandOver, StartsNothingThatOthersMayHavePutBesideIt) {
  plant(scratch_.path("shardwise-view"), "planted");
  ::chmod(scratch_.folder().c_str(), 01777);
  const Outcome refused = view();
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr(scratch_.path("shardwise-view") + " is not trusted: "),
                    HasSubstr("may be written by others (owner "), EndsWith("mode 1777)\n")));
  const Outcome other = test::run_program(scratch_.path("shardwise"), {"list", "engines"});
  EXPECT_EQ(other.exit_code, 0) << other.err;
}

TEST_F(HandOver, StartsNothingOfAnotherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const std::string program = plant(scratch_.path("shardwise-view"), "planted");
  ASSERT_EQ(::chown(program.c_str(), 65534, 65534), 0);
  const Outcome refused = view();
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("it belongs to another user"));
}

TEST_F(HandOver, FindsOneOnPathButNotInTheCurrentFolder) {
  fs::create_directory(scratch_.path("bin"));
  fs::create_directory(scratch_.path("here"));
  plant(scratch_.path("here/shardwise-view"), "planted");
  const Outcome none = view(":.:here", scratch_.path("here"));
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_THAT(none.err, HasSubstr("shardwise-view is not installed"));
  plant(scratch_.path("bin/shardwise-view"), "installed");
  const Outcome found =
      view(":." + std::string(":/nowhere:") + scratch_.path("bin"), scratch_.path("here"));
  EXPECT_EQ(found.out, "installed plan.json\n");
}

}  // namespace
}  // namespace shardwise::cli
