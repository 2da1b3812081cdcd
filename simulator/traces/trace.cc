#include "simulator/traces/trace.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "simulator/clock/stage_summary.h"
#include "simulator/clock/step_report.h"

namespace shardwise::sim {
namespace {

/// Moves `share` of a tier's links at one moment.
struct LinkChange {
  double at = 0;
  double share = 0;
};

/// The two ends of a message between stages.
struct Message {
  struct End {
    bool found = false;
    std::size_t pid = 0;
    RecordedSpan span;
  };
  End sent;
  End received;
};

class SimulatedTrace {
 public:
  SimulatedTrace(const Plan& plan, const Simulation& simulation, const TextSink& sink)
      : plan_(plan),
        simulation_(simulation),
        writer_(simulation.report.origin, simulation.report.plan_digest,
                simulation.program.granularity, sink) {}

  void write(std::size_t most_ranks) {
    const std::size_t ranks = std::min(most_ranks, simulation_.work.actors.size());
    // Messages are drawn between the stages' representatives.
    const bool draws_messages = ranks == simulation_.program.stages.size();
    for (std::size_t pid = 0; pid < ranks; ++pid) {
      const Actor& actor = simulation_.work.actors[pid];
      const RecordedStep step = recorded(run_times(simulation_, actor));
      writer_.rank(pid, actor.rank, step);
      memory(actor, pid);
      links(actor, pid, step);
      if (draws_messages) note_messages(step, pid);
    }
    for (const Message& message : messages_) {
      if (!message.sent.found || !message.received.found) continue;
      writer_.message(message.sent.pid, message.sent.span, message.received.pid,
                      message.received.span);
    }
    writer_.finish();
  }

 private:
  void memory(const Actor& actor, std::size_t pid) {
    for (const MemoryMoment& moment : simulation_.memory[actor.program].moments) {
      writer_.memory(pid, moment.at, moment.allocated, moment.reserved);
    }
  }

  void note_messages(const RecordedStep& step, std::size_t pid) {
    for (std::size_t i = 0; i < step.spans.size(); ++i) {
      const ProgramOp& op = step.program->operations[i];
      if (op.message < 0) continue;
      const auto number = static_cast<std::size_t>(op.message);
      if (number >= messages_.size()) messages_.resize(number + 1);
      Message& message = messages_[number];
      (op.stream == Stream::receive ? message.received : message.sent) = {true, pid, step.spans[i]};
    }
  }

  /// Share of each tier's links that the running transfers would fill, sending.
  void links(const Actor& actor, std::size_t pid, const RecordedStep& step) {
    const WorkProgram& work = simulation_.work.programs[actor.program];
    for (std::size_t tier = 0; tier < plan_.cluster.tiers.size() && tier < kMaxTiers; ++tier) {
      std::vector<LinkChange> changes;
      for (std::uint32_t i = 0; i < step.spans.size(); ++i) {
        const ProgramOp& op = work.program->operations[i];
        const double share = work.prices[static_cast<std::size_t>(op.cost)].link_share[tier];
        if (share == 0 || op.stream == Stream::receive) continue;
        changes.push_back({step.spans[i].met, share});
        changes.push_back({step.spans[i].end, -share});
      }
      std::stable_sort(changes.begin(), changes.end(),
                       [](const LinkChange& a, const LinkChange& b) { return a.at < b.at; });
      double sum = 0;
      for (std::size_t c = 0; c < changes.size(); ++c) {
        sum += changes[c].share;
        if (c + 1 < changes.size() && changes[c + 1].at == changes[c].at) continue;
        writer_.link(pid, plan_.cluster.tiers[tier].name, changes[c].at,
                     100 * std::clamp(sum, 0.0, 1.0));
      }
    }
  }

  const Plan& plan_;
  const Simulation& simulation_;
  TraceWriter writer_;
  std::vector<Message> messages_;  // by number
};

}  // namespace

void write_trace(const Plan& plan, const Simulation& simulation, std::size_t most_ranks,
                 const TextSink& sink) {
  SimulatedTrace(plan, simulation, sink).write(most_ranks);
}

std::string trace_text(const Plan& plan, const Simulation& simulation, std::size_t most_ranks) {
  std::string text;
  write_trace(plan, simulation, most_ranks, [&text](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace shardwise::sim
