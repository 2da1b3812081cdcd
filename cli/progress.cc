#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <system_error>
#include <utility>

#include "planner/files/process_time.h"

namespace shardwise::cli {
namespace {

constexpr std::chrono::seconds kFirstOnTerminal{1};
constexpr std::chrono::milliseconds kEachOnTerminal{100};
constexpr std::chrono::seconds kEachInLog{30};

/// A terminal that is gone stops no work.
void show(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace

Progress::Progress() : terminal_(isatty(STDERR_FILENO) != 0) {
  next_ = Clock::now() + (terminal_ ? kFirstOnTerminal : kEachInLog);
}

void Progress::say(const std::string& what) {
  note_progress(what);
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  if (!terminal_) {
    next_ = now + kEachInLog;
    show(what + "\n");
    return;
  }
  next_ = now + kEachOnTerminal;
  show("\r\033[K" + what.substr(0, 78));
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  show("\r\033[K");
  shown_ = false;
}

Meanwhile::Meanwhile(std::string work) {
  try {
    thread_ = std::thread([this, work = std::move(work)] { tell(work); });
  } catch (const std::system_error&) {
    // No memory for a thread: the work goes on and says nothing.
  }
}

void Meanwhile::tell(const std::string& work) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  Progress progress;
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, std::chrono::seconds(1), [this] { return is_over_; })) {
    const auto passed = std::chrono::floor<std::chrono::seconds>(Clock::now() - begin);
    progress.say(fmt::format("{}, {} s", work, passed.count()));
  }
}

Meanwhile::~Meanwhile() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

}  // namespace shardwise::cli
