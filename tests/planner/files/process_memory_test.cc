#include "planner/files/process_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <new>
#include <string>

#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

namespace shardwise {
namespace {

/// A file system with the control groups of one process.
class ControlGroups : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(scratch_.path(name)).parent_path());
    scratch_.write_bytes(name, text);
  }
  MemoryRoom room() const { return process_memory(scratch_.folder()); }

  test::Scratch scratch_;
};

constexpr const char* kSecond =
    "22 1 0:20 / /proc rw - proc proc rw\n"
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST_F(ControlGroups, BoundAProcessByTheLeastLimitAboveIt) {
  const Bytes machine = room().bytes;  // no control groups
  EXPECT_GT(machine, Bytes(0));
  write("proc/self/cgroup", "0::/user.slice/job.scope\n");
  write("proc/self/mountinfo", kSecond);
  EXPECT_EQ(room().bytes, machine);
  write("sys/fs/cgroup/user.slice/job.scope/memory.max", "max\n");
  write("sys/fs/cgroup/user.slice/memory.max", "3000000\n");
  EXPECT_EQ(room().bytes, Bytes(3000000));
  EXPECT_EQ(room().by, "the control group allows");
  write("sys/fs/cgroup/user.slice/job.scope/memory.high", "2000000\n");
  EXPECT_EQ(room().bytes, Bytes(2000000));
  write("sys/fs/cgroup/user.slice/job.scope/memory.max", "1000000\n");
  EXPECT_EQ(room().bytes, Bytes(1000000));
  write("sys/fs/cgroup/user.slice/job.scope/memory.max", "what\n");
  EXPECT_EQ(room().bytes, Bytes(2000000));
}

// A container has its own group mounted as the root, and sees its path from outside.
TEST_F(ControlGroups, AreFoundWhereAContainerHasThem) {
  write("proc/self/cgroup", "0::/\n");
  write("proc/self/mountinfo", kSecond);
  write("sys/fs/cgroup/memory.max", "4000000\n");
  EXPECT_EQ(room().bytes, Bytes(4000000));
  write("proc/self/cgroup",
        "12:cpu:/docker/1a2b\n4:hugetlb,memory:/docker/1a2b\n0::/docker/1a2b\n");
  write("proc/self/mountinfo",
        "30 23 0:26 /docker/1a2b /sys/fs/cgroup/memory ro shared:9 - cgroup cgroup rw,memory\n"
        "31 23 0:27 /docker/1a2b /sys/fs/cgroup/cpu ro shared:9 - cgroup cgroup rw,cpu\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "5000000\n");
  EXPECT_EQ(room().bytes, Bytes(5000000));
  // Without a limit it is the largest number of pages.
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_GT(room().bytes, Bytes(5000000));
}

TEST_F(ControlGroups, AreLeftOutWhereTheirFilesAreOfNoKnownForm) {
  const Bytes machine = room().bytes;
  write("proc/self/cgroup", "\n0\n:\n::\n0::../../..\n");
  write("proc/self/mountinfo", "\n-\n1 2 3 4 5 - cgroup2\n1 2 3 4 /x 6 - cgroup2 a b\n");
  EXPECT_EQ(room().bytes, machine);
}

TEST(ProcessMemory, IsNoMoreThanItsOwnLimits) {
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  if (before.rlim_cur != RLIM_INFINITY || test::kSanitized) GTEST_SKIP() << "has a limit already";
  struct rlimit limit = before;
  limit.rlim_cur = rlim_t{1} << 32;
  const MemoryRoom whole = process_memory("/");
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
  const MemoryRoom room = process_memory("/");
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  if (whole.bytes > Bytes(std::int64_t{1} << 32)) {
    EXPECT_EQ(room.bytes, Bytes(std::int64_t{1} << 32));
    EXPECT_EQ(room.by, "ulimit -v allows");
  }
}

TEST(BoundedMemory, IsAllThereIsWhileItLives) {
  if (test::kSanitized) GTEST_SKIP() << "under a sanitizer there is no bound";
  const auto takes = [](std::size_t bytes) {
    try {
      const std::unique_ptr<std::byte[]> block(new std::byte[bytes]);
      block[bytes - 1] = std::byte{1};
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  };
  constexpr std::size_t kMuch = std::size_t{3} << 30;
  const std::string kSaid =
      "this takes more than the 64.0 MiB of memory that --memory-limit allows";
  EXPECT_EQ(memory_bound(), std::nullopt);
  ASSERT_TRUE(takes(kMuch));
  {
    const BoundedMemory bounded(64_MiB, "--memory-limit");
    EXPECT_EQ(memory_bound(), 64_MiB);
    EXPECT_TRUE(takes(std::size_t{32} << 20));
    EXPECT_FALSE(takes(kMuch));
    EXPECT_EQ(out_of_memory(), kSaid);
  }
  EXPECT_EQ(memory_bound(), std::nullopt);
  EXPECT_TRUE(takes(kMuch));
  EXPECT_NE(out_of_memory(), kSaid);
  try {
    const BoundedMemory bounded(64_MiB, "--memory-limit");
    throw std::bad_alloc();
  } catch (const std::bad_alloc&) {
    EXPECT_EQ(out_of_memory(), kSaid);
  }
}

}  // namespace
}  // namespace shardwise
