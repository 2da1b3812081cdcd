#include "executor/comm/sockets/process_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <numeric>
#include <string_view>
#include <utility>

#include "executor/comm/sockets/socket.h"
#include "executor/comm/sockets/socket_hub.h"
#include "executor/kernels/start_thread.h"

namespace shardwise::exec {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLauncherFirst{1000};  // it sees a process that ends, and says so
constexpr milliseconds kOthersSay{5000};      // why a rank has let go that does not know it itself
constexpr milliseconds kReaction{2000};       // of who is told that the run has failed
constexpr milliseconds kReply{1000};          // of who is asked what it does
constexpr milliseconds kLetGo{4000};          // to remove a checkpoint that is not whole
constexpr milliseconds kLauncherEnds{500};    // the others, once one has ended
constexpr int kLookOnceWrong = 20;            // ms, once something is wrong
constexpr milliseconds kStatusEvery{1000};    // that is told unasked
constexpr milliseconds kStatusOfEach{10};     // at least, for each rank of the job
constexpr int kFirstAsked = 2;                // ranks that are told it

int exit_code_of(Failure::Kind kind) { return kind == Failure::Kind::bad_input ? 2 : 3; }

/// What a rank says that it does, below its number, whatever it begins with.
std::string does_text(int rank, std::string_view text) {
  if (text.empty()) return "";
  std::string head = fmt::format("\nrank {}", rank);
  const std::string_view rest = text.substr(std::min(head.size(), text.size()));
  const bool headed = text.starts_with(head) && (rest.empty() || rest.starts_with('\n'));
  return head + with_indented_lines(headed ? std::string(rest) : fmt::format("\n{}", text));
}

/// A process that was stopped since all have met has no line by which it could be ended later.
std::vector<FileDescriptor> join_all(SocketHub& hub, const std::vector<std::int64_t>& everyone,
                                     const Patience& patience) {
  try {
    return hub.join(everyone, Control::watch, patience);
  } catch (const Aborted&) {
    hub.end_silent(patience.rank);
    throw;
  }
}

}  // namespace

ProcessWatch::ProcessWatch(ProcessJob& job, AbortSignal& abort, double patience_s,
                           std::function<void(const Failure&)> say)
    : job_(job),
      abort_(abort),
      say_(std::move(say)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      raised_(abort.on_raise([this] { ::eventfd_write(wake_.number(), 1); })) {
  std::vector<std::int64_t> everyone(static_cast<std::size_t>(job.size()));
  std::iota(everyone.begin(), everyone.end(), std::int64_t{0});
  SocketHub& hub = job.hub();
  for (FileDescriptor& line : join_all(hub, everyone, {&abort, patience_s, job.rank()})) {
    Other other;
    other.heard_at = Clock::now();
    if (line.is_open()) other.process = process_at(line);
    other.line = ControlLine(std::move(line));
    others_.push_back(std::move(other));
  }
  thread_ = start_thread("the thread that watches other processes",
                         [this] { return std::thread([this] { serve(); }); });
}

ProcessWatch::~ProcessWatch() {
  closing_ = true;
  ::eventfd_write(wake_.number(), 1);
  thread_.join();
  tell_all({Notice::Word::over, {}, {}});
}

void ProcessWatch::stay(std::string why) {
  stays_because_ = std::move(why);
  let_go_at_ = Clock::now();
  let_go_ = true;
  ::eventfd_write(wake_.number(), 1);
  for (;;) ::pause();
}

void ProcessWatch::serve() {
  while (!closing_) {
    hear();
    tell_status();
    gather_statuses();
    if (!failure_ && abort_.raised()) failure_ = abort_.failure();
    if (!failure_ && gone_ >= 0 && Clock::now() - gone_at_ > kLauncherFirst) {
      failure_ = Failure{Failure::Kind::hung, gone_text(gone_)};
      abort_.raise(*failure_);
    }
    if (!failure_ && let_go_ && Clock::now() - let_go_at_ > kOthersSay) {
      failure_ = Failure{Failure::Kind::hung, stays_because_};
      abort_.raise(*failure_);
    }
    if (!failure_) continue;
    const Failure failure = *failure_;
    if (ender_ < 0) report(failure);
    if (ender_ >= 0) leave(failure.kind);
  }
  gather_statuses();
}

void ProcessWatch::hear() {
  std::vector<pollfd> waited = {{wake_.number(), POLLIN, 0}};
  // Of those that are gone poll(2) takes no notice: their number is -1.
  for (const Other& other : others_) waited.push_back({other.line.number(), POLLIN, 0});
  const bool soon = failure_ || gone_ >= 0 || let_go_ || gathers_since_;
  const int longest = static_cast<int>(kStatusEvery.count());
  ::poll(waited.data(), waited.size(), soon ? kLookOnceWrong : longest);
  eventfd_t ignored = 0;
  ::eventfd_read(wake_.number(), &ignored);
  for (int rank = 0; rank < job_.size(); ++rank) {
    Other& other = others_[static_cast<std::size_t>(rank)];
    if (waited[static_cast<std::size_t>(rank) + 1].revents == 0) continue;
    for (const Notice& notice : other.line.hear()) take(rank, notice);
    // Once, however often it asks.
    if (std::exchange(other.asks, false)) {
      other.line.say({Notice::Word::status, {}, json_of(own_status())});
    }
    if (!other.line.is_open()) notice_gone(rank);
  }
}

void ProcessWatch::notice_gone(int rank) {
  if (rank == ender_) ender_left_ = Clock::now();
  if (gone_ >= 0 || others_[static_cast<std::size_t>(rank)].over) return;
  gone_ = rank;
  gone_at_ = Clock::now();
}

void ProcessWatch::take(int rank, const Notice& notice) {
  Other& other = others_[static_cast<std::size_t>(rank)];
  other.heard_at = Clock::now();
  switch (notice.word) {
    case Notice::Word::failed:
      if (!failure_) failure_ = Failure{notice.kind, with_indented_lines(notice.text)};
      // Who tells this rank has had no answer from those before it.
      for (int before = 0; before < job_.rank(); ++before) {
        others_[static_cast<std::size_t>(before)].silent = true;
      }
      break;
    case Notice::Word::describe:
      other.line.say({Notice::Word::does, {}, abort_.describe()});
      told_ = rank;
      told_at_ = Clock::now();
      break;
    case Notice::Word::does:
      other.does = does_text(rank, notice.text);
      break;
    case Notice::Word::end:
      if (ender_ >= 0) break;
      ender_ = rank;
      ended_at_ = Clock::now();
      failure_ = Failure{notice.kind, with_indented_lines(notice.text)};
      abort_.raise(*failure_);
      break;
    case Notice::Word::over:
      other.over = true;
      break;
    case Notice::Word::ask:
      other.asks = true;
      break;
    case Notice::Word::status:
      other.status = notice.text;
      other.answered = true;
      break;
  }
}

/// Rank 0 of a job that is asked may be stopped: rank 1 knows as much.
void ProcessWatch::tell_status() {
  const Clock::time_point now = Clock::now();
  if (now - told_status_at_ < std::max(kStatusEvery, job_.size() * kStatusOfEach)) return;
  told_status_at_ = now;
  for (int rank = 0; rank < std::min(kFirstAsked, job_.size()); ++rank) {
    if (rank == job_.rank()) continue;
    others_[static_cast<std::size_t>(rank)].line.say(
        {Notice::Word::status, {}, json_of(own_status())});
  }
}

std::vector<RankStatus> ProcessWatch::statuses() {
  std::unique_lock<std::mutex> lock(status_mutex_);
  statuses_.reset();
  wanted_ = true;
  ::eventfd_write(wake_.number(), 1);
  gathered_.wait(lock, [this] { return statuses_.has_value(); });
  return *std::move(statuses_);
}

/// What the other thread waits for in statuses(), where it does.
void ProcessWatch::gather_statuses() {
  {
    const std::lock_guard<std::mutex> lock(status_mutex_);
    if (!wanted_) return;
  }
  if (!gathers_since_) {
    gathers_since_ = Clock::now();
    for (Other& other : others_) other.answered = false;
    tell_all({Notice::Word::ask, {}, {}});
  }
  const bool all = std::ranges::all_of(others_, [](const Other& other) {
    return !other.line.is_open() || other.over || other.answered;
  });
  if (!all && !closing_ && Clock::now() - *gathers_since_ < kReply) return;
  std::vector<RankStatus> gathered;
  for (int rank = 0; rank < job_.size(); ++rank) gathered.push_back(status_of(rank));
  gathers_since_.reset();
  {
    const std::lock_guard<std::mutex> lock(status_mutex_);
    statuses_ = std::move(gathered);
    wanted_ = false;
  }
  gathered_.notify_all();
}

RankStatus ProcessWatch::own_status() const {
  RankStatus status;
  for (RankStatus& each : abort_.statuses()) {
    if (each.rank == job_.rank()) status = std::move(each);
  }
  return status;
}

RankStatus ProcessWatch::status_of(int rank) const {
  const Other& other = others_[static_cast<std::size_t>(rank)];
  const bool own = rank == job_.rank();
  RankStatus status = own ? own_status() : read_rank_status(other.status).value_or(RankStatus());
  // What a rank says of itself is what it does, not who it is.
  const Member& member = job_.hub().members()[static_cast<std::size_t>(rank)];
  status.rank = rank;
  status.host = member.host.data();
  status.process = std::max(0, member.process);
  status.answer = own || other.answered  ? Answer::given
                  : other.over           ? Answer::over
                  : other.line.is_open() ? Answer::silent
                                         : Answer::gone;
  const std::chrono::duration<double> heard = Clock::now() - other.heard_at;
  status.heard_s = status.answer == Answer::given ? 0 : std::max(0.0, heard.count());
  return status;
}

/// The lowest rank that is there.
int ProcessWatch::speaker() const {
  for (int rank = 0; rank < job_.rank(); ++rank) {
    const Other& other = others_[static_cast<std::size_t>(rank)];
    if (other.line.is_open() && !other.silent && !other.over) return rank;
  }
  return job_.rank();
}

void ProcessWatch::report(const Failure& failure) {
  const int to = speaker();
  if (to == job_.rank()) {
    speak(failure);
  } else if (to != told_) {
    others_[static_cast<std::size_t>(to)].line.say(
        {Notice::Word::failed, failure.kind, failure.message});
    told_ = to;
    told_at_ = Clock::now();
  } else if (Clock::now() - told_at_ > kReaction) {
    others_[static_cast<std::size_t>(to)].silent = true;
  }
}

bool ProcessWatch::all_answered() const {
  return std::ranges::all_of(others_, [](const Other& other) {
    return !other.line.is_open() || other.over || other.does;
  });
}

void ProcessWatch::speak(const Failure& failure) {
  const bool hung = failure.kind == Failure::Kind::hung;
  if (!asked_at_) {
    asked_at_ = Clock::now();
    if (hung) tell_all({Notice::Word::describe, {}, {}});
  }
  if (hung && !all_answered() && Clock::now() - *asked_at_ < kReply) return;
  say_({failure.kind, whole_message(failure)});
  tell_all({Notice::Word::end, failure.kind, failure.message});
  ender_ = job_.rank();
  ended_at_ = Clock::now();
  abort_.raise(failure);
}

std::string ProcessWatch::gone_text(int rank) const {
  const Member& member = job_.hub().members()[static_cast<std::size_t>(rank)];
  return fmt::format("rank {} is gone: its process {} on {} ended", rank, member.process,
                     member.host.data());
}

std::string ProcessWatch::whole_message(const Failure& failure) const {
  std::string text = failure.message;
  if (failure.kind != Failure::Kind::hung) return text;
  for (int rank = 0; rank < job_.size(); ++rank) {
    const Other& other = others_[static_cast<std::size_t>(rank)];
    const Member& member = job_.hub().members()[static_cast<std::size_t>(rank)];
    if (rank == job_.rank()) {
      text += abort_.describe();
    } else if (other.does) {
      text += *other.does;
    } else if (!other.over && rank != gone_) {
      text += fmt::format("\nrank {}\n  its process {} on {} {}", rank, member.process,
                          member.host.data(), other.line.is_open() ? "does not answer" : "is gone");
    }
  }
  return text;
}

/// All has been said: ends this process once it has let go, or will not.
void ProcessWatch::leave(Failure::Kind kind) {
  const Clock::time_point now = Clock::now();
  if (let_go_ && !told_over_) {
    tell_all({Notice::Word::over, {}, {}});
    told_over_ = true;
  }
  const int code = exit_code_of(kind);
  const bool time_is_over = now - ended_at_ > kLetGo;
  if (ender_ == job_.rank()) {
    // Who was asked what it does and has not said so will not let go either.
    const bool asked = kind == Failure::Kind::hung;
    const bool all_let_go = let_go_ && std::ranges::all_of(others_, [asked](const Other& other) {
                              return !other.line.is_open() || other.over || (asked && !other.does);
                            });
    if (!all_let_go && !time_is_over) return;
    end_stuck();
    job_.end(code);
  }
  if (ender_left_ && now - *ender_left_ > kLauncherEnds) std::_Exit(code);
  if (now - ended_at_ > kLetGo + kReaction) std::_Exit(code);
}

/// Processes that do not even listen, as they are stopped.
void ProcessWatch::end_stuck() const {
  for (const Other& other : others_) {
    if (other.over || !other.line.is_open() || !other.process.is_open()) continue;
    end_process(other.process);
  }
}

void ProcessWatch::tell_all(const Notice& notice) {
  for (Other& other : others_) other.line.say(notice);
}

}  // namespace shardwise::exec
