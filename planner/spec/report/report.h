#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/machine/dtype.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/program/ledger.h"
#include "planner/spec/report/memory_fit.h"
#include "planner/spec/report/step_timeline.h"
#include "planner/spec/text/enum_names.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// Something a number rests on that the user did not state.
struct Assumption {
  std::string id;  // "attention.curve.default"
  std::string text;
  std::string source;
};

/// Does a layout fit, and by how much. Infeasible is a value, not an error.
struct Verdict : MemoryPeaks {
  Fit fit = Fit::fits;
  int worst_stage = 0;  // whose point is the highest
  MemoryPhase worst_phase = MemoryPhase::steady_forward_backward;
  Bytes host;         // memory of a node that its GPUs' offloaded states and activations take
  Bytes host_usable;  // that a node has; 0 = not known
  Bytes usable;       // HBM less what is held back
  std::string cheapest_fix;  // what makes it fit (advice()); empty when it fits or nothing does

  /// Bytes that a GPU or a host lacks where it does not fit.
  Bytes over() const { return std::max(needed - usable, host_lacks); }
};

/// Where a step's time goes, on the slowest stage. The parts add up to the step.
struct TimeParts {
  Seconds forward;  // compute
  Seconds backward;
  Seconds recompute;
  Seconds tp_exposed;
  Seconds cp_exposed;
  Seconds ep_exposed;
  Seconds pp_exposed;  // sends and receives not hidden
  Seconds dp_exposed;  // gradient reduction and parameter gathers not hidden
  Seconds bubble;      // idle by schedule
  Seconds optimizer;   // including clipping and its reductions
  Seconds launch;      // kernels the host cannot issue fast enough
  Seconds straggler;   // waiting for the slowest GPU
  Seconds offload_exposed;
  Seconds input_exposed;  // reading the batch
  Seconds anchored;       // measured less predicted, carried over from another configuration
  Seconds total() const {
    return forward + backward + recompute + tp_exposed + cp_exposed + ep_exposed + pp_exposed +
           dp_exposed + bubble + optimizer + launch + straggler + offload_exposed + input_exposed +
           anchored;
  }
};

/// Seconds of a step by kind of kernel, on the slowest stage; forward, backward and recompute.
struct ComputeClasses {
  Seconds gemm;
  Seconds attention;
  Seconds memory_bound;
};

/// Communication on one axis over a step, on the slowest stage.
struct AxisTime {
  std::string axis;  // "tp", "cp", "ep", "pp", "dp"; "offload" between GPU and host
  Seconds total;     // as if nothing ran beside it
  Seconds exposed;
};

/// Time that a mechanism adds to a step in which those named before it are at work.
struct MechanismTime {
  std::string mechanism;  // "links shared"
  Seconds closed_form;
  Seconds simulated;
};

/// The step-time model's answer for a simulated step.
struct ClosedForm {
  Seconds step_time;
  TimeParts time;
  std::vector<MechanismTime> mechanisms;  // add up to either step
};

/// Basis of the predicted time of a matrix product.
enum class GemmBasis : std::uint8_t {
  measured,      // this very shape was timed on this GPU in this dtype
  interpolated,  // every dimension lies between shapes that were
  extrapolated,  // it does not, or nothing was timed on this GPU
};
template <>
inline constexpr std::array<std::string_view, 3> kNamesOf<GemmBasis> = {"measured", "interpolated",
                                                                        "extrapolated"};

/// One matrix product of the model, for --explain.
struct GemmUse {
  std::string layer;      // "block"
  std::string operation;  // "self_attn.q_proj"
  std::string product;    // "forward", "input gradient", "weight gradient"
  DType dtype = DType::bf16;
  std::int64_t groups = 1;  // > 1: grouped (experts) or batched (materialised attention)
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  Seconds time;
  GemmBasis basis = GemmBasis::extrapolated;
};

/// One value of an explanation: a formula with its numbers, and where they come from.
struct Explanation {
  std::string subject;  // "steady_forward_backward.gathered_weights", "time.bubble"
  std::string formula;
  std::string values;
  std::string source;
};

/// Predicted or measured, the same shape.
struct StepReport {
  std::string origin = "predicted";  // or "measured"
  std::string plan_digest;
  std::string model;
  std::string cluster;
  std::string engine;
  Layout layout;
  std::int64_t global_batch_size = 0;
  std::int64_t sequence_length = 0;
  std::int64_t num_microbatches = 0;
  std::vector<StageMemory> stages;  // memory ledger by stage
  std::vector<Bytes> stage_upper;   // upper bound of each stage's peak total
  Verdict verdict;
  TimeParts time;
  ComputeClasses compute;
  std::vector<AxisTime> by_axis;
  Seconds step_time;
  double mfu = 0;             // model FLOPs over dense peak, causal mask left out
  double mfu_non_causal = 0;  // the same with attention counted whole, as PaLM and Megatron do
  double hfu = 0;             // as mfu, with recompute
  Flops model_flops;          // a step, all ranks, causal mask left out
  std::string flops_formula;
  double tokens_per_s = 0;  // all ranks
  double tokens_per_s_per_gpu = 0;
  double dollars_per_1e9_tokens = 0;  // 0 = no price known
  double joules_per_token = 0;        // 0 = no power known
  Seconds checkpoint_write;           // one checkpoint, not part of the step
  Bytes checkpoint_bytes;
  std::vector<Assumption> assumptions;
  std::vector<Explanation> explanations;  // filled when asked for
  std::vector<GemmUse> gemms;             // filled when asked for
  std::optional<StepTimeline> timeline;   // of a simulated or measured step
  std::optional<ClosedForm> closed_form;  // beside a simulated one
  std::int64_t measured_ranks = 0;        // of whose records a measured report is made
  /// Measured: the length of the recorded step whose operations the timeline has, where recording
  /// takes time. Steps were otherwise run without, and step_time is theirs. 0 = the same.
  Seconds recorded_step_time;
  /// Measured: what a process gained in resident memory from its start to the end of the steps, a
  /// rank of it, the largest of all processes. 0 = not measured.
  Bytes process_growth;
  Bytes arena;  // Measured: the memory that a rank's tensors lie in. 0 = not measured.
  /// Measured on a GPU: what is used of its memory, by all on it, before the rank allocates any and
  /// when its steps are over, its arena still there. 0 = not measured.
  Bytes device_used_at_start;
  Bytes device_used;
};

}  // namespace shardwise
