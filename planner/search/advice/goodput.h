#pragma once

#include "planner/spec/text/units.h"

namespace shardwise {

/// Interruptions of a long training and their cost.
struct FailureModel {
  Seconds mtbf;        // of the whole job: of one GPU over the GPUs; must be > 0
  Seconds checkpoint;  // time a checkpoint holds the training up, > 0
  Seconds restart;     // from a failure to the first step after it: detection, scheduling, loading
};

/// Interval to checkpoint at, and what share of the time is then left for training.
struct Goodput {
  Seconds interval;   // training between two checkpoints
  double share = 1;   // useful time over wall time, 0 … 1
  double lost = 0;    // share of wall time spent on work done again and on restarts
  double saving = 0;  // share of wall time spent on checkpoints
};

/// Interval of least expected wall time and the share it leaves.
///
/// Interval: Daly's higher-order estimate, sqrt(2 c M) (1 + sqrt(c / 2M) / 3 + (c / 2M) / 9) - c
/// for c < 2M, else M; its first term is Young's. Wall time of T useful seconds under exponential
/// failures: M e^(R/M) (e^((interval + c)/M) - 1) T / interval.
/// Source: J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart
/// dumps", Future Generation Computer Systems 22 (2006), equations 37 and 20; J. W. Young, CACM 17
/// (1974).
Goodput best_goodput(const FailureModel& failures);

/// Goodput with a given interval. \pre interval > 0
Goodput goodput_at(const FailureModel& failures, Seconds interval);

}  // namespace shardwise
