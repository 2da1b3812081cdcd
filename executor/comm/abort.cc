#include "executor/comm/abort.h"

#include <utility>

namespace shardwise::exec {

void AbortSignal::raise(const std::string& message) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (raised_.load(std::memory_order_relaxed)) return;
  message_ = message;
  raised_.store(true, std::memory_order_release);
  for (const auto& wake : wakes_) wake.second();
}

std::string AbortSignal::message() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return message_;
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

}  // namespace shardwise::exec
