#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace shardwise::cli {

Progress::Progress()
    : next_(Clock::now() + std::chrono::seconds(1)), terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::say(const std::string& what) {
  const Clock::time_point now = Clock::now();
  if (!terminal_ || now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  fmt::print(stderr, "\r\033[K{}", what.substr(0, 78));
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace shardwise::cli
