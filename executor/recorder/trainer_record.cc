#include "executor/recorder/trainer_record.h"

#include <cstdint>
#include <utility>

#include "planner/spec/plan/mesh.h"

namespace shardwise::exec {

StepRecord record_of(const Trainer& trainer, const StepSpans& step) {
  return {trainer.program(step.program), trainer.items(step.program), step.spans, step.seconds};
}

std::vector<RankRecord> records_of_stages(const Trainer& trainer, const Layout& layout,
                                          const StepSpans& first, const StepSpans& median) {
  std::vector<RankRecord> stages;
  for (const std::int64_t rank : group_ranks(layout, GroupKind::pp, 0)) {
    const auto of = [&](const StepSpans& step) -> StepRecord {
      StageProgram program = trainer.program_of(rank, step.program);
      std::vector<MemoryItem> items = memory_items(program);
      const std::size_t spans = step.spans.empty() ? 0 : program.operations.size();
      return {std::move(program), std::move(items), std::vector<OpSpan>(spans), 0};
    };
    RankRecord& stage = stages.emplace_back();
    stage.first = of(first);
    stage.steady = of(median);
  }
  return stages;
}

}  // namespace shardwise::exec
