// A cluster file either becomes machines joined by links that carry something or is refused.

#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/text/check.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwise;
  const std::optional<JsonValue> value = parse_input(data, size);
  if (!value) return 0;
  const auto cluster =
      read_input(*value, [](const JsonValue& v) { return cluster_from_json(v, "fuzz.json"); });
  if (!cluster) return 0;
  SHARDWISE_CHECK(cluster->gpus >= 1 && cluster->gpus <= kMostGpus, std::to_string(cluster->gpus));
  SHARDWISE_CHECK(cluster->gpus_per_node >= 1, std::to_string(cluster->gpus_per_node));
  SHARDWISE_CHECK(!cluster->tiers.empty(), cluster->name);
  SHARDWISE_CHECK(cluster->tiers.back().domain_size >= cluster->gpus, cluster->name);
  for (const LinkTier& tier : cluster->tiers) {
    SHARDWISE_CHECK(tier.bandwidth.value() > 0 && tier.oversubscription >= 1, tier.name);
    SHARDWISE_CHECK(tier.gpus_per_link >= 1, std::to_string(tier.gpus_per_link));
  }
  for (const std::int64_t gpus : {std::int64_t{1}, std::int64_t{64}, kMostGpus}) {
    read_input(*cluster, [gpus](const ClusterSpec& c) { return with_gpus(c, gpus); });
  }
  return 0;
}
