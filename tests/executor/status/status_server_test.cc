// Who asks a job what it does: this user and root are told, and nobody hurts it (issue 26).
#include "executor/status/status_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

constexpr double kLong = 60;
constexpr uid_t kNobody = 65534;

std::string unique_name(const std::string& what) {
  return "shardwise test " + what + " " + std::to_string(::getpid());
}

/// What comes until the other end closes the connection. Nothing where it does not.
std::optional<std::string> all_of(const FileDescriptor& line) {
  std::string text;
  std::array<char, 4096> some{};
  const Deadline late = in_seconds(kLong);
  while (Deadline::clock::now() < late) {
    const ssize_t count = ::recv(line.number(), some.data(), some.size(), 0);
    if (count == 0 || (count < 0 && errno == ECONNRESET)) return text;
    if (count > 0) text.append(some.data(), static_cast<std::size_t>(count));
    if (count < 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::nullopt;
}

/// A connection. \pre somebody listens
FileDescriptor connected_to(const std::string& name) {
  const Deadline late = in_seconds(kLong);
  while (Deadline::clock::now() < late) {
    std::optional<FileDescriptor> line = connect_local(name);
    if (line) return *std::move(line);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ADD_FAILURE() << "nobody listens as " << name;
  return {};
}

TEST(StatusServer, TellsThisUserTheWholeText) {
  const std::string text(3'000'000, 's');
  const StatusServer server(unique_name("whole"), [&] { return text; });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(all_of(connected_to(unique_name("whole"))), text);
  }
}

TEST(StatusServer, ReadsNothingThatItIsSent) {
  const StatusServer server(unique_name("garbage"), [] { return std::string("status"); });
  const FileDescriptor line = connected_to(unique_name("garbage"));
  const std::vector<std::byte> garbage(1000, std::byte{0x1b});
  send_all(line, garbage, in_seconds(1));
  EXPECT_EQ(all_of(connected_to(unique_name("garbage"))), "status");
}

// Eight that read nothing are all that are served at once; the ninth waits for their five seconds.
TEST(StatusServer, LeavesThoseThatReadNothing) {
  const std::string text(3'000'000, 's');
  const StatusServer server(unique_name("slow"), [&] { return text; });
  std::vector<FileDescriptor> slow;
  while (slow.size() < StatusServer::kMostClients) {
    slow.push_back(connected_to(unique_name("slow")));
  }
  EXPECT_EQ(all_of(connected_to(unique_name("slow"))), text);
}

TEST(StatusServer, MakesTheTextSeldomHoweverManyAsk) {
  std::atomic<int> made{0};
  const auto begin = std::chrono::steady_clock::now();
  const StatusServer server(unique_name("many"), [&] {
    ++made;
    return std::string("status");
  });
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(all_of(connected_to(unique_name("many"))), "status");
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(made, 1 + 5 * spent.count());
}

// As fast as one process can: 12,000 a second cost the job half of its steps.
TEST(StatusServer, TakesFewConnectionsOfAFlood) {
  std::atomic<bool> over{false};
  const StatusServer server(unique_name("flood"), [] { return std::string(); });
  std::atomic<int> taken{0};
  std::vector<std::jthread> flood;
  for (int i = 0; i < 2; ++i) {
    flood.emplace_back([&] {
      while (!over) {
        if (connect_local(unique_name("flood"))) ++taken;
      }
    });
  }
  // Those that are not taken yet fill the kernel's queue first.
  std::this_thread::sleep_for(std::chrono::seconds(2));
  const int before = taken;
  std::this_thread::sleep_for(std::chrono::seconds(2));
  const int after = taken;
  over = true;
  flood.clear();
  EXPECT_LE(after - before, 4000);
}

// Connections that are closed at once, or never read, cost the job no file descriptors.
TEST(StatusServer, EndsAtOnceWithConnectionsLeft) {
  std::vector<FileDescriptor> lines;
  const auto server = std::make_unique<StatusServer>(unique_name("end"),
                                                     [] { return std::string(3'000'000, 's'); });
  for (int i = 0; i < 50; ++i) lines.push_back(connected_to(unique_name("end")));
}

TEST(StatusServer, RefusesANameThatIsTaken) {
  const auto text = [] { return std::string("status"); };
  const StatusServer server(unique_name("taken"), text);
  EXPECT_THROW(StatusServer(unique_name("taken"), text), IoError);
}

TEST(StatusServer, TellsAnotherUserNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  std::atomic<int> made{0};
  // The child is started before there are threads.
  std::array<int, 2> go{};
  ASSERT_EQ(::pipe(go.data()), 0);
  const std::string name = unique_name("stranger");
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    char none = 0;
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) ::_exit(1);
    if (::read(go[0], &none, 1) != 1) ::_exit(2);
    for (int i = 0; i < 40; ++i) {
      const std::optional<std::string> told = all_of(connected_to(name));
      if (!told || !told->empty()) ::_exit(3);
    }
    ::_exit(0);
  }
  const StatusServer server(name, [&] {
    ++made;
    return std::string("status");
  });
  ASSERT_EQ(::write(go[1], "g", 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(stranger, &status, 0), stranger);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(made, 0);
  EXPECT_EQ(all_of(connected_to(name)), "status");
  ::close(go[0]);
  ::close(go[1]);
}

}  // namespace
}  // namespace shardwise::exec
