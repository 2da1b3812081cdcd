#include "executor/storage/durable_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/spec/text/error.h"
#include "tests/support/scratch.h"

namespace shardwise::exec {
namespace {

using shardwise::test::bytes_of_file;
using shardwise::test::Scratch;

// The check value of CRC-32 in catalogues of CRCs is that of "123456789".
TEST(DurableFile, KnowsTheChecksumOfWhatItWrote) {
  const Scratch scratch;
  DurableFile file(scratch.path("a"));
  file.write("1234");
  file.write("56789");
  file.finish();
  EXPECT_EQ(file.crc32(), 0xcbf43926U);
  EXPECT_EQ(file.bytes(), 9);
  EXPECT_EQ(bytes_of_file(scratch.path("a")), "123456789");
}

TEST(DurableFile, KeepsTheOldFileUntilTheNewOneIsWhole) {
  const Scratch scratch;
  scratch.write_bytes("a", "old");
  {
    DurableFile file(scratch.path("a"));
    file.write(std::string(std::size_t{1} << 20, 'x'));
    EXPECT_EQ(bytes_of_file(scratch.path("a")), "old");
  }
  EXPECT_EQ(bytes_of_file(scratch.path("a")), "old");
  DurableFile file(scratch.path("a"));
  file.write("new");
  file.finish();
  EXPECT_EQ(bytes_of_file(scratch.path("a")), "new");
  const auto left = std::distance(std::filesystem::directory_iterator(scratch.folder()),
                                  std::filesystem::directory_iterator());
  EXPECT_EQ(left, 1);
}

TEST(DurableFile, SaysWhyItCannotBeWritten) {
  const Scratch scratch;
  scratch.write_bytes("file", "");
  try {
    const DurableFile file(scratch.path("file/a"));
    FAIL();
  } catch (const IoError& broken) {
    EXPECT_EQ(broken.what(), scratch.path("file/a") + ": cannot be written: Not a directory");
  }
}

}  // namespace
}  // namespace shardwise::exec
