#include "tests/executor/support/limited.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <utility>

#include "planner/spec/text/error.h"
#include "tests/support/sanitized.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::kSanitized;

constexpr unsigned kSeconds = 60;

/// Address space of this process. Source: proc(5), /proc/[pid]/statm.
std::int64_t address_space() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

[[noreturn]] void run(std::int64_t bytes, const std::function<void()>& body, int out) {
  ::alarm(kSeconds);
  const auto most = static_cast<rlim_t>(address_space() + bytes);
  const rlimit limit = {most, most};
  ::setrlimit(RLIMIT_AS, &limit);
  std::string said = "nothing";
  try {
    body();
  } catch (const IoError& broken) {
    said = broken.what();
  }
  const ssize_t written = ::write(out, said.data(), said.size());
  ::_exit(written == static_cast<ssize_t>(said.size()) ? 0 : 1);
}

}  // namespace

std::string error_within(std::int64_t bytes, const std::function<void()>& body) {
  if (kSanitized) return "sanitized";
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) run(bytes, body, ends[1]);
  ::close(ends[1]);
  std::string said;
  std::array<char, 4096> some{};
  for (ssize_t count = 0; (count = ::read(ends[0], some.data(), some.size())) > 0;) {
    said.append(some.data(), static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? said : "killed";
}

}  // namespace shardwise::exec::test
