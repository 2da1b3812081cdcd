#include "planner/cost/layer/layer_pricer.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "planner/cost/software/time_rules.h"
#include "planner/cost/software/timing.h"

namespace shardwise {

LayerSizes layer_sizes(const ModelSpec& model, const JobSpec& job, const EngineProfile& engine,
                       const ClusterSpec& cluster, const Layout& layout) {
  LayerSizes s;
  static_cast<OperationSizes&>(s) = operation_sizes(model, job, engine, layout);
  s.element = static_cast<double>(s.bytes);
  s.met = static_cast<double>(s.routed);
  // Megatron's modules come with fused norms, softmax, activations and residuals, whoever wrote the
  // rest (NVIDIA/Megatron-LM:megatron/arguments.py, --no-masked-softmax-fusion,
  // --no-bias-gelu-fusion, --no-bias-dropout-fusion: on by default).
  const bool fuses = s.kernels == Kernels::eager && has_megatron_modules(engine);
  s.pointwise = fuses ? Kernels::transformer_engine : s.kernels;
  if (s.kernels == Kernels::planned) {
    s.ours = kernel_traits(cluster.gpu, model.numerics.activation);
  }
  s.tp_overlap = job.tp_overlap == TpOverlap::by_engine ? engine.tp_overlap : job.tp_overlap;
  s.tp_tax = overlap_tax(cluster.gpu, layout.tp > cluster.gpus_per_node, s.kernels).gemm;
  const bool cp_across = std::int64_t{layout.tp} * layout.cp > cluster.gpus_per_node;
  s.cp_tax = overlap_tax(cluster.gpu, cp_across, s.kernels).other;
  const TimingFacts::Issue& issue = issue_facts(engine, s.kernels);
  s.all_reduce_kernels = kernels_a_collective(CollectiveKind::all_reduce, issue);
  s.all_gather_kernels = kernels_a_collective(CollectiveKind::all_gather, issue);
  s.reduce_scatter_kernels = kernels_a_collective(CollectiveKind::reduce_scatter, issue);
  s.tp_group = group_shape(cluster, layout, GroupKind::tp);
  s.cp_group = group_shape(cluster, layout, GroupKind::cp);
  s.ep_group = group_shape(cluster, layout, GroupKind::ep);
  s.etp_group = group_shape(cluster, layout, GroupKind::etp);
  return s;
}

Product LayerPricer::product(std::string_view name, DType dtype, std::int64_t groups, double m,
                             std::int64_t n, std::int64_t k, GemmOutput gradient, bool trains,
                             double pieces, std::optional<DType> forward_dtype) const {
  const GpuSpec& gpu = cluster_.gpu;
  const auto rows = std::max<std::int64_t>(1, std::llround(m / pieces));
  const auto price = [&](const char* direction, std::int64_t a, std::int64_t b, std::int64_t c,
                         GemmOutput output) {
    const Seconds time =
        groups > 1 ? grouped_gemm_time(gpu, dtype, groups, static_cast<double>(a), b, c, output)
                   : gemm_time(gpu, dtype, a, b, c, output);
    if (notes_.lists_gemms()) {
      notes_.add({layer_.name, std::string(name), direction, dtype, groups, a, b, c, time,
                  gemm_basis(gpu, dtype, groups, a, b, c, output)});
    }
    return time * pieces;
  };
  Product p;
  const DType narrow = dtype;
  dtype = forward_dtype.value_or(narrow);
  p.forward = price("forward", rows, n, k, GemmOutput::written);
  dtype = narrow;
  p.input_gradient = price("input gradient", rows, k, n, GemmOutput::written);
  if (job_.fp8_recipe == Fp8Recipe::rowwise_wide_gradient) dtype = wide_dtype(dtype);
  p.weight_gradient = price("weight gradient", n, k, rows, gradient);
  const DType weight_dtype = dtype;
  dtype = narrow;
  const auto product_of = [&](DType type, GemmOutput output, std::int64_t a, std::int64_t b,
                              std::int64_t c, std::string_view direction) {
    KernelWork kernel;
    kernel.kind = KernelKind::gemm;
    kernel.gemm = {type, output, groups, static_cast<double>(a), b, c};
    kernel.times = pieces;
    kernel.launches = pieces;
    kernel.name = std::string(name).append(direction);
    return kernel;
  };
  if (notes_.lists_items()) {
    // Backward runs these in the opposite order: the input gradient first.
    if (!notes_.late()) p.forward_at = notes_.noted();
    notes_.add(Pass::forward,
               product_of(forward_dtype.value_or(dtype), GemmOutput::written, rows, n, k, ""));
    if (trains) {
      p.weight_at = notes_.noted();
      notes_.add(Pass::backward, product_of(weight_dtype, gradient, n, k, rows, ".weight"), true);
    }
    p.input_at = notes_.noted();
    notes_.add(Pass::backward, product_of(dtype, GemmOutput::written, rows, k, n, ".input"));
  }
  if (sizes_.tp_overlap == TpOverlap::pipelined && layout_.tp > 1 && groups == 1) {
    const std::int64_t piece = ceil_div(rows, layout_.tp);
    const double ways = layout_.tp;
    p.forward_pieces = ways * gemm_time(gpu, dtype, piece, n, k);
    p.input_gradient_pieces = ways * gemm_time(gpu, dtype, piece, k, n);
  }
  p.flops = Flops(2.0 * static_cast<double>(groups) * m * static_cast<double>(n) *
                  static_cast<double>(k));
  return p;
}

Seconds LayerPricer::moved(Pass pass, MoveKind kind, double bytes, int kernels,
                           double times) const {
  if (bytes <= 0) return Seconds(0);
  const int parts = std::max(1, kernels);
  const Bytes each(static_cast<std::int64_t>(bytes / parts));
  const DType dtype = wide_dtype(job_.precision);
  if (notes_.lists_items()) {
    KernelWork kernel;
    kernel.move = kind;
    kernel.gemm.dtype = dtype;
    kernel.bytes = static_cast<double>(each.value());
    kernel.times = parts * times;
    kernel.launches = kernels * times;
    notes_.add(pass, std::move(kernel));
  }
  return memory_bound_time(cluster_.gpu, each, kind, pass, dtype) * static_cast<double>(parts);
}

Seconds LayerPricer::collective(CollectiveKind kind, double bytes, const GroupShape& group) const {
  if (group.ranks <= 1 || bytes <= 0) return Seconds(0);
  return collective_time(cluster_, kind, Bytes(static_cast<std::int64_t>(bytes)), group);
}

Seconds LayerPricer::charge(Pass pass, CollectiveKind kind, double bytes, GroupKind group,
                            const Placing& placing, bool node) const {
  const GroupShape& whole = group == GroupKind::tp   ? sizes_.tp_group
                            : group == GroupKind::cp ? sizes_.cp_group
                            : group == GroupKind::ep ? sizes_.ep_group
                                                     : sizes_.etp_group;
  const GroupShape& shape = node ? node_of(whole) : whole;
  const Seconds time = collective(kind, bytes, shape);
  if (time == Seconds(0)) return time;
  notes_.add_traffic(pass, placing.times, tier_traffic(cluster_, kind, std::floor(bytes), shape));
  if (!notes_.lists_items()) return time;
  LayerItem item;
  item.pass = pass;
  item.moves = true;
  item.beside = placing.beside;
  item.collective.kind = kind;
  item.collective.group = group;
  item.collective.node = node;
  item.collective.dtype = wide_dtype(job_.precision);
  item.collective.bytes = static_cast<std::int64_t>(bytes);
  item.collective.times = placing.times;
  if (placing.late) {
    notes_.keep(std::move(item));
  } else {
    notes_.add(std::move(item), placing.at);
  }
  return time;
}

void LayerNotes::add(LayerItem collective, std::size_t at) {
  collective.again = again(collective.pass);
  const std::size_t place = std::min(at, items_->size());
  items_->insert(items_->begin() + static_cast<std::ptrdiff_t>(place), std::move(collective));
}

void LayerNotes::keep(LayerItem collective) {
  collective.pass = Pass::backward;
  kept_.push_back(std::move(collective));
}

void LayerNotes::add(Pass pass, KernelWork kernel, bool weight) {
  kernel.pass = pass;
  LayerItem item;
  item.pass = pass;
  item.again = again(pass);
  item.weight = weight;
  item.kernel = std::move(kernel);
  if (late_ && pass == Pass::forward) {
    // It stays a kernel of the forward pass, which the backward pass runs.
    item.pass = Pass::backward;
    kept_.push_back(std::move(item));
  } else {
    items_->push_back(std::move(item));
  }
}

void LayerNotes::add_late() {
  // Backward runs its items from the last to the first.
  for (auto item = kept_.rbegin(); item != kept_.rend(); ++item) items_->push_back(*item);
  kept_.clear();
}

GroupShape node_of(const GroupShape& group) {
  GroupShape node = group;
  node.ranks = group.span[0];
  node.tiers = 1;
  node.domains = {};
  node.domains[0] = 1;
  return node;
}

void LayerPricer::autocast(const CastProduct& of, PassTime& forward, PassTime& backward) const {
  const double both = sizes_.element + kFp32Bytes;
  const auto cast = [&](double elements) {
    forward.memory_bound += moved(Pass::forward, both * elements);
    backward.memory_bound += moved(Pass::backward, both * elements);
    forward.kernels += 1;
    backward.kernels += 1;
  };
  cast(static_cast<double>(of.k * of.width * of.groups));
  // A compiler joins the input's with what makes it.
  if (of.input && sizes_.pointwise == Kernels::eager) cast(of.rows * static_cast<double>(of.k));
}

DType LayerPricer::weight_dtype(const OperationSpec& op) const {
  if (op.fp32) return DType::fp32;
  // Embeddings and heads stay wide in every 8-bit recipe we know of.
  const bool outer = op.tp == TpSplit::vocab || layer_.role == LayerRole::embedding ||
                     layer_.role == LayerRole::head;
  return outer ? wide_dtype(job_.precision) : job_.precision;
}

}  // namespace shardwise
