#include "cli/progress.h"

#include <unistd.h>

#include <cstdio>

namespace shardwise::cli {
namespace {

/// A terminal that is gone stops no work.
void show(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace

Progress::Progress()
    : next_(Clock::now() + std::chrono::seconds(1)), terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::say(const std::string& what) {
  const Clock::time_point now = Clock::now();
  if (!terminal_ || now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  show("\r\033[K" + what.substr(0, 78));
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  show("\r\033[K");
  shown_ = false;
}

}  // namespace shardwise::cli
