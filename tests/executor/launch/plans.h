#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "planner/spec/plan.h"

namespace shardwise::exec::test {

/// A Llama of two small blocks on the laptop's cluster.
Plan tiny_plan(const std::string& engine, int zero_stage, int dp_shard,
               std::int64_t num_microbatches);

/// Folder of one test, removed with it.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// Writes a plan.json. \returns its path
  std::string write(const Plan& plan, const std::string& name = "plan.json") const;

 private:
  std::filesystem::path folder_;
};

/// The losses of a metrics file, as it spells them.
std::vector<std::string> losses_of(const std::string& metrics);

}  // namespace shardwise::exec::test
