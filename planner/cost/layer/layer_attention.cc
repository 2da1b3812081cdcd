// LayerPricer's attention: fused, materialised, and over context-parallel ranks.
#include <algorithm>
#include <string>

#include "planner/cost/layer/layer_pricer.h"
#include "planner/cost/software/timing.h"

namespace shardwise {
namespace {

/// PyTorch's and cuDNN's fused attention is of 16 bits; our executor's of any.
bool runs_flash(const JobSpec& job, Kernels kernels) {
  if (job.attention == AttentionKernel::materialised) return false;
  return job.precision != DType::fp32 || kernels == Kernels::planned;
}

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

/// The random numbers of attention's dropout, on lanes that do an instruction a cycle: half of the
/// fp32 peak, which counts a multiplication and an addition. Both passes draw those of each score.
Seconds dropout_time(const GpuSpec& gpu, const AttentionWork& work, double instructions) {
  const double width = static_cast<double>(work.qk_head_dim + work.v_head_dim);
  const double scores = attention_flops(work, Pass::forward).value() / (2 * width);
  const double rate = gpu.peak(DType::fp32).value() / 2;
  return rate > 0 ? Seconds(scores * instructions / rate) : Seconds(0);
}

}  // namespace

void LayerPricer::fused_attention(const AttentionWork& work, PassTime& forward, PassTime& backward,
                                  double times, std::string_view name) const {
  const DType dtype = wide_dtype(job_.precision);
  const TimingFacts& facts = timing_facts();
  AttentionSlowdown slow = slowdown_of(job_.attention, sizes_.kernels, cluster_.gpu);
  if (job_.deterministic) slow.backward *= facts.deterministic_backward;
  const Seconds once = attention_time(cluster_.gpu, dtype, work, Pass::forward);
  const Seconds back = attention_time(cluster_.gpu, dtype, work, Pass::backward);
  if (job_.dropout > 0) {
    slow.forward += dropout_time(cluster_.gpu, work, facts.dropout_forward) / once;
    slow.backward += dropout_time(cluster_.gpu, work, facts.dropout_backward) / back;
  }
  forward.attention += once * slow.forward;
  backward.attention += back * slow.backward;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    if (!notes_.lists_items()) break;
    KernelWork kernel;
    kernel.kind = KernelKind::attention;
    kernel.gemm.dtype = dtype;
    kernel.attention = work;
    kernel.slowdown = pass == Pass::forward ? slow.forward : slow.backward;
    kernel.times = times;
    kernel.launches = (pass == Pass::forward ? 1 : 3) * times;
    kernel.name = name;
    notes_.add(pass, std::move(kernel));
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
  if (!fused && sizes_.autocasts) {
    // Scale and mask; a cast, softmax in fp32, and a cast for the product after it.
    const double cast = b + kFp32Bytes;
    read_forward = 2 * b + 2 * b + cast + 2 * kFp32Bytes + cast;
    read_backward = cast + 3 * kFp32Bytes + cast + 2 * b + 2 * b;
    forward.kernels += 2;
    backward.kernels += 3;
  }
  if (job_.dropout > 0) {
    const double dropped = !fused && sizes_.autocasts ? kFp32Bytes : b;
    read_forward += 2 * dropped + 1;
    read_backward += 2 * dropped + 1;
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
