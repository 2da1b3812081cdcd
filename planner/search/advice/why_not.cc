#include "planner/search/advice/why_not.h"

#include <algorithm>

#include "planner/estimate/estimate.h"
#include "planner/estimate/loss_rows.h"
#include "planner/legality/legality.h"
#include "planner/spec/plan/plan_fields.h"

namespace shardwise {
namespace {

const Ledger& fullest(const StepReport& report) {
  const StageMemory& stage = report.stages[static_cast<std::size_t>(report.verdict.worst_stage)];
  return stage[report.verdict.worst_phase];
}

}  // namespace

Layout with_values(Layout layout, std::int64_t gpus,
                   const std::vector<std::pair<std::string, std::string>>& values) {
  bool shards = false;
  for (const auto& [key, value] : values) {
    set_field(layout, key, value);
    shards = shards || key == "dp_shard";
  }
  const auto given = [&](std::string_view key) {
    return std::ranges::any_of(values, [&](const auto& each) { return each.first == key; });
  };
  if (!given("sequence_parallel")) layout.sequence_parallel = layout.tp > 1;
  const std::int64_t inner = std::int64_t{layout.tp} * layout.cp * layout.pp;
  const std::int64_t replicate = layout.dp_replicate;
  if (!shards && gpus % (inner * replicate) == 0) {
    layout.dp_shard = static_cast<std::int32_t>(gpus / (inner * replicate));
  } else if (!shards && !given("dp_replicate") && gpus % inner == 0) {
    layout.dp_shard = static_cast<std::int32_t>(gpus / inner);
    layout.dp_replicate = 1;
  }
  return layout;
}

Result<WhyNot> why_not(const SearchRequest& request, const Candidate& winner,
                       const std::vector<std::pair<std::string, std::string>>& values) {
  SearchRequest narrowed = request;
  narrowed.locks.insert(narrowed.locks.end(), values.begin(), values.end());
  narrowed.top = 1;
  narrowed.front = false;
  const Result<SearchResult> found = search(narrowed);
  if (!found) return found.problems();

  const auto report = [&](const Candidate& candidate) {
    const EngineProfile& engine = *request.engines[static_cast<std::size_t>(candidate.engine)];
    const JobSpec job = decided_job(*request.model, *request.cluster, *request.job, engine,
                                    candidate.layout, found->usable);
    return estimate(*request.model, *request.cluster, job, engine, candidate.layout);
  };
  WhyNot answer;
  answer.winner = report(winner);
  for (const SearchCounts& counts : found->counts) {
    answer.layouts += counts.space.legal;
    answer.ranked += counts.ranked + counts.too_slow;
  }
  if (answer.layouts == 0) {
    answer.answer = WhyNot::Answer::illegal;
    const EngineProfile& engine = *request.engines[static_cast<std::size_t>(winner.engine)];
    answer.reasons = check_layout(*request.model, *request.cluster, *request.job, engine,
                                  with_values(winner.layout, request.cluster->gpus, values));
  } else if (found->best.empty()) {
    answer.answer = WhyNot::Answer::does_not_fit;
    const std::optional<Candidate>& smallest = found->smallest;
    if (smallest) answer.other = report(*smallest);
  } else {
    const Candidate& best = found->best.front();
    const bool same = best.engine == winner.engine && best.layout == winner.layout;
    answer.answer = same ? WhyNot::Answer::best : WhyNot::Answer::slower;
    answer.other = report(best);
  }
  return answer;
}

std::vector<std::pair<MemoryCategory, Bytes>> memory_growth(const StepReport& winner,
                                                            const StepReport& other) {
  std::vector<std::pair<MemoryCategory, Bytes>> growth;
  for (std::size_t c = 0; c < kMemoryCategories; ++c) {
    const Bytes more(fullest(other).bytes[c] - fullest(winner).bytes[c]);
    if (more > Bytes(0)) growth.emplace_back(static_cast<MemoryCategory>(c), more);
  }
  std::ranges::sort(growth, std::ranges::greater(), [](const auto& each) { return each.second; });
  return growth;
}

}  // namespace shardwise
