#include "planner/files/atomic_file_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#include "planner/spec/text/error.h"
#include "tests/planner/files/failure_of.h"
#include "tests/support/scratch.h"

namespace shardwise {
namespace {

namespace fs = std::filesystem;
using test::bytes_of_file;
using test::failure_of;
using test::Scratch;
using testing::HasSubstr;

TEST(AtomicFileSet, KeepsAllOrNone) {
  const Scratch scratch;
  {
    AtomicFileSet files;
    files.add_folder(scratch.path("of/ranks"));
    files.add(scratch.path("of/ranks/0"), "zero");
    files.add(scratch.path("report"), "r");
  }
  EXPECT_TRUE(fs::is_empty(scratch.folder()));
  AtomicFileSet files;
  files.add_folder(scratch.path("of/ranks"));
  files.add(scratch.path("of/ranks/0"), "zero");
  files.add(scratch.path("report"), "r");
  EXPECT_FALSE(fs::exists(scratch.path("report")));
  files.keep();
  EXPECT_EQ(bytes_of_file(scratch.path("of/ranks/0")), "zero");
  EXPECT_EQ(bytes_of_file(scratch.path("report")), "r");
}

TEST(AtomicFileSet, SynchronisesEveryFileAndEachFolderOnce) {
  const Scratch scratch;
  static int calls = 0;
  calls = 0;
  const FileCalls before = file_calls();
  file_calls().fsync = [](int) { return ++calls, 0; };
  AtomicFileSet files;
  for (const char* name : {"a", "b", "c"}) files.add(scratch.path(name), name);
  EXPECT_EQ(calls, 3);
  files.keep();
  EXPECT_EQ(calls, 4);
  file_calls() = before;
}

TEST(AtomicFileSet, WritesPipesWithoutReplacingThem) {
  const Scratch scratch;
  const std::string pipe = scratch.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = bytes_of_file(pipe); });
  write_file(pipe, "through the pipe");
  reader.join();
  EXPECT_EQ(read, "through the pipe");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

// It used to wait for ever.
TEST(AtomicFileSet, SaysThatNoProgramReadsAPipe) {
  const Scratch scratch;
  const std::string pipe = scratch.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  AtomicFileSet files;
  files.add(scratch.path("report"), "r");
  files.add(pipe, "nobody reads this");
  EXPECT_EQ(failure_of([&] { files.keep(); }),
            pipe + ": cannot be written: no program reads this pipe");
  EXPECT_FALSE(fs::exists(scratch.path("report")));
}

TEST(AtomicFileSet, WritesDevices) {
  write_file("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(failure_of([] { write_file("/dev/full", "x"); }),
            "/dev/full: cannot be written: No space left on device");
}

TEST(AtomicFileSet, TakesAnOpenDescriptorForItsName) {
  const Scratch scratch;
  std::FILE* opened = std::fopen(scratch.path("a").c_str(), "w");
  ASSERT_NE(opened, nullptr);
  write_file("/dev/fd/" + std::to_string(fileno(opened)), "first ");
  write_file("/proc/self/fd/" + std::to_string(fileno(opened)), "second");
  std::fclose(opened);
  EXPECT_EQ(bytes_of_file(scratch.path("a")), "first second");
  EXPECT_EQ(failure_of([] { write_file("/dev/fd/999", "x"); }),
            "/dev/fd/999: cannot be written: Bad file descriptor");
}

TEST(AtomicFileSet, RefusesAFolder) {
  const Scratch scratch;
  EXPECT_THAT(failure_of([&] { write_file(scratch.folder().string(), "x"); }),
              HasSubstr("cannot be written: Is a directory"));
}

}  // namespace
}  // namespace shardwise
