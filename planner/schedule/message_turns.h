#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "planner/schedule/stages.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/schedule_facts.h"

namespace shardwise {

/// A message between chunks `lower` and `lower + 1` of the model, of so many, as a number.
inline std::int32_t message_number(std::int32_t lower, bool backward, std::int32_t microbatch,
                                   std::int32_t chunks) {
  return 2 * (microbatch * chunks + lower) + (backward ? 1 : 0);
}

/// What messages and the passes that make them wait for where they take turns with the buffers of a
/// planned arena (message_slots), while the slots of a pipeline are put in order. What a stage
/// sends another one way is received and read in its order under every schedule. Messages are
/// message_number(), -1 none.
class MessageTurns {
 public:
  /// \param planned  whether there are such buffers: else nothing waits for one
  MessageTurns(const Layout& layout, std::int64_t num_microbatches, bool planned)
      : layout_(layout),
        num_microbatches_(num_microbatches),
        chunks_(layout.pp * chunks_of_stage(layout)),
        planned_(planned && layout.pp > 1) {}

  bool planned() const { return planned_; }

  /// The slot that is waited for, -1 none, or nothing where it has no place yet: by `message` the
  /// pass that reads what was in the buffer of its receiver before ...
  std::optional<std::int32_t> before_message(std::int32_t message);
  /// ... and by the pass that makes `message` the one that leaves its buffer.
  std::optional<std::int32_t> before_pass(std::int32_t message);

  void made(std::int32_t message);
  /// \param slot  of the message
  void arrived(std::int32_t message, std::int32_t slot);
  /// \param slot  of the pass
  void read(std::int32_t message, std::int32_t slot);

 private:
  /// Messages from one stage to another, gradients or activations.
  struct Way {
    std::size_t made = 0;               // those whose pass has its place
    std::vector<std::int32_t> arrived;  // slots of messages
    std::vector<std::int32_t> read;     // slots of the passes that read them
  };
  struct Ends {
    std::int32_t from = 0;
    std::int32_t to = 0;
    bool backward = false;
    auto operator<=>(const Ends&) const = default;
  };
  Ends ends(std::int32_t message) const;

  const Layout& layout_;
  std::int64_t num_microbatches_;
  std::int32_t chunks_;  // of the model
  bool planned_;
  std::map<Ends, Way> ways_;
};

}  // namespace shardwise
