#include "executor/device/cpu/stream_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>

#include "executor/device/cpu/thread_turns.h"
#include "executor/kernels/start_thread.h"
#include "planner/cost/collectives/collective.h"
#include "planner/spec/plan/group_axes.h"

namespace shardwise::exec {

namespace {

double seconds_ago(std::int64_t at) { return static_cast<double>(now_ns() - at) * 1e-9; }

}  // namespace

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
  stopped_ = abort.on_raise([this] { stop(); });
  watched_ =
      abort.watch({rank, [this] { return running_.load() ? changed_at_.load() : now_ns(); },
                   [this] { return describe(); }, [this](RankStatus& status) { tell(status); }});
  try {
    for (std::size_t s = 1; s < kStreams; ++s) {
      if (!used[s]) continue;
      threads_.push_back(start_thread("the thread of a stream", [this, s] {
        return std::thread([this, s] { serve(static_cast<Stream>(s)); });
      }));
    }
  } catch (...) {
    close();
    throw;
  }
}

StreamRunner::~StreamRunner() { close(); }

std::span<const OpSpan> StreamRunner::spans() const {
  return std::span(spans_).first(programs_[program_]->operations.size());
}

void StreamRunner::close() {
  watched_.reset();
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

bool StreamRunner::await(std::uint32_t op, std::uint64_t run, Now& now) {
  const Done& done = done_[op];
  for (bool waited = false;; waited = true) {
    const std::uint64_t seen = done.load(std::memory_order_acquire);
    if (seen == run) return waited;
    abort_.check();
    now.waits_for = op;
    done.wait(seen, std::memory_order_acquire);
  }
}

void StreamRunner::fail(std::uint32_t op, const char* why) {
  const StageProgram& program = *programs_[program_];
  abort_.raise(
      fmt::format("rank {}, {}: {}", rank_, name_of(program, program.operations[op]), why));
}

void StreamRunner::run_op(std::uint32_t op, std::int64_t free_at, DeviceStream& stream, Now& now) {
  const StageProgram& program = *programs_[program_];
  now.since = now_ns();
  now.op = op;
  bool waited = free_at == 0;
  std::int64_t begin = free_at;
  for (const std::uint32_t wait : program.of(program.operations[op].waits)) {
    waited |= await(wait, run_, now);
    begin = std::max(begin, spans_[wait].end);
  }
  // An operation that can run when the one before it ends has begun, even where threads that this
  // end woke have the processor first.
  spans_[op].begin = waited ? now_ns() : begin;
  now.waits_for = kNone;
  now.since = spans_[op].begin;
  changed_at_ = spans_[op].begin;
  const OpKernel& kernel = (*kernels_)[op];
  spans_[op].ready = spans_[op].begin;
  if (kernel.prepare) {
    kernel.prepare(stream);
    spans_[op].ready = now_ns();
  }
  spans_[op].met = spans_[op].ready;
  kernel.run(stream);
  spans_[op].end = now_ns();
  changed_at_ = spans_[op].end;
  now.remember(program_, op, spans_[op].end);
  now.op = kNone;
}

void StreamRunner::run_stream(Stream stream) {
  Now& now = now_[static_cast<std::size_t>(stream)];
  std::int64_t free_at = 0;
  for (const std::uint32_t op : by_stream_[program_][static_cast<std::size_t>(stream)]) {
    try {
      run_op(op, free_at, streams_[static_cast<std::size_t>(stream)], now);
      free_at = spans_[op].end;
    } catch (const Aborted&) {
      return;
    } catch (const std::exception& broken) {
      fail(op, reason_of(broken).c_str());
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
  take_short_turns();
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

void StreamRunner::run(std::size_t program, const OpKernels& kernels, Spans /*spans*/) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++run_;
    program_ = program;
    kernels_ = &kernels;
    working_ = threads_.size();
    changed_at_ = now_ns();
    running_ = true;
  }
  changed_.notify_all();
  run_stream(Stream::compute);
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return working_ == 0; });
  running_ = false;
  abort_.check();
}

void StreamRunner::Now::remember(std::size_t program, std::uint32_t ended_op, std::int64_t end) {
  Entry& entry = past[ended % past.size()];
  entry.program.store(program, std::memory_order_relaxed);
  entry.op.store(ended_op, std::memory_order_relaxed);
  entry.end.store(end, std::memory_order_relaxed);
  ended.store(ended + 1, std::memory_order_release);
}

StreamStatus StreamRunner::named(std::size_t program, std::uint32_t op) const {
  const StageProgram& of = *programs_[program];
  StreamStatus status;
  status.operation = shardwise::name_of(of, of.operations[op]);
  if (const CollectiveWork* const work = of.communication(of.operations[op])) {
    status.collective = shardwise::name_of(work->kind);
    status.axis = axes_of(work->group);
  }
  return status;
}

std::string StreamRunner::operation(std::size_t program, std::uint32_t op) const {
  return whole_name(named(program, op));
}

StreamStatus StreamRunner::status_of(Stream stream, const Now& now) const {
  const std::uint32_t op = now.op;
  const std::uint32_t waits_for = now.waits_for;
  StreamStatus status = op == kNone ? StreamStatus() : named(program_, op);
  status.stream = shardwise::name_of(stream);
  if (op == kNone) return status;
  if (waits_for != kNone) status.waits_for = operation(program_, waits_for);
  status.since_s = std::max(0.0, seconds_ago(now.since));
  return status;
}

void StreamRunner::tell(RankStatus& status) {
  if (!running_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (std::size_t s = 0; s < kStreams; ++s) {
    if (by_stream_[program_][s].empty()) continue;
    status.streams.push_back(status_of(static_cast<Stream>(s), now_[s]));
  }
}

/// The last operations of all streams, the latest first.
std::string StreamRunner::describe_past() const {
  std::vector<Past> past;
  for (const Now& now : now_) {
    const std::size_t ended = now.ended.load(std::memory_order_acquire);
    for (std::size_t i = ended - std::min(ended, kHistory); i < ended; ++i) {
      const Now::Entry& entry = now.past[i % now.past.size()];
      past.push_back({entry.program.load(std::memory_order_relaxed),
                      entry.op.load(std::memory_order_relaxed),
                      entry.end.load(std::memory_order_relaxed)});
    }
  }
  std::ranges::sort(past, std::greater<>(), &Past::end);
  if (past.size() > kHistory) past.resize(kHistory);
  std::string text;
  for (const Past& each : past) {
    text += fmt::format("{}{} {:.1f}", text.empty() ? "ended, s ago: " : ", ",
                        operation(each.program, each.op), seconds_ago(each.end));
  }
  return text;
}

std::string StreamRunner::describe() {
  if (!running_) return "between two steps\n" + describe_past();
  RankStatus status;
  tell(status);
  std::string text;
  for (const StreamStatus& each : status.streams) {
    text += each.stream + ": ";
    if (each.operation.empty()) {
      text += "nothing\n";
      continue;
    }
    text += whole_name(each);
    text += each.waits_for.empty() ? " runs" : " waits for " + each.waits_for;
    text += fmt::format(" since {:.1f} s\n", each.since_s);
  }
  return text + describe_past();
}

}  // namespace shardwise::exec
