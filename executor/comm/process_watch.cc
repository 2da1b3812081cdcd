#include "executor/comm/process_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "executor/comm/socket.h"
#include "executor/comm/socket_hub.h"
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

int exit_code_of(Failure::Kind kind) { return kind == Failure::Kind::bad_input ? 2 : 3; }

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
}

void ProcessWatch::hear() {
  std::vector<pollfd> waited = {{wake_.number(), POLLIN, 0}};
  // Of those that are gone poll(2) takes no notice: their number is -1.
  for (const Other& other : others_) waited.push_back({other.line.number(), POLLIN, 0});
  ::poll(waited.data(), waited.size(), failure_ || gone_ >= 0 || let_go_ ? kLookOnceWrong : -1);
  eventfd_t ignored = 0;
  ::eventfd_read(wake_.number(), &ignored);
  for (int rank = 0; rank < job_.size(); ++rank) {
    Other& other = others_[static_cast<std::size_t>(rank)];
    if (waited[static_cast<std::size_t>(rank) + 1].revents == 0) continue;
    for (const Notice& notice : other.line.hear()) take(rank, notice);
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
  switch (notice.word) {
    case Notice::Word::failed:
      if (!failure_) failure_ = Failure{notice.kind, notice.text};
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
      other.does = notice.text;
      break;
    case Notice::Word::end:
      if (ender_ >= 0) break;
      ender_ = rank;
      ended_at_ = Clock::now();
      failure_ = Failure{notice.kind, notice.text};
      abort_.raise(*failure_);
      break;
    case Notice::Word::over:
      other.over = true;
      break;
  }
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

void ProcessWatch::tell_all(const Notice& notice) const {
  for (const Other& other : others_) other.line.say(notice);
}

}  // namespace shardwise::exec
