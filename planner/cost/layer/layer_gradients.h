#pragma once

#include <cstdint>

#include "planner/cost/layer/layer_pricer.h"

namespace shardwise {

/// Micro-batches whose gradients add up to one sum as passes make them, as far as the price of a
/// pass follows from it: 1 where each is reduced on its own, with kernels of others, and in
/// pipelines of CPUs, for which there are none.
std::int64_t microbatches_a_sum(const JobSpec& job, const EngineProfile& engine,
                                const ClusterSpec& cluster, const Layout& layout);

/// Traffic of the gradients of a layer's weights besides their products' inputs. For what only
/// some micro-batches do the mean over them.
class LayerGradients {
 public:
  /// All outlive it.
  LayerGradients(const ModelSpec& model, const LayerSpec& layer, const JobSpec& job,
                 const EngineProfile& engine, const Layout& layout, const LayerSizes& sizes,
                 std::int64_t microbatches_a_sum)
      : model_(model),
        layer_(layer),
        job_(job),
        engine_(engine),
        layout_(layout),
        s_(sizes),
        begins_(1.0 / static_cast<double>(microbatches_a_sum)) {}

  /// Output of a product for them. They join those of earlier micro-batches in a buffer that
  /// stays: in the product itself where that is fused.
  GemmOutput output() const;
  /// Setting them to zero, and adding what no product adds.
  Seconds moved(const LayerPricer& pricer) const;

 private:
  /// Our kernels add gradients to what a unit's buffer holds, which is zeros first: on a CPU those
  /// of each micro-batch, in fp32.
  bool adds_to_zeros() const;
  double element_bytes() const;  // as kernels make them
  double held_elements() const;
  double cleared_elements() const;

  const ModelSpec& model_;
  const LayerSpec& layer_;
  const JobSpec& job_;
  const EngineProfile& engine_;
  const Layout& layout_;
  const LayerSizes& s_;
  double begins_;  // share of micro-batches that begin a sum
};

}  // namespace shardwise
