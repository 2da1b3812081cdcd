#include "executor/comm/barrier.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "executor/comm/awake_clock.h"
#include "executor/comm/rank_list.h"

namespace shardwise::exec {
namespace {

constexpr std::chrono::milliseconds kBarrierLook{100};

}  // namespace

Barrier::Barrier(std::vector<std::int64_t> ranks, AbortSignal& abort,
                 std::chrono::milliseconds patience)
    : shown(ranks.size()),
      ranks_(std::move(ranks)),
      abort_(abort),
      patience_(patience),
      here_(ranks_.size(), false),
      watch_(abort.on_raise([this] { wake(); })) {}

void Barrier::wait(int member, const char* call) {
  Lock lock(mutex_);
  await(lock, arrive(lock, member, call), member, call);
}

void Barrier::leave(int member, const char* call) {
  Lock lock(mutex_);
  arrive(lock, member, call);
}

std::uint64_t Barrier::arrive(Lock& lock, int member, const char* call) {
  abort_.check();
  const auto at = static_cast<std::size_t>(member);
  // It left, and others have not come yet.
  if (here_[at]) await(lock, number_, member, call);
  if (arrived_ == 0) {
    call_ = call;
    first_ = member;
  } else if (std::string_view(call_) != call) {
    const auto rank_of = [&](int each) { return ranks_[static_cast<std::size_t>(each)]; };
    const std::string why = fmt::format("rank {} calls {} where rank {} of its group calls {}",
                                        rank_of(member), call, rank_of(first_), call_);
    lock.unlock();
    abort_.raise(why);
    throw Aborted("ranks of a group make different calls");
  }
  const std::uint64_t number = number_;
  here_[at] = true;
  if (++arrived_ == ranks_.size()) {
    arrived_ = 0;
    here_.assign(here_.size(), false);
    ++number_;
    all_here_.notify_all();
  }
  return number;
}

void Barrier::await(Lock& lock, std::uint64_t number, int member, const char* call) {
  const auto met = [&] { return number_ != number || abort_.raised(); };
  const AwakeClock::time_point until = AwakeClock::now() + patience_;
  bool in_time = true;
  const std::chrono::milliseconds look = std::min(kBarrierLook, patience_);
  while (in_time && number_ == number && !all_here_.wait_for(lock, look, met)) {
    in_time = AwakeClock::now() < until;
  }
  if (number_ != number) return;
  if (!in_time) {
    lock.unlock();
    give_up(member, call);
  }
  throw Aborted("another rank failed");
}

void Barrier::give_up(int member, const char* call) {
  std::vector<std::int64_t> missing;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (!here_[i]) missing.push_back(ranks_[i]);
    }
  }
  abort_.raise_hung(
      fmt::format("rank {} waited {} s in {} for rank {}", ranks_[static_cast<std::size_t>(member)],
                  std::chrono::duration<double>(patience_).count(), call, rank_list(missing)));
}

void Barrier::wake() {
  // Whoever has looked at the signal and not begun to wait holds the mutex.
  { const std::lock_guard<std::mutex> lock(mutex_); }
  all_here_.notify_all();
}

}  // namespace shardwise::exec
