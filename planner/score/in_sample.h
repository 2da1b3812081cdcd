#pragma once

#include "planner/score/predict.h"
#include "planner/score/rows/row.h"
#include "planner/score/score.h"

namespace shardwise {

/// Whether something that a figure's prediction rests on was fitted to measurements of the row's
/// own repository: curves of the GPU and its links for time, the engine's allocator for memory that
/// counts what is cached. Fits name the repositories of their data.
/// \pre the row was predicted
bool in_sample(const Row& row, const RowPrediction& prediction, Scored quantity);

}  // namespace shardwise
