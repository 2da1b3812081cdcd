#include "planner/files/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <set>

#include "tests/planner/files/failure_of.h"
#include "tests/support/scratch.h"

namespace shardwise {
namespace {

namespace fs = std::filesystem;
using test::bytes_of_file;
using test::failure_of;
using test::Scratch;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

void write_whole(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.finish();
  file.publish();
}

// (D7) Two containers often have one pid: names were made of it. Here both writers are one process.
TEST(AtomicFile, HasANameOfItsOwnForEveryWriterOfOnePid) {
  const Scratch scratch;
  const std::string path = scratch.path("trace.json");
  AtomicFile first(path);
  AtomicFile second(path);
  EXPECT_NE(first.temporary(), second.temporary());
  first.write(std::string(100'000, 'a'));
  second.write(std::string(10, 'b'));
  first.write("A");
  first.finish();
  second.finish();
  first.publish();
  EXPECT_EQ(bytes_of_file(path), std::string(100'000, 'a') + "A");
  second.publish();
  EXPECT_EQ(bytes_of_file(path), std::string(10, 'b'));
  EXPECT_THAT(names_in(scratch.folder()), ElementsAre("trace.json"));
}

TEST(AtomicFile, IsNamedAfterItsPlaceAndNotAfterTheProcess) {
  const Scratch scratch;
  std::set<std::string> names;
  for (int i = 0; i < 100; ++i) {
    const AtomicFile file(scratch.path("a"));
    EXPECT_THAT(file.temporary(), testing::MatchesRegex(".*/a\\.[0-9a-f]{16}\\.part"));
    names.insert(file.temporary());
  }
  EXPECT_EQ(names.size(), 100U);
  EXPECT_THAT(names_in(scratch.folder()), ElementsAre());
}

TEST(AtomicFile, TakesTheLongestNameOfAFileSystem) {
  const Scratch scratch;
  const std::string name(255, 'n');
  write_whole(scratch.path(name), "x");
  EXPECT_THAT(names_in(scratch.folder()), ElementsAre(name));
}

TEST(AtomicFile, KeepsTheOldFileUntilTheNewOneIsWhole) {
  const Scratch scratch;
  const std::string path = scratch.write_bytes("a", "old");
  {
    AtomicFile file(path);
    file.write("half");
    file.finish();
    EXPECT_EQ(bytes_of_file(path), "old");
  }
  EXPECT_EQ(bytes_of_file(path), "old");
  EXPECT_THAT(names_in(scratch.folder()), ElementsAre("a"));
}

// (D12)
TEST(AtomicFile, WritesWhereALinkLeadsAndLeavesTheLink) {
  const Scratch scratch;
  fs::create_directory(scratch.folder() / "far");
  const std::string target = scratch.write_bytes("far/t", "old");
  fs::create_symlink("far/t", scratch.folder() / "l");
  fs::create_symlink("l", scratch.folder() / "ll");
  write_whole(scratch.path("ll"), "new");
  EXPECT_EQ(bytes_of_file(target), "new");
  EXPECT_EQ(fs::read_symlink(scratch.folder() / "l"), "far/t");
  EXPECT_EQ(fs::read_symlink(scratch.folder() / "ll"), "l");
  EXPECT_THAT(names_in(scratch.folder() / "far"), ElementsAre("t"));
}

TEST(AtomicFile, MakesTheFileThatALinkToNothingNames) {
  const Scratch scratch;
  fs::create_symlink(scratch.path("t"), scratch.folder() / "l");
  write_whole(scratch.path("l"), "new");
  EXPECT_TRUE(fs::is_symlink(scratch.folder() / "l"));
  EXPECT_EQ(bytes_of_file(scratch.path("t")), "new");
}

TEST(AtomicFile, SaysThatLinksGoInACircle) {
  const Scratch scratch;
  fs::create_symlink("b", scratch.folder() / "a");
  fs::create_symlink("a", scratch.folder() / "b");
  EXPECT_THAT(failure_of([&] { const AtomicFile file(scratch.path("a")); }),
              HasSubstr("/a: cannot be written: Too many levels of symbolic links"));
}

// (D12)
TEST(AtomicFile, KeepsTheModeOfTheFileItReplaces) {
  const Scratch scratch;
  for (const mode_t mode : {0600U, 0640U, 0666U, 0755U}) {
    const std::string path = scratch.write_bytes("a", "old");
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    write_whole(path, "new");
    struct stat facts = {};
    ASSERT_EQ(::stat(path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777U, mode);
    fs::remove(path);
  }
}

TEST(AtomicFile, KeepsTheOwnerOfTheFileItReplaces) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give files away";
  const Scratch scratch;
  const std::string path = scratch.write_bytes("a", "old");
  ASSERT_EQ(::chown(path.c_str(), 12345, 23456), 0);
  write_whole(path, "new");
  struct stat facts = {};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_uid, 12345U);
  EXPECT_EQ(facts.st_gid, 23456U);
}

TEST(AtomicFile, HasTheModeThatTheUmaskLeavesANewOne) {
  const Scratch scratch;
  const mode_t before = ::umask(027);
  write_whole(scratch.path("a"), "new");
  ::umask(before);
  struct stat facts = {};
  ASSERT_EQ(::stat(scratch.path("a").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777U, 0640U);
}

TEST(AtomicFile, LeavesAFileThatIsProtectedFromWriting) {
  const Scratch scratch;
  const std::string path = scratch.write_bytes("a", "old");
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  ASSERT_EQ(::chmod(scratch.folder().c_str(), 0777), 0);
  // Nothing is protected from root, who is somebody else for a moment.
  const bool root = ::geteuid() == 0;
  constexpr uid_t kNobody = 65534;
  if (root && ::seteuid(kNobody) != 0) GTEST_SKIP() << "root may not be anybody else here";
  const std::string failure = failure_of([&] { const AtomicFile file(path); });
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_EQ(failure, path + ": cannot be written: Permission denied");
  EXPECT_EQ(bytes_of_file(path), "old");
  EXPECT_THAT(names_in(scratch.folder()), ElementsAre("a"));
}

/// Calls of the system of which one fails with EIO; each counts.
class FailingCalls {
 public:
  explicit FailingCalls(const std::string& which) : before_(file_calls()) {
    calls_ = 0;
    if (which == "write") {
      file_calls().write = [](int, const void*, std::size_t) -> ssize_t { return fail(); };
    } else if (which == "fsync") {
      file_calls().fsync = [](int) { return fail(); };
    } else if (which == "close") {
      file_calls().close = [](int file) {
        ::close(file);
        return fail();
      };
    } else {
      file_calls().rename = [](const char*, const char*) { return fail(); };
    }
  }
  ~FailingCalls() { file_calls() = before_; }
  FailingCalls(const FailingCalls&) = delete;
  FailingCalls& operator=(const FailingCalls&) = delete;
  static int calls() { return calls_; }

 private:
  static int fail() {
    ++calls_;
    errno = EIO;
    return -1;
  }
  static inline int calls_ = 0;
  FileCalls before_;
};

class AtomicFileOnABrokenDisk : public testing::TestWithParam<std::string> {};

TEST_P(AtomicFileOnABrokenDisk, SaysSoOnceAndLeavesTheOldFile) {
  const Scratch scratch;
  const std::string path = scratch.write_bytes("a", "old");
  {
    const FailingCalls failing(GetParam());
    EXPECT_EQ(failure_of([&] { write_whole(path, "new"); }),
              path + ": cannot be written: Input/output error");
    EXPECT_EQ(FailingCalls::calls(), 1);  // and is not tried again
  }
  EXPECT_EQ(bytes_of_file(path), "old");
  EXPECT_THAT(names_in(scratch.folder()), ElementsAre("a"));
}
INSTANTIATE_TEST_SUITE_P(Calls, AtomicFileOnABrokenDisk,
                         testing::Values("write", "fsync", "close", "rename"),
                         [](const auto& each) { return each.param; });

TEST(AtomicFile, LeavesNothingOnAFullDisk) {
  const Scratch scratch;
  const std::string path = scratch.write_bytes("a", "old");
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const struct rlimit small = {4096, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string failure = failure_of([&] { write_whole(path, std::string(100'000, 'x')); });
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, before);
  EXPECT_EQ(failure, path + ": cannot be written: File too large");
  EXPECT_EQ(bytes_of_file(path), "old");
  EXPECT_THAT(names_in(scratch.folder()), ElementsAre("a"));
}

TEST(AtomicFile, SaysWhyThereIsNoPlaceForIt) {
  const Scratch scratch;
  scratch.write_bytes("file", "");
  const auto say = [&](const std::string& path) {
    return failure_of([&] { const AtomicFile file(path); });
  };
  EXPECT_EQ(say(scratch.path("file/a")),
            scratch.path("file/a") + ": cannot be written: Not a directory");
  EXPECT_EQ(say(scratch.path("none/a")),
            scratch.path("none/a") + ": cannot be written: No such file or directory");
  EXPECT_EQ(say(scratch.folder()),
            scratch.folder().string() + ": cannot be written: Is a directory");
}

/// Begins a file and is killed.
std::string left_by_a_killed_writer(const std::string& path) {
  const pid_t writer = ::fork();
  if (writer == 0) {
    AtomicFile file(path);
    file.write("half");
    std::raise(SIGKILL);
  }
  int status = 0;
  ::waitpid(writer, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  for (const auto& each : fs::directory_iterator(fs::path(path).parent_path())) {
    const std::string name = each.path().filename();
    if (name.starts_with(fs::path(path).filename().string() + ".") && name.ends_with(".part")) {
      return name;
    }
  }
  return "";
}

TEST(AtomicFile, TakesAwayWhatKilledWritersOfItsPlaceLeft) {
  const Scratch scratch;
  const std::string path = scratch.path("plan.json");
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(names_in(scratch.folder()), testing::SizeIs(i == 0 ? 0 : 1));
    EXPECT_NE(left_by_a_killed_writer(path), "");
  }
  write_whole(path, "whole");
  EXPECT_THAT(names_in(scratch.folder()), ElementsAre("plan.json"));
}

int no_locks(int /*file*/, int /*operation*/) {
  errno = ENOLCK;
  return -1;
}

// NFS without its daemon on one of two machines: the other's writer finds the part unlocked.
TEST(AtomicFile, IsNotTakenAwayFromAWriterToWhomTheSystemGivesNoLocks) {
  const Scratch scratch;
  const std::string path = scratch.path("plan.json");
  file_calls().flock = no_locks;
  AtomicFile without(path);
  file_calls().flock = ::flock;
  without.write(std::string(10'000, 'a'));
  write_whole(path, std::string(5'000, 'b'));
  EXPECT_EQ(bytes_of_file(path), std::string(5'000, 'b'));
  without.finish();
  without.publish();
  EXPECT_EQ(bytes_of_file(path), std::string(10'000, 'a'));
  EXPECT_THAT(names_in(scratch.folder()), ElementsAre("plan.json"));

  {
    AtomicFile locked(path);
    file_calls().flock = no_locks;
    write_whole(path, "c");  // cannot tell whether a writer holds the other's part, and leaves it
    file_calls().flock = ::flock;
    locked.write("d");
    locked.finish();
    locked.publish();
  }
  EXPECT_EQ(bytes_of_file(path), "d");
}

TEST(AtomicFile, LeavesWhatIsNoKilledWritersOfItsPlace) {
  const Scratch scratch;
  const std::string path = scratch.path("plan.json");
  const std::string another = left_by_a_killed_writer(scratch.path("other.json"));
  scratch.write_bytes("plan.json.0123.part", "");
  scratch.write_bytes("plan.json.0123456789abcdeg.part", "");
  fs::create_directory(scratch.path("plan.json.0123456789abcdef.part"));
  fs::create_symlink("other.json", scratch.path("plan.json.0000000000000000.part"));
  ASSERT_EQ(::mkfifo(scratch.path("plan.json.1111111111111111.part").c_str(), 0600), 0);
  if (::geteuid() == 0) {
    scratch.write_bytes("plan.json.2222222222222222.part", "");
    ASSERT_EQ(::chown(scratch.path("plan.json.2222222222222222.part").c_str(), 1000, 1000), 0);
  }
  const std::vector<std::string> before = names_in(scratch.folder());
  AtomicFile live(path);  // of another process or of this one: it is locked until it is published
  live.write("live");
  live.finish();
  write_whole(path, "second");
  EXPECT_EQ(names_in(scratch.folder()).size(), before.size() + 2) << "plan.json and the live one";
  live.publish();
  EXPECT_EQ(bytes_of_file(path), "live");
  std::vector<std::string> expected = before;
  expected.emplace_back("plan.json");
  EXPECT_THAT(names_in(scratch.folder()), testing::UnorderedElementsAreArray(expected));
  EXPECT_THAT(expected, testing::Contains(another));
}

TEST(SyncFolder, SaysThatADiskDidNotKeepNames) {
  const Scratch scratch;
  const FailingCalls failing("fsync");
  EXPECT_EQ(failure_of([&] { sync_folder(scratch.folder().string()); }),
            scratch.folder().string() + ": cannot be synchronised: Input/output error");
}

}  // namespace
}  // namespace shardwise
