#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "planner/cost/step/leaf_context.h"
#include "planner/cost/step/pipeline_times.h"
#include "planner/schedule/pipeline.h"
#include "planner/schedule/steady_state.h"

namespace shardwise {

// Rules by which the host feeds the device: it issues kernels in program order, one in so many
// seconds, and runs ahead; an operation of several kernels starts with its first and ends no
// earlier than its last is issued. docs/simulator.md, "Launch".

/// Whether the host of a stage issues nothing while a message of its pipeline is on its way.
bool waits_for_messages(const TimeRules& rules, const Layout& layout);

/// Rules of a stage's host.
struct HostRules {
  double issue = 0;    // seconds a kernel; 0: the host is never late
  double hop = 0;      // one message between stages
  bool waits = false;  // for each message, before it issues what follows
};
HostRules host_rules(const LeafContext& context, Seconds hop);

/// Operations of the compute stream that follow one another: in seconds how long they run, how long
/// the host takes to issue them, and how long they take at least once it begins to.
struct IssuedKernels {
  double runs = 0;
  double issue = 0;
  double least = 0;

  /// One operation.
  IssuedKernels() = default;
  IssuedKernels(Seconds seconds, double kernels, double each)
      : runs(seconds.value()),
        issue(kernels * each),
        least(std::max(runs + std::min(1.0, kernels) * each, issue)) {}

  /// These and then others.
  IssuedKernels then(const IssuedKernels& next) const {
    IssuedKernels both;
    both.runs = runs + next.runs;
    both.issue = issue + next.issue;
    both.least = std::max(least + next.runs, issue + next.least);
    return both;
  }
  /// These `count` times. \pre count > 0
  IssuedKernels times(double count) const {
    IssuedKernels all;
    all.runs = count * runs;
    all.issue = count * issue;
    all.least = least + (count - 1) * std::max(runs, issue);
    return all;
  }
};

/// The passes of a layer, or of a chunk of layers.
struct IssuedPass {
  IssuedKernels forward;
  IssuedKernels backward;  // recompute first
  IssuedKernels backward_input;
  IssuedKernels backward_weight;

  const IssuedKernels& of(LayerPart part) const {
    if (part == LayerPart::forward) return forward;
    if (part == LayerPart::backward_weight) return backward_weight;
    return part == LayerPart::backward_input ? backward_input : backward;
  }
};
IssuedPass issued_layer(const LayerPace& layer, const HostRules& rules);
/// Passes by stage x chunks + chunk.
std::vector<IssuedPass> issued_chunks(const PipelineTimes& pipeline, const HostRules& rules);

/// Seconds in which the host posts the messages of a pass.
double pass_messages(const PipelineTimes& pipeline, const HostRules& rules);

/// Whether the host takes longer to issue a pass, with its messages, than that runs, of any in a
/// pipeline. A layer that runs shorter than that holds up no more than the first pass.
bool issues_late(const PipelineTimes& pipeline, const HostRules& rules);

/// Until when the host of a stage has issued what it has come to.
class HostClock {
 public:
  explicit HostClock(double issue = 0) : each_(issue) {}
  double issued() const { return issued_; }
  /// More operations of one kernel each. \returns when they are with the device
  double add(double operations = 1) { return issued_ += operations * each_; }
  /// When the next kernel is with the device.
  double next() const { return issued_ + each_; }
  /// Kernels that are ready at `ready` run, by `longer` more than alone. \returns when they end
  double run(const IssuedKernels& kernels, double ready, double longer = 0) {
    const double first = std::min(each_, kernels.issue);
    const double least = std::max(kernels.least, first + kernels.runs + longer);
    const double end = std::max(ready + kernels.runs + longer, issued_ + least);
    issued_ += kernels.issue;
    return end;
  }
  /// Nothing is issued before `moment`.
  void wait(double moment) { issued_ = std::max(issued_, moment); }
  /// \param waits  for messages
  void visit(StateVisit& state, bool waits) { waits ? state.clock(issued_) : state.alone(issued_); }

 private:
  double each_ = 0;
  double issued_ = 0;
};

/// The hosts of all stages in a sweep, and the messages that they post.
class StageHosts {
 public:
  /// \pre `pipeline` outlives this
  StageHosts(const PipelineTimes& pipeline, const HostRules& rules);

  HostClock& of(std::int32_t stage) { return clocks_[static_cast<std::size_t>(stage)]; }
  const HostClock& of(std::int32_t stage) const { return clocks_[static_cast<std::size_t>(stage)]; }
  bool on() const { return rules_.issue > 0; }

  /// A pass is next, which receives its input: sets turn.ready.
  void receive(const PipelineSlots::Slot& pass, PassTurn& turn);
  /// It is issued, and what it hands on is posted.
  void post(const PipelineSlots::Slot& pass);
  /// \returns when a message was posted by its sender, and by its receiver
  double posted(const PipelineSlots::Slot& message) const;
  void arrived(const PipelineSlots::Slot& message, double end);

  /// The slots of a loop come once more.
  void repeat(const PipelineSlots::Loop& loop);
  void visit(StateVisit& state, const PipelineSlots::Loop& loop);

 private:
  void post_receives(const PipelineTimes& pipeline);
  std::size_t number(const PipelineSlots::Slot& slot) const {
    return static_cast<std::size_t>(&slot - slots_->slots.data());
  }

  static constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::min();

  const PipelineSlots* slots_;
  HostRules rules_;
  std::vector<HostClock> clocks_;
  std::vector<double> arrived_;     // by stage: when its last pass's message arrived; -1 none
  std::vector<std::int32_t> last_;  // by stage: slot of that pass, kNone none
  std::vector<bool> hands_on_;      // by slot: a pass with a message after it
  /// Times by slot: of a pass when its host has posted what it hands on; of a message when its
  /// receiver's has, at the earliest.
  std::vector<double> posted_;
  std::vector<double> paces_;  // by loop, then stage: seconds that its host issues for it once
};

}  // namespace shardwise
