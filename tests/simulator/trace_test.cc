#include "simulator/trace.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/spec/cluster_reader.h"
#include "simulator/simulate.h"
#include "tests/support/models.h"

namespace shardwise::sim {
namespace {

// Whatever a cluster's file calls its links: those of the laptop are "memory".
TEST(Trace, HasACounterForEachTierBesideThatOfMemory) {
  Plan plan;
  plan.model = test::llama(2, 256, 704, 4, 2, 1000);
  plan.engine = *find_engine("shardwise");
  plan.cluster = *with_gpus(*find_cluster("laptop"), 2);
  plan.layout.dp_shard = 2;
  plan.layout.zero_stage = 3;
  plan.job.sequence_length = 128;
  plan.job.global_batch_size = 2;
  plan.job.precision = DType::fp32;
  std::string text;
  write_trace(plan, simulate(plan), 1, [&text](std::string_view piece) { text += piece; });
  std::map<std::string, std::set<std::string>> keys;  // of the arguments, by counter
  const auto trace = nlohmann::json::parse(text);
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "C") continue;
    for (const auto& [key, value] : event["args"].items()) {
      keys[event["name"].get<std::string>()].insert(key);
    }
  }
  const std::map<std::string, std::set<std::string>> expected = {
      {"link memory", {"percent"}}, {"memory", {"allocated_bytes", "reserved_bytes"}}};
  EXPECT_EQ(keys, expected);
}

}  // namespace
}  // namespace shardwise::sim
