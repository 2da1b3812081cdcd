#pragma once

#include <string>
#include <vector>

#include "planner/files/output_place.h"
#include "planner/spec/plan/plan.h"

namespace shardwise::view {

/// The files of a session: those that it has read and must not write over, and the one that has its
/// plan.
class KnownFiles {
 public:
  /// Files that are read as long as the program runs.
  void keep(const std::vector<NamedFile>& inputs);
  /// The file that a command has read last; empty: none any more.
  void read(const std::string& command, const std::string& path);
  /// Reason not to write there, in one line; empty where there is none.
  std::string problem_of(const std::string& path) const;

  void has_plan(std::string path, Plan plan);
  /// The file that has this plan; empty: none.
  std::string file_of(const Plan& plan) const;

 private:
  std::vector<NamedFile> inputs_;
  std::string plan_file_;
  Plan plan_;
};

}  // namespace shardwise::view
