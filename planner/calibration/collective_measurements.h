#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "planner/calibration/collective_fit.h"
#include "planner/spec/text/csv.h"

namespace shardwise {

/// Rows of a table to take: in each column named here that the table has, one of these values.
using RowFilter = std::map<std::string, std::set<std::string>>;

/// Reads collectives that were timed, as nccl-tests reports them. Columns: `op` (all_reduce,
/// all_gather, reduce_scatter, alltoall, broadcast, sendrecv), `gpus`, `bytes`, and `time_us` or
/// `busbw_GBps` where that is empty; `nodes` where there may be more than one. Rows without bytes
/// or time are passed over. The GPUs are neighbours in `cluster`, the rest of it idle.
Result<std::vector<CollectiveMeasurement>> measurements_from_csv(const CsvTable& table,
                                                                 const ClusterSpec& cluster,
                                                                 const RowFilter& only);

}  // namespace shardwise
