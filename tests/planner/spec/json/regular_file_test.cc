#include "planner/spec/json/regular_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include "planner/spec/json/reader.h"
#include "tests/support/scratch.h"

namespace shardwise {
namespace {

using shardwise::test::Scratch;

std::string said(const std::string& path, SymbolicLinks links = SymbolicLinks::followed) {
  const Result<int> file = open_regular_file(path, links);
  if (!file) return file.problems().front().file + ": " + file.problems().front().message;
  ::close(*file);
  return "";
}

// (D11) open(2) of a pipe waits for somebody who writes to it.
TEST(RegularFile, IsOpenedAndNothingElseIsWaitedFor) {
  const Scratch scratch;
  const std::string file = scratch.write_bytes("file", "text");
  EXPECT_EQ(said(file), "");
  const Result<std::string> text = read_regular_file(file);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "text");
  const std::string pipe = scratch.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(said(pipe), pipe + ": a pipe, not a regular file");
  std::filesystem::create_symlink(pipe, scratch.path("to_pipe"));
  EXPECT_EQ(said(scratch.path("to_pipe")),
            scratch.path("to_pipe") + ": a pipe, not a regular file");
  EXPECT_EQ(said("/dev/zero"), "/dev/zero: a device, not a regular file");
  EXPECT_EQ(said(scratch.folder()), scratch.folder().string() + ": a folder, not a file");
  EXPECT_EQ(said(scratch.path("none")), scratch.path("none") + ": no such file");
  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string socket = scratch.path("socket");
  ASSERT_LT(socket.size(), sizeof address.sun_path);
  socket.copy(address.sun_path, socket.size());
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(said(socket), socket + ": a socket, not a regular file");
  ::close(listener);
}

// The kernel's log is a regular file by its type, and reading it once waited for its next line.
TEST(RegularFile, HasAnEnd) {
  const std::string log = "/proc/kmsg";
  if (::access(log.c_str(), R_OK) != 0) GTEST_SKIP() << "only root reads the kernel's log";
  for (const Result<std::string>& text : {read_file(log), read_regular_file(log)}) {
    if (text) continue;  // a container may show it empty
    EXPECT_EQ(text.problems().front().message, "has no end: the kernel adds to it");
  }
}

TEST(RegularFile, MayBeALinkWhereLinksAreFollowed) {
  const Scratch scratch;
  std::filesystem::create_symlink(scratch.write_bytes("file", "text"), scratch.path("link"));
  EXPECT_EQ(said(scratch.path("link")), "");
  EXPECT_EQ(said(scratch.path("link"), SymbolicLinks::refused),
            scratch.path("link") + ": a symbolic link, which is not followed here");
  EXPECT_EQ(said(scratch.path("file"), SymbolicLinks::refused), "");
}

}  // namespace
}  // namespace shardwise
