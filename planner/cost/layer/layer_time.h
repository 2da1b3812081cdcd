#pragma once

#include <vector>

#include "planner/cost/collectives/tier_traffic.h"
#include "planner/cost/kernels/compute.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/program/step_program.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// Where the seconds of one pass over one layer go, on one rank for one micro-batch.
struct PassTime {
  Seconds gemm;          // compute, by class
  Seconds attention;     // fused attention kernels
  Seconds memory_bound;  // norms, activations, copies, loss
  Seconds tp;            // communication that stops the compute stream …
  Seconds cp;
  Seconds ep;
  Seconds tp_hidden;  // … and that which runs beside it
  Seconds cp_hidden;
  double kernels = 0;  // launched by the host
  Flops flops;         // of matrix products

  Seconds compute() const { return gemm + attention + memory_bound; }
  Seconds exposed() const { return tp + cp + ep; }
  /// Time that the layer holds the compute stream.
  Seconds stream() const { return compute() + exposed(); }
  PassTime& operator+=(const PassTime& other);
  friend PassTime operator*(double factor, const PassTime& time);
};

/// Cost of one layer of one kind to one rank for one micro-batch.
///
/// Depends on the kind and on tp, cp, ep, etp, micro_batch_size, sequence_parallel, recompute,
/// recompute_interval, cp_kind, fp32_gradients and order of the layout (and, through the place of
/// tp, cp and ep on the link tiers, and microbatches_a_sum(), on nothing else): the search caches
/// it.
struct LayerTime {
  PassTime forward;
  PassTime backward;          // without recompute
  PassTime recompute;         // forward done again before backward
  Seconds weight_gradient;    // part of backward.gemm that no other stage waits for
  double weight_kernels = 0;  // part of backward.kernels: one for each product's weights
  TierTraffic traffic;        // of one rank, all passes
};

/// One kernel or collective of a layer, as the step-time model prices it. Items are in the order of
/// the forward pass; backward runs its own in the opposite order.
struct LayerItem {
  Pass pass = Pass::forward;
  bool moves = false;   // between ranks
  bool beside = false;  // runs beside the kernel that follows it
  bool weight = false;  // a weight gradient
  double again = 0;     // how often, on average, it runs again before backward
  KernelWork kernel;
  CollectiveWork collective;
  double launches = 1;  // of a collective: kernels that take the host as long to issue
};

/// \param microbatches_a_sum  layer_gradients.h; that of the layout where it is not given
/// \param gemms  receives every matrix product when not null
/// \param items  receives everything that runs when not null
LayerTime layer_time(const ModelSpec& model, const LayerSpec& layer, const JobSpec& job,
                     const EngineProfile& engine, const ClusterSpec& cluster, const Layout& layout,
                     std::vector<GemmUse>* gemms = nullptr,
                     std::vector<LayerItem>* items = nullptr);
LayerTime layer_time(const ModelSpec& model, const LayerSpec& layer, const JobSpec& job,
                     const EngineProfile& engine, const ClusterSpec& cluster, const Layout& layout,
                     std::int64_t microbatches_a_sum, std::vector<GemmUse>* gemms = nullptr,
                     std::vector<LayerItem>* items = nullptr);

/// Same for every kind of `model`, in the order of model.kinds.
std::vector<LayerTime> layer_times(const ModelSpec& model, const JobSpec& job,
                                   const EngineProfile& engine, const ClusterSpec& cluster,
                                   const Layout& layout);
std::vector<LayerTime> layer_times(const ModelSpec& model, const JobSpec& job,
                                   const EngineProfile& engine, const ClusterSpec& cluster,
                                   const Layout& layout, std::int64_t microbatches_a_sum);

}  // namespace shardwise
