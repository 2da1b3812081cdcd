#pragma once

#include "planner/lowering/operands/unit_pieces.h"

namespace shardwise {

// The token table of a pipeline whose first and last stage both have it. Its shards are those of
// the units that it lies in, beside other tensors on either stage, so the two stages cut it at
// other places.

/// Whether ranks of a stage update parts of the table.
bool cuts_table(const Layout& layout);

/// The part of the table that a rank of the stage updates: elements of the table, none where its
/// piece of the unit has none of them. \pre the stage has the table
ShardRange table_part(const StateUnits& units, Placement optimizer, const DataParallelPlace& place);

}  // namespace shardwise
