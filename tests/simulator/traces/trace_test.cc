#include "simulator/traces/trace.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/spec/machine/cluster_reader.h"
#include "simulator/clock/simulate.h"
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

// A viewer sorts by the indices and shows args when one clicks on an operation.
TEST(Trace, OrdersItsRowsAndDescribesItsOperations) {
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
  write_trace(plan, simulate(plan), 2, [&text](std::string_view piece) { text += piece; });
  const auto trace = nlohmann::json::parse(text);
  std::map<std::string, int> indices;
  int collectives = 0;
  for (const auto& event : trace["traceEvents"]) {
    const auto name = event["name"].get<std::string>();
    if (event["ph"] == "M" && name.ends_with("_sort_index")) ++indices[name];
    if (event["ph"] != "X" || !event.contains("args")) continue;
    const auto& args = event["args"];
    if (!args.contains("axis") || args["bytes"].get<double>() <= 0) continue;
    ++collectives;
    if (!args.contains("bandwidth_gb_per_s")) continue;  // shorter than a nanosecond
    // Waiting for the other rank moves no bytes.
    const double waited = args.value("waited_us", 0.0);
    const double runs = event["dur"].get<double>() - waited;
    EXPECT_NEAR(args["bandwidth_gb_per_s"].get<double>(),
                args["bytes"].get<double>() / (runs * 1e3),
                0.01 * args["bandwidth_gb_per_s"].get<double>() + 0.002);
  }
  EXPECT_GT(indices["process_sort_index"], 0);
  EXPECT_GT(indices["thread_sort_index"], 1);
  EXPECT_GT(collectives, 0);
}

}  // namespace
}  // namespace shardwise::sim
