#pragma once

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// The most that compute loses to collectives beside it, however many multiprocessors they ask for.
inline constexpr double kMostOverlapTax = 0.5;

/// Share of compute that is lost while a collective runs beside it.
struct OverlapTax {
  double gemm = 0;   // of matrix products
  double other = 0;  // of everything else: the multiprocessors that the collective occupies
  /// Loss of an operation that spends `products` on matrix products and `rest` on other compute;
  /// what else there is takes no multiprocessors.
  double of(double products, double rest) const { return products * gemm + rest * other; }
};

/// Threads of a rank that move the bytes of one collective on a CPU.
inline constexpr double kCollectiveThreads = 1;

/// How fast `threads` of a rank run, of their speed alone, when `all` of its threads want a CPU
/// that gives the rank cores_per_rank processors: every thread gets as much, none more than a
/// processor. \pre gpu.cores_per_rank > 0, all >= threads
double shared_rate(const GpuSpec& gpu, double threads, double all);

/// Where the blocks of matrix products fill the GPU in one wave, each with its tiles given from the
/// start (persistent kernels of Hopper), those of the occupied multiprocessors run in a second.
/// configs/engines/timing.json has the sources. On a CPU that ranks share compute loses what a
/// collective's thread takes of it, so that nothing is won where all processors compute anyway.
/// \param across_nodes  the collective leaves the node
OverlapTax overlap_tax(const GpuSpec& gpu, bool across_nodes, Kernels kernels);

/// Facts a job, an engine and a machine fix for every layout. A plain value made once for a search.
struct TimeRules {
  const EngineProfile* engine = nullptr;
  const ClusterSpec* cluster = nullptr;
  double weight_bytes = 2;        // an element of a weight on its way between ranks
  double reduce_bytes = 4;        // a gradient element on its way, when the engine fixes it; 0 = as
                                  // the gradient buffer of the layout
  double gather_copy_bytes = 0;   // memory traffic per gathered element, around the collective
  double reduce_copy_bytes = 0;   // and per reduced element
  double optimizer_bytes = 0;     // memory traffic of the optimizer per element of a shard
  double shared_norm_bytes = 0;   // of the norm per element that no other rank squares
  double weight_cast_bytes = 0;   // memory traffic per element of the weights whole, once a step
  double optimizer_kernels = 0;   // per tensor
  double slowest_gpu_excess = 0;  // of compute, over the mean GPU's
  double host_optimizer_elements_per_s = 0;  // a GPU's share of its host, for offloaded states
  double input_bytes_per_sequence = 0;
  Seconds issue;                    // host time per kernel
  OverlapTax overlap_tax_intra;     // within a node
  OverlapTax overlap_tax_inter;     // and across nodes
  DType precision = DType::bf16;    // of weights and activations
  bool fp32_accumulation = false;   // a reduce-scatter is an all-to-all and a sum in fp32
  bool own_kernels = false;         // of our executor
  bool per_token_loss = false;      // gradients are scaled by the tokens of the batch
  bool clears_buffer = false;       // a gradient buffer that stays is set to zero each step
  bool expert_overlap = false;      // expert exchange runs beside another micro-batch's compute
  bool waits_for_messages = false;  // the host, for those of 1F1B without chunks
  bool waits_for_norm = false;      // of the gradients, before it issues the optimizer
  std::int64_t shard_multiple = 1;  // elements of which a piece of a unit is a multiple
  bool links_shared = true;         // a step takes as long as its bytes need on each link
};

TimeRules time_rules(const JobSpec& job, const EngineProfile& engine, const ClusterSpec& cluster);

}  // namespace shardwise
