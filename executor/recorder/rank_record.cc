#include "executor/recorder/rank_record.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace shardwise::exec {
namespace {

std::int64_t sum_of(const Ledger& ledger) {
  std::int64_t sum = 0;
  for (const std::int64_t bytes : ledger.bytes) sum += bytes;
  return sum;
}

/// A pass of a micro-batch through a model chunk.
using Pass = std::pair<std::int32_t, std::int16_t>;
Pass pass_of(const ProgramOp& op) { return {op.microbatch, op.chunk}; }

/// Activations that are there, by the pass that keeps them; tables are all passes'.
class KeptByPass {
 public:
  explicit KeptByPass(const StepRecord& record) : record_(record) {
    for (std::size_t op = 0; op < record.program.operations.size(); ++op) {
      const ProgramOp& each = record.program.operations[op];
      if (each.stream != Stream::compute || each.microbatch < 0) continue;
      began_.emplace_back(record.spans[op].begin, pass_of(each));
    }
    std::ranges::stable_sort(began_, {}, &Began::first);
  }

  void change(const MemoryChange& change) {
    const MemoryItem& item = record_.items[change.item];
    const bool kept = item.category == MemoryCategory::activations && !item.resident() &&
                      record_.program.buffers[change.item].layer >= 0;
    if (kept) bytes_[pass_of(record_.program.operations[item.life.first])] += change.bytes;
  }
  /// Of others than the pass that runs at a moment.
  std::int64_t in_flight(std::int64_t at) const {
    const auto next = std::ranges::upper_bound(began_, at, {}, &Began::first);
    if (next == began_.begin()) return 0;
    std::int64_t sum = 0;
    for (const auto& [pass, bytes] : bytes_) sum += pass == std::prev(next)->second ? 0 : bytes;
    return sum;
  }

 private:
  using Began = std::pair<std::int64_t, Pass>;
  const StepRecord& record_;
  std::vector<Began> began_;  // of operations of passes, in time
  std::map<Pass, std::int64_t> bytes_;
};

std::int64_t begin_of_optimizer(const StepRecord& record) {
  for (std::size_t op = 0; op < record.program.operations.size(); ++op) {
    if (record.program.operations[op].role == OpRole::optimizer) return record.spans[op].begin;
  }
  return INT64_MAX;
}

}  // namespace

std::int64_t begin_of(const StepRecord& record) {
  std::int64_t begin = INT64_MAX;
  for (const OpSpan& span : record.spans) begin = std::min(begin, span.begin);
  return begin;
}

RecordedStep recorded(const StepRecord& record, std::int64_t zero) {
  RecordedStep step{&record.program, {}, record.seconds, {}, {}};
  step.spans.reserve(record.spans.size());
  const auto at = [zero](std::int64_t moment) { return seconds(moment - zero).value(); };
  for (const OpSpan& span : record.spans) {
    step.spans.push_back({at(span.begin), at(span.ready), at(span.met), at(span.end)});
  }
  return step;
}

std::vector<MemoryChange> memory_changes(const StepRecord& record) {
  std::vector<MemoryChange> changes;
  for (std::size_t i = 0; i < record.items.size(); ++i) {
    const auto& [category, life, made_by] = record.items[i];
    if (life.bytes == 0) continue;
    if (made_by != kNone) changes.push_back({record.spans[made_by].begin, life.bytes, i});
    if (record.items[i].resident()) continue;
    changes.push_back({record.spans[life.first].begin, life.bytes, i});
    changes.push_back({record.spans[life.last].end, -life.bytes, i});
  }
  // An operation may begin at the very moment at which the one before it ends: what that one frees
  // is gone before.
  std::ranges::stable_sort(changes, {}, [](const MemoryChange& change) {
    return std::pair(change.at, change.bytes > 0);
  });
  return changes;
}

MeasuredMemory measured_memory(const StepRecord& record) {
  MeasuredMemory memory;
  for (const MemoryItem& item : record.items) {
    if (item.from_start()) memory.residents[item.category] += item.life.bytes;
  }
  Ledger now = memory.residents;
  memory.passes = now;
  memory.optimizer = now;
  const std::int64_t steps = begin_of_optimizer(record);
  bool stepping = false;
  KeptByPass kept(record);
  for (const MemoryChange& change : memory_changes(record)) {
    const bool before = change.at < steps || (change.at == steps && change.bytes < 0);
    if (!before && !stepping) {
      stepping = true;
      memory.optimizer = now;
    }
    now[record.items[change.item].category] += change.bytes;
    kept.change(change);
    Ledger& most = before ? memory.passes : memory.optimizer;
    if (sum_of(now) <= sum_of(most)) continue;
    most = now;
    const std::int64_t in_flight = kept.in_flight(change.at);
    most[MemoryCategory::activations] -= in_flight;
    most[MemoryCategory::activations_in_flight] += in_flight;
  }
  return memory;
}

}  // namespace shardwise::exec
