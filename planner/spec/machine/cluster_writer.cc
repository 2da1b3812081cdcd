#include "planner/spec/machine/cluster_writer.h"

#include "planner/spec/json/in_units.h"
#include "planner/spec/machine/collective_reader.h"
#include "planner/spec/machine/gpu_writer.h"
#include "planner/spec/machine/machine_names.h"

namespace shardwise {
namespace {

double gb_per_s(BytesPerSecond rate) { return in_units(rate.value(), 1e9); }
double microseconds(Seconds time) { return in_units(time.value(), 1e-6); }

void write_tier(JsonWriter& json, const LinkTier& tier) {
  json.begin_object();
  json.member("name", tier.name);
  json.member("domain_size", tier.domain_size);
  json.member("wiring", name_of(tier.wiring));
  json.member("bandwidth_gb_per_s", gb_per_s(tier.bandwidth));
  json.member("latency_us", microseconds(tier.latency));
  json.member("gpus_per_link", tier.gpus_per_link);
  json.member("oversubscription", tier.oversubscription);
  json.member("in_network", name_of(tier.in_network));
  json.member("source", tier.source);
  json.begin_object("collectives");
  write_collectives(json, tier.collectives);
  json.end_object();
  json.end_object();
}

}  // namespace

void write_cluster(JsonWriter& json, const ClusterSpec& cluster) {
  json.member("schema", "shardwise.cluster/1");
  json.member("name", cluster.name);
  json.member("label", cluster.label);
  json.begin_object("gpu");
  write_gpu(json, cluster.gpu);
  json.end_object();
  json.member("gpus", cluster.gpus);
  json.member("gpus_per_node", cluster.gpus_per_node);
  json.begin_array("tiers");
  for (const LinkTier& tier : cluster.tiers) write_tier(json, tier);
  json.end_array();
  json.member("host_memory_gb_per_node",
              in_units(static_cast<double>(cluster.host_memory_per_node.value()), 1e9));
  json.member("host_link_gb_per_s", gb_per_s(cluster.host_link));
  json.member("storage_read_gb_per_s_per_node", gb_per_s(cluster.storage_read));
  json.member("storage_write_gb_per_s_per_node", gb_per_s(cluster.storage_write));
  json.member("node_watts", cluster.node_watts);
  if (cluster.price_per_gpu_hour)
    json.member("price_per_gpu_hour_usd", *cluster.price_per_gpu_hour);
  if (cluster.mtbf_hours_per_gpu > 0) {
    json.member("mtbf_hours_per_gpu", cluster.mtbf_hours_per_gpu);
  }
  json.begin_object("sources");
  write_sources(json, cluster.sources);
  if (cluster.price_per_gpu_hour) json.member("price_per_gpu_hour_usd", cluster.price_source);
  if (cluster.mtbf_hours_per_gpu > 0) json.member("mtbf_hours_per_gpu", cluster.mtbf_source);
  json.end_object();
}

}  // namespace shardwise
