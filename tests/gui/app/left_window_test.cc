#include "gui/app/left_window.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/scratch.h"

namespace shardwise::view {
namespace {

namespace fs = std::filesystem;

/// Variables and the current folder of this process, until it is gone.
class LeftWindow : public testing::Test {
 protected:
  LeftWindow() : before_(fs::current_path()) {
    for (const char* const name : kNames) {
      const char* const value = std::getenv(name);
      values_.emplace_back(value == nullptr ? std::nullopt : std::optional<std::string>(value));
      ::unsetenv(name);
    }
    fs::create_directory(scratch_.path("home"));
    fs::create_directory(scratch_.path("here"));
    fs::current_path(scratch_.path("here"));
  }
  ~LeftWindow() override {
    fs::current_path(before_);
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      ::unsetenv(kNames.at(i));
      if (values_[i]) ::setenv(kNames.at(i), values_[i]->c_str(), 1);
    }
  }

  static constexpr std::array<const char*, 2> kNames = {"XDG_STATE_HOME", "HOME"};
  test::Scratch scratch_;
  fs::path before_;
  std::vector<std::optional<std::string>> values_;
};

TEST_F(LeftWindow, IsKeptInTheStateFolderOrBelowTheHome) {
  ::setenv("HOME", scratch_.path("home").c_str(), 1);
  EXPECT_EQ(left_view_file(), scratch_.path("home/.local/state/shardwise/view.json"));
  ::setenv("XDG_STATE_HOME", scratch_.path("home").c_str(), 1);
  EXPECT_EQ(left_view_file(), scratch_.path("home/shardwise/view.json"));
  EXPECT_TRUE(fs::is_directory(scratch_.path("home/shardwise")));
}

// Defect N7: a relative folder was made in the current one. Source: XDG Base Directory
// Specification, "All paths set in these environment variables must be absolute".
TEST_F(LeftWindow, IsNotKeptInAFolderThatIsRelativeOrEmpty) {
  for (const char* const relative : {"rel", "", "./rel", "../here/rel"}) {
    ::setenv("XDG_STATE_HOME", relative, 1);
    ::setenv("HOME", scratch_.path("home").c_str(), 1);
    EXPECT_EQ(left_view_file(), scratch_.path("home/.local/state/shardwise/view.json")) << relative;
    ::setenv("HOME", relative, 1);
    EXPECT_EQ(left_view_file(), "") << relative;
    EXPECT_TRUE(fs::is_empty(scratch_.path("here"))) << relative;
  }
}

}  // namespace
}  // namespace shardwise::view
