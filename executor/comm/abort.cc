#include "executor/comm/abort.h"

#include <fmt/format.h>

#include <new>
#include <sstream>
#include <string>
#include <utility>

#include "executor/status/rank_status.h"

namespace shardwise::exec {

std::string reason_of(const std::exception& broken) {
  const bool memory = dynamic_cast<const std::bad_alloc*>(&broken) != nullptr;
  return memory ? "out of memory" : broken.what();
}

void AbortSignal::raise(const Failure& failure) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (raised_.load(std::memory_order_relaxed)) return;
  // Before they are woken and go.
  if (failure.kind == Failure::Kind::hung) did_ = describe_locked();
  failure_ = failure;
  raised_.store(true, std::memory_order_release);
  for (const auto& wake : wakes_) wake.second();
}

Failure AbortSignal::failure() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failure_;
}

std::string AbortSignal::message() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failure_.message + did_;
}

std::string AbortSignal::describe() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return did_.empty() ? describe_locked() : did_;
}

std::string AbortSignal::describe_locked() const {
  std::string text;
  int headed = -1;
  for (const auto& [key, watched] : watched_) {
    std::istringstream lines(watched.describe());
    for (std::string line; std::getline(lines, line);) {
      if (key.first != headed) text += fmt::format("\nrank {}", headed = key.first);
      text += "\n  " + line;
    }
  }
  return text;
}

std::vector<RankStatus> AbortSignal::statuses() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<RankStatus> all;
  for (const auto& [key, watched] : watched_) {
    if (!watched.tell) continue;
    if (all.empty() || all.back().rank != key.first) all.emplace_back().rank = key.first;
    watched.tell(all.back());
  }
  return all;
}

void AbortSignal::check() const {
  if (raised()) throw Aborted("another rank failed");
}

std::shared_ptr<void> AbortSignal::on_raise(std::function<void()> wake) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::uint64_t number = next_++;
  wakes_.emplace(number, std::move(wake));
  return {this, [number](AbortSignal* signal) {
            const std::lock_guard<std::mutex> held(signal->mutex_);
            signal->wakes_.erase(number);
          }};
}

std::shared_ptr<void> AbortSignal::watch(Watched rank) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::pair<int, std::uint64_t> key = {rank.rank, next_++};
  watched_.emplace(key, std::move(rank));
  return {this, [key](AbortSignal* signal) {
            const std::lock_guard<std::mutex> held(signal->mutex_);
            signal->watched_.erase(key);
          }};
}

std::pair<int, std::int64_t> AbortSignal::stillest() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::pair<int, std::int64_t> found = {-1, INT64_MAX};
  for (const auto& watched : watched_) {
    const std::int64_t since = watched.second.since();
    if (since < found.second) found = {watched.second.rank, since};
  }
  return found;
}

}  // namespace shardwise::exec
