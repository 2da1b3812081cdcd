#pragma once

#include <optional>

#include "planner/model/families/transformer_config.h"
#include "planner/score/rows/notes.h"
#include "planner/score/rows/row.h"

namespace shardwise {

/// The architecture a row describes. Refuses rows that do not state layers, hidden size or heads.
std::optional<TransformerConfig> transformer_of(const Row& row, Notes& notes);

}  // namespace shardwise
