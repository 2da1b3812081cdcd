#include "executor/launch/local_ranks.h"

#include <fmt/format.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigtimedwait is POSIX's
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

#include "executor/comm/sockets/hmac.h"
#include "executor/launch/command.h"
#include "executor/launch/gpu_library.h"
#include "executor/launch/launcher.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

using Clock = std::chrono::steady_clock;

/// Longer than processes that have met need to end one another.
constexpr std::chrono::seconds kEndOneAnother{9};
constexpr timespec kLookAgain{0, 100'000'000};
constexpr std::array kPassedOn = {SIGINT, SIGTERM, SIGHUP};
/// Of the environment: what each rank has of its own, and what would contradict it.
constexpr std::array<std::string_view, 5> kOwn = {kRankVariable, kRanksVariable, "SHARDWISE_SECRET",
                                                  "SHARDWISE_SECRET_FILE", "SHARDWISE_INSECURE"};

/// The signals that are waited for instead of being delivered, while this lives. Those that the
/// user had ignored stay ignored.
class HeldSignals {
 public:
  HeldSignals() {
    ::signal(SIGCHLD, SIG_DFL);  // where it is ignored there is nothing to wait for
    sigemptyset(&held_);
    sigaddset(&held_, SIGCHLD);
    for (const int each : kPassedOn) {
      struct sigaction now {};
      if (::sigaction(each, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) {
        sigaddset(&held_, each);
      }
    }
    ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }
  ~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  const sigset_t& before() const { return before_; }
  /// The next that comes within a moment; 0: none.
  int next() const { return std::max(0, ::sigtimedwait(&held_, nullptr, &kLookAgain)); }

 private:
  sigset_t held_{};
  sigset_t before_{};
};

std::vector<std::string> environment_of(int rank, int ranks, const std::string& secret) {
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view text = *each;
    if (std::ranges::find(kOwn, text.substr(0, text.find('='))) == kOwn.end()) {
      all.emplace_back(text);
    }
  }
  all.push_back(fmt::format("{}={}", kRankVariable, rank));
  all.push_back(fmt::format("{}={}", kRanksVariable, ranks));
  all.push_back("SHARDWISE_SECRET=" + secret);
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& each : texts) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string drawn_secret() {
  std::string text;
  for (const std::byte each : draw_digest()) text += fmt::format("{:02x}", each);
  return text;
}

/// The processes of a job, by rank.
class LocalRanks {
 public:
  LocalRanks(std::vector<std::string> words, int ranks) {
    const std::string secret = drawn_secret();
    std::vector<char*> argv = pointers_to(words);
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<std::string> environment = environment_of(rank, ranks, secret);
      const pid_t started = start(argv.data(), pointers_to(environment).data());
      if (started < 0) {
        const std::string why = std::strerror(errno);
        kill_all();
        throw IoError(fmt::format("cannot start the process of rank {}: {}", rank, why));
      }
      ranks_.push_back({started, std::nullopt});
    }
  }
  ~LocalRanks() { kill_all(); }
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

  /// \returns the signal that was passed on and ended them; 0: none
  int wait() {
    int passed_on = 0;
    std::optional<Clock::time_point> first_failed;
    while (reap(first_failed)) {
      const int signal = signals_.next();
      if (signal != 0 && signal != SIGCHLD) {
        passed_on = signal;
        send(signal);
        first_failed = first_failed.value_or(Clock::now());
      }
      if (first_failed && Clock::now() - *first_failed > kEndOneAnother) send(SIGKILL);
    }
    return passed_on;
  }

  /// Of the lowest rank that ended itself other than well; else what to say of one that was ended.
  int exit_code(std::string& gone) const {
    for (const Rank& each : ranks_) {
      if (WIFEXITED(*each.status) && WEXITSTATUS(*each.status) != kDone) {
        return WEXITSTATUS(*each.status);
      }
    }
    if (first_gone_ < 0) return kDone;
    const Rank& rank = ranks_[static_cast<std::size_t>(first_gone_)];
    const int signal = WTERMSIG(*rank.status);
    gone = fmt::format("rank {} is gone: its process {} ended by signal {} ({})", first_gone_,
                       rank.process, signal, ::strsignal(signal));
    return kWorldBroke;
  }

 private:
  struct Rank {
    pid_t process = -1;
    std::optional<int> status;  // once it has ended
  };

  /// Between fork and exec a process of several threads may do little.
  pid_t start(char* const* argv, char* const* environment) const {
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) _exit(kWorldBroke);
    ::pthread_sigmask(SIG_SETMASK, &signals_.before(), nullptr);
    ::execve("/proc/self/exe", argv, environment);
    constexpr std::string_view kWhy = "shardwise-run: cannot start itself again\n";
    static_cast<void>(::write(STDERR_FILENO, kWhy.data(), kWhy.size()));
    _exit(kWorldBroke);
  }

  /// \returns whether any is still there
  bool reap(std::optional<Clock::time_point>& first_failed) {
    bool there = false;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      Rank& each = ranks_[r];
      if (each.status) continue;
      int status = 0;
      if (::waitpid(each.process, &status, WNOHANG) != each.process) {
        there = true;
        continue;
      }
      each.status = status;
      if (WIFEXITED(status) && WEXITSTATUS(status) == kDone) continue;
      if (!first_failed) first_failed = Clock::now();
      if (WIFSIGNALED(status) && first_gone_ < 0) first_gone_ = static_cast<int>(r);
    }
    return there;
  }

  void send(int signal) const {
    for (const Rank& each : ranks_) {
      if (!each.status) ::kill(each.process, signal);
    }
  }

  void kill_all() {
    send(SIGKILL);
    for (Rank& each : ranks_) {
      if (!each.status) ::waitpid(each.process, nullptr, 0);
    }
    ranks_.clear();
  }

  HeldSignals signals_;
  std::vector<Rank> ranks_;
  int first_gone_ = -1;  // ended by a signal before any other
};

/// Whether the ranks of a plan have GPUs of this machine, one each.
bool have_own_gpus(const Plan& plan, const DeviceOptions& options) {
  if (plan.cluster.gpu.vendor != "nvidia" || options.kind == DeviceKind::cpu) return false;
  if (options.share_gpu) return false;
  try {
    const GpuLibrary library = open_gpu_library();
    return library.platform != nullptr && library.platform->problem().empty() &&
           library.platform->gpus() >= plan.layout.world();
  } catch (const IoError&) {
    return false;  // the run says why
  }
}

}  // namespace

bool are_processes(const Plan& plan, const RunOptions& options) {
  if (plan.layout.world() == 1) return false;
  if (options.ranks_as != RanksAs::usual) return options.ranks_as == RanksAs::processes;
  return have_own_gpus(plan, options.device);
}

int run_local_ranks(const std::vector<std::string>& words, int ranks) {
  std::string gone;
  int code = kDone;
  int passed_on = 0;
  {
    LocalRanks all(words, ranks);
    passed_on = all.wait();
    code = all.exit_code(gone);
  }
  // As a run of threads ends, for whatever waits for this process.
  if (passed_on != 0) ::raise(passed_on);
  if (!gone.empty()) say({Failure::Kind::broken, gone});
  return code;
}

}  // namespace shardwise::exec
