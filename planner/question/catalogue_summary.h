#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/text/units.h"

namespace shardwise {

// The catalogue for lists and menus, in the order of names. A file of the user's own catalogue that
// is broken is left out: naming it says what is wrong.

struct ModelSummary {
  std::string name;
  std::string family;           // model_type of its configuration
  std::int64_t parameters = 0;  // of the main model, as model cards state them
  std::int64_t active = 0;      // met by one token
};
std::vector<ModelSummary> model_summaries();

struct ClusterSummary {
  std::string name;
  std::string label;
  std::string gpu;
  std::int64_t gpus_per_node = 0;
  std::optional<double> dollars_per_gpu_hour;
};
std::vector<ClusterSummary> cluster_summaries();

struct GpuSummary {
  std::string name;
  std::string label;
  Bytes memory;
  FlopsPerSecond bf16_peak;  // 0 where it has none
};
std::vector<GpuSummary> gpu_summaries();

struct CollectivesSummary {
  std::string name;
  bool measured = false;
  std::string fitted_on;
};
std::vector<CollectivesSummary> collectives_summaries();

struct EngineSummary {
  const EngineProfile* engine = nullptr;
  std::vector<std::string> axes;  // besides data parallelism: "tp", "pp"
  bool executed = false;          // by `shardwise run`
};
/// In the order people read them.
std::vector<EngineSummary> engine_summaries();

/// A line for a menu, without the name: "46.7 B parameters, 12.9 B active, mixtral".
std::string line_of(const ModelSummary& model);
/// "8 x h100_sxm a node, $2.99 a GPU-hour, DGX H100".
std::string line_of(const ClusterSummary& cluster);
/// "80.0 GiB, 989 TFLOP/s in bf16, NVIDIA H100 SXM5 80 GB".
std::string line_of(const GpuSummary& gpu);
/// "ZeRO 0 1 2 3, tp cp pp ep".
std::string line_of(const EngineSummary& engine);

}  // namespace shardwise
