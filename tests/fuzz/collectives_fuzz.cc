// A collectives file is either refused or prices every collective with a time.

#include <cmath>

#include "planner/cost/collectives/collective.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/machine/collective_reader.h"
#include "planner/spec/text/check.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/even_group.h"

namespace shardwise {
namespace {

Result<CollectiveCurve> curve_from_json(const JsonValue& value) {
  Diagnostics problems;
  ObjectReader reader(value, "fuzz.json", "", problems);
  reader.require_schema("shardwise.collectives/1");
  CollectiveCurve curve = read_collectives(reader);
  reader.reject_unknown();
  if (!problems.empty()) return problems;
  return curve;
}

}  // namespace
}  // namespace shardwise

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwise;
  const std::optional<JsonValue> value = parse_input(data, size);
  if (!value) return 0;
  const auto curve = read_input(*value, curve_from_json);
  if (!curve) return 0;
  static const ClusterSpec kCluster = *find_cluster("dgx-h100");
  ClusterSpec cluster = kCluster;
  for (LinkTier& tier : cluster.tiers) tier.collectives = *curve;
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                    CollectiveKind::all_reduce, CollectiveKind::all_to_all}) {
    for (const std::int32_t nodes : {1, 4}) {
      const GroupShape group =
          nodes == 1 ? test::even_group(cluster, {8}) : test::even_group(cluster, {8, 8 * nodes});
      const double seconds = collective_time(cluster, kind, 64_MiB, group).value();
      SHARDWISE_CHECK(std::isfinite(seconds) && seconds > 0, std::to_string(seconds));
    }
  }
  return 0;
}
