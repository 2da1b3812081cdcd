#include "planner/schedule/slot_order.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/schedule/message_turns.h"
#include "planner/schedule/stages.h"
#include "planner/spec/plan/schedule_facts.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

/// A message between chunks `lower` and `lower + 1` of the model.
struct Message {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::int32_t number = 0;
  std::int32_t after_pass = -1;  // of the receiver, by place in its order: posted once that ended
};

class Sweep {
 public:
  Sweep(const Layout& layout, std::int64_t num_microbatches, bool planned_buffers)
      : turns_(layout, num_microbatches, planned_buffers),
        chunks_(layout.pp * chunks_of_stage(layout)),
        stages_(static_cast<std::size_t>(layout.pp)) {
    result_.stages = layout.pp;
    result_.chunks = chunks_of_stage(layout);
    result_.posts_ahead = posts_receives_ahead(layout);
    const auto messages = at(2 * num_microbatches * chunks_);
    maker_.assign(messages, -1);
    arrived_.assign(messages, -1);
    result_.slots.reserve(2 * messages);
    posted_.assign(messages, false);
    numbers_.resize(stages_.size());
    for (std::int32_t c = 0; c < chunks_; ++c) {
      stage_of_.push_back(stage_of_chunk(layout, c));
      numbers_[at(stage_of_.back())].push_back(c);
    }
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      stages_[s].order = pass_order(layout, static_cast<std::int32_t>(s), num_microbatches);
      stages_[s].first.assign(at(result_.chunks), true);
      stages_[s].last.assign(at(result_.chunks), 0);
      for (const PipelinePass& pass : stages_[s].order) {
        std::int32_t& last = stages_[s].last[at(pass.chunk)];
        last = std::max(last, pass.microbatch);
      }
    }
    for (std::size_t s = 0; s < stages_.size(); ++s) post_receives(static_cast<std::int32_t>(s));
  }

  SlotOrder run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::int32_t s = 0; s < result_.stages; ++s) {
        while (receive(s)) moved = true;
        // One pass a round: a stage that waits for nothing does not run ahead of the others.
        if (!may_wait(s) && pass(s)) moved = true;
      }
      for (std::int32_t s = 0; s < result_.stages && !moved; ++s) moved = pass(s);
    }
    SlotOrder order;
    for (const Stage& stage : stages_) {
      SHARDWISE_CHECK(stage.next == stage.order.size(), std::to_string(stage.next));
      order.exchanged.push_back(stage.exchanged);
    }
    order.slots = std::move(result_);
    return order;
  }

 private:
  struct Stage {
    std::vector<PipelinePass> order;
    std::size_t next = 0;           // pass
    std::vector<Message> receives;  // in order of their posts
    std::size_t received = 0;       // of them
    std::vector<std::int32_t> sends;
    std::size_t sent = 0;
    std::int32_t passed = -1;        // slot of the last pass
    std::vector<bool> first;         // by chunk: nothing of it has run
    std::vector<std::int32_t> last;  // by chunk: its last micro-batch
    std::int64_t exchanged = 0;      // messages with the next stage, both ways
  };

  /// What one stage sends to another, in its order.
  struct Inbox {
    std::int32_t from = 0;
    std::vector<std::int32_t> messages;
    std::size_t taken = 0;
  };

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  std::int32_t number(std::int32_t stage, const PipelinePass& pass) const {
    return numbers_[at(stage)][at(pass.chunk)];
  }
  /// Whether something goes between chunk `lower` of the model and the one after it.
  bool travels(std::int32_t lower) const {
    if (lower < 0 || lower + 1 >= chunks_) return false;
    // The two copies of the model under DualPipe hand each other nothing.
    return stage_of_[at(lower)] != stage_of_[at(lower + 1)];
  }
  /// The message that a pass hands on, or needs; -1 none.
  std::int32_t made(std::int32_t stage, const PipelinePass& pass) const {
    if (pass.part == LayerPart::backward_weight) return -1;
    const bool backward = pass.part != LayerPart::forward;
    const std::int32_t lower = number(stage, pass) - (backward ? 1 : 0);
    return travels(lower) ? message_number(lower, backward, pass.microbatch, chunks_) : -1;
  }
  std::int32_t needed(std::int32_t stage, const PipelinePass& pass) const {
    if (pass.part == LayerPart::backward_weight) return -1;
    const bool backward = pass.part != LayerPart::forward;
    const std::int32_t lower = number(stage, pass) - (backward ? 0 : 1);
    return travels(lower) ? message_number(lower, backward, pass.microbatch, chunks_) : -1;
  }

  /// Of two stages that hand messages to each other, the one whose next stage is the other.
  std::int32_t lower_of(std::int32_t a, std::int32_t b) const {
    return std::abs(a - b) == 1 ? std::min(a, b) : std::max(a, b);
  }

  /// Whether a host that waits for messages would, before the next pass: it is handed nothing, and
  /// what the one before it made is on its way.
  bool may_wait(std::int32_t stage) const {
    const Stage& mine = stages_[at(stage)];
    return !result_.posts_ahead && mine.sent < mine.sends.size() && mine.next < mine.order.size() &&
           needed(stage, mine.order[mine.next]) < 0;
  }

  void post_receives(std::int32_t stage) {
    Stage& mine = stages_[at(stage)];
    std::vector<Inbox> inboxes;  // of few senders
    const auto post = [&](const PipelinePass& pass, std::int32_t after_pass) {
      const std::int32_t wanted = needed(stage, pass);
      if (wanted < 0) return;
      const bool backward = pass.part != LayerPart::forward;
      const std::int32_t from = stage_of_[at(number(stage, pass) + (backward ? 1 : -1))];
      auto inbox = std::ranges::find(inboxes, from, &Inbox::from);
      if (inbox == inboxes.end()) inbox = inboxes.insert(inbox, filled_inbox(stage, from));
      while (!posted_[at(wanted)]) {
        SHARDWISE_CHECK(inbox->taken < inbox->messages.size(), std::to_string(wanted));
        const std::int32_t next = inbox->messages[inbox->taken++];
        posted_[at(next)] = true;
        mine.receives.push_back({from, stage, next, after_pass});
      }
    };
    for (std::size_t i = 0; i < mine.order.size(); ++i) {
      const bool both = mine.order[i].with_next;
      const std::int32_t before = static_cast<std::int32_t>(i) - 1;
      post(mine.order[i], before);
      if (both) post(mine.order[++i], before);
    }
  }

  /// What `from` sends to `stage`, in its order.
  Inbox filled_inbox(std::int32_t stage, std::int32_t from) const {
    Inbox inbox{from, {}, 0};
    for (const PipelinePass& pass : stages_[at(from)].order) {
      const std::int32_t message = made(from, pass);
      if (message < 0) continue;
      const bool backward = pass.part != LayerPart::forward;
      const std::int32_t to = stage_of_[at(number(from, pass) + (backward ? -1 : 1))];
      if (to == stage) inbox.messages.push_back(message);
    }
    return inbox;
  }

  std::int32_t add(const PipelineSlots::Slot& slot, std::int32_t room) {
    result_.slots.push_back(slot);
    if (turns_.planned()) result_.room.push_back(room);
    return static_cast<std::int32_t>(result_.slots.size()) - 1;
  }

  /// The next message to `stage`, if both ends have come to it.
  bool receive(std::int32_t stage) {
    Stage& mine = stages_[at(stage)];
    if (mine.received == mine.receives.size()) return false;
    const Message& message = mine.receives[mine.received];
    Stage& sender = stages_[at(message.from)];
    if (sender.sent == sender.sends.size() || sender.sends[sender.sent] != message.number) {
      return false;
    }
    std::optional<std::int32_t> room = -1;
    if (turns_.planned()) room = turns_.before_message(message.number);
    if (!room) return false;
    PipelineSlots::Slot slot;
    slot.message = true;
    slot.stage = message.from;
    slot.to = stage;
    slot.after[0] = maker_[at(message.number)];
    if (!result_.posts_ahead) {
      if (message.after_pass >= static_cast<std::int32_t>(mine.next)) return false;
      slot.after[1] = mine.passed;
    }
    arrived_[at(message.number)] = add(slot, *room);
    if (turns_.planned()) turns_.arrived(message.number, arrived_[at(message.number)]);
    ++stages_[at(lower_of(message.from, stage))].exchanged;
    ++sender.sent;
    ++mine.received;
    return true;
  }

  /// The next pass of `stage`, or the next two that run as one, if what they wait for is there.
  bool pass(std::int32_t stage) {
    Stage& mine = stages_[at(stage)];
    if (mine.next == mine.order.size()) return false;
    const std::span<const PipelinePass> passes =
        std::span<const PipelinePass>(mine.order)
            .subspan(mine.next, mine.order[mine.next].with_next ? 2 : 1);
    std::array<std::int32_t, 2> after = {-1, -1};
    std::array<std::int32_t, 2> rooms = {-1, -1};
    for (std::size_t i = 0; i < passes.size(); ++i) {
      const std::int32_t message = needed(stage, passes[i]);
      if (message < 0) continue;
      after[i] = arrived_[at(message)];
      if (after[i] < 0) return false;
    }
    for (std::size_t i = 0; turns_.planned() && i < passes.size(); ++i) {
      const std::optional<std::int32_t> room = turns_.before_pass(made(stage, passes[i]));
      if (!room) return false;
      rooms[i] = *room;
    }
    for (std::size_t i = 0; i < passes.size(); ++i) {
      const PipelinePass& each = passes[i];
      PipelineSlots::Slot slot;
      slot.part = each.part;
      slot.stage = slot.to = stage;
      slot.chunk = each.chunk;
      slot.first = mine.first[at(each.chunk)];
      mine.first[at(each.chunk)] = false;
      slot.last = each.part != LayerPart::forward && each.microbatch == mine.last[at(each.chunk)];
      slot.after = after;
      mine.passed = add(slot, rooms[i]);
      if (turns_.planned()) turns_.read(needed(stage, each), mine.passed);
      after = {-1, -1};
    }
    for (const PipelinePass& each : passes) {
      const std::int32_t message = made(stage, each);
      if (message < 0) continue;
      maker_[at(message)] = mine.passed;
      if (turns_.planned()) turns_.made(message);
      mine.sends.push_back(message);
    }
    mine.next += passes.size();
    return true;
  }

  MessageTurns turns_;
  std::int32_t chunks_;                             // of the model
  std::vector<std::int32_t> stage_of_;              // by chunk of the model
  std::vector<std::vector<std::int32_t>> numbers_;  // by stage: its chunks of the model
  std::vector<Stage> stages_;
  std::vector<bool> posted_;           // by message: its only receiver expects it
  std::vector<std::int32_t> maker_;    // by message: slot of its pass
  std::vector<std::int32_t> arrived_;  // by message: its slot, -1 none
  PipelineSlots result_;
};

}  // namespace

SlotOrder slot_order(const Layout& layout, std::int64_t num_microbatches, bool planned_buffers) {
  return Sweep(layout, num_microbatches, planned_buffers).run();
}

}  // namespace shardwise
