#pragma once

#include <string>
#include <vector>

#include "planner/spec/plan.h"
#include "tests/support/scratch.h"

namespace shardwise::exec::test {

/// A Llama of two small blocks on the laptop's cluster.
Plan tiny_plan(const std::string& engine, int zero_stage, int dp_shard,
               std::int64_t num_microbatches);

/// Folder of one test, removed with it.
class Scratch : public shardwise::test::Scratch {
 public:
  /// Writes a plan.json. \returns its path
  std::string write(const Plan& plan, const std::string& name = "plan.json") const;
};

/// The losses of a metrics file, as it spells them.
std::vector<std::string> losses_of(const std::string& metrics);

}  // namespace shardwise::exec::test
