#pragma once

#include <vector>

#include "planner/cost/layer/layer_time.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/program/step_program.h"
#include "simulator/workload/prices.h"

namespace shardwise::sim {

/// The transfers of one axis inside a pass of a layer.
struct InsideTransfer {
  Stream axis = Stream::tensor_parallel;  // the stream that they have at granularity `kernel`
  double seconds = 0;                     // alone
  TierTraffic traffic;                    // of one rank
};

/// Transfers between ranks in a pass of a whole layer, and how long it takes besides.
struct InsideTransfers {
  std::vector<InsideTransfer> axes;
  double rest = 0;  // seconds alone of kernels that run beside none of the transfers
};

/// Finds the transfers inside passes. docs/simulator.md, "Links".
class LayerTransfers {
 public:
  explicit LayerTransfers(const Plan& plan);
  /// \param passes  layer_passes() of the plan
  LayerTransfers(const Plan& plan, std::vector<LayerTime> passes);
  InsideTransfers of(const LayerWork& work) const;

 private:
  const Plan& plan_;
  std::vector<LayerTime> layers_;              // layer_passes()
  std::vector<double> left_;                   // exchange_left(), by kind
  std::vector<std::vector<LayerItem>> items_;  // by kind
};

}  // namespace shardwise::sim
