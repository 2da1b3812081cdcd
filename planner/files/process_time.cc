#include "planner/files/process_time.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
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

// What the handler writes, which may not make a text. `missing` is what the line ends with.
std::array<char, 1024> limit_line{};           // NOLINT(*non-const-global*)
std::atomic<std::size_t> line_length = 0;      // NOLINT(*non-const-global*)
std::string known_answer;                      // NOLINT(*non-const-global*)
std::string missing_of_answer;                 // NOLINT(*non-const-global*)
std::atomic<bool> has_answer = false;          // NOLINT(*non-const-global*)
std::atomic<bool> errors_on_terminal = false;  // NOLINT(*non-const-global*)

void set_line(std::string_view text) {
  line_length = 0;
  const std::size_t length = std::min(text.size(), limit_line.size());
  std::copy_n(text.begin(), length, limit_line.begin());
  line_length = length;
}

void write_whole(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void end_by_limit(int /*signal*/) {
  // The thread that writes files holds the signal while it changes them; another must not look.
  if (::gettid() != ::getpid()) {
    ::tgkill(::getpid(), ::getpid(), SIGXCPU);
    return;
  }
  discard_open_files();
  // A line of progress is taken away first.
  if (errors_on_terminal) write_whole(STDERR_FILENO, "\r\033[K");
  if (has_answer) write_whole(STDOUT_FILENO, known_answer);
  write_whole(STDERR_FILENO, {limit_line.data(), line_length});
  if (has_answer) write_whole(STDERR_FILENO, missing_of_answer);
  write_whole(STDERR_FILENO, "\n");
  ::_exit(kEnvironmentFailure);
}

void set_system_line(const std::string& program) {
  set_line(fmt::format("{}: this computes for longer than `ulimit -t` allows", program));
}

/// Has the timer of this process send SIGXCPU once it has computed for so long.
void end_after(Seconds computed) {
  sigevent ends = {};
  ends.sigev_notify = SIGEV_SIGNAL;
  ends.sigev_signo = SIGXCPU;
  timer_t timer = {};
  if (::timer_create(CLOCK_PROCESS_CPUTIME_ID, &ends, &timer) != 0) return;
  itimerspec when = {};
  when.it_value.tv_sec = static_cast<time_t>(computed.value());
  when.it_value.tv_nsec =
      static_cast<long>(1e9 * (computed.value() - static_cast<double>(when.it_value.tv_sec)));
  ::timer_settime(timer, TIMER_ABSTIME, &when, nullptr);
}

Seconds now_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return Seconds(static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec));
}

}  // namespace

void note_progress(const std::string& what) {
  const std::scoped_lock lock(progress_mutex);
  progress = what;
}

void answer_processor_limit(const std::string& program) {
  errors_on_terminal = ::isatty(STDERR_FILENO) != 0;
  set_system_line(program);
  struct sigaction ends = {};
  ends.sa_handler = end_by_limit;
  ends.sa_flags = SA_RESTART;
  ::sigaction(SIGXCPU, &ends, nullptr);
  rlimit limit{};
  if (::getrlimit(RLIMIT_CPU, &limit) != 0) return;
  if (limit.rlim_max == RLIM_INFINITY || limit.rlim_cur < limit.rlim_max) return;
  if (limit.rlim_max < 2) {
    end_after(Seconds(0.5));  // a soft limit of no seconds would be met at once
    return;
  }
  limit.rlim_cur = limit.rlim_max - 1;
  ::setrlimit(RLIMIT_CPU, &limit);
}

KnownAnswer::KnownAnswer(const std::string& text, const std::string& missing) {
  const LimitHeld held;
  known_answer = text;
  missing_of_answer = "; " + missing;
  has_answer = true;
}

KnownAnswer::~KnownAnswer() {
  const LimitHeld held;
  has_answer = false;
}

LimitHeld::LimitHeld() {
  sigset_t limit;
  sigemptyset(&limit);
  sigaddset(&limit, SIGXCPU);
  pthread_sigmask(SIG_BLOCK, &limit, &before_);
}

LimitHeld::~LimitHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

BoundedTime::BoundedTime(Seconds limit, const std::string& program, const std::string& flag)
    : program_(program),
      begin_(fmt::format("{}: this computes for longer than the {} that {} allows", program,
                         format_seconds(limit), flag)) {
  note_progress("");
  answer_processor_limit(program);
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
    set_line(at.empty() ? begin_ : fmt::format("{}; it was at: {}", begin_, at));
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
  set_system_line(program_);
}

}  // namespace shardwise
