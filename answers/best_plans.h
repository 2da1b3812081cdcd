#pragma once

#include <cstddef>
#include <vector>

#include "answers/plan_answer.h"
#include "answers/plan_question.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::sim {

/// The best layout of each set of degrees and ZeRO stage, at most so many, the fastest step first:
/// what is worth training to see whether predictions hold. The first is that of answer(). A table
/// of answer() has one layout of each set of degrees, few on few ranks.
/// \param question  outlives the rows \returns them, none where nothing fits; or what is wrong
Result<std::vector<PlanRow>> best_plans(const PlanQuestion& question, std::size_t most,
                                        const SayPlanning& say = {});

}  // namespace shardwise::sim
