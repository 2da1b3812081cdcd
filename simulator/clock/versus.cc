#include "simulator/clock/versus.h"

#include <string_view>
#include <utility>

namespace shardwise::sim {
namespace {

/// Makes one mechanism of a plan that of another.
struct Mechanism {
  std::string_view name;
  std::string_view what;
  void (*take)(Plan& plan, const Plan& other);
  bool stands_alone = true;
};

void take_kernels(Plan& plan, const Plan& other) {
  plan.engine.kernels = other.engine.kernels;
  plan.engine.tp_overlap = other.engine.tp_overlap;
  plan.engine.runtime = other.engine.runtime;
}

void take_states(Plan& plan, const Plan& other) {
  plan.engine.main_weights = other.engine.main_weights;
  plan.engine.param_remainders = other.engine.param_remainders;
  plan.layout.store_param_remainders = other.layout.store_param_remainders;
  plan.engine.casts_gradients_for_optimizer = other.engine.casts_gradients_for_optimizer;
  plan.engine.sub_group_elements = other.engine.sub_group_elements;
  plan.engine.optimizer_scratch_bytes = other.engine.optimizer_scratch_bytes;
  plan.engine.lazy_moments = other.engine.lazy_moments;
  plan.engine.whole_moments_early = other.engine.whole_moments_early;
}

void take_gradient_dtype(Plan& plan, const Plan& other) {
  plan.engine.reduce_dtype = other.engine.reduce_dtype;
  plan.engine.fp32_gradients_default = other.engine.fp32_gradients_default;
  plan.layout.fp32_gradients = other.layout.fp32_gradients;
}

void take_padding(Plan& plan, const Plan& other) {
  plan.engine.padding = other.engine.padding;
  plan.engine.pad_multiple = other.engine.pad_multiple;
  plan.engine.start_multiple = other.engine.start_multiple;
  plan.engine.vocabulary_multiple = other.engine.vocabulary_multiple;
}

void take_reductions(Plan& plan, const Plan& other) {
  plan.engine.gradient_buffer = other.engine.gradient_buffer;
  plan.engine.bucket_elements = other.engine.bucket_elements;
  plan.engine.bucket_elements_per_rank = other.engine.bucket_elements_per_rank;
  plan.layout.ddp_bucket_size = other.layout.ddp_bucket_size;
  plan.engine.reduce_queue_elements = other.engine.reduce_queue_elements;
  plan.engine.reduce_buffer_elements = other.engine.reduce_buffer_elements;
  plan.engine.overlap_doubles_buffer = other.engine.overlap_doubles_buffer;
  plan.engine.keeps_gradient_shards = other.engine.keeps_gradient_shards;
  plan.engine.keeps_last_reduction = other.engine.keeps_last_reduction;
  plan.engine.flattens_gradients = other.engine.flattens_gradients;
  plan.engine.joins_whole_gradients = other.engine.joins_whole_gradients;
}

/// Without copies out of the gather's output, and else as close as there is: one unit ahead.
void take_no_copies_out(Plan& plan, const Plan& other) {
  const bool differs = (plan.engine.gather == GatherBuffer::copy_out) !=
                       (other.engine.gather == GatherBuffer::copy_out);
  if (!differs) return;
  const bool copies = other.engine.gather == GatherBuffer::copy_out;
  plan.engine.gather = copies ? GatherBuffer::copy_out : GatherBuffer::rate_limited;
}

void take_prefetch(Plan& plan, const Plan& other) {
  plan.engine.gather = other.engine.gather;
  plan.engine.gather_queue_elements = other.engine.gather_queue_elements;
  plan.engine.prefetch_elements = other.engine.prefetch_elements;
  plan.engine.keeps_root_gathered = other.engine.keeps_root_gathered;
  plan.layout.double_buffer = other.layout.double_buffer;
}

void take_communicators(Plan& plan, const Plan& other) {
  plan.engine.all_gather_shares_communicator = other.engine.all_gather_shares_communicator;
}

void take_allocator(Plan& plan, const Plan& other) {
  plan.engine.allocator = other.engine.allocator;
}

void take_host(Plan& plan, const Plan& other) {
  plan.engine.name = other.engine.name;
  plan.engine.label = other.engine.label;
  plan.engine.variant_of = other.engine.variant_of;
}

void take_everything(Plan& plan, const Plan& other) { plan = other; }

constexpr std::string_view kKernels = "kernels";
constexpr Mechanism kMechanisms[] = {
    {kKernels, "fused or eager, and the host time to issue them", take_kernels},
    {"states", "main weights' placement, gradients cast for the optimizer", take_states},
    {"gradient dtype", "type of the gradient buffer and of its reduction", take_gradient_dtype},
    {"padding", "padding of shards and vocabulary", take_padding},
    {"copies in", "gradients copied before the reduction, or written in place", take_reductions},
    {"copies out", "gathered weights copied before use, or used in place", take_no_copies_out},
    {"prefetch", "distance of prefetched gathers, and weights kept gathered", take_prefetch, false},
    {"communicators", "one for gathers and reductions, or two", take_communicators},
    {"allocator", "caching, or a planned arena", take_allocator},
    {"host", "host synchronization and the modules it runs", take_host},
    {"the rest", "other differences of the profiles", take_everything, false},
};

StepFigures figures(const Plan& plan, const SimulationOptions& options) {
  const Simulation made = simulate(plan, options);
  StepFigures found;
  found.step = made.report.step_time;
  found.mfu = made.report.mfu;
  found.tokens_per_s = made.report.tokens_per_s;
  found.verdict = made.report.verdict;
  for (const MemoryCourse& course : made.memory) {
    if (Bytes(course.peak_allocated) < found.allocated) continue;
    found.allocated = Bytes(course.peak_allocated);
    found.reserved = Bytes(course.peak_reserved);
  }
  return found;
}

bool equal(const StepFigures& a, const StepFigures& b) {
  return a.step == b.step && a.allocated == b.allocated && a.reserved == b.reserved;
}

}  // namespace

const StepFigures& Versus::equal_kernels() const {
  const bool differ = !effects.empty() && effects.front().name == kKernels;
  return differ ? effects.front().in_turn : first;
}

Versus versus(const Plan& first, const Plan& second, const SimulationOptions& options) {
  Versus made;
  made.first = figures(first, options);
  made.second = figures(second, options);
  Plan plan = first;
  StepFigures reached = made.first;
  for (const Mechanism& mechanism : kMechanisms) {
    const Plan before = plan;
    mechanism.take(plan, second);
    if (plan.engine == before.engine && plan.layout == before.layout) continue;
    MechanismEffect effect;
    effect.name = mechanism.name;
    effect.what = mechanism.what;
    effect.in_turn = figures(plan, options);
    const bool last = mechanism.take == take_everything;
    if (last && equal(effect.in_turn, reached)) continue;
    reached = effect.in_turn;
    if (mechanism.stands_alone) {
      Plan alone = first;
      mechanism.take(alone, second);
      effect.alone = figures(alone, options);
    }
    made.effects.push_back(std::move(effect));
  }
  const bool more = second.engine.gather == GatherBuffer::element_queue &&
                    options.transport == Transport::usual && !second.layout.double_buffer;
  if (!more || second.layout.zero_stage < 3) return made;
  SimulationOptions registered = options;
  registered.transport = Transport::registered;
  made.beyond.push_back({"user buffers",
                         "registered with NCCL: fewer multiprocessors",
                         figures(second, registered),
                         {}});
  Plan twice = second;
  twice.layout.double_buffer = true;
  made.beyond.push_back({"double buffer",
                         "two persistent unit buffers, as user buffers need",
                         figures(twice, registered),
                         {}});
  return made;
}

}  // namespace shardwise::sim
