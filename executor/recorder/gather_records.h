#pragma once

#include <vector>

#include "executor/comm/world.h"
#include "executor/recorder/rank_record.h"

namespace shardwise::exec {

/// The records of all ranks, each a process of its own, in their order. All ranks call together.
/// Of the others a record has the steady step; its program is `own`'s, as all ranks of a stage run
/// one program. A record of another number of operations, or whose moments run backwards, is left
/// out.
/// \returns on rank 0 all of them, on others `own` alone
std::vector<RankRecord> gather_records(World& world, RankRecord own);

}  // namespace shardwise::exec
