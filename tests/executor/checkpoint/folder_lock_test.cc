#include "executor/checkpoint/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <filesystem>
#include <optional>

#include "tests/support/scratch.h"

namespace {

bool without_locks = false;  // as on a file system that has none

}  // namespace

extern "C" int fcntl(int file, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  if (without_locks && command == F_OFD_SETLK) {
    errno = ENOLCK;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fcntl, file, command, argument));
}

namespace shardwise::exec::test {
namespace {

using shardwise::test::bytes_of_file;
using shardwise::test::Scratch;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::IsEmpty;

std::string this_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string problem_of(const Result<FolderLock>& refused) {
  return refused ? "" : to_string(refused.problems());
}

/// A process that has the lock until it is killed.
class Holder {
 public:
  explicit Holder(const std::filesystem::path& folder) {
    int ends[2] = {};
    EXPECT_EQ(::pipe(ends), 0);
    process_ = ::fork();
    if (process_ == 0) {
      const Result<FolderLock> lock = FolderLock::take(folder);
      const char has = lock ? 'y' : 'n';
      if (::write(ends[1], &has, 1) == 1) ::pause();
      ::_exit(1);
    }
    ::close(ends[1]);
    char has = 'n';
    EXPECT_EQ(::read(ends[0], &has, 1), 1);
    EXPECT_EQ(has, 'y');
    ::close(ends[0]);
  }
  ~Holder() { kill(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  pid_t process() const { return process_; }

 private:
  pid_t process_ = -1;
};

// (D8) Each of two runs removed what the other one was writing.
TEST(FolderLock, KeepsASecondRunOutAndNamesTheFirstUntilThatIsKilled) {
  const Scratch scratch;
  Holder holder(scratch.folder());
  EXPECT_THAT(problem_of(FolderLock::take(scratch.folder())),
              HasSubstr(fmt::format("{}: --checkpoint-dir: is in use by shardwise-run pid {} on {}",
                                    scratch.folder().string(), holder.process(), this_host())));
  holder.kill();
  const Result<FolderLock> next = FolderLock::take(scratch.folder());
  ASSERT_TRUE(next) << problem_of(next);
  EXPECT_EQ(bytes_of_file(scratch.path(kLockName)), fmt::format("{} {}\n", getpid(), this_host()));
}

TEST(FolderLock, IsFreeOnceItsHolderHasEnded) {
  const Scratch scratch;
  for (int run = 0; run < 2; ++run) {
    const Result<FolderLock> lock = FolderLock::take(scratch.folder());
    EXPECT_TRUE(lock) << problem_of(lock);
  }
  EXPECT_EQ(bytes_of_file(scratch.path(kLockName)), "");
}

// A rank that outlives rank 0 may still be writing.
TEST(FolderLock, IsTakenAsLongAsAnyRankOfTheJobIsThere) {
  const Scratch scratch;
  std::optional<Result<FolderLock>> first(FolderLock::take(scratch.folder()));
  ASSERT_TRUE(*first);
  std::optional<Result<FolderLock>> second(FolderLock::join(scratch.folder(), 1));
  ASSERT_TRUE(*second) << problem_of(*second);
  const Result<FolderLock> third = FolderLock::join(scratch.folder(), 2);
  ASSERT_TRUE(third) << problem_of(third);
  EXPECT_THAT(problem_of(FolderLock::join(scratch.folder(), 1)), HasSubstr("is in use by rank 1"));
  first.reset();
  EXPECT_THAT(problem_of(FolderLock::take(scratch.folder(), milliseconds(0))),
              HasSubstr("is in use by processes that another shardwise-run left behind"));
  second.reset();
  EXPECT_FALSE(FolderLock::take(scratch.folder(), milliseconds(0)));
}

TEST(FolderLock, SaysWhereTheFileSystemHasNoLocks) {
  const Scratch scratch;
  without_locks = true;
  const Result<FolderLock> lock = FolderLock::take(scratch.folder());
  const Result<FolderLock> rank = FolderLock::join(scratch.folder(), 1);
  without_locks = false;
  ASSERT_TRUE(lock) << problem_of(lock);
  ASSERT_TRUE(rank) << problem_of(rank);
  EXPECT_EQ(lock->unlocked(), "No locks available");
  const Result<FolderLock> other = FolderLock::take(scratch.folder());
  ASSERT_TRUE(other) << problem_of(other);
  EXPECT_THAT(other->unlocked(), IsEmpty());
}

TEST(FolderLock, DoesNotFollowALinkNorWaitForAPipe) {
  const Scratch scratch;
  const std::string elsewhere = scratch.write_bytes("elsewhere", "text");
  std::filesystem::create_symlink(elsewhere, scratch.path(kLockName));
  EXPECT_THAT(problem_of(FolderLock::take(scratch.folder())), HasSubstr("lock: --checkpoint-dir: "
                                                                        "not a regular file"));
  EXPECT_EQ(bytes_of_file(elsewhere), "text");
  std::filesystem::remove(scratch.path(kLockName));
  ASSERT_EQ(::mkfifo(scratch.path(kLockName).c_str(), 0600), 0);
  EXPECT_THAT(problem_of(FolderLock::take(scratch.folder())), HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace shardwise::exec::test
