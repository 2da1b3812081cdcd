#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/comm/abort.h"
#include "executor/comm/world.h"
#include "executor/data/token_sequences.h"
#include "executor/device/device.h"
#include "executor/engine/gradient_checks.h"
#include "executor/engine/program_binder.h"
#include "executor/engine/step_scalars.h"
#include "planner/spec/plan/plan.h"

namespace shardwise::exec {

struct TrainOptions {
  std::int64_t steps = 1;  // in all, those before a checkpoint too; the last is number steps - 1
  bool records = true;     // when operations ran is asked for, as for a report; see Recording
  std::uint64_t seed = 1234;
  int threads = 1;  // that compute, a rank
  OptimizerRules optimizer;
  GradientCheckRules checks;
  std::int64_t ignored_token = kIgnored;  // a target that does not count, besides kIgnored
  /// Tells people a line while ranks prepare; none: nobody is told.
  std::function<void(const std::string& line)> tell;
};

/// One step, as every rank knows it.
struct StepResult {
  std::int64_t step = 0;
  // Natural logarithm: the mean over the tokens of the batch that count, or, where micro-batches
  // have different numbers of them and the loss is not per token, the mean of their means.
  double loss = 0;
  double gradient_norm = 0;
  double learning_rate = 0;
  double seconds = 0;
};

/// Time a rank's operations took in one step.
struct StepSpans {
  std::size_t program = 0;  // 0: of the first step, 1: of the others
  std::int64_t step = 0;
  double seconds = 0;
  std::vector<OpSpan> spans;
};

/// Which steps of a run are recorded: all, where that takes no time. Else the first, whose program
/// is another, and a few at the end, as many as a quarter of the others but five at most. None
/// where nothing is asked for.
struct Recording {
  bool takes_time = false;
  bool asked_for = true;
  std::int64_t first = 0;  // number of this run's first step
  std::int64_t steps = 1;  // as TrainOptions::steps

  Spans of(std::int64_t step) const;
};

/// Where the kernels of layers come from.
struct LayerKernels {
  std::function<std::unique_ptr<Layer>(const LayerSpec& kind)> make;
  std::function<void(std::byte* tables, const Issue& to)> fill_tables;
};

/// One rank of a training run, from its share of the weights to the last step.
class Trainer {
 public:
  /// \param plan    must outlive this; its problems() are none
  /// \param device  that the rank computes on; outlives the arena
  /// \param arena   where the rank's memory is; outlives all ranks, which read one another's
  Trainer(const Plan& plan, World& world, Device& device, Arena& arena, AbortSignal& abort,
          const TrainOptions& options, const LayerKernels& kernels);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Fills this rank's weights, drawn from the seed …
  void initialise();
  /// … or from elsewhere.
  void initialise(const WeightSource& source);
  /// The next step. All ranks get the same result, but for its seconds.
  StepResult step(const TokenSequences& data);

  /// Functions that compare ranks within a step.
  struct Watch {
    // Before the optimizer of each step writes weights, and once it has; on the thread that runs
    // it.
    std::function<void()> before_update;
    std::function<void()> after_update;
    // On all ranks, where any of them found a step wrong: before that ends the run. Throws where
    // there is a better reason to end it.
    std::function<void(std::int64_t step)> before_failure;
  };
  /// Compares from the next step on; Watch() ends it. All ranks call with the same functions.
  /// \returns whether the first two are called: not where operations are only issued, as to a GPU
  bool watch(Watch watch);

  const StageProgram& program(std::size_t number) const { return programs_[number].stages.front(); }
  /// Program of another rank of the job.
  StageProgram program_of(std::int64_t rank, std::size_t number) const;
  const std::vector<MemoryItem>& items(std::size_t number) const {
    return binders_[number]->items();
  }
  /// The first step, without spans where it was not recorded. \pre it has run
  const StepSpans& first_step() const { return first_; }
  /// Finds the median of the recorded steps that ran last, after the first, on rank 0, with
  /// what its operations waited for other ranks. The first where no other was recorded. All ranks
  /// call together.
  const StepSpans& median_step();
  /// The median length of the steps after the first that were not recorded, of those that ran last;
  /// 0 where all were.
  double unrecorded_seconds() const;
  const LoweringContext& context() const { return context_; }
  const RankState& state() const { return *parts_.state; }
  /// Says how the device runs steady steps (ProgramRunner::how_it_runs()).
  std::string how_it_runs() const { return runner_->how_it_runs(programs_.size() - 1); }
  /// Promises of the communicators of its tensors.
  CommunicatorTraits traits() const { return (parts_.tensors ? *parts_.tensors : world_).traits(); }
  /// All ranks, between steps.
  ControlGroup& everyone() { return *everyone_; }
  std::int64_t next_step() const { return step_; }
  /// Number of the sequence that the next step begins with: all there is to remember of the data.
  std::int64_t next_sequence() const { return next_sequence_; }
  /// Resumes with a step that begins with this sequence, instead of initialise(). The caller has
  /// filled the rank's weights and moments.
  void resume(std::int64_t step, std::int64_t sequence);

 private:
  std::vector<StepProgram> programs_of_job() const;
  void keep(StepSpans spans, bool recorded);
  void read_batch(const TokenSequences& data);
  void weigh_batch();
  void fail(std::size_t program_number, const ProgramOp& op, const std::string& what);
  bool is_wrong();
  void fail_if_wrong(std::size_t program_number);
  double mean_loss(std::size_t program_number);

  const Plan& plan_;
  World& world_;
  Device& device_;
  Arena& arena_;
  AbortSignal& abort_;
  TrainOptions options_;
  LoweringContext context_;
  std::int32_t stage_;
  StateUnits units_;
  RankParts parts_;
  Watch watch_;
  StepScalars scalars_;
  std::vector<StepProgram> programs_;
  std::vector<std::unique_ptr<ProgramBinder>> binders_;
  std::unique_ptr<ProgramRunner> runner_;
  std::unique_ptr<DeviceStream> stream_;  // of what the host issues between steps
  std::unique_ptr<ControlGroup> everyone_;
  BatchShare share_;
  std::vector<std::size_t> heads_;  // ranks that have a head, and so losses
  std::int64_t step_ = 0;
  std::int64_t next_sequence_ = 0;
  std::int64_t first_number_ = 0;  // of this run's first step
  StepSpans first_;
  // Those after it that ran last.
  std::vector<StepSpans> recorded_;
  std::vector<double> unrecorded_;  // their seconds
};

}  // namespace shardwise::exec
