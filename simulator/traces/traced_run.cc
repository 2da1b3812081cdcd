#include "simulator/traces/traced_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "planner/spec/text/utf8.h"

namespace shardwise::sim {
namespace {

constexpr std::string_view kSchema = "shardwise.trace/1";
constexpr std::size_t kMostListed = 6;

/// "12 cpu_op, 3 overhead", most first.
std::string listed(const std::map<std::string, std::int64_t>& counts) {
  std::vector<std::pair<std::int64_t, std::string>> order;
  for (const auto& [name, count] : counts) order.emplace_back(-count, name);
  std::sort(order.begin(), order.end());
  std::string text;
  for (std::size_t i = 0; i < std::min(kMostListed, order.size()); ++i) {
    if (i > 0) text += ", ";
    text += fmt::format("{} {}", -order[i].first,
                        order[i].second.empty() ? "(no category)" : shown(order[i].second));
  }
  return order.size() > kMostListed ? text + " …" : text;
}

/// Hands spans on, many at a time.
class SpanBatch {
 public:
  explicit SpanBatch(const SpanSink& sink) : sink_(sink) {
    if (sink_) spans_.reserve(kBatch);
  }
  void add(const TraceEvent& event) {
    if (!sink_ || event.phase != 'X' || !event.timed || event.duration_ns < 0) return;
    spans_.push_back(
        {event.start_ns, event.start_ns + event.duration_ns, event.process, event.thread});
    if (spans_.size() == kBatch) flush();
  }
  void flush() {
    if (sink_ && !spans_.empty()) sink_(spans_);
    spans_.clear();
  }

 private:
  static constexpr std::size_t kBatch = 8192;
  const SpanSink& sink_;
  std::vector<ReadSpan> spans_;
};

}  // namespace

const OperationStep& TracedRun::median_operations() const {
  std::vector<const OperationStep*> order;
  for (const OperationStep& step : operations) order.push_back(&step);
  std::stable_sort(order.begin(), order.end(), [](const OperationStep* a, const OperationStep* b) {
    return a->length < b->length;
  });
  return *order[(order.size() - 1) / 2];
}

Result<TracedRun> read_trace(const ByteSource& source, const std::string& file,
                             const SpanSink& spans) {
  SpanBatch batch(spans);
  OperationRecord operations;
  ProfilerRecord profiler;
  std::map<std::string, std::int64_t> categories;
  Diagnostic problem;
  const auto each = [&](const TraceEvent& event) {
    if (categories.size() < kMostCategories || categories.contains(event.category)) {
      ++categories[event.category];
    }
    const bool operation = OperationRecord::is_operation(event);
    const bool ours = event.phase == 'M' || operation;
    if (operation || ProfilerRecord::is_work(event)) batch.add(event);
    if (ours ? operations.add(event) : profiler.add(event)) return true;
    problem = {file,
               static_cast<int>(std::min<std::int64_t>(event.line, 2'000'000'000)),
               0,
               "",
               ours ? operations.problem() : profiler.problem,
               ""};
    return false;
  };
  Result<TraceHead> head = read_trace_events(source, file, each);
  batch.flush();
  if (!problem.message.empty()) return problem;
  if (!head) return head.problems();
  if (!head->schema.empty() && head->schema != kSchema) {
    return Diagnostic{file,
                      0,
                      0,
                      "/otherData/schema",
                      fmt::format("{} is not a trace that this program reads", shown(head->schema)),
                      fmt::format("{}, or a trace of torch.profiler", kSchema)};
  }
  const bool ours = head->schema == kSchema;
  if (ours ? operations.empty() : profiler.work.empty()) {
    const std::string what = ours ? "no operations" : "no kernels, copies or fills of a device";
    return Diagnostic{
        file,
        0,
        0,
        "/traceEvents",
        categories.empty() ? what + ": it is empty" : what + ", only " + listed(categories),
        ours ? "" : "torch.profiler records them with ProfilerActivity.CUDA"};
  }
  if (const std::int64_t line = ours ? operations.overlapping_line() : 0; line > 0) {
    return Diagnostic{file,
                      static_cast<int>(std::min<std::int64_t>(line, 2'000'000'000)),
                      0,
                      "",
                      operations.problem(),
                      "a stream runs one operation at a time: is a dur or a ts damaged?"};
  }
  TracedRun run;
  run.head = *std::move(head);
  if (ours) {
    run.operations = operations.steps();
    run.ranks = std::max<std::size_t>(operations.ranks(), 1);
  } else {
    run.by_profiler = true;
    run.profiled = profiled_steps(profiler);
    run.not_read = std::move(profiler.not_read);
  }
  return run;
}

}  // namespace shardwise::sim
