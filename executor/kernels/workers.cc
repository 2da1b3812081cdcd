#include "executor/kernels/workers.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "executor/kernels/start_thread.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {

int processors_of_thread() {
  cpu_set_t set{};
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

Workers::Workers(int threads) {
  SHARDWISE_CHECK(threads >= 1, "a rank computes on one thread at least");
  try {
    for (int i = 1; i < threads; ++i) {
      helpers_.push_back(start_thread(fmt::format("thread {} of {} that compute", i + 1, threads),
                                      [this] { return std::thread([this] { help(); }); }));
    }
  } catch (...) {
    stop();
    throw;
  }
}

Workers::~Workers() { stop(); }

void Workers::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void Workers::run(std::int64_t count, const std::function<void(std::int64_t)>& task) {
  if (helpers_.empty() || count == 1) {
    for (std::int64_t i = 0; i < count; ++i) task(i);
    return;
  }
  if (count <= 0) return;
  {
    const std::lock_guard lock(mutex_);
    task_ = &task;
    next_ = 0;
    count_ = unfinished_ = count;
  }
  start_.notify_all();
  work();
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return unfinished_ == 0; });
}

void Workers::help() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [this] { return stop_ || next_ < count_; });
      if (stop_) return;
    }
    work();
  }
}

/// Takes tasks until none is left.
void Workers::work() {
  while (true) {
    const std::function<void(std::int64_t)>* task = nullptr;
    std::int64_t index = 0;
    {
      const std::lock_guard lock(mutex_);
      if (next_ >= count_) return;
      task = task_;
      index = next_++;
    }
    (*task)(index);
    const std::lock_guard lock(mutex_);
    if (--unfinished_ == 0) done_.notify_one();
  }
}

}  // namespace shardwise::exec
