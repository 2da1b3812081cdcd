#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/machine/dtype.h"
#include "planner/spec/machine/kernel_work.h"
#include "planner/spec/plan/mesh.h"
#include "planner/spec/program/ledger.h"
#include "planner/spec/program/operand.h"
#include "planner/spec/text/units.h"

namespace shardwise {

// A plan's step as a list of operations for each pipeline stage: what the simulator gives durations
// and the executor gives kernels. planner/lowering makes it by the rules of the schedule.

/// A queue of one rank. The operations of a stream run one after the other in program order;
/// streams run beside each other.
enum class Stream : std::uint8_t {
  compute,         // kernels of the model, the loss and the optimizer
  copy,            // into and out of communication buffers, where an engine has a stream for it
  all_gather,      // parameters
  reduce_scatter,  // gradients: reduce-scatter, or all-reduce of plain data parallelism
  outer_reduce,    // gradients over dp_replicate: HSDP, optimizer instances
  tensor_parallel,
  context_parallel,
  expert_parallel,
  send,  // pipeline messages
  receive,
  host_copy,  // offload, both ways
};
inline constexpr std::size_t kStreams = 11;

/// Purpose of an operation. Its name starts with it.
enum class OpRole : std::uint8_t {
  forward,
  backward,        // input and weight gradients together
  backward_input,  // zero-bubble schedules split them
  backward_weight,
  recompute,
  cast,          // of this rank's shard to the dtype that travels
  gather,        // all-gather of a unit's parameters
  gather_outer,  // of optimizer-sharded weights over dp_replicate (HFSDP)
  copy_in,       // gradients into the input of their reduction
  copy_out,      // gathered parameters out of the gather's output
  reshard,       // this rank's part of gathered parameters, kept for a smaller gather in backward
  reduce,        // reduce-scatter or all-reduce of a unit's or bucket's gradients
  reduce_outer,  // all-reduce (HSDP) or reduce-scatter (HFSDP) of the shard over dp_replicate
  sum,           // of what an all-to-all brought in place of a reduce-scatter, in fp32
  accumulate,    // the reduced shard joins the gradient shard
  send_forward,
  receive_forward,
  send_backward,
  receive_backward,
  offload,
  reload,
  finalize,        // reductions after the last backward: norms over tp, tied embeddings, tokens
  gradient_norm,   // its sum over all ranks
  optimizer,       // norm of this rank's gradients, clipping and update
  gather_updated,  // parameters that the optimizer updated in shards and that are kept whole
};
inline constexpr std::size_t kOpRoles = 25;

/// One kernel, or several of one kind that share their bytes. Priced by planner/cost.
enum class KernelKind : std::uint8_t { gemm, attention, memory_bound };
struct KernelWork {
  KernelKind kind = KernelKind::memory_bound;
  Pass pass = Pass::forward;
  MoveKind move = MoveKind::copy;  // kind memory_bound
  GemmWork gemm;                   // kind gemm; of the others its dtype
  AttentionWork attention;         // kind attention
  double bytes = 0;                // kind memory_bound: reads and writes
  double launches = 1;             // kernels the host issues
  double times = 1;                // how often on average: recompute of every n-th block
  double slowdown = 1;             // over the GPU's own kernel: attention written for another one
  std::string name;                // the operation of the layer
};

/// Bytes between ranks of one group, as planner/cost/collectives/collective.h counts them.
struct CollectiveWork {
  CollectiveKind kind = CollectiveKind::all_gather;
  GroupKind group = GroupKind::dp_shard_cp;
  bool ends = false;  // of a rank and its mirror image in the group alone: the first and the last
                      // stage that share a table, stages that hold the same layers under DualPipe
  bool node = false;  // of the group's ranks inside one domain of the innermost tier
  DType dtype = DType::bf16;
  std::int64_t bytes = 0;
  double times = 1;  // one after the other: steps of a ring
  friend bool operator==(const CollectiveWork&, const CollectiveWork&) = default;
};

/// Part of a layer that runs.
enum class LayerPart : std::uint8_t {
  forward,
  backward,  // both gradients, without recompute
  backward_input,
  backward_weight,
  recompute,
};

/// A pass of a whole layer for one micro-batch, priced as the step-time model prices it: with the
/// tensor-, context- and expert-parallel communication that stops the compute stream.
struct LayerWork {
  std::int32_t kind = 0;  // index into ModelSpec::kinds
  LayerPart part = LayerPart::forward;
  double times = 1;  // recompute of every n-th block: the model spreads it over all
  friend bool operator==(const LayerWork&, const LayerWork&) = default;
};

/// Cost of an operation, shared by all that cost the same: a layer's pass, kernels one after the
/// other, a collective, bytes between GPU and host, or elements that the host updates. Of bytes and
/// elements both or one; of the others exactly one.
struct OpCost {
  std::vector<LayerWork> layers;  // at most one
  std::vector<KernelWork> kernels;
  std::vector<CollectiveWork> collectives;  // at most one
  std::int64_t host_bytes = 0;
  std::int64_t host_elements = 0;  // of optimizer state, updated by the node's CPUs
  double launches = 1;             // kernels that the host issues for it
};

/// Something that takes memory on the rank.
struct ProgramBuffer {
  MemoryCategory category = MemoryCategory::working;
  std::int64_t bytes = 0;
  std::int32_t layer = -1;
  std::int32_t microbatch = -1;
  bool resident = false;  // exists before the step and after it; no operation allocates it
  bool outlives = false;  // an operation of the first step allocates it, none frees it: moments,
                          // which begin as zeros
};

/// A half-open range of one of the program's index lists.
struct IndexRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// One operation of a stage's ranks. Waits for the operation before it on its stream and for those
/// in `waits`. It touches the buffers that it allocates, uses and frees and, of those that are
/// resident, what its operands or else its role say.
///
/// Operands are listed in programs of a run (lower_to_run()), and there they are all that the
/// operation reads and writes of the rank's memory. A simulation has no use for them.
struct ProgramOp {
  OpRole role = OpRole::forward;
  Stream stream = Stream::compute;
  Pass pass = Pass::forward;     // of what is gathered: for which pass
  bool routed = false;           // parameters of routed experts, which have groups of their own
  std::int16_t chunk = 0;        // of the stage's model chunks
  std::int32_t layer = -1;       // index into ModelSpec::layers; -1 when of none
  std::int32_t microbatch = -1;  // -1 when of the whole step
  std::int32_t part = -1;        // kernel, bucket or second copy of its layer; -1 when whole
  std::int32_t cost = 0;         // index into StageProgram::costs
  std::int32_t message = -1;     // send and receive with the same number are one message
  std::int32_t peer = -1;        // of a message: the stage at its other end
  IndexRange waits;              // of StageProgram::indices: operations
  IndexRange allocates;          // buffers that exist from this operation's start
  IndexRange uses;               // buffers that exist before it and after it
  IndexRange frees;              // buffers that end with it
  IndexRange operands;           // of StageProgram::operands
};

/// Operations of each rank of a pipeline stage in a step, in the order in which the host issues it.
struct StageProgram {
  std::int32_t stage = 0;
  std::vector<ProgramOp> operations;
  std::vector<std::uint32_t> indices;
  std::vector<ProgramBuffer> buffers;
  std::vector<OpCost> costs;
  std::vector<Operand> operands;               // of a run's program, by operation
  std::vector<UnitBuffers> units;              // of a run's program: the rank's state
  std::uint32_t step_block = kNoBuffer;        // likewise: what host and device share in a step
  std::uint32_t kernel_workspace = kNoBuffer;  // likewise: what kernels of passes work in

  std::span<const Operand> operands_of(const ProgramOp& op) const {
    return std::span(operands).subspan(op.operands.begin, op.operands.end - op.operands.begin);
  }
  /// Bytes that an operation moves between the ranks of a group; null where nothing.
  const CollectiveWork* communication(const ProgramOp& op) const {
    const std::vector<CollectiveWork>& work = costs[static_cast<std::size_t>(op.cost)].collectives;
    return work.empty() ? nullptr : &work.front();
  }
  std::span<const std::uint32_t> of(IndexRange range) const {
    return std::span(indices).subspan(range.begin, range.end - range.begin);
  }
};

/// How fine compute is cut.
enum class Granularity : std::uint8_t {
  layer,   // one operation a layer and pass; tensor-, context- and expert-parallel traffic within
           // it is priced as the step-time model prices it
  kernel,  // one operation a kernel and collective
};

struct StepProgram {
  std::string plan_digest;
  Granularity granularity = Granularity::layer;
  bool first_step = false;  // of a run: what engines learn in it is not known yet
  std::int64_t num_microbatches = 1;
  std::vector<StageProgram> stages;
};

/// "fwd.layer12.mb3", "gather.layer0.mb0", "gather.layer0.mb0.bwd", "bwd.layer12.mb3.q_proj",
/// "reduce.layer12.mb3.experts", "optimizer". Unique on a rank. The same plan always has the same
/// names; a measured and a predicted report join on them.
std::string name_of(const StageProgram& stage, const ProgramOp& op);
std::string_view name_of(Stream stream);
std::string_view name_of(OpRole role);

}  // namespace shardwise
