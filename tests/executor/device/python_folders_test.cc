#include "executor/device/python_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/scratch.h"

namespace shardwise::exec {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A python3 that answers with these words, a line each.
class PythonFolders : public testing::Test {
 protected:
  void write(const std::string& words) const {
    const std::string file =
        scratch_.write_bytes("python3", "#!/bin/sh\nprintf '%s\\n' " + words + "\n");
    std::filesystem::permissions(file, std::filesystem::perms(0755));
  }
  std::string folder() const { return scratch_.folder().string(); }

  shardwise::test::Scratch scratch_;
};

TEST_F(PythonFolders, AreTheAbsoluteOnesThatItPrints) {
  write("'' /usr/lib/python3.11 site-packages ./here /venv/lib/python3.11/site-packages");
  EXPECT_THAT(folders_of_python("relative:" + folder()),
              ElementsAre("/usr/lib/python3.11", "/venv/lib/python3.11/site-packages"));
}

TEST_F(PythonFolders, AreAskedForWithoutVariablesAndTheCurrentFolder) {
  write("/asked/$1");
  EXPECT_THAT(folders_of_python(folder()), ElementsAre("/asked/-I"));
}

// Whoever may write it would run as this user.
TEST_F(PythonFolders, AreNotAskedOfAnInterpreterThatOthersMayWrite) {
  write("/usr/lib/python3.11");
  std::filesystem::permissions(folder() + "/python3", std::filesystem::perms(0777));
  EXPECT_THAT(folders_of_python(folder()), IsEmpty());
  std::filesystem::permissions(folder() + "/python3", std::filesystem::perms(0755));
  std::filesystem::permissions(folder(), std::filesystem::perms(0777));
  EXPECT_THAT(folders_of_python(folder()), IsEmpty());
}

TEST_F(PythonFolders, AreNoneWhereThereIsNoInterpreter) {
  EXPECT_THAT(folders_of_python(""), IsEmpty());
  EXPECT_THAT(folders_of_python(folder() + ":."), IsEmpty());
}

}  // namespace
}  // namespace shardwise::exec
