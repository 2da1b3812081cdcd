#pragma once

#include <string>
#include <vector>

#include "executor/comm/world.h"
#include "executor/recorder/rank_record.h"

namespace shardwise::exec {

/// The records that rank 0 has of a run.
struct GatheredRecords {
  std::vector<RankRecord> ranks;      // in their order
  std::vector<std::string> left_out;  // a line for each rank without a record, and why
};

/// The records of all ranks, each a process of its own. All ranks call together. The programs of
/// the others' records are `own`'s, as all ranks of a stage run one program. A record of other
/// programs, or whose moments run backwards, is left out.
/// \returns on rank 0 all of them, on others `own` alone
GatheredRecords gather_records(World& world, RankRecord own);

}  // namespace shardwise::exec
