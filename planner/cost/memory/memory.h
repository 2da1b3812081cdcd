#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/cost/layer/layer_memory.h"
#include "planner/cost/memory/amount.h"
#include "planner/schedule/stages.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/program/ledger.h"
#include "planner/spec/report/report.h"

namespace shardwise {

/// A job that our kernels run on a GPU: what gpu_workspace_bytes() asks besides the layout.
struct GpuKernels {
  const ModelSpec* model = nullptr;  // null: they do not
  const JobSpec* job = nullptr;
  int capability = 0;
};

/// Facts a job, an engine and a machine fix for every layout. A plain value made once for a search.
struct MemoryRules {
  const EngineProfile* engine = nullptr;
  RuntimeMemory runtime;
  std::int32_t weight_bytes = 2;   // an element of the compute weights
  std::int32_t narrow_bytes = 2;   // of one that is multiplied in 8 bits, where it is kept so
  std::int32_t narrow_copies = 0;  // casts of such a matrix that stay from the first pass on
  std::int32_t narrow_packed = 1;  // elements in a byte of them
  std::int32_t narrow_scaled = 0;  // elements of them that share a scale; 0 = all
  std::int32_t narrow_scale_bytes = 0;
  std::int32_t parameter_bytes = 4;  // of the parameters that the optimizer updates
  std::int32_t main_bytes = 4;       // of a main copy of them; 0 = the compute weights are updated
  bool casts_weights = true;         // compute weights are another dtype than what is updated
  std::int32_t moment_bytes = 8;     // of all moments of an element together
  std::int32_t reduce_bytes = 4;     // an element of a gradient on its way to the reduction
  bool fp32_accumulation = false;    // reductions are all-to-alls and sums in fp32
  GpuKernels gpu_kernels;
  AdamwKernel adamw = AdamwKernel::fused;  // of engines that step with torch.optim.AdamW
  bool narrow_moments = false;             // theirs are torchao's int8
  bool adds_to_sums = false;               // kernel_traits
  std::int64_t shard_multiple = 1;         // elements of which a piece of a unit is a multiple
  bool whole_pieces = false;         // our kernels on GPUs: units end where the last piece does
  bool step_block = false;           // our kernels: host and device share step_block()
  std::int64_t sequence_length = 0;  // of it …
  bool per_token_loss = false;       // … and whether tokens are counted
  std::int64_t host_bytes = 0;       // memory of a node's host; 0 = not known …
  std::int64_t ranks_of_host = 1;    // … and ranks that share it
};
MemoryRules memory_rules(const JobSpec& job, const EngineProfile& engine,
                         const RuntimeMemory& runtime);
/// Rules on a machine: with its runtime_memory, shard_multiple and our kernels' workspace.
/// \param model, job  must outlive the result
MemoryRules memory_rules_on(const GpuSpec& gpu, const ModelSpec& model, const JobSpec& job,
                            const EngineProfile& engine);
/// Adds the hosts of a cluster, for what is offloaded to them.
MemoryRules with_hosts(MemoryRules rules, const ClusterSpec& cluster);

/// A unit of gathering and reduction (an FSDP unit): the trained elements of one layer on a rank.
struct Unit {
  std::int64_t dense = 0;
  std::int64_t routed = 0;
  std::int64_t narrow = 0;  // part of both: matrices multiplied in 8 bits
  std::int64_t frozen = 0;  // besides: gathered with them, never reduced
  std::int64_t elements() const { return dense + routed; }
  std::int64_t gathered() const { return dense + routed + frozen; }
};

/// Unit that is gathered for a layer; frozen weights travel like the others.
Unit gathered_unit(const LayerMemory& layer);

/// Which instant of a layer's pass.
enum class Instant : std::uint8_t {
  fullest,      // of all its operations; of a head whose loss is apart, while the loss runs
  beside_loss,  // of that head, while all else runs
  reduction,    // of an embedding or head whose gradients are being reduced; of any layer whose
                // gradients waited for the last micro-batch
  copied_out,   // of a block whose weights were just copied out to run backward
};

/// An instant of a micro-batch at which a stage may be at its fullest: one layer runs, forward or
/// backward; those before it have saved their activations, those after it are done (backward).
struct StageMoment {
  const LayerMemory* layer = nullptr;
  Instant instant = Instant::fullest;
  std::int32_t chunk = 0;         // the first that has such layers
  bool whole = false;             // a layer that recompute leaves alone
  std::int64_t saved_before = 0;  // bytes saved by the layers of the chunk before this one
  std::int64_t saved_beside = 0;  // by the last of them that saves anything
  std::int32_t alike_before = 0;  // of them, layers just before that save what this one does
  Unit next;      // the unit gathered while this one computes backward: the layer before
  Unit previous;  // the unit whose gradients are being reduced meanwhile: the layer after
  Unit ready;     // elements of all layers after this one: their gradients are reduced
  Unit before;    // of the layers of the chunk before this one
  Unit after;     // and of those after it
  std::int64_t outside_before = 0;  // part of what is gathered of them: embedding and head
  std::int64_t outside_after = 0;
  std::int64_t tied_table = 0;  // elements of a table that the chunk's head works with too
  std::int64_t root_unit = 0;   // of weights of the embedding that are of FSDP2's root: all where
                                // the head works with its table, else what is beside it
  Amount tied_gradients;        // tables of its gradients beside the layer's own, in backward
};

inline constexpr int kMaxStageKinds = 12;

/// A pipeline stage as the sum of its layers. Holds pointers into the LayerMemory it was made from.
struct StageParts {
  std::int64_t dense = 0;  // trained elements on this rank
  std::int64_t routed = 0;
  std::int64_t frozen = 0;
  std::int64_t counted_experts = 0;  // of the router's buffers
  std::int64_t narrow_dense = 0;     // part of dense: matrices multiplied in 8 bits
  std::int64_t narrow_routed = 0;    // part of routed
  std::int64_t copied = 0;           // part of dense: the token table of another stage
  std::int64_t copied_row = 1;       // elements of a row of it
  std::int64_t tensors = 0;
  std::int64_t tensor_divisor = 0;        // greatest common divisor of the elements of all tensors
  std::int64_t rows_divisor = 0;          // and of their rows
  std::vector<std::int64_t> chunk_saved;  // activations of one micro-batch, by model chunk
  std::vector<std::int64_t> chunk_trained;  // elements, by model chunk
  std::vector<std::int32_t> chunk_like;     // by chunk: the first one that has the same layers
  /// Bytes of other_passes() by chunk, forward and backward, where remember_other_passes() was
  /// asked to keep them.
  std::vector<std::array<std::int64_t, 2>> in_flight;
  std::int64_t routed_saved = 0;   // part of them that grows with the tokens experts get
  std::int64_t pair_saved = 0;     // most by a layer and the one before it in its chunk
  std::int64_t first_saved = 0;    // most by the first layer of a chunk that saves anything
  std::int64_t last_saved = 0;     // and by the last one
  std::int64_t boundary = 0;       // what stages hand each other, of one micro-batch
  std::int64_t tables = 0;         // made once a micro-batch, whatever its layers
  std::int64_t gather_buffer = 0;  // there from the first pass on
  std::int64_t placeholders = 0;   // elements of dummy weight gradients, one a shape of matrix
  bool framework_gemm = false;
  bool engine_gemm = false;
  bool grouped_gemm = false;
  bool overlapped_gemm = false;
  Unit root;  // embedding and head: outside the blocks
  Unit largest_block;
  std::int32_t runs = 0;
  struct Run {
    const LayerMemory* layer = nullptr;
    std::int32_t count = 0;
  };
  std::array<Run, kMaxStageKinds> run{};
  /// Layers that follow one another in forward order, by model chunk.
  struct OrderedRun {
    const LayerMemory* layer = nullptr;
    std::int32_t count = 0;
    std::int32_t chunk = 0;
  };
  std::vector<OrderedRun> in_order;
  bool shares_table = false;  // holds a token table that another stage holds too
  /// Moments by chunk, with the same layers those of the first chunk: the last layer of each kind,
  /// before which most is saved.
  std::vector<StageMoment> moments;
  /// Others of a kind that may be fuller in backward: those after which most is done, and those
  /// between layers like them.
  std::vector<StageMoment> inner_moments;
};

/// First chunk that has the same layers, by chunk of a stage.
std::vector<std::int32_t> chunks_alike(const StageLayers& layers);

/// The parameters of one layer alone, and of a copy of the token table. \pre `layer` outlives it
StageParts layer_parts(const LayerMemory& layer, std::int64_t copied);

/// \param by_kind  layer_memories of the same model and layout; must outlive the result
StageParts stage_parts(const ModelSpec& model, std::span<const LayerMemory> by_kind,
                       const StageLayers& layers);

/// The choices of a layout that a stage's ledger still depends on, and the stage's place.
struct StageContext {
  const MemoryRules* rules = nullptr;
  const Layout* layout = nullptr;
  std::int32_t stage = 0;
  std::int64_t num_microbatches = 1;
};

/// The ledger of one rank of one pipeline stage.
StageMemory stage_memory(const StageParts& parts, const StageContext& context);

/// MemoryPeaks::needed of a ledger. \pre `rules` are those that it was made by
Bytes needed_memory(const StageMemory& memory, const MemoryRules& rules);

/// Bytes of what is offloaded, on the host of a rank.
std::int64_t host_bytes(const StageParts& parts, const StageContext& context);

/// Bytes that may top a ledger's peak, by source of doubt: the upper bound is the peak and all
/// of them.
struct MemoryDoubt {
  std::int64_t allocator = 0;     // fragmentation beyond the expected slack
  std::int64_t communicator = 0;  // channels and transports NCCL may set up
  std::int64_t runtime = 0;       // context and loaded kernels
  std::int64_t activations = 0;   // temporaries of kernels that were not traced
  std::int64_t expert_imbalance = 0;
  Bytes total() const {
    return Bytes(allocator + communicator + runtime + activations + expert_imbalance);
  }
};
MemoryDoubt memory_doubt(const StageMemory& memory, const StageParts& parts,
                         const StageContext& context);

/// The peaks of a stage's ledgers without the ledgers, for callers that look at millions:
/// stage_memory(…).peak_total(), and that with all doubts.
struct StagePeaks : MemoryPeaks {
  Bytes allocated;
  Bytes reserved;
};
StagePeaks stage_peaks(const StageParts& parts, const StageContext& context);

/// Everything at once, for callers that look at a single layout.
struct LayoutMemory {
  std::vector<StageMemory> stages;
  std::vector<Bytes> upper;  // peak total and doubts of each stage
};
LayoutMemory layout_memory(const ModelSpec& model, const JobSpec& job, const EngineProfile& engine,
                           const RuntimeMemory& runtime, const Layout& layout);
LayoutMemory layout_memory_on(const GpuSpec& gpu, const ModelSpec& model, const JobSpec& job,
                              const EngineProfile& engine, const Layout& layout);

}  // namespace shardwise
