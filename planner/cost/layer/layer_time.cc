#include "planner/cost/layer/layer_time.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "planner/cost/kernels/traffic.h"
#include "planner/cost/layer/adapter_time.h"
#include "planner/cost/layer/adapters.h"
#include "planner/cost/layer/autocast_sizes.h"
#include "planner/cost/layer/engine_layer.h"
#include "planner/cost/layer/expert_load.h"
#include "planner/cost/layer/layer_gradients.h"
#include "planner/cost/layer/layer_memory.h"
#include "planner/cost/layer/layer_pricer.h"
#include "planner/cost/layer/saved_tensors.h"
#include "planner/cost/layer/tensor_region.h"
#include "planner/cost/software/runtime_memory.h"

namespace shardwise {
namespace {

/// The name without its last word: "self_attn.q_proj" -> "self_attn.".
std::string_view prefix_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot + 1);
}

/// Two products of the same input that fused modules compute as one: queries, keys and values;
/// gate and up.
bool joins(const OperationSpec& a, const OperationSpec& b) {
  return a.kind == OpKind::gemm && b.kind == OpKind::gemm && a.tp == TpSplit::column &&
         b.tp == TpSplit::column && a.k == b.k && a.fp32 == b.fp32 &&
         a.routed_expert == b.routed_expert && prefix_of(a.name) == prefix_of(b.name);
}

/// Sums one layer's operations.
class LayerWalk {
 public:
  LayerWalk(const ModelSpec& model, const LayerSpec& layer, const JobSpec& job,
            const EngineProfile& engine, const Layout& layout, const LayerPricer& pricer,
            std::int64_t microbatches_a_sum)
      : model_(model),
        layer_(layer),
        job_(settled_job(job, engine)),
        engine_(engine),
        layout_(layout),
        pricer_(pricer),
        s_(pricer.sizes()),
        gradients_(model, layer, job, engine, layout, s_, microbatches_a_sum),
        transposes_(keeps_frozen_narrow(job, engine, layout) &&
                    runtime_memory(engine, pricer.gpu()).fp8_needs_transposes),
        casts_input_(casting_products(model, layer, job, engine, layout)),
        adapted_(s_.names_adapters ? adapted_linears(layer) : std::vector<AdaptedLinear>{}),
        region_(pricer, layout, time_.forward, time_.backward) {}

  LayerTime run() {
    const std::size_t needed = recompute_end();
    for (std::size_t i = 0; i < layer_.operations.size();) i = operation(i, i < needed);
    region_.close();
    narrow_what_is_saved();
    time_.backward.memory_bound += gradients_.moved(pricer_);
    pricer_.notes().add_late();
    time_.traffic = pricer_.notes().traffic();
    return time_;
  }

 private:
  /// Prices operation `i` and those joined to it; returns the next.
  std::size_t operation(std::size_t i, bool needed) {
    const OperationSpec& op = layer_.operations[i];
    const PassTime before = time_.forward;
    const double share = needed ? recomputed_share(op) : 0;
    pricer_.notes().set_again(share);
    pricer_.notes().set_late(in_backward(op));
    std::size_t next = i + 1;
    if (op.kind == OpKind::gemm) {
      next = gemm(i);
    } else if (op.kind == OpKind::attention) {
      pricer_.attention(op, time_.forward, time_.backward);
    } else if (op.kind == OpKind::dispatch || op.kind == OpKind::combine) {
      exchange(op);
    } else {
      pointwise(op);
    }
    pricer_.notes().set_again(0);
    if (share > 0) {
      PassTime added = time_.forward;
      added += -1.0 * before;
      time_.recompute += share * added;
    }
    return next;
  }

  /// Our head computes logits, loss and their gradients in the backward pass, some rows at a time.
  bool in_backward(const OperationSpec& op) const {
    return s_.by_rows() && layer_.role == LayerRole::head &&
           (op.kind == OpKind::gemm || op.kind == OpKind::loss);
  }
  /// Where the forward pass of an operation is counted.
  PassTime& forward_of(const OperationSpec& op) {
    return in_backward(op) ? time_.backward : time_.forward;
  }

  /// The first operation that a recompute of the whole layer need not run again. PyTorch's stops
  /// once all tensors that backward reads are there; a layer's last product hands on what none of
  /// its own gradients read.
  std::size_t recompute_end() const {
    const auto& operations = layer_.operations;
    const bool torch = s_.kernels == Kernels::eager || s_.kernels == Kernels::compiled;
    if (!torch || !job_.recompute_stops_early) return operations.size();
    std::size_t end = operations.size();
    while (end > 0 && operations[end - 1].kind == OpKind::residual && job_.dropout == 0) --end;
    const bool product = end > 0 && operations[end - 1].kind == OpKind::gemm;
    return product ? end - 1 : operations.size();
  }

  /// How often `op` runs again before backward, as a mean over the layers of this kind.
  double recomputed_share(const OperationSpec& op) const {
    if (layout_.recompute == Recompute::full && is_block(layer_.role))
      return 1.0 / layout_.recompute_interval;
    const bool core = layout_.recompute == Recompute::selective && op.kind == OpKind::attention &&
                      job_.attention == AttentionKernel::materialised;
    const bool named =
        std::ranges::find(job_.recompute_operations, op.name) != job_.recompute_operations.end();
    return core || named ? 1 : 0;
  }

  /// bitsandbytes multiplies a matrix of 8 bits as it is, and makes it wide for backward.
  std::optional<DType> forward_dtype(std::size_t i) const {
    const bool narrow = !adapted_.empty() && adapted_[i].base == BaseFormat::int8;
    if (!narrow || pricer_.gpu().peak(DType::int8).value() <= 0) return std::nullopt;
    return DType::int8;
  }

  std::size_t gemm(std::size_t i) {
    const OperationSpec& op = layer_.operations[i];
    const std::int64_t ways = op.routed_expert ? layout_.etp : layout_.tp;
    const bool column = op.tp == TpSplit::column || op.tp == TpSplit::vocab;
    std::int64_t width = s_.cut(op.width, op);
    const std::int64_t k = op.tp == TpSplit::row ? ceil_div(op.k, ways) : op.k;
    std::size_t next = i + 1;
    const bool fuses = s_.pointwise == Kernels::transformer_engine;
    std::string name = op.name;
    while (fuses && next < layer_.operations.size() && joins(op, layer_.operations[next])) {
      const OperationSpec& more = layer_.operations[next++];
      name += "+" + more.name.substr(prefix_of(more.name).size());
      width += s_.cut(more.width, more);
    }
    if (column && !op.routed_expert) region_.enter(op.k, in_backward(op));

    const DType dtype = pricer_.weight_dtype(op);
    const std::int64_t groups = op.routed_expert ? s_.local_experts : 1;
    const double rows = op.routed_expert         ? s_.met / static_cast<double>(groups)
                        : op.tp == TpSplit::none ? static_cast<double>(s_.spread)
                                                 : static_cast<double>(s_.tokens);
    const double pieces = in_backward(op) ? static_cast<double>(s_.loss_pieces(op)) : 1;
    const Product p = pricer_.product(name, dtype, groups, rows, width, k, gradients_.output(),
                                      !job_.frozen_base, pieces, forward_dtype(i));
    PassTime& forward = forward_of(op);
    forward.gemm += p.forward;
    forward.flops += p.flops;
    forward.kernels += 1;
    time_.backward.gemm += p.input_gradient;
    time_.backward.flops += p.flops;
    time_.backward.kernels += 1;
    if (!job_.frozen_base) {
      time_.backward.gemm += p.weight_gradient;
      time_.backward.flops += p.flops;
      time_.backward.kernels += 1;
      time_.weight_gradient += p.weight_gradient;
    }
    const double all_rows = rows * static_cast<double>(groups);
    if (!casts_input_.empty()) {
      pricer_.autocast({all_rows, k, width, groups, casts_input_[i]}, time_.forward,
                       time_.backward);
    }
    casts(dtype, all_rows, static_cast<double>(k), static_cast<double>(width),
          static_cast<double>(groups));
    if (op.bias) {
      // Added in the epilogue; its gradient sums the output's gradient over the rows. Ours has
      // whichever is faster, a pass over them or an epilogue, which is seldom the faster one.
      if (!job_.frozen_base) {
        const double bytes = all_rows * static_cast<double>(width) * s_.element;
        time_.backward.memory_bound += pricer_.moved(Pass::backward, bytes);
        time_.backward.kernels += 1;
      }
      // On a CPU our product is added to rows of the bias.
      if (s_.kernels == Kernels::planned && !s_.ours.epilogues) {
        forward.memory_bound +=
            pricer_.moved(Pass::forward, all_rows * static_cast<double>(width) * s_.element);
        forward.kernels += 1;
      }
      // Megatron leaves biases to the kernel that follows, where there is one: not of queries, keys
      // and values (NVIDIA/Megatron-LM@02bb1f5c:megatron/mpu/layers.py, output + bias).
      if (s_.megatron_eager() && column && op.name.starts_with("self_attn.")) {
        time_.forward.memory_bound +=
            pricer_.moved(Pass::forward, 2 * all_rows * static_cast<double>(width) * s_.element);
        time_.forward.kernels += 1;
      }
    }
    fill_outputs(all_rows, static_cast<double>(k), static_cast<double>(width),
                 static_cast<double>(groups));
    for (std::size_t j = i; j < next && !adapted_.empty(); ++j) {
      price_adapter(pricer_, layout_, layer_.operations[j], adapted_[j], {rows, groups},
                    time_.forward, time_.backward);
    }
    if (op.tp == TpSplit::row && !op.routed_expert) region_.leave(p, op.width);
    if (column && !op.routed_expert) region_.add(p);
    return next;
  }

  /// Operands of an 8-bit product [rows, k] x [k, width] of each of `groups` weights.
  void casts(DType dtype, double rows, double k, double width, double groups) {
    const CastTraffic cast = cast_traffic(dtype, job_, s_.kernels);
    const double weights = groups * k * width;
    if (transposes_ && bits_of(dtype) == 8) {
      time_.backward.memory_bound += pricer_.moved(Pass::backward, 2 * weights);
      time_.backward.kernels += 1;
    }
    time_.forward.memory_bound +=
        pricer_.moved(Pass::forward, cast.input * rows * k, cast.input_kernels) +
        pricer_.moved(Pass::forward, cast.weight_forward * weights);
    time_.backward.memory_bound +=
        pricer_.moved(Pass::backward, cast.gradient * rows * width, cast.gradient_kernels) +
        pricer_.moved(Pass::backward, cast.weight_backward * weights);
    time_.forward.kernels += cast.input_kernels + cast.weight_forward_kernels;
    time_.backward.kernels += cast.gradient_kernels + cast.weight_backward_kernels;
  }

  /// PyTorch fills memory before use where algorithms have to be deterministic
  /// (torch.utils.deterministic.fill_uninitialized_memory, on by default): what a product
  /// [rows, k] x [k, width] is about to write.
  void fill_outputs(double rows, double k, double width, double groups) {
    if (!job_.deterministic || s_.kernels == Kernels::planned) return;
    time_.forward.memory_bound += pricer_.moved(Pass::forward, rows * width * s_.element);
    time_.backward.memory_bound += pricer_.moved(Pass::backward, rows * k * s_.element);
    time_.forward.kernels += 1;
    time_.backward.kernels += 1;
    if (job_.frozen_base || gradients_.output() != GemmOutput::written) return;
    time_.backward.memory_bound += pricer_.moved(Pass::backward, groups * k * width * s_.element);
    time_.backward.kernels += 1;
  }

  /// Ranks (or nodes) out of `places` that a token's copies go to, when all are as likely.
  double distinct(double places) const {
    const auto copies = static_cast<double>(model_.num_experts_per_tok);
    return places * (1 - std::pow(1 - 1 / places, copies));
  }

  /// One way between a rank's tokens and their experts, [spread, width] a copy.
  Seconds exchange_time(Pass pass, double width) const {
    if (layout_.ep == 1) return Seconds(0);
    const double load = busiest_expert_rank(model_, job_, layout_);
    const double one = static_cast<double>(s_.spread) * width * s_.element * load;
    const GroupShape& group = s_.ep_group;
    const auto charged = [&](double copies, bool node) {
      return pricer_.charge(pass, CollectiveKind::all_to_all, one * copies, GroupKind::ep,
                            LayerPricer::Placing{}, node);
    };
    if (job_.expert_dispatch == ExpertDispatch::all_to_all) {
      return charged(static_cast<double>(model_.num_experts_per_tok), false);
    }
    // Once to each node over the outer links, from there to the ranks inside, one beside the other.
    const double nodes = static_cast<double>(group.ranks) / std::max(1, group.span[0]);
    const Seconds inside =
        pricer_.collective(CollectiveKind::all_to_all, one * distinct(group.ranks), node_of(group));
    const Seconds across =
        nodes > 1 ? pricer_.collective(CollectiveKind::all_to_all, one * distinct(nodes), group)
                  : Seconds(0);
    return across > inside ? charged(distinct(nodes), false) : charged(distinct(group.ranks), true);
  }

  /// Tokens to their experts and back: permutation, all-to-all over ep, gather over etp.
  void exchange(const OperationSpec& op) {
    const Traffic traffic = traffic_of(op, job_, s_.pointwise, s_.ours, s_.element);
    const double width = static_cast<double>(op.width);
    const double met = s_.met * width * s_.element;
    const bool dispatch = op.kind == OpKind::dispatch;
    const auto spread = [&](Pass pass, bool gathers) {
      return pricer_.charge(pass,
                            gathers ? CollectiveKind::all_gather : CollectiveKind::reduce_scatter,
                            met, GroupKind::etp);
    };
    // Backward meets them in the opposite order.
    if (dispatch) {
      time_.forward.ep += exchange_time(Pass::forward, width);
      time_.backward.ep += exchange_time(Pass::backward, width);
    }
    time_.forward.ep += spread(Pass::forward, dispatch);
    time_.backward.ep += spread(Pass::backward, !dispatch);
    if (!dispatch) {
      time_.forward.ep += exchange_time(Pass::forward, width);
      time_.backward.ep += exchange_time(Pass::backward, width);
    }
    // Sorted by expert before they leave and after they arrive.
    time_.forward.memory_bound +=
        pricer_.moved(Pass::forward, traffic.forward * s_.met * width, traffic.forward_kernels);
    time_.backward.memory_bound +=
        pricer_.moved(Pass::backward, traffic.backward * s_.met * width, traffic.backward_kernels);
    time_.forward.kernels += traffic.forward_kernels + (layout_.ep > 1 ? 1 : 0);
    time_.backward.kernels += traffic.backward_kernels + (layout_.ep > 1 ? 1 : 0);
  }

  void pointwise(const OperationSpec& op) {
    const EagerModules modules = {s_.composes_activation(op), s_.autocasts};
    const Traffic traffic = traffic_of(op, job_, s_.pointwise, s_.ours, s_.element, modules);
    const bool cut = op.tp != TpSplit::none;
    double elements = op.routed_expert ? s_.met : static_cast<double>(cut ? s_.tokens : s_.spread);
    const bool embedding = op.kind == OpKind::embedding;
    elements *= static_cast<double>(embedding ? op.width : s_.cut(op.width, op));
    const MoveKind kind = move_kind(op);
    PassTime& forward = forward_of(op);
    forward.memory_bound +=
        pricer_.moved(Pass::forward, kind, traffic.forward * elements, traffic.forward_kernels);
    time_.backward.memory_bound +=
        pricer_.moved(Pass::backward, kind, traffic.backward * elements, traffic.backward_kernels);
    forward.kernels += traffic.forward_kernels;
    time_.backward.kernels += traffic.backward_kernels;

    if (embedding && op.tp == TpSplit::vocab) region_.embed(op.width);
    if (op.kind == OpKind::loss && cut) region_.reduce_loss(op);
  }

  /// What is saved in fewer bits is cast, and cast back where backward reads it.
  void narrow_what_is_saved() {
    if (!saves_narrow(job_)) return;
    const bool again = layout_.recompute == Recompute::full && is_block(layer_.role);
    const double share = again ? 1 - 1.0 / layout_.recompute_interval : 1;
    if (share == 0) return;
    const SavedTensors saved = layer_saves(model_, layer_, job_, engine_, layout_);
    const auto bytes = [&](std::int64_t all) { return share * static_cast<double>(all); };
    time_.forward.memory_bound +=
        pricer_.moved(Pass::forward, bytes(saved.narrowing), saved.narrowing_kernels);
    time_.backward.memory_bound +=
        pricer_.moved(Pass::backward, bytes(saved.widening), saved.widening_kernels);
    time_.forward.kernels += saved.narrowing_kernels;
    time_.backward.kernels += saved.widening_kernels;
  }

  const ModelSpec& model_;
  const LayerSpec& layer_;
  const JobSpec job_;
  const EngineProfile& engine_;
  const Layout& layout_;
  const LayerPricer& pricer_;
  const LayerSizes& s_;
  LayerGradients gradients_;
  bool transposes_;                     // frozen matrices, for each product in backward
  std::vector<bool> casts_input_;       // by operation; empty without autocast
  std::vector<AdaptedLinear> adapted_;  // by operation; empty where there are none
  LayerTime time_;
  TensorRegion region_;
};

}  // namespace

LayerTime layer_time(const ModelSpec& model, const LayerSpec& layer, const JobSpec& job,
                     const EngineProfile& engine, const ClusterSpec& cluster, const Layout& layout,
                     std::vector<GemmUse>* gemms, std::vector<LayerItem>* items) {
  return layer_time(model, layer, job, engine, cluster, layout,
                    microbatches_a_sum(job, engine, cluster, layout), gemms, items);
}

LayerTime layer_time(const ModelSpec& model, const LayerSpec& layer, const JobSpec& job,
                     const EngineProfile& engine, const ClusterSpec& cluster, const Layout& layout,
                     std::int64_t microbatches_a_sum, std::vector<GemmUse>* gemms,
                     std::vector<LayerItem>* items) {
  const LayerSizes sizes = layer_sizes(model, job, engine, cluster, layout);
  const EngineLayer own(layer, engine);
  LayerNotes notes(gemms, items);
  const LayerPricer pricer(*own, job, cluster, layout, sizes, notes);
  LayerTime time = LayerWalk(model, *own, job, engine, layout, pricer, microbatches_a_sum).run();
  const auto products =
      static_cast<double>(std::ranges::count(own->operations, OpKind::gemm, &OperationSpec::kind));
  time.weight_kernels = job.frozen_base ? 0 : std::min(products, time.backward.kernels);
  return time;
}

std::vector<LayerTime> layer_times(const ModelSpec& model, const JobSpec& job,
                                   const EngineProfile& engine, const ClusterSpec& cluster,
                                   const Layout& layout) {
  return layer_times(model, job, engine, cluster, layout,
                     microbatches_a_sum(job, engine, cluster, layout));
}

std::vector<LayerTime> layer_times(const ModelSpec& model, const JobSpec& job,
                                   const EngineProfile& engine, const ClusterSpec& cluster,
                                   const Layout& layout, std::int64_t microbatches_a_sum) {
  std::vector<LayerTime> times;
  times.reserve(model.kinds.size());
  for (const LayerSpec& layer : model.kinds) {
    times.push_back(layer_time(model, layer, job, engine, cluster, layout, microbatches_a_sum));
  }
  return times;
}

}  // namespace shardwise
