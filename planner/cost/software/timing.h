#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/machine/gpu_spec.h"
#include "planner/spec/machine/kernel_work.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// Constants of machines and software in the step-time model, without the curves of a GPU and of
/// its links: the values of configs/engines/timing.json, each with its source there.
struct TimingFacts {
  double gpu_speed_deviation = 0;  // of one GPU's time, over the mean of its kind
  double sms_within_node = 0;      // multiprocessors that a collective occupies
  double sms_across_nodes = 0;
  double registered_sms_within_node = 0;  // the same from buffers registered with NCCL
  double registered_sms_across_nodes = 0;
  double registered_sms_in_network = 0;               // across nodes whose switches add
  std::vector<std::string> persistent_architectures;  // whose GEMMs fill the GPU in one wave
  double persistent_slowdown = 1;                     // of such a GEMM beside a collective

  /// Times that a byte on a link passes through a rank's memory, by what moves it.
  struct MemoryPasses {
    double ring = 0;               // NCCL's buffers: all-gather, reduce-scatter, all-reduce
    double registered_gather = 0;  // all-gather into buffers registered with NCCL
    double pairs = 0;              // all-to-all
    double registered_pairs = 0;
    double message = 0;    // at its receiver
    double in_switch = 0;  // all-reduce in a switch that adds
    double registered_in_switch = 0;
    double network_buffer = 0;  // besides, of what leaves the node
  };
  MemoryPasses memory_passes;

  struct Issue {
    std::string modules;  // "torch", "megatron", "compiled", "planned"
    Seconds x86;          // host time a kernel
    Seconds grace;
    bool assumed = false;  // no measurement of just this
    std::string source;
  };
  std::vector<Issue> issue;
  Seconds all_reduce_call;  // host time of a collective issued by PyTorch, on x86
  Seconds all_gather_call;
  Seconds reduce_scatter_call;
  std::vector<std::string> waits_for_messages;  // engines whose host waits for messages of 1F1B
  std::vector<std::string> waits_for_norm;      // and for the norm before the optimizer
  std::vector<std::string> megatron_engines;    // whose modules are Megatron's, over any kernels
  std::vector<std::string> grace_gpus;          // how the names of GPUs with such a host begin

  double second_flash_on_hopper = 1;  // FlashAttention-2 over the kernels of the curve
  double first_flash_forward = 1;     // the first FlashAttention over the second
  double first_flash_backward = 1;
  double deterministic_backward = 1;  // attention gradients in one order over any order
  double dropout_forward = 0;         // instructions a score that fused attention's dropout takes
  double dropout_backward = 0;
  double host_adam_elements_per_s = 0;
  std::string gpu_speed_source;
  std::string deterministic_source;
  std::string dropout_source;
};
const TimingFacts& timing_facts();

/// The engine runs modules of Megatron, or made like those, over any kernels.
bool has_megatron_modules(const EngineProfile& engine);

/// Who wrote the code that issues kernels decides how long the host takes for one.
const TimingFacts::Issue& issue_facts(const EngineProfile& engine, Kernels kernels);
/// Host time to issue one kernel on this GPU's host.
Seconds issue_time(const TimingFacts::Issue& facts, const GpuSpec& gpu);

/// Kernels that the host issues in the time it takes for one collective: at least 1, which is also
/// what is taken of compiled graphs and of our executor, as nobody measured them.
double kernels_a_collective(CollectiveKind kind, const TimingFacts::Issue& facts);

/// The longest of `gpus` times over their mean, less one, when each varies as timing_facts() says:
/// deviation x the expected maximum of as many normal numbers.
double slowest_gpu_excess(std::int64_t gpus);

/// Expected maximum of `count` independent standard normal numbers, 0 for one.
/// Source: Blom, Statistical Estimates and Transformed Beta-Variables (1958): the quantile of
/// (n - 0.375) / (n + 0.25); 5 % too large for two numbers, within 1 % from eight on.
double expected_maximum_of_normals(std::int64_t count);

}  // namespace shardwise
