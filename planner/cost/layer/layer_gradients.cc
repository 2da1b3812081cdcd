#include "planner/cost/layer/layer_gradients.h"

#include "planner/cost/layer/gradients_join.h"

namespace shardwise {

std::int64_t microbatches_a_sum(const JobSpec& job, const EngineProfile& engine,
                                const ClusterSpec& cluster, const Layout& layout) {
  if (kernels_of(job, engine) != Kernels::planned) return 1;
  if (layout.pp > 1 && !kernel_traits(cluster.gpu).adds_to_sums) return 1;
  const std::int64_t batch = job.batch_for(layout.dp(), layout.micro_batch_size);
  const std::int64_t all = batch / (layout.dp() * layout.micro_batch_size);
  return gradients_join(layout, all) ? all : 1;
}

GemmOutput LayerGradients::output() const {
  if (adds_to_zeros()) {
    const bool narrow = s_.ours.adds_to_sums && element_bytes() < kFp32Bytes;
    return narrow ? GemmOutput::sum : GemmOutput::fp32_sum;
  }
  if (engine_.gradient_buffer != GradientBuffer::contiguous || !s_.fuses_weight_gradient) {
    return GemmOutput::written;
  }
  return layout_.fp32_gradients ? GemmOutput::fp32_sum : GemmOutput::sum;
}

Seconds LayerGradients::moved(const LayerPricer& pricer) const {
  Seconds time;
  if (job_.frozen_base) return time;
  const auto move = [&](double share, double bytes) {
    if (share == 0) return;
    time += share * pricer.moved(Pass::backward, MoveKind::copy, bytes, 1, share);
  };
  if (adds_to_zeros()) {
    const double each = element_bytes();
    move(s_.ours.adds_to_sums ? begins_ : 1, each * cleared_elements());
    // Those made beside a sum are read and added to it, by the layer that ends them.
    if (!s_.ours.adds_to_sums) move(1 - begins_, 3 * each * held_elements());
  }
  // Where no product adds, its output is read and added to the buffer.
  if (engine_.gradient_buffer == GradientBuffer::contiguous && !s_.fuses_weight_gradient) {
    const double each = 2 * (layout_.fp32_gradients ? 4.0 : 2.0) + s_.element;
    move(1, each * held_elements());
  }
  return time;
}

bool LayerGradients::adds_to_zeros() const {
  return s_.kernels == Kernels::planned && engine_.gradient_buffer == GradientBuffer::unit_queue;
}

double LayerGradients::element_bytes() const {
  const bool copies = engine_.gradient_buffer == GradientBuffer::copy_in;
  return layout_.fp32_gradients && !copies ? static_cast<double>(kFp32Bytes) : s_.element;
}

/// Elements of the layer's parameters that a rank computes with.
double LayerGradients::held_elements() const {
  double elements = 0;
  for (const ParameterSpec& p : layer_.parameters) {
    const double ways = p.routed_expert ? layout_.ep * layout_.etp : p.tp_dim >= 0 ? layout_.tp : 1;
    elements += static_cast<double>(p.elements()) / ways;
  }
  return elements;
}

/// Set to zero before the layer adds to their gradients: a table that head and embedding share is
/// by the head, which comes first.
double LayerGradients::cleared_elements() const {
  double shared = 0;
  for (const OperationSpec& op : layer_.operations) {
    const bool reads = op.kind == OpKind::gemm || op.kind == OpKind::embedding;
    if (!model_.tie_word_embeddings || !reads || op.tp != TpSplit::vocab) continue;
    const double table = static_cast<double>(op.width) * static_cast<double>(op.k) / layout_.tp;
    shared += op.kind == OpKind::gemm ? table : -table;
  }
  return held_elements() + shared;
}

}  // namespace shardwise
