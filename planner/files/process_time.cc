#include "planner/files/process_time.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <string_view>
#include <system_error>

#include "planner/files/atomic_file_set.h"
#include "planner/files/program.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr std::chrono::milliseconds kTick{50};
constexpr std::size_t kLongestProgress = 300;

std::mutex progress_mutex;  // NOLINT(*non-const-global*)
std::string progress;       // NOLINT(*non-const-global*)

// What the handler writes, which may not make a text.
std::array<char, 1024> limit_line{};       // NOLINT(*non-const-global*)
std::atomic<std::size_t> line_length = 0;  // NOLINT(*non-const-global*)

void set_line(std::string_view text) {
  line_length = 0;
  const std::size_t length = std::min(text.size(), limit_line.size());
  std::copy_n(text.begin(), length, limit_line.begin());
  line_length = length;
}

void end_by_limit(int /*signal*/) {
  discard_open_files();
  static_cast<void>(::write(STDERR_FILENO, limit_line.data(), line_length));
  ::_exit(kEnvironmentFailure);
}

Seconds now_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return Seconds(static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec));
}

/// A line of progress on a terminal is taken away first.
std::string whole_line(const std::string& text) {
  return (::isatty(STDERR_FILENO) != 0 ? "\r\033[K" : "") + text + "\n";
}

}  // namespace

void note_progress(const std::string& what) {
  const std::scoped_lock lock(progress_mutex);
  progress = what;
}

BoundedTime::BoundedTime(Seconds limit, const std::string& program, const std::string& flag)
    : begin_(fmt::format("{}: this computes for longer than the {} that {} allows", program,
                         format_seconds(limit), flag)) {
  note_progress("");
  set_line(
      whole_line(fmt::format("{}: this computes for longer than `ulimit -t` allows", program)));
  struct sigaction ends = {};
  ends.sa_handler = end_by_limit;
  ::sigaction(SIGXCPU, &ends, nullptr);
  // Signals are for the other threads: one that writes files holds them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this, limit, whom = ::pthread_self()] { count(limit, whom); });
  } catch (const std::system_error&) {
    // No memory for a thread: what is left is no machine that this could take.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void BoundedTime::count(Seconds limit, pthread_t whom) {
  Seconds computed(0);
  Seconds wall = now_of(CLOCK_MONOTONIC);
  Seconds processor = now_of(CLOCK_PROCESS_CPUTIME_ID);
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kTick, [this] { return is_over_; })) {
    const Seconds wall_now = now_of(CLOCK_MONOTONIC);
    const Seconds processor_now = now_of(CLOCK_PROCESS_CPUTIME_ID);
    computed += std::min(wall_now - wall, processor_now - processor);
    wall = wall_now;
    processor = processor_now;
    if (computed < limit) continue;
    std::string at;
    {
      const std::scoped_lock progress_lock(progress_mutex);
      at = shown(progress, kLongestProgress);
    }
    set_line(whole_line(at.empty() ? begin_ : fmt::format("{}; it was at: {}", begin_, at)));
    ::pthread_kill(whom, SIGXCPU);
    return;
  }
}

BoundedTime::~BoundedTime() {
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_one();
  if (thread_.joinable()) thread_.join();
  std::signal(SIGXCPU, SIG_DFL);
}

}  // namespace shardwise
