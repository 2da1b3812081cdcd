#pragma once

#include <optional>
#include <span>
#include <vector>

#include "simulator/clock/engine.h"
#include "simulator/clock/repeated_part.h"
#include "simulator/clock/shared_engine.h"
#include "simulator/workload/workload.h"

namespace shardwise::sim {

/// Seconds of a period, where the step is steady: at two moments so far apart every stream of every
/// rank is at the same place of its repeated part, and all that it did in the period before, and
/// what it runs, began and ended so much later (to 1e-10 of the period). As what ranks do next
/// follows from that alone, a step of more periods takes so much longer for each.
///
/// Nothing where the step is not steady; where a host falls behind; and where a host that runs
/// ahead has still held up something after the second moment, which in a longer step it would not.
/// \param inside  of run_shared(); empty of run_alone() \param parts  of each stage
std::optional<double> steady_period(const Workload& work, const Timeline& timeline,
                                    const InsideEnds& inside, std::span<const RepeatedPart> parts);

}  // namespace shardwise::sim
