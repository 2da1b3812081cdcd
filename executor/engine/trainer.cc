#include "executor/engine/trainer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "executor/engine/meetings.h"
#include "planner/lowering/lower.h"
#include "planner/spec/check.h"

namespace shardwise::exec {
namespace {

constexpr std::size_t kMostKept = 63;

DataParallelPlace place_of(const Layout& layout, const World& world) {
  const auto find = [&](GroupKind kind, std::int64_t& ranks, int& rank) {
    const std::vector<std::int64_t> group = group_ranks(layout, kind, world.rank());
    ranks = std::ssize(group);
    rank = static_cast<int>(std::ranges::find(group, std::int64_t{world.rank()}) - group.begin());
  };
  DataParallelPlace place;
  find(GroupKind::dp_shard_cp, place.shard_ranks, place.shard_rank);
  find(GroupKind::dp_replicate, place.replicas, place.replica);
  place.world = world.size();
  place.world_rank = world.rank();
  return place;
}

std::int64_t resident_gradient_bytes(const StageProgram& program) {
  std::int64_t bytes = 0;
  for (const ProgramBuffer& buffer : program.buffers) {
    if (buffer.resident && buffer.category == MemoryCategory::gradients) bytes += buffer.bytes;
  }
  return bytes;
}

}  // namespace

Trainer::Trainer(const Plan& plan, World& world, Arena& arena, AbortSignal& abort,
                 const TrainOptions& options, const LayerKernels& kernels)
    : plan_(plan),
      world_(world),
      arena_(arena),
      options_(options),
      context_(lowering_context(plan, Granularity::layer, false)),
      units_(state_units(context_, 0)) {
  programs_.push_back(lower(plan, Granularity::layer, StepKind::first));
  programs_.push_back(lower(plan, Granularity::layer, StepKind::steady));
  const DataParallelPlace place = place_of(plan.layout, world);
  parts_.context = &context_;
  for (const LayerSpec& kind : plan.model.kinds) parts_.layers.push_back(kernels.make(kind));
  parts_.fill_tables = kernels.fill_tables;
  const bool late = resident_gradient_bytes(program(1)) == 0;
  parts_.state =
      std::make_unique<RankState>(units_, context_.placement, state_types(context_), place, late);
  parts_.world = &world;
  parts_.workers = std::make_unique<Workers>(options.threads);
  parts_.arena = &arena;
  parts_.optimizer = options.optimizer;
  const auto count = static_cast<std::size_t>(context_.num_microbatches);
  const auto tokens =
      static_cast<std::size_t>(plan.layout.micro_batch_size * plan.job.sequence_length);
  parts_.step.inputs.assign(count, std::vector<std::int64_t>(tokens));
  parts_.step.targets = parts_.step.inputs;
  parts_.step.losses.resize(count);
  share_ = {plan.layout.dp(), place.replica * place.shard_ranks + place.shard_rank,
            context_.num_microbatches, plan.layout.micro_batch_size};
  parts_.step.loss_scales.resize(count);
  parts_.checks = GradientChecks(options.checks);
  std::vector<const StageProgram*> stages;
  for (std::size_t i = 0; i < programs_.size(); ++i) {
    binders_.push_back(std::make_unique<ProgramBinder>(parts_, program(i), i));
    arena.place(program(i), binders_[i]->items());
    stages.push_back(&program(i));
  }
  arena.allocate();
  runner_ = std::make_unique<StreamRunner>(stages, world.rank(), abort);
  std::vector<std::int64_t> all(static_cast<std::size_t>(world.size()));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  everyone_ = world.group(all, Control::results);
}

Trainer::~Trainer() = default;

void Trainer::initialise() {
  // Outputs of blocks join the stream twice a block. Source: Radford et al., "Language models are
  // unsupervised multitask learners" (GPT-2), section 2.3: 1 / sqrt(N) for N residual layers.
  const double blocks =
      static_cast<double>(std::max<std::int64_t>(1, plan_.model.num_hidden_layers));
  initialise(drawn_weights(options_.seed, 1 / std::sqrt(2 * blocks)));
}

void Trainer::resume(std::int64_t step, std::int64_t sequence) {
  parts_.step.step = step;
  next_sequence_ = sequence;
}

void Trainer::initialise(const WeightSource& source) { parts_.state->fill(arena_, 0, source); }

void Trainer::read_batch(const TokenSequences& data) {
  const auto length = static_cast<std::size_t>(plan_.job.sequence_length);
  StepState& step = parts_.step;
  for (std::size_t mb = 0; mb < step.inputs.size(); ++mb) {
    const std::int64_t first = share_.first(next_sequence_, static_cast<std::int64_t>(mb));
    for (std::int64_t s = 0; s < share_.micro_batch_size; ++s) {
      const std::size_t at = static_cast<std::size_t>(s) * length;
      data.sequence(first + s, std::span(step.inputs[mb]).subspan(at, length),
                    std::span(step.targets[mb]).subspan(at, length));
    }
    step.losses[mb] = {};
  }
  weigh_batch();
}

/// What the gradient of each micro-batch is multiplied with. Per token: 1, and all of it is divided
/// by the tokens of the step in the end. Else each micro-batch counts as much as any other,
/// whatever its number of tokens. Source: NVIDIA/Megatron-LM, megatron/core/pipeline_parallel/
/// schedules.py, forward_step_calc_loss.
void Trainer::weigh_batch() {
  StepState& step = parts_.step;
  const auto passes = static_cast<double>(share_.ranks * share_.microbatches);
  step.counted_tokens = 0;
  for (std::size_t mb = 0; mb < step.targets.size(); ++mb) {
    std::vector<std::int64_t>& targets = step.targets[mb];
    std::ranges::replace(targets, options_.ignored_token, kIgnored);
    const auto ignored = std::ranges::count(targets, kIgnored);
    const std::int64_t counted = std::ssize(targets) - ignored;
    step.counted_tokens += counted;
    const auto each = static_cast<float>(1 / (passes * static_cast<double>(counted)));
    step.loss_scales[mb] = plan_.job.calculate_per_token_loss ? 1.0F : counted > 0 ? each : 0.0F;
  }
}

/// Sums of all micro-batches, in the order of the step.
double Trainer::mean_loss() {
  const std::size_t count = parts_.step.losses.size();
  std::vector<LossSum> all(count * static_cast<std::size_t>(world_.size()));
  everyone_->exchange(std::as_bytes(std::span<const LossSum>(parts_.step.losses)),
                      std::as_writable_bytes(std::span<LossSum>(all)));
  double loss = 0;
  double means = 0;
  std::int64_t tokens = 0;
  for (std::size_t mb = 0; mb < count; ++mb) {
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(world_.size()); ++rank) {
      const LossSum& each = all[rank * count + mb];
      loss += each.loss;
      tokens += each.tokens;
      if (each.tokens > 0) means += each.loss / static_cast<double>(each.tokens);
    }
  }
  const bool alike = std::ranges::all_of(
      all, [&](const LossSum& each) { return each.tokens == all.front().tokens; });
  if (!alike && !plan_.job.calculate_per_token_loss) return means / static_cast<double>(all.size());
  return tokens > 0 ? loss / static_cast<double>(tokens) : 0;
}

StepResult Trainer::step(const TokenSequences& data) {
  StepState& step = parts_.step;
  read_batch(data);
  const bool first = first_.spans.empty();
  const std::size_t number = first ? 0 : 1;
  const std::int64_t begin = now_ns();
  runner_->run(number, binders_[number]->kernels());
  StepResult result;
  result.step = step.step;
  result.loss = mean_loss();
  result.gradient_norm = step.gradient_norm;
  result.learning_rate = learning_rate(options_.optimizer, step.step);
  result.seconds = static_cast<double>(now_ns() - begin) * 1e-9;
  const std::span<const OpSpan> ran = runner_->spans();
  StepSpans spans = {number, step.step, result.seconds, {ran.begin(), ran.end()}};
  if (first) {
    first_ = std::move(spans);
  } else {
    if (history_.size() == kMostKept) history_.erase(history_.begin());
    history_.push_back(std::move(spans));
  }
  ++step.step;
  next_sequence_ += share_.batch();
  return result;
}

const StepSpans& Trainer::median_step() {
  if (history_.empty()) return first_;
  std::vector<std::size_t> order(history_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return history_[i].seconds; });
  std::size_t chosen = order[order.size() / 2];
  everyone_->broadcast(std::as_writable_bytes(std::span<std::size_t>(&chosen, 1)), 0);
  StepSpans& step = history_[chosen];
  find_meetings(program(step.program), plan_.layout, *everyone_, step.spans);
  return step;
}

}  // namespace shardwise::exec
