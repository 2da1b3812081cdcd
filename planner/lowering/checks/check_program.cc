#include "planner/lowering/checks/check_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>

#include "planner/lowering/checks/check_operands.h"
#include "planner/lowering/checks/check_touches.h"
#include "planner/lowering/stage/stage_builder.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

bool is_send(const ProgramOp& op) {
  return op.role == OpRole::send_forward || op.role == OpRole::send_backward;
}

const OpCost& cost_of(const StageProgram& stage, const ProgramOp& op) {
  return stage.costs[static_cast<std::size_t>(op.cost)];
}

/// An operation of the whole program.
struct Place {
  std::uint32_t stage = 0;
  OpId op = kNone;
};
struct Message {
  Place sent;
  Place received;
};

class Checker {
 public:
  /// \param alone  one of several stages: the other ends of its messages are not known
  explicit Checker(std::span<const StageProgram> stages, bool alone = false)
      : stages_(stages), alone_(alone) {}

  std::vector<std::string> run() {
    for (const StageProgram& stage : stages_) {
      operations(stage);
      buffers(stage);
    }
    if (!problems_.empty()) return problems_;  // the rest follows indices
    for (const StageProgram& stage : stages_) {
      const bool listed = !stage.operands.empty();
      for (const std::string& found : listed ? check_operands(stage) : check_touches(stage)) {
        problem("{}", found);
      }
    }
    messages();
    collectives();
    if (problems_.empty()) cycles();
    return problems_;
  }

 private:
  template <class... Values>
  void problem(fmt::format_string<Values...> text, Values&&... values) {
    constexpr std::size_t kMost = 20;
    if (problems_.size() < kMost) {
      problems_.push_back(fmt::format(text, std::forward<Values>(values)...));
    }
  }

  void operations(const StageProgram& stage) {
    for (OpId i = 0; i < stage.operations.size(); ++i) {
      const ProgramOp& op = stage.operations[i];
      if (op.cost < 0 || static_cast<std::size_t>(op.cost) >= stage.costs.size()) {
        problem("stage {}: operation {} ({}) has no cost", stage.stage, i, name_of(op.role));
        continue;
      }
      for (const OpId wait : stage.of(op.waits)) {
        if (wait >= i) {
          problem("stage {}: {} waits for operation {}, which is issued after it", stage.stage,
                  name_of(stage, op), wait);
        }
      }
    }
    for (std::size_t i = 0; i < stage.costs.size(); ++i) {
      const OpCost& cost = stage.costs[i];
      const int kinds = (cost.layers.empty() ? 0 : 1) + (cost.kernels.empty() ? 0 : 1) +
                        (cost.collectives.empty() ? 0 : 1) +
                        (cost.host_bytes > 0 || cost.host_elements > 0 ? 1 : 0);
      if (kinds != 1 || cost.layers.size() > 1 || cost.collectives.size() > 1) {
        problem("stage {}: cost {} states {} kinds of work", stage.stage, i, kinds);
      }
    }
  }

  void buffers(const StageProgram& stage) {
    std::vector<OpId> made(stage.buffers.size(), kNone);
    std::vector<OpId> freed(stage.buffers.size(), kNone);
    for (OpId i = 0; i < stage.operations.size(); ++i) {
      const ProgramOp& op = stage.operations[i];
      const auto once = [&](std::vector<OpId>& by, IndexRange range, const char* what) {
        for (const BufferId b : stage.of(range)) {
          if (b >= stage.buffers.size() || stage.buffers[b].resident || by[b] != kNone) {
            problem("stage {}: {} {} buffer {}, which it cannot", stage.stage, name_of(stage, op),
                    what, b);
          } else {
            by[b] = i;
          }
        }
      };
      for (const BufferId b : stage.of(op.uses)) {
        if (b >= stage.buffers.size()) {
          problem("stage {}: {} uses buffer {}, which there is not", stage.stage,
                  name_of(stage, op), b);
        }
      }
      once(made, op.allocates, "allocates");
      once(freed, op.frees, "frees");
    }
    for (BufferId b = 0; b < stage.buffers.size(); ++b) {
      const ProgramBuffer& buffer = stage.buffers[b];
      const bool ends = buffer.resident ? made[b] == kNone && freed[b] == kNone
                        : buffer.outlives
                            ? made[b] != kNone && freed[b] == kNone
                            : made[b] != kNone && freed[b] != kNone && made[b] <= freed[b];
      if (!ends || buffer.bytes <= 0) {
        problem(
            "stage {}: buffer {} ({}, {} bytes, layer {}, micro-batch {}) is allocated by {} "
            "and freed by {}",
            stage.stage, b, name_of(buffer.category), buffer.bytes, buffer.layer, buffer.microbatch,
            name_or_none(stage, made[b]), name_or_none(stage, freed[b]));
      }
    }
  }

  static std::string name_or_none(const StageProgram& stage, OpId op) {
    return op == kNone ? "nobody" : name_of(stage, stage.operations[op]);
  }

  void messages() {
    for (std::uint32_t s = 0; s < stages_.size(); ++s) {
      const StageProgram& stage = stages_[s];
      for (OpId i = 0; i < stage.operations.size(); ++i) {
        const ProgramOp& op = stage.operations[i];
        if (op.message < 0 || alone_) continue;
        Message& message = messages_[op.message];
        Place& end = is_send(op) ? message.sent : message.received;
        if (end.op != kNone) problem("message {} has two ends of one kind", op.message);
        end = {s, i};
      }
    }
    // By sender and receiver: their messages in the order of either side.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::pair<OpId, OpId>>> pairs;
    for (const auto& [number, message] : messages_) {
      if (message.sent.op == kNone || message.received.op == kNone) {
        problem("message {} is {}", number,
                message.sent.op == kNone ? "never sent" : "never received");
        continue;
      }
      const StageProgram& from = stages_[message.sent.stage];
      const StageProgram& to = stages_[message.received.stage];
      const bool equal = cost_of(from, from.operations[message.sent.op]).collectives ==
                         cost_of(to, to.operations[message.received.op]).collectives;
      if (message.sent.stage == message.received.stage || !equal) {
        problem("message {} is not what its receiver expects", number);
      }
      const ProgramOp& sent = from.operations[message.sent.op];
      const ProgramOp& received = to.operations[message.received.op];
      if (sent.peer != to.stage || received.peer != from.stage) {
        problem("message {} goes from stage {} to {}, its ends name {} and {}", number, from.stage,
                to.stage, sent.peer, received.peer);
      }
      pairs[{message.sent.stage, message.received.stage}].emplace_back(message.sent.op,
                                                                       message.received.op);
    }
    for (auto& [stages, ends] : pairs) {
      std::ranges::sort(ends);
      if (!std::ranges::is_sorted(ends, {}, &std::pair<OpId, OpId>::second)) {
        problem("stage {} receives from stage {} in another order than that sends", stages.second,
                stages.first);
      }
    }
  }

  /// The collectives that ranks of several stages take part in, as each stage issues them.
  void collectives() {
    std::vector<CollectiveWork> world;
    std::vector<std::vector<CollectiveWork>> ends(stages_.size());
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const StageProgram& stage = stages_[s];
      std::vector<CollectiveWork> own_world;
      std::vector<CollectiveWork> own_ends;
      for (const ProgramOp& op : stage.operations) {
        const OpCost& cost = cost_of(stage, op);
        if (cost.collectives.empty()) continue;
        const CollectiveWork& work = cost.collectives.front();
        if (work.group == GroupKind::world) own_world.push_back(work);
        if (work.ends) own_ends.push_back(work);
      }
      if (s == 0) world = own_world;
      if (own_world != world) {
        problem("stage {} issues other collectives of all ranks than stage 0", s);
      }
      ends[s] = own_ends;
      const std::size_t mirror = stages_.size() - 1 - s;
      if (s >= mirror && ends[s] != ends[mirror]) {
        problem("stage {} sums other gradients with stage {} than that with it", s, mirror);
      }
    }
  }

  /// Runs what can run until nothing is left: what remains waits for itself.
  void cycles() {
    std::vector<std::uint32_t> base(stages_.size(), 0);
    std::uint32_t total = 0;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      base[s] = total;
      total += static_cast<std::uint32_t>(stages_[s].operations.size());
    }
    // Edges as lists from each operation to those that wait for it.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const StageProgram& stage = stages_[s];
      std::vector<OpId> last(kStreams, kNone);
      for (OpId i = 0; i < stage.operations.size(); ++i) {
        const ProgramOp& op = stage.operations[i];
        OpId& before = last[static_cast<std::size_t>(op.stream)];
        if (before != kNone) edges.emplace_back(base[s] + before, base[s] + i);
        before = i;
        for (const OpId wait : stage.of(op.waits)) edges.emplace_back(base[s] + wait, base[s] + i);
      }
    }
    for (const auto& [number, m] : messages_) {
      edges.emplace_back(base[m.sent.stage] + m.sent.op, base[m.received.stage] + m.received.op);
    }
    std::ranges::sort(edges);
    std::vector<std::uint32_t> waiting(total, 0);
    for (const auto& [from, to] : edges) ++waiting[to];
    std::vector<std::uint32_t> ready;
    for (std::uint32_t i = 0; i < total; ++i) {
      if (waiting[i] == 0) ready.push_back(i);
    }
    std::uint32_t run = 0;
    while (!ready.empty()) {
      const std::uint32_t op = ready.back();
      ready.pop_back();
      ++run;
      const auto first = std::ranges::lower_bound(edges, std::pair{op, 0U});
      for (auto edge = first; edge != edges.end() && edge->first == op; ++edge) {
        if (--waiting[edge->second] == 0) ready.push_back(edge->second);
      }
    }
    if (run < total) problem("{} operations wait for one another in a circle", total - run);
  }

  std::span<const StageProgram> stages_;
  bool alone_;
  std::unordered_map<std::int32_t, Message> messages_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> check_program(const StepProgram& program) {
  return Checker(program.stages).run();
}

void require_sound(const StageProgram& stage) {
  const std::vector<std::string> problems = Checker(std::span(&stage, 1), true).run();
  SHARDWISE_CHECK(problems.empty(), fmt::format("{}", fmt::join(problems, "\n")));
}

}  // namespace shardwise
