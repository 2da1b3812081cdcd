// Which programs and libraries beside a program are trusted.
#include "planner/files/trusted_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/support/scratch.h"

namespace shardwise {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uid_t kStranger = 65534;

class Trusted : public testing::Test {
 protected:
  void SetUp() override { ::chmod(folder().c_str(), 0755); }
  std::string folder() const { return scratch_.folder().string(); }
  std::string file() const { return scratch_.path("file"); }
  void write(mode_t mode) const {
    scratch_.write_bytes("file", "text");
    ::chmod(file().c_str(), mode);
  }
  std::string refusal() const { return TrustedFile(folder(), "file").refusal(); }
  test::Scratch scratch_;
};

TEST_F(Trusted, IsAFileOfThisUserThatNobodyElseMayWrite) {
  for (const mode_t mode : {0644U, 0755U, 0600U, 0711U}) {
    write(mode);
    const TrustedFile file(folder(), "file");
    EXPECT_TRUE(file.exists());
    EXPECT_EQ(file.refusal(), "") << mode;
    EXPECT_EQ(test::bytes_of_file(file.opened()), "text");
  }
}

TEST_F(Trusted, StaysTheFileThatWasOpenedWhenAnotherTakesItsName) {
  write(0644);
  const TrustedFile file(folder(), "file");
  std::filesystem::rename(scratch_.write_bytes("other", "planted"), this->file());
  EXPECT_EQ(test::bytes_of_file(file.opened()), "text");
}

// Between a look at a path and its opening, what has the name may be another.
TEST_F(Trusted, IsNeverAFileThatTakesItsPlaceWhileItIsOpened) {
  std::filesystem::create_directories(scratch_.path("ours"));
  std::filesystem::create_directories(scratch_.path("theirs"));
  ::chmod(scratch_.path("ours").c_str(), 0755);
  ::chmod(scratch_.path("theirs").c_str(), 0777);
  ::chmod(scratch_.write_bytes("ours/file", "text").c_str(), 0644);
  ::chmod(scratch_.write_bytes("theirs/file", "planted").c_str(), 0644);
  std::atomic<bool> over = false;
  std::thread stranger([&] {
    while (!over) {
      ::renameat2(AT_FDCWD, scratch_.path("ours").c_str(), AT_FDCWD,
                  scratch_.path("theirs").c_str(), RENAME_EXCHANGE);
    }
  });
  int trusted = 0;
  int refused = 0;
  constexpr int kEnough = 200;
  constexpr int kMost = 500'000;  // where the other thread gets no core
  for (int i = 0; i < kMost && (trusted < kEnough || refused < kEnough); ++i) {
    const TrustedFile file(scratch_.path("ours"), "file");
    if (!file.exists() || !file.refusal().empty()) {
      ++refused;
    } else {
      ++trusted;
      EXPECT_EQ(test::bytes_of_file(file.opened()), "text");
    }
  }
  over = true;
  stranger.join();
  EXPECT_GE(trusted, kEnough);
  EXPECT_GE(refused, kEnough);
}

TEST_F(Trusted, IsAbsentWhereNothingHasTheName) {
  EXPECT_FALSE(TrustedFile(folder(), "file").exists());
  EXPECT_FALSE(TrustedFile(folder() + "/nowhere", "file").exists());
  EXPECT_EQ(refusal(), "");
}

TEST_F(Trusted, IsNoFileThatOthersMayWrite) {
  write(0666);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(file() + " is not trusted: it may be written by others"),
                               HasSubstr("mode 0666")));
}

// Defect N2: in /tmp a stranger cannot replace a program, but he can add a file beside it.
TEST_F(Trusted, IsNoFileOfAFolderThatOthersMayWriteStickyOrNot) {
  write(0644);
  for (const mode_t mode : {0777U, 01777U}) {
    ::chmod(folder().c_str(), mode);
    EXPECT_THAT(refusal(), HasSubstr("its folder may be written by others")) << mode;
  }
  EXPECT_THAT(refusal(), HasSubstr("mode 1777"));
}

TEST_F(Trusted, IsNoFolderOrPipe) {
  std::filesystem::create_directory(file());
  EXPECT_THAT(refusal(), HasSubstr("is no regular file"));
  std::filesystem::remove(file());
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  EXPECT_THAT(refusal(), HasSubstr("is no regular file"));
}

TEST_F(Trusted, IsWhereALinkLeadsWhenThatIsTrusted) {
  const test::Scratch other;
  const std::string target = other.write_bytes("target", "text");
  ::chmod(target.c_str(), 0644);
  std::filesystem::create_symlink(target, file());
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(test::bytes_of_file(TrustedFile(folder(), "file").opened()), "text");
  ::chmod(target.c_str(), 0666);
  EXPECT_THAT(refusal(), HasSubstr("it may be written by others"));
  ::chmod(target.c_str(), 0644);
  ::chmod(other.folder().c_str(), 01777);
  EXPECT_THAT(refusal(), HasSubstr("its folder may be written by others"));
  ::chmod(other.folder().c_str(), 0755);
  ::chmod(folder().c_str(), 01777);
  EXPECT_THAT(refusal(), HasSubstr("its folder may be written by others"));
  ::chmod(folder().c_str(), 0755);
  std::filesystem::remove(target);
  EXPECT_FALSE(TrustedFile(folder(), "file").exists());
}

class TrustedOfRoot : public Trusted {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
    Trusted::SetUp();
    write(0644);
  }
};

TEST_F(TrustedOfRoot, IsNoFileOfAnotherUser) {
  ASSERT_EQ(::chown(file().c_str(), kStranger, 0), 0);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("it belongs to another user"), HasSubstr("65534")));
}

TEST_F(TrustedOfRoot, IsNoLinkOfAnotherUser) {
  std::filesystem::rename(file(), scratch_.path("target"));
  std::filesystem::create_symlink("target", file());
  EXPECT_EQ(refusal(), "");
  ASSERT_EQ(::lchown(file().c_str(), kStranger, 0), 0);
  EXPECT_THAT(refusal(), HasSubstr("it belongs to another user"));
}

// A stranger's link beside root's program led to any folder of root's.
TEST_F(TrustedOfRoot, IsNotBehindALinkOfAnotherUser) {
  std::filesystem::create_directory(scratch_.path("real"));
  std::filesystem::rename(file(), scratch_.path("real/file"));
  std::filesystem::create_symlink("real", scratch_.path("lib"));
  std::filesystem::create_symlink(scratch_.path("lib"), scratch_.path("twice"));
  const auto refusal_in = [&](const std::string& name) {
    return TrustedFile(scratch_.path(name), "file").refusal();
  };
  EXPECT_EQ(refusal_in("lib"), "");
  EXPECT_EQ(refusal_in("twice/../real"), "");
  EXPECT_EQ(test::bytes_of_file(TrustedFile(scratch_.path("twice"), "file").opened()), "text");
  ASSERT_EQ(::lchown(scratch_.path("lib").c_str(), kStranger, kStranger), 0);
  for (const char* const way : {"lib", "twice", "lib/../real"}) {
    EXPECT_THAT(refusal_in(way), AllOf(HasSubstr("a link on the way to it belongs to another user"),
                                       HasSubstr("65534")))
        << way;
  }
  // What is not there is not refused.
  EXPECT_FALSE(TrustedFile(scratch_.path("real"), "nothing").exists());
  EXPECT_EQ(refusal_in("real"), "");
}

TEST_F(Trusted, IsAbsentBehindLinksWithoutAnEnd) {
  std::filesystem::create_symlink("b", scratch_.path("a"));
  std::filesystem::create_symlink("a", scratch_.path("b"));
  EXPECT_FALSE(TrustedFile(scratch_.path("a"), "file").exists());
}

TEST_F(TrustedOfRoot, IsNoFileInAFolderOfAnotherUser) {
  ASSERT_EQ(::chown(folder().c_str(), kStranger, 0), 0);
  EXPECT_THAT(refusal(), HasSubstr("its folder belongs to another user"));
}

TEST_F(TrustedOfRoot, MayBeWrittenByAPrivateGroupAndByNoOther) {
  ::chmod(file().c_str(), 0664);
  ::chmod(folder().c_str(), 0775);
  EXPECT_EQ(refusal(), "");
  ASSERT_EQ(::chown(folder().c_str(), 0, kStranger), 0);
  EXPECT_THAT(refusal(), HasSubstr("its folder may be written by others"));
  ASSERT_EQ(::chown(folder().c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(file().c_str(), 0, kStranger), 0);
  EXPECT_THAT(refusal(), HasSubstr("it may be written by others"));
}

class Keeping : public Trusted {
 protected:
  bool keeps() const { return may_keep(folder(), "state/shardwise/view.json"); }
  void make() const {
    std::filesystem::create_directories(scratch_.path("state/shardwise"));
    scratch_.write_bytes("state/shardwise/view.json", "{}");
  }
};

TEST_F(Keeping, IsAllowedBelowAHomeOfThisUser) {
  EXPECT_TRUE(keeps());
  make();
  EXPECT_TRUE(keeps());
  EXPECT_TRUE(may_keep(folder() + "/", "state/shardwise/view.json"));
  EXPECT_TRUE(may_keep(folder() + "/new", "state/shardwise/view.json"));
  ::chmod(folder().c_str(), 01777);
  EXPECT_TRUE(keeps());
}

// Defect N3: the viewer as root wrote the file to which a user's link led.
TEST_F(Keeping, IsRefusedBehindALinkThatIsTheFileOrAFolder) {
  make();
  const std::string victim = scratch_.write_bytes("victim", "precious");
  std::filesystem::remove(scratch_.path("state/shardwise/view.json"));
  std::filesystem::create_symlink(victim, scratch_.path("state/shardwise/view.json"));
  EXPECT_FALSE(keeps());
  std::filesystem::rename(scratch_.path("state"), scratch_.path("elsewhere"));
  std::filesystem::remove(scratch_.path("elsewhere/shardwise/view.json"));
  std::filesystem::create_symlink("elsewhere", scratch_.path("state"));
  EXPECT_FALSE(keeps());
}

TEST_F(Keeping, IsRefusedWhereOthersMayWrite) {
  make();
  ::chmod(scratch_.path("state/shardwise").c_str(), 0777);
  EXPECT_FALSE(keeps());
  ::chmod(scratch_.path("state/shardwise").c_str(), 0755);
  EXPECT_TRUE(keeps());
  ::chmod(scratch_.path("state/shardwise/view.json").c_str(), 0666);
  EXPECT_FALSE(keeps());
}

TEST_F(Keeping, IsRefusedBelowTheHomeOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  make();
  for (const char* const part : {"", "state", "state/shardwise", "state/shardwise/view.json"}) {
    ASSERT_EQ(::chown(scratch_.path(part).c_str(), kStranger, kStranger), 0);
    EXPECT_FALSE(keeps()) << part;
    ASSERT_EQ(::chown(scratch_.path(part).c_str(), 0, 0), 0);
    EXPECT_TRUE(keeps()) << part;
  }
}

}  // namespace
}  // namespace shardwise
