#include "executor/engine/stream_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>

namespace shardwise::exec {

std::int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

StreamRunner::StreamRunner(const std::vector<const StageProgram*>& programs, int rank,
                           AbortSignal& abort)
    : programs_(programs), rank_(rank), abort_(abort) {
  std::size_t most = 0;
  std::array<bool, kStreams> used{};
  for (const StageProgram* program : programs) {
    std::vector<std::vector<std::uint32_t>> streams(kStreams);
    for (std::uint32_t op = 0; op < program->operations.size(); ++op) {
      const auto stream = static_cast<std::size_t>(program->operations[op].stream);
      streams[stream].push_back(op);
      used[stream] = true;
    }
    by_stream_.push_back(std::move(streams));
    most = std::max(most, program->operations.size());
  }
  done_ = std::vector<Done>(most);
  spans_.resize(most);
  watch_ = abort.on_raise([this] { stop(); });
  for (std::size_t s = 1; s < kStreams; ++s) {
    if (used[s]) threads_.emplace_back([this, s] { serve(static_cast<Stream>(s)); });
  }
}

StreamRunner::~StreamRunner() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

/// Wakes every thread that waits for an operation: its number becomes one that no run has.
void StreamRunner::stop() {
  for (Done& done : done_) {
    done.store(kStopped, std::memory_order_release);
    done.notify_all();
  }
}

void StreamRunner::await(std::uint32_t op, std::uint64_t run) {
  const Done& done = done_[op];
  for (;;) {
    const std::uint64_t seen = done.load(std::memory_order_acquire);
    if (seen == run) return;
    abort_.check();
    done.wait(seen, std::memory_order_acquire);
  }
}

void StreamRunner::fail(std::uint32_t op, const char* why) {
  const StageProgram& program = *programs_[program_];
  abort_.raise(
      fmt::format("rank {}, {}: {}", rank_, name_of(program, program.operations[op]), why));
}

void StreamRunner::run_stream(Stream stream) {
  const StageProgram& program = *programs_[program_];
  for (const std::uint32_t op : by_stream_[program_][static_cast<std::size_t>(stream)]) {
    try {
      for (const std::uint32_t wait : program.of(program.operations[op].waits)) await(wait, run_);
      spans_[op].begin = now_ns();
      (*kernels_)[op]();
      spans_[op].end = now_ns();
    } catch (const Aborted&) {
      return;
    } catch (const std::exception& broken) {
      fail(op, broken.what());
      return;
    }
    // A run that has been stopped stays so.
    std::uint64_t before = done_[op].load(std::memory_order_relaxed);
    while (before != kStopped &&
           !done_[op].compare_exchange_weak(before, run_, std::memory_order_release)) {
    }
    done_[op].notify_all();
  }
}

void StreamRunner::serve(Stream stream) {
  std::uint64_t served = 0;
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return closing_ || run_ != served; });
      if (closing_) return;
      served = run_;
    }
    run_stream(stream);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      --working_;
    }
    changed_.notify_all();
  }
}

void StreamRunner::run(std::size_t program, const OpKernels& kernels) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++run_;
    program_ = program;
    kernels_ = &kernels;
    working_ = threads_.size();
  }
  changed_.notify_all();
  run_stream(Stream::compute);
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return working_ == 0; });
  abort_.check();
}

}  // namespace shardwise::exec
