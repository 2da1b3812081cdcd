#include "gui/models/session/worker.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace shardwise::view {

Worker::Worker() : thread_([this](const std::stop_token& end) { run(end); }) {}

Worker::~Worker() {
  const std::scoped_lock lock(mutex_);
  running_.request_stop();
  thread_.request_stop();
  changed_.notify_all();
}

std::uint64_t Worker::post(const std::string& kind, Job job) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(waiting_, [&](const Entry& each) { return each.kind == kind; });
  if (running_kind_ == kind) running_.request_stop();
  newest_[kind] = ++generations_;
  waiting_.push_back({kind, generations_, std::move(job), std::stop_source()});
  changed_.notify_all();
  return generations_;
}

void Worker::drop(const std::string& kind) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(waiting_, [&](const Entry& each) { return each.kind == kind; });
  if (running_kind_ == kind) running_.request_stop();
  newest_[kind] = ++generations_;
}

bool Worker::collect() {
  std::deque<Done> done;
  std::map<std::string, std::uint64_t> newest;
  {
    const std::scoped_lock lock(mutex_);
    done.swap(done_);
    ended_ = false;
    newest = newest_;
  }
  bool applied = false;
  for (const Done& each : done) {
    if (each.generation != newest[each.kind] || !each.apply) continue;
    each.apply();
    applied = true;
  }
  return applied;
}

bool Worker::busy() const {
  const std::scoped_lock lock(mutex_);
  return !waiting_.empty() || !running_kind_.empty() || !done_.empty();
}

void Worker::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.empty() && running_kind_.empty(); });
}

void Worker::finish_one() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_ || (waiting_.empty() && running_kind_.empty()); });
}

void Worker::on_result(std::function<void()> wake) {
  const std::scoped_lock lock(mutex_);
  wake_ = std::move(wake);
}

void Worker::hold() {
  const std::scoped_lock lock(mutex_);
  held_ = true;
}

void Worker::release() {
  const std::scoped_lock lock(mutex_);
  held_ = false;
  changed_.notify_all();
}

void Worker::publish(const Entry& entry, Apply apply) {
  const std::scoped_lock lock(mutex_);
  if (entry.stop.stop_requested()) return;
  done_.push_back({entry.kind, entry.generation, std::move(apply)});
  if (wake_) wake_();
}

void Worker::run(const std::stop_token& end) {
  while (true) {
    Entry entry;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, end, [&] { return !waiting_.empty() && !held_; })) return;
      entry = std::move(waiting_.front());
      waiting_.pop_front();
      running_ = entry.stop;
      running_kind_ = entry.kind;
    }
    Apply apply;
    try {
      apply = entry.job(
          {entry.stop.get_token(), [&](Apply early) { publish(entry, std::move(early)); }});
    } catch (...) {
      apply = [error = std::current_exception()] { std::rethrow_exception(error); };
    }
    publish(entry, std::move(apply));
    const std::scoped_lock lock(mutex_);
    running_kind_.clear();
    ended_ = true;
    changed_.notify_all();
    if (wake_) wake_();
  }
}

}  // namespace shardwise::view
