#pragma once

#include <functional>
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

/// A record without moments of the programs that a rank runs.
using ProgramsOf = std::function<RankRecord(int rank)>;

/// The records of all ranks, each a process of its own. All ranks call together. A record of other
/// programs than its rank's, or whose moments run backwards, is left out.
/// \param programs_of  asked on rank 0 of the others; none: the programs are `own`'s, as all ranks
/// of a stage run one program
/// \returns on rank 0 all of them, on others `own` alone
GatheredRecords gather_records(World& world, RankRecord own, const ProgramsOf& programs_of = {});

}  // namespace shardwise::exec
