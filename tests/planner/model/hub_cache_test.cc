#include "planner/model/hub_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/scratch.h"

namespace shardwise {
namespace {

namespace fs = std::filesystem;

/// Variables and the current folder of this process, until it is gone.
class HubCache : public testing::Test {
 protected:
  HubCache() : before_(fs::current_path()) {
    for (const char* const name : kNames) {
      const char* const value = std::getenv(name);
      values_.push_back(value == nullptr ? std::nullopt : std::optional<std::string>(value));
      ::unsetenv(name);
    }
    fs::current_path(scratch_.folder());
  }
  ~HubCache() override {
    fs::current_path(before_);
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      ::unsetenv(kNames.at(i));
      if (values_[i]) ::setenv(kNames.at(i), values_[i]->c_str(), 1);
    }
  }
  /// Puts a snapshot below a folder of the scratch. \returns its config.json
  fs::path fill(const std::string& hub) const {
    const fs::path repository = scratch_.folder() / hub / "models--a--b";
    fs::create_directories(repository / "refs");
    fs::create_directories(repository / "snapshots/1");
    return scratch_.write_bytes(hub + "/models--a--b/snapshots/1/config.json", "{}");
  }

  static constexpr std::array<const char*, 4> kNames = {"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME",
                                                        "HOME"};
  test::Scratch scratch_;
  fs::path before_;
  std::vector<std::optional<std::string>> values_;
};

TEST_F(HubCache, IsFoundByItsVariables) {
  const fs::path config = fill("cache/huggingface/hub");
  EXPECT_FALSE(config_in_hub_cache("a/b"));
  ::setenv("XDG_CACHE_HOME", scratch_.path("cache").c_str(), 1);
  EXPECT_EQ(config_in_hub_cache("a/b"), config);
  ::setenv("HF_HOME", scratch_.path("cache/huggingface").c_str(), 1);
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(config_in_hub_cache("a/b"), config);
}

// Of the class of N6 and N7: a model that anybody put into the current folder was read.
TEST_F(HubCache, IsNotLookedForInTheCurrentFolder) {
  fill("cache/huggingface/hub");
  fill(".cache/huggingface/hub");
  for (const char* const relative : {"cache", "", ".", "./cache"}) {
    ::setenv("XDG_CACHE_HOME", relative, 1);
    ::setenv("HOME", relative, 1);
    EXPECT_FALSE(config_in_hub_cache("a/b")) << relative;
  }
  ::unsetenv("HOME");
  EXPECT_FALSE(config_in_hub_cache("a/b"));
}

// A pipe in the place of a file of one line kept the command waiting for ever.
TEST_F(HubCache, WaitsForNoPipe) {
  const fs::path config = fill("hub");
  ASSERT_EQ(::mkfifo(scratch_.path("hub/models--a--b/refs/main").c_str(), 0600), 0);
  ::setenv("HF_HUB_CACHE", scratch_.path("hub").c_str(), 1);
  EXPECT_EQ(config_in_hub_cache("a/b"), config);
}

}  // namespace
}  // namespace shardwise
