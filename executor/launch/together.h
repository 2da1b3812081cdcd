#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/comm/world.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise::exec {

/// The processes of a job while they prepare it: what one of them finds, all of them know. All make
/// the same calls.
class Together {
 public:
  /// Stands for a process that is alone.
  Together() = default;
  explicit Together(World& world);

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  /// The problems of all ranks, those that several have once.
  Diagnostics gather(const Diagnostics& own) const;
  /// Returns what rank 0 says.
  std::string from_first(const std::string& own) const;

 private:
  int rank_ = 0;
  int ranks_ = 1;
  std::unique_ptr<ControlGroup> everyone_;  // none where the process is alone
};

}  // namespace shardwise::exec
