#include "executor/engine/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "executor/data/random.h"
#include "executor/engine/meetings.h"
#include "executor/engine/prepare_compute.h"
#include "executor/engine/rank_place.h"
#include "executor/engine/require_end.h"
#include "planner/cost/layer/key_heads.h"
#include "planner/lowering/lower_regions.h"
#include "planner/lowering/operands/lower_to_run.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {
namespace {

constexpr std::size_t kMostKept = 63;
constexpr std::int64_t kMostRecorded = 5;  // of steps whose recording takes time

/// Of the elements, as many as are kept: the last.
template <class T>
void append(std::vector<T>& kept, T last) {
  if (kept.size() == kMostKept) kept.erase(kept.begin());
  kept.push_back(std::move(last));
}

/// The memory of each kind of layer.
std::vector<LayerRoom> rooms_of(const std::vector<std::unique_ptr<Layer>>& layers) {
  std::vector<LayerRoom> rooms;
  for (const auto& layer : layers) {
    const LayerBytes bytes = layer->bytes();
    rooms.push_back({bytes.saved, bytes.forward_workspace, bytes.backward_workspace, bytes.tables,
                     bytes.gathered});
    layer->meet(rooms.back());
  }
  return rooms;
}

}  // namespace

Spans Recording::of(std::int64_t step) const {
  if (!takes_time) return Spans::recorded;
  if (!asked_for) return Spans::none;
  const std::int64_t others = steps - first - 1;
  const std::int64_t last = std::clamp((others + 3) / 4, std::int64_t{0}, kMostRecorded);
  return step == first || step >= steps - last ? Spans::recorded : Spans::none;
}

Trainer::Trainer(const Plan& plan, World& world, Device& device, Arena& arena, AbortSignal& abort,
                 const TrainOptions& options, const LayerKernels& kernels)
    : plan_(plan),
      world_(world),
      device_(device),
      arena_(arena),
      abort_(abort),
      options_(options),
      context_(lowering_context(plan, Granularity::layer, false)),
      stage_(stage_of(plan.layout, world.rank())),
      units_(state_units(context_, stage_)),
      scalars_(step_block_shape(plan.layout, context_.num_microbatches, plan.job.sequence_length,
                                plan.job.calculate_per_token_loss)) {
  const DataParallelPlace place = place_of(plan.layout, world.rank());
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto stage = static_cast<std::size_t>(stage_of(plan.layout, rank));
    // Ranks that share a head have the same losses.
    const bool first = place_of(plan.layout, rank).tp_rank == 0;
    if (context_.stages[stage].has_head && first) heads_.push_back(static_cast<std::size_t>(rank));
  }
  parts_.context = &context_;
  parts_.rank = world.rank();
  for (const LayerSpec& kind : plan.model.kinds) parts_.layers.push_back(kernels.make(kind));
  parts_.fill_tables = kernels.fill_tables;
  const std::vector<LayerRoom> rooms = rooms_of(parts_.layers);
  parts_.compute = device.compute(options.threads);
  parts_.tensors = device.world(world, *parts_.compute, abort);
  World& moves = parts_.tensors ? *parts_.tensors : world;
  for (const StepKind step : {StepKind::first, StepKind::steady}) {
    programs_.push_back(
        lower_to_run(plan, step, place, rooms, moves.traits().adds_into_shard, stage_));
  }
  SHARDWISE_CHECK(program(0).units == program(1).units, "states lie where they lay");
  parts_.state = std::make_unique<RankState>(units_, context_.placement, state_types(context_),
                                             place, program(0).units);
  if (parts_.tensors && world.rank() == 0) require_end(plan, programs_);
  parts_.communicators = std::make_unique<CommunicatorTable>(
      programs_of_job(), plan.layout, moves,
      head_copies(plan.model.num_key_value_heads, plan.engine, plan.layout));
  parts_.arena = &arena;
  parts_.clip_norm = options.optimizer.clip_norm;
  SHARDWISE_CHECK(parts_.compute->squares_bytes() == kSquaresBytes, "squares have their room");
  share_ = {plan.layout.dp(), place.replica * place.shard_ranks + place.shard_rank,
            context_.num_microbatches, plan.layout.micro_batch_size};
  parts_.checks = options.checks;
  std::vector<const StageProgram*> stages;
  for (std::size_t i = 0; i < programs_.size(); ++i) {
    binders_.push_back(std::make_unique<ProgramBinder>(parts_, program(i), i));
    arena.place(program(i), binders_[i]->items());
    stages.push_back(&program(i));
  }
  arena.allocate(device);
  if (parts_.tensors) parts_.tensors->register_memory(arena.memory());
  parts_.compute->set_workspace(binders_.front()->kernel_workspace());
  runner_ = device.runner(stages, world.rank(), abort);
  stream_ = device.stream(StreamPriority::normal);
  everyone_ = world.control_group(all_ranks(world), Control::results);
  prepare_compute(parts_, binders_, *everyone_, device, *stream_, options.tell);
}

Trainer::~Trainer() = default;

StageProgram Trainer::program_of(std::int64_t rank, std::size_t number) const {
  const StepKind step = number == 0 ? StepKind::first : StepKind::steady;
  return lower_to_run(plan_, step, place_of(plan_.layout, rank), rooms_of(parts_.layers),
                      traits().adds_into_shard, stage_of(plan_.layout, rank))
      .stages.front();
}

/// Of one stage its own are all there are.
std::vector<StepProgram> Trainer::programs_of_job() const {
  if (plan_.layout.pp == 1) return programs_;
  return {lower_regions(plan_, StepKind::first), lower_regions(plan_, StepKind::steady)};
}

void Trainer::initialise() {
  // Outputs of blocks join the stream twice a block. Source: Radford et al., "Language models are
  // unsupervised multitask learners" (GPT-2), section 2.3: 1 / sqrt(N) for N residual layers.
  const double blocks =
      static_cast<double>(std::max<std::int64_t>(1, plan_.model.num_hidden_layers));
  initialise(drawn_weights(options_.seed, 1 / std::sqrt(2 * blocks)));
}

void Trainer::resume(std::int64_t step, std::int64_t sequence) {
  step_ = step;
  first_number_ = step;
  next_sequence_ = sequence;
}

void Trainer::initialise(const WeightSource& source) {
  parts_.state->fill(arena_, 0, source, device_);
}

void Trainer::read_batch(const TokenSequences& data) {
  const auto length = static_cast<std::size_t>(plan_.job.sequence_length);
  for (std::size_t mb = 0; mb < scalars_.losses().size(); ++mb) {
    const std::int64_t first = share_.first(next_sequence_, static_cast<std::int64_t>(mb));
    for (std::int64_t s = 0; s < share_.micro_batch_size; ++s) {
      const std::size_t at = static_cast<std::size_t>(s) * length;
      data.sequence(first + s, scalars_.inputs(mb).subspan(at, length),
                    scalars_.targets(mb).subspan(at, length));
    }
    scalars_.losses()[mb] = {};
  }
  weigh_batch();
  scalars_.adam_step() = adam_step(options_.optimizer, step_);
  scalars_.adam_step().rounding_seed =
      random_bits(options_.seed, static_cast<std::uint64_t>(step_));
}

/// What the gradient of each micro-batch is multiplied with. Per token: 1, and all of it is divided
/// by the tokens of the step in the end. Else each micro-batch counts as much as any other,
/// whatever its number of tokens. Source: NVIDIA/Megatron-LM, megatron/core/pipeline_parallel/
/// schedules.py, forward_step_calc_loss.
void Trainer::weigh_batch() {
  const auto passes = static_cast<double>(share_.ranks * share_.microbatches);
  scalars_.own_tokens() = 0;
  for (std::size_t mb = 0; mb < scalars_.losses().size(); ++mb) {
    const std::span<std::int64_t> targets = scalars_.targets(mb);
    std::ranges::replace(targets, options_.ignored_token, kIgnored);
    const auto ignored = std::ranges::count(targets, kIgnored);
    const std::int64_t counted = std::ssize(targets) - ignored;
    scalars_.own_tokens() += counted;
    const auto each = static_cast<float>(1 / (passes * static_cast<double>(counted)));
    const bool per_token = plan_.job.calculate_per_token_loss;
    scalars_.loss_scale(mb) = per_token ? 1.0F : counted > 0 ? each : 0.0F;
  }
}

/// Ends the run of all ranks, as an operation does that fails.
void Trainer::fail(std::size_t program_number, const ProgramOp& op, const std::string& what) {
  abort_.raise(
      fmt::format("rank {}, {}: {}", world_.rank(), name_of(program(program_number), op), what));
  abort_.check();
}

bool Trainer::watch(Watch watch) {
  watch_ = std::move(watch);
  // Recording takes time where operations are issued, to run later.
  const bool runs_here = !runner_->recording_takes_time();
  parts_.before_update = runs_here ? watch_.before_update : nullptr;
  parts_.after_update = runs_here ? watch_.after_update : nullptr;
  return runs_here;
}

bool Trainer::is_wrong() {
  return std::ranges::any_of(scalars_.losses(),
                             [](const LossSum& each) { return !std::isfinite(each.loss); }) ||
         scalars_.gradient_check().bucket >= 0 || !std::isfinite(scalars_.gradient_norm());
}

/// What this rank alone may know of: the message is of the rank that has the cause.
void Trainer::fail_if_wrong(std::size_t program_number) {
  const std::vector<ProgramOp>& operations = program(program_number).operations;
  const std::span<const LossSum> losses = scalars_.losses();
  const auto wrong = std::ranges::find_if_not(
      losses, [](const LossSum& each) { return std::isfinite(each.loss); });
  if (wrong != losses.end()) {
    const auto head = std::ranges::find_if(operations, [&](const ProgramOp& op) {
      return op.role == OpRole::backward && op.microbatch == wrong - losses.begin();
    });
    fail(program_number, *head,
         fmt::format("the loss of step {} is not a number; a lower learning rate may help", step_));
  }
  const GradientCheckState& found = scalars_.gradient_check();
  if (found.bucket < 0) return;
  fail(program_number, operations[static_cast<std::size_t>(found.operation)],
       what_is_wrong(found, step_));
}

/// Sums of all micro-batches, in the order of the step: those of the ranks that have a head.
double Trainer::mean_loss(std::size_t program_number) {
  const std::size_t count = scalars_.losses().size();
  std::vector<LossSum> own(scalars_.losses().begin(), scalars_.losses().end());
  own.emplace_back().tokens = is_wrong() ? 1 : 0;
  const std::size_t each_rank = own.size();
  std::vector<LossSum> all(each_rank * static_cast<std::size_t>(world_.size()));
  const auto gather = [&] {
    everyone_->all_gather_bytes(std::as_bytes(std::span<const LossSum>(own)),
                                std::as_writable_bytes(std::span<LossSum>(all)));
  };
  gather();
  bool wrong = false;
  for (std::size_t at = count; at < all.size(); at += each_rank) wrong |= all[at].tokens != 0;
  if (wrong) {
    if (watch_.before_failure) watch_.before_failure(step_ + 1);
    fail_if_wrong(program_number);
    gather();  // until the rank that has the cause has ended the run
  }
  double loss = 0;
  double means = 0;
  std::int64_t tokens = 0;
  std::vector<std::int64_t> counted;
  for (std::size_t mb = 0; mb < count; ++mb) {
    for (const std::size_t rank : heads_) {
      const LossSum& each = all[rank * each_rank + mb];
      loss += each.loss;
      tokens += each.tokens;
      if (each.tokens > 0) means += each.loss / static_cast<double>(each.tokens);
      counted.push_back(each.tokens);
    }
  }
  const bool alike =
      std::ranges::all_of(counted, [&](std::int64_t each) { return each == counted.front(); });
  if (!alike && !plan_.job.calculate_per_token_loss) {
    return means / static_cast<double>(counted.size());
  }
  return tokens > 0 ? loss / static_cast<double>(tokens) : 0;
}

StepResult Trainer::step(const TokenSequences& data) {
  read_batch(data);
  const std::size_t number = step_ == first_number_ ? 0 : 1;
  const Recording recording = {runner_->recording_takes_time(), options_.records, first_number_,
                               options_.steps};
  const Spans recorded = recording.of(step_);
  const std::int64_t begin = now_ns();
  std::byte* const block = arena_.at(number, program(number).step_block);
  scalars_.upload(device_, block, *stream_);
  device_.synchronize(*stream_);
  runner_->run(number, binders_[number]->kernels(), recorded);
  scalars_.download(device_, block, *stream_);
  StepResult result;
  result.step = step_;
  result.loss = mean_loss(number);
  result.gradient_norm = scalars_.gradient_norm();
  if (!std::isfinite(result.gradient_norm)) {
    fail(number,
         *std::ranges::find(program(number).operations, OpRole::optimizer, &ProgramOp::role),
         fmt::format("the gradient of step {} is not a number; a lower learning rate may help",
                     step_));
  }
  result.learning_rate = learning_rate(options_.optimizer, step_);
  result.seconds = static_cast<double>(now_ns() - begin) * 1e-9;
  const std::span<const OpSpan> ran = runner_->spans();
  keep({number, step_, result.seconds, {ran.begin(), ran.end()}}, recorded == Spans::recorded);
  ++step_;
  next_sequence_ += share_.batch();
  return result;
}

void Trainer::keep(StepSpans spans, bool recorded) {
  if (spans.program == 0) {
    first_ = std::move(spans);
  } else if (recorded) {
    append(recorded_, std::move(spans));
  } else {
    append(unrecorded_, spans.seconds);
  }
}

double Trainer::unrecorded_seconds() const {
  if (unrecorded_.empty()) return 0;
  std::vector<double> order = unrecorded_;
  const auto middle = order.begin() + std::ssize(order) / 2;
  std::ranges::nth_element(order, middle);
  return *middle;
}

const StepSpans& Trainer::median_step() {
  if (recorded_.empty()) return first_;
  std::vector<std::size_t> order(recorded_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return recorded_[i].seconds; });
  std::size_t chosen = order[order.size() / 2];
  everyone_->broadcast(std::as_writable_bytes(std::span<std::size_t>(&chosen, 1)), 0);
  StepSpans& step = recorded_[chosen];
  find_meetings(program(step.program), plan_.layout, *everyone_, step.spans);
  return step;
}

}  // namespace shardwise::exec
