#include "planner/cost/layer_pricer.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "planner/cost/time_rules.h"
#include "planner/cost/timing.h"

namespace shardwise {
namespace {

/// PyTorch's and cuDNN's fused attention is of 16 bits; our executor's of any.
bool runs_flash(const JobSpec& job, Kernels kernels) {
  if (job.attention == AttentionKernel::materialised) return false;
  return job.precision != DType::fp32 || kernels == Kernels::planned;
}

/// Attention and everything else that has no 8-bit form runs in this.
DType wide_dtype(DType precision) { return bits_of(precision) <= 8 ? DType::bf16 : precision; }

/// How many times as long an attention kernel takes as the GPU's curve, which is of the kernels
/// written for it.
struct AttentionSlowdown {
  double forward = 1;
  double backward = 1;
};
AttentionSlowdown slowdown_of(AttentionKernel kernel, Kernels kernels, const GpuSpec& gpu) {
  const TimingFacts& facts = timing_facts();
  AttentionSlowdown slow;
  // PyTorch's flash attention is FlashAttention-2, written for Ampere.
  const bool torch = kernels == Kernels::eager || kernels == Kernels::compiled;
  const bool second = torch && kernel == AttentionKernel::flash;
  const bool first = kernel == AttentionKernel::flash1;
  if ((first || second) && gpu.architecture == "hopper") {
    slow = {facts.second_flash_on_hopper, facts.second_flash_on_hopper};
  }
  if (first) {
    slow.forward *= facts.first_flash_forward;
    slow.backward *= facts.first_flash_backward;
  }
  return slow;
}

}  // namespace

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
                             double pieces) const {
  const GpuSpec& gpu = cluster_.gpu;
  const auto rows = std::max<std::int64_t>(1, std::llround(m / pieces));
  const auto price = [&](const char* direction, std::int64_t a, std::int64_t b, std::int64_t c,
                         GemmOutput output) {
    const Seconds time =
        groups > 1 ? grouped_gemm_time(gpu, dtype, groups, static_cast<double>(a), b, c, output)
                   : gemm_time(gpu, dtype, a, b, c, output);
    if (gemms_ != nullptr) {
      gemms_->push_back({layer_.name, std::string(name), direction, dtype, groups, a, b, c, time,
                         gemm_basis(gpu, dtype, groups, a, b, c, output)});
    }
    return time * pieces;
  };
  Product p;
  p.forward = price("forward", rows, n, k, GemmOutput::written);
  p.input_gradient = price("input gradient", rows, k, n, GemmOutput::written);
  const DType narrow = dtype;
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
  if (items_ != nullptr) {
    // Backward runs these in the opposite order: the input gradient first.
    if (!late_) p.forward_at = noted();
    note(Pass::forward, product_of(dtype, GemmOutput::written, rows, n, k, ""));
    if (trains) {
      p.weight_at = noted();
      note(Pass::backward, product_of(weight_dtype, gradient, n, k, rows, ".weight"), true);
    }
    p.input_at = noted();
    note(Pass::backward, product_of(dtype, GemmOutput::written, rows, k, n, ".input"));
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
  if (items_ != nullptr) {
    KernelWork kernel;
    kernel.move = kind;
    kernel.gemm.dtype = dtype;
    kernel.bytes = static_cast<double>(each.value());
    kernel.times = parts * times;
    kernel.launches = kernels * times;
    note(pass, std::move(kernel));
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
  const double times = placing.times * (pass == Pass::forward ? 1 + again_ : 1);
  traffic_ += times * tier_traffic(cluster_, kind, std::floor(bytes), shape);
  if (items_ == nullptr) return time;
  LayerItem item;
  item.pass = pass;
  item.moves = true;
  item.again = pass == Pass::forward ? again_ : 0;
  item.beside = placing.beside;
  item.collective.kind = kind;
  item.collective.group = group;
  item.collective.node = node;
  item.collective.dtype = wide_dtype(job_.precision);
  item.collective.bytes = static_cast<std::int64_t>(bytes);
  item.collective.times = placing.times;
  const std::size_t at = std::min(placing.at, items_->size());
  items_->insert(items_->begin() + static_cast<std::ptrdiff_t>(at), std::move(item));
  return time;
}

void LayerPricer::note(Pass pass, KernelWork kernel, bool weight) const {
  kernel.pass = pass;
  LayerItem item;
  item.pass = pass;
  item.again = pass == Pass::forward ? again_ : 0;
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

void LayerPricer::note_late() const {
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

DType LayerPricer::weight_dtype(const OperationSpec& op) const {
  if (op.fp32) return DType::fp32;
  // Embeddings and heads stay wide in every 8-bit recipe we know of.
  const bool outer = op.tp == TpSplit::vocab || layer_.role == LayerRole::embedding ||
                     layer_.role == LayerRole::head;
  return outer ? wide_dtype(job_.precision) : job_.precision;
}

void LayerPricer::fused_attention(const AttentionWork& work, PassTime& forward, PassTime& backward,
                                  double times, std::string_view name) const {
  const DType dtype = wide_dtype(job_.precision);
  const AttentionSlowdown slow = slowdown_of(job_.attention, sizes_.kernels, cluster_.gpu);
  forward.attention += attention_time(cluster_.gpu, dtype, work, Pass::forward) * slow.forward;
  const double ordered = job_.deterministic ? timing_facts().deterministic_backward : 1;
  backward.attention +=
      attention_time(cluster_.gpu, dtype, work, Pass::backward) * (slow.backward * ordered);
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    if (items_ == nullptr) break;
    KernelWork kernel;
    kernel.kind = KernelKind::attention;
    kernel.gemm.dtype = dtype;
    kernel.attention = work;
    kernel.slowdown = pass == Pass::forward ? slow.forward : slow.backward * ordered;
    kernel.times = times;
    kernel.launches = (pass == Pass::forward ? 1 : 3) * times;
    kernel.name = name;
    note(pass, std::move(kernel));
  }
  forward.flops += attention_flops(work, Pass::forward);
  backward.flops += attention_flops(work, Pass::backward);
  forward.kernels += 1;
  backward.kernels += 3;  // row sums of dO . O, gradients, conversion of dQ
}

void LayerPricer::materialised_attention(const OperationSpec& op, const AttentionWork& work,
                                         PassTime& forward, PassTime& backward) const {
  const DType dtype = wide_dtype(job_.precision);
  const std::int64_t groups = work.batch * work.heads;
  const auto queries = static_cast<double>(work.seq_q);
  // The mask saves no work: the whole [seq_q, seq_kv] is computed.
  const Product scores =
      product(op.name + ".scores", dtype, groups, queries, work.seq_kv, work.qk_head_dim);
  const Product values =
      product(op.name + ".values", dtype, groups, queries, work.v_head_dim, work.seq_kv);
  for (const Product& p : {scores, values}) {
    forward.gemm += p.forward;
    backward.gemm += p.input_gradient + p.weight_gradient;
    forward.flops += p.flops;
    backward.flops += 2.0 * p.flops;
    forward.kernels += 1;
    backward.kernels += 2;
  }
  const double elements = static_cast<double>(groups) * queries * static_cast<double>(work.seq_kv);
  const double b = sizes_.element;
  // Scale, mask and softmax in one kernel where fused, in three otherwise.
  const bool fused = sizes_.pointwise != Kernels::eager;
  double read_forward = fused ? 2 * b : 6 * b;
  double read_backward = fused ? 3 * b : 5 * b;
  forward.kernels += fused ? 1 : 3;
  backward.kernels += fused ? 1 : 2;
  if (job_.dropout > 0) {
    read_forward += 2 * b + 1;
    read_backward += 2 * b + 1;
    forward.kernels += 1;
    backward.kernels += 1;
  }
  forward.memory_bound += moved(Pass::forward, elements * read_forward);
  backward.memory_bound += moved(Pass::backward, elements * read_backward);
  if (sizes_.megatron_eager()) {
    // The output is put in order of tokens, and its gradient of heads; the gradients of queries,
    // keys and values become one matrix (NVIDIA/Megatron-LM:megatron/model/transformer.py,
    // permute(2, 0, 1, 3).contiguous() and split_tensor_along_last_dim).
    const double tokens = static_cast<double>(work.batch) * queries;
    const auto heads = static_cast<double>(work.heads);
    const double output = tokens * heads * static_cast<double>(work.v_head_dim);
    const double inputs =
        tokens * (heads * static_cast<double>(work.qk_head_dim) +
                  static_cast<double>(work.kv_heads * (work.qk_head_dim + work.v_head_dim)));
    forward.memory_bound += moved(Pass::forward, 2 * b * output);
    backward.memory_bound +=
        moved(Pass::backward, 2 * b * output) + moved(Pass::backward, 2 * b * inputs);
    forward.kernels += 1;
    backward.kernels += 2;
  }
}

void LayerPricer::ring_attention(const AttentionWork& work, double key_value_bytes,
                                 PassTime& forward, PassTime& backward) const {
  // A rank holds one early and one late chunk of the sequence, so that the causal work is equal:
  // its own block is a causal square, every other block is half a square.
  AttentionWork own = work;
  own.seq_kv = own.seq_q;
  PassTime own_forward;
  PassTime own_backward;
  fused_attention(own, own_forward, own_backward);

  AttentionWork other = own;
  other.causal = false;
  if (work.causal) other.seq_kv = std::max<std::int64_t>(1, own.seq_kv / 2);
  if (work.window > 0) other.seq_kv = std::min(other.seq_kv, work.window);
  PassTime other_forward;
  PassTime other_backward;
  const double others = layout_.cp - 1;
  // The next keys and values travel while a step computes; backward their gradients travel too.
  const Placing steps = {true, others, kLast};
  const Seconds pass =
      charge(Pass::forward, CollectiveKind::send_recv, key_value_bytes, GroupKind::cp, steps);
  fused_attention(other, other_forward, other_backward, others, "attention.steps");
  const Seconds both =
      charge(Pass::backward, CollectiveKind::send_recv, 2 * key_value_bytes, GroupKind::cp, steps);

  forward += own_forward;
  backward += own_backward;
  forward += others * other_forward;
  backward += others * other_backward;
  // Every step merges its output, weighted by the softmax statistics.
  const double output = static_cast<double>(work.batch * work.seq_q * work.heads * work.v_head_dim);
  forward.memory_bound += others * moved(Pass::forward, output * 3 * sizes_.element, 1, others);
  forward.kernels += others * 2;

  const auto hide = [&](PassTime& time, Seconds hop, Seconds step) {
    const Seconds exposed = std::max(hop * sizes_.cp_tax, hop - step);
    time.cp += others * exposed;
    time.cp_hidden += others * (hop - exposed);
    time.kernels += others;
  };
  hide(forward, pass, other_forward.compute());
  hide(backward, both, other_backward.compute());
}

void LayerPricer::attention(const OperationSpec& op, PassTime& forward, PassTime& backward) const {
  AttentionWork work;
  work.batch = layout_.micro_batch_size;
  work.heads = ceil_div(op.heads, layout_.tp);
  work.kv_heads = ceil_div(op.kv_heads, layout_.tp);
  work.seq_q = ceil_div(job_.sequence_length, layout_.cp);
  work.seq_kv = job_.sequence_length;
  work.qk_head_dim = op.qk_head_dim;
  work.v_head_dim = op.v_head_dim;
  work.window = op.window;
  work.causal = op.causal;

  const auto tokens = static_cast<double>(sizes_.tokens);
  const double b = sizes_.element;
  const double queries = tokens * static_cast<double>(work.heads * work.qk_head_dim) * b;
  const double outputs = tokens * static_cast<double>(work.heads * work.v_head_dim) * b;
  const double key_values =
      tokens * static_cast<double>(work.kv_heads * (work.qk_head_dim + work.v_head_dim)) * b;

  if (layout_.cp > 1 && layout_.cp_kind == ContextParallelKind::ring &&
      runs_flash(job_, sizes_.kernels)) {
    ring_attention(work, key_values, forward, backward);
    return;
  }
  if (layout_.cp > 1 && layout_.cp_kind == ContextParallelKind::ulysses) {
    work.heads = ceil_div(work.heads, layout_.cp);
    work.kv_heads = ceil_div(work.kv_heads, layout_.cp);
    work.seq_q = job_.sequence_length;
    const double inputs = queries + key_values;
    forward.cp += charge(Pass::forward, CollectiveKind::all_to_all, inputs, GroupKind::cp);
    backward.cp += charge(Pass::backward, CollectiveKind::all_to_all, inputs, GroupKind::cp);
    forward.kernels += 4;
    backward.kernels += 4;
  } else if (layout_.cp > 1) {
    const double whole = key_values * layout_.cp;
    forward.cp += charge(Pass::forward, CollectiveKind::all_gather, whole, GroupKind::cp);
    backward.cp += charge(Pass::backward, CollectiveKind::reduce_scatter, whole, GroupKind::cp);
    forward.kernels += 2;
    backward.kernels += 3;
    // Every rank has an early and a late chunk: its queries see half of the keys on average.
    if (work.causal) work.seq_kv = ceil_div(work.seq_kv, 2);
    if (work.window > 0) work.seq_kv = std::min(work.seq_kv, work.window);
    work.causal = false;
  }
  if (runs_flash(job_, sizes_.kernels)) {
    fused_attention(work, forward, backward);
  } else {
    materialised_attention(op, work, forward, backward);
  }
  if (layout_.cp == 1) return;
  // What backward begins with, and forward ends with.
  if (layout_.cp_kind == ContextParallelKind::ulysses) {
    forward.cp += charge(Pass::forward, CollectiveKind::all_to_all, outputs, GroupKind::cp);
    backward.cp += charge(Pass::backward, CollectiveKind::all_to_all, outputs, GroupKind::cp);
  } else {
    const double whole = key_values * layout_.cp;
    backward.cp += charge(Pass::backward, CollectiveKind::all_gather, whole, GroupKind::cp);
  }
}

}  // namespace shardwise
