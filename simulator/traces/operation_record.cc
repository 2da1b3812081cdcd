#include "simulator/traces/operation_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

#include "planner/spec/program/step_program.h"
#include "planner/spec/program/trace_lane.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::sim {
namespace {

constexpr std::size_t kMostOperations = 10'000'000;
constexpr std::size_t kMostOpNameBytes = std::size_t{512} << 20;
constexpr std::int64_t kMostRanks = 1 << 20;
constexpr std::int64_t kLastLine = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kRounding = 2;  // ns by which two ends that are rounded may cross

/// The number that follows `word` in "rank 12, stage 3"; -1 when there is none.
std::int64_t number_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return -1;
  std::int64_t number = -1;
  std::from_chars(text.data() + at + word.size(), text.data() + text.size(), number);
  return number;
}

/// The stream of a lane of our traces.
std::optional<Stream> stream_of(std::int64_t thread) {
  const std::int64_t number = thread - trace_lane(Stream{});
  if (number < 0 || number >= static_cast<std::int64_t>(kStreams)) return std::nullopt;
  return static_cast<Stream>(number);
}

std::int32_t microbatch_of(std::string_view name) {
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(number_after(name, ".mb"), -1, 1 << 30));
}

/// What an operation of ours cannot say; empty: nothing.
std::string problem_of(const TraceEvent& event) {
  constexpr double kMicrosecond = 1000;  // ns
  const std::string name = shown(event.name);
  if (event.waited_ns < 0 || event.waited_ns > event.duration_ns + kRounding) {
    return fmt::format("operation {} waited {} us of its {} us (args.waited_us, dur)", name,
                       static_cast<double>(event.waited_ns) / kMicrosecond,
                       static_cast<double>(event.duration_ns) / kMicrosecond);
  }
  if (event.process < 0) {
    return fmt::format("operation {} is of process {} (pid)", name, event.process);
  }
  return "";
}

}  // namespace

std::string without_microbatch(std::string_view name) {
  const std::size_t at = name.find(".mb");
  if (at == std::string_view::npos) return std::string(name);
  std::size_t end = at + 3;
  while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
  const bool is_number = end > at + 3 && (end == name.size() || name[end] == '.');
  if (!is_number) return std::string(name);
  return std::string(name.substr(0, at)) + std::string(name.substr(end));
}

bool OperationRecord::is_operation(const TraceEvent& event) {
  static const std::array<std::string_view, kOpRoles> kRoles = [] {
    std::array<std::string_view, kOpRoles> names;
    for (std::size_t i = 0; i < kOpRoles; ++i)
      names[i] = shardwise::name_of(static_cast<OpRole>(i));
    return names;
  }();
  return event.phase == 'X' &&
         std::find(kRoles.begin(), kRoles.end(), event.category) != kRoles.end();
}

bool OperationRecord::add(const TraceEvent& event) {
  if (event.phase == 'M' && event.name == "process_name") {
    const std::int64_t rank = number_after(event.label, "rank ");
    const std::int64_t stage = number_after(event.label, "stage ");
    if (rank < 0 || stage < 0 || stage > kMostRanks) return true;  // of another program
    if (ranks_.size() < static_cast<std::size_t>(kMostRanks)) {
      ranks_[event.process] = {rank, static_cast<std::int32_t>(stage)};
    }
    return true;
  }
  if (!is_operation(event)) return true;
  if (event.name.empty()) {
    problem_ = fmt::format("an operation of category {} has no name", event.category);
    return false;
  }
  if (!event.timed || event.duration_ns < 0) {
    problem_ = fmt::format("operation {} lacks its {}", event.name,
                           event.timed ? "dur (duration)" : "ts (time)");
    return false;
  }
  problem_ = problem_of(event);
  if (!problem_.empty()) return false;
  operations_.push_back({event.start_ns, event.duration_ns,
                         std::clamp<std::int64_t>(event.waited_ns, 0, event.duration_ns),
                         lane_of(event), names_.number_of(event.name),
                         static_cast<std::uint32_t>(std::min(event.line, kLastLine))});
  if (operations_.size() <= kMostOperations && names_.bytes() <= kMostOpNameBytes) return true;
  problem_ = fmt::format("more than {} million operations: trace fewer ranks or steps",
                         kMostOperations / 1'000'000);
  return false;
}

std::uint32_t OperationRecord::lane_of(const TraceEvent& event) {
  const Lane lane = {event.process, event.thread};
  // Events of a lane follow one another.
  if (!operations_.empty() && lanes_[operations_.back().lane] == lane) {
    return operations_.back().lane;
  }
  const auto number = static_cast<std::uint32_t>(lanes_.size());
  const auto [at, fresh] = lane_numbers_.try_emplace(lane, number);
  if (fresh) lanes_.push_back(lane);
  return at->second;
}

std::int64_t OperationRecord::overlapping_line() {
  std::vector<const Operation*> sorted;
  sorted.reserve(operations_.size());
  for (const Operation& each : operations_) sorted.push_back(&each);
  const auto end = [](const Operation* each) { return each->start + each->duration; };
  std::stable_sort(sorted.begin(), sorted.end(), [&end](const Operation* a, const Operation* b) {
    if (a->lane != b->lane) return a->lane < b->lane;
    return a->start != b->start ? a->start < b->start : end(a) < end(b);
  });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const Operation* before = sorted[i - 1];
    const Operation* each = sorted[i];
    if (each->lane != before->lane || each->start + kRounding >= end(before)) continue;
    problem_ = fmt::format(
        "{} begins {:.3f} us before {} ends (line {}) on the same stream of process {}",
        shown(names_[each->name]), static_cast<double>(end(before) - each->start) / 1000,
        shown(names_[before->name]), before->line, process_of(*each));
    return each->line;
  }
  return 0;
}

std::map<std::int32_t, std::int64_t> OperationRecord::representatives() const {
  std::map<std::int32_t, std::pair<std::int64_t, std::int64_t>> lowest;  // stage: rank, process
  for (const auto& [process, rank] : ranks_) {
    const std::pair<std::int64_t, std::int64_t> found = {rank.rank, process};
    const auto [at, fresh] = lowest.try_emplace(rank.stage, found);
    if (!fresh) at->second = std::min(at->second, found);
  }
  std::map<std::int32_t, std::int64_t> processes;
  for (const auto& [stage, found] : lowest) processes[stage] = found.second;
  return processes;
}

std::vector<OperationRecord::Numbered> OperationRecord::numbered() const {
  std::vector<const Operation*> sorted;
  sorted.reserve(operations_.size());
  for (const Operation& each : operations_) sorted.push_back(&each);
  std::stable_sort(sorted.begin(), sorted.end(), [this](const Operation* a, const Operation* b) {
    if (process_of(*a) != process_of(*b)) return process_of(*a) < process_of(*b);
    if (a->name != b->name) return a->name < b->name;
    return a->start < b->start;
  });
  std::vector<Numbered> made;
  made.reserve(sorted.size());
  for (const Operation* each : sorted) {
    const bool again = !made.empty() && process_of(*made.back().operation) == process_of(*each) &&
                       made.back().operation->name == each->name;
    made.push_back({each, again ? made.back().step + 1 : 0});
  }
  return made;
}

std::vector<OperationStep> OperationRecord::steps() const {
  struct Extent {
    std::int64_t begin = std::numeric_limits<std::int64_t>::max();
    std::int64_t end = std::numeric_limits<std::int64_t>::min();
  };
  const std::vector<Numbered> all = numbered();
  std::vector<Extent> extents;
  for (const auto& [each, number] : all) {
    if (number >= extents.size()) extents.resize(number + 1);
    extents[number].begin = std::min(extents[number].begin, each->start);
    extents[number].end = std::max(extents[number].end, each->start + each->duration);
  }
  std::vector<OperationStep> steps(extents.size());
  std::vector<std::map<std::pair<std::string, std::int32_t>, std::uint32_t>> known(extents.size());
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const std::int64_t length = extents[s].end - extents[s].begin;
    steps[s].length = Seconds(static_cast<double>(length) * kNanosecond);
  }
  const std::map<std::int32_t, std::int64_t> stands = representatives();
  for (const auto& [each, number] : all) {
    const auto rank = ranks_.find(process_of(*each));
    const std::int32_t stage = rank == ranks_.end() ? 0 : rank->second.stage;
    const auto stand = stands.find(stage);
    if (stand != stands.end() && stand->second != process_of(*each)) continue;
    OperationStep& step = steps[number];
    const std::string name = without_microbatch(names_[each->name]);
    const auto [at, fresh] = known[number].try_emplace(
        {name, stage}, static_cast<std::uint32_t>(step.operations.size()));
    if (fresh) step.operations.push_back({name, stage, 0, {}});
    OperationSum& sum = step.operations[at->second];
    ++sum.count;
    sum.time += Seconds(static_cast<double>(each->duration - each->waited) * kNanosecond);
    const std::int64_t since = each->start - extents[number].begin;
    step.runs.push_back({static_cast<double>(since) * kNanosecond,
                         static_cast<double>(since + each->waited) * kNanosecond,
                         static_cast<double>(since + each->duration) * kNanosecond, at->second,
                         microbatch_of(names_[each->name]), stream_of(lanes_[each->lane].thread)});
  }
  return steps;
}

}  // namespace shardwise::sim
