#include "planner/spec/machine/cluster_reader.h"

#include <fmt/format.h>

#include <utility>

#include "planner/spec/json/catalogue.h"
#include "planner/spec/machine/collective_reader.h"
#include "planner/spec/machine/gpu_reader.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

// Wide enough for any machine to come, narrow enough to catch a slip of the unit.
constexpr double kMostGigabytes = 1e9;
constexpr double kMostNodeWatts = 1e6;
constexpr double kMostHours = 1e12;
constexpr double kMostOversubscription = 1000;
constexpr std::int64_t kMostGpusPerNode = 1024;

BytesPerSecond bandwidth(double gb_per_s) { return BytesPerSecond(gb_per_s * 1e9); }

/// A name that the catalogue does not know, as a problem of the file that names it. Where a name is
/// near, the list of all is left out.
void fail_name(ObjectReader& reader, std::string_view key, const Diagnostic& why) {
  const bool near = why.hint.starts_with("did you mean");
  reader.fail(key, why.message, near ? why.hint.substr(0, why.hint.find('\n')) : why.hint);
}

/// "collectives" of a tier: the name of a catalogue entry, or the entry itself, or absent for the
/// defaults.
CollectiveCurve collectives_of(const JsonValue& tier, ObjectReader& reader, Diagnostics& problems) {
  const JsonValue* inside = tier.find("collectives");
  if (inside != nullptr && inside->kind == JsonValue::Kind::object) {
    reader.object("collectives");
    ObjectReader nested = reader.nested("collectives", *inside);
    CollectiveCurve curve = read_collectives(nested);
    nested.reject_unknown();
    return curve;
  }
  const std::string name = reader.string_or("collectives", "");
  if (name.empty()) return {};
  const Result<CatalogueFile> file = find_in_catalogue("collectives", name);
  if (!file) {
    fail_name(reader, "collectives", file.problems().front());
    return {};
  }
  Result<CollectiveCurve> curve = read_collectives(file->path);
  if (curve) return *std::move(curve);
  problems.insert(problems.end(), curve.problems().begin(), curve.problems().end());
  return {};
}

LinkTier read_tier(const JsonValue& value, ObjectReader& reader, bool last, Diagnostics& problems) {
  LinkTier tier;
  tier.name = reader.string("name");
  tier.domain_size = last ? reader.integer_or("domain_size", kMostGpus, 1, kMostGpus)
                          : reader.integer("domain_size", 1, kMostGpus);
  tier.wiring = static_cast<Wiring>(reader.choice_or("wiring", 0, {"switched", "mesh"}));
  tier.bandwidth = bandwidth(reader.number("bandwidth_gb_per_s", kLeastGbPerS, kMostGbPerS));
  tier.latency = Seconds(reader.number("latency_us", 0, kMostLatencyUs) * 1e-6);
  tier.gpus_per_link = static_cast<int>(reader.integer_or("gpus_per_link", 1, 1, kMostGpusPerNode));
  tier.oversubscription = reader.number_or("oversubscription", 1, 1, kMostOversubscription);
  tier.in_network =
      static_cast<InNetwork>(reader.choice_or("in_network", 0, {"none", "nvls", "sharp"}));
  tier.source = reader.string("source");
  tier.collectives = collectives_of(value, reader, problems);
  reader.reject_unknown();
  return tier;
}

void read_tiers(ObjectReader& reader, ClusterSpec& cluster, Diagnostics& problems) {
  const JsonValue* array = reader.array("tiers");
  if (array == nullptr) return;
  const std::size_t count = array->elements.size();
  if (count == 0 || count > kMaxTiers) {
    reader.fail("tiers", fmt::format("{} link tiers", count),
                fmt::format("use 1 to {}", kMaxTiers));
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    ObjectReader nested = reader.nested("tiers", i, array->elements[i]);
    cluster.tiers.push_back(read_tier(array->elements[i], nested, i + 1 == count, problems));
    const LinkTier& tier = cluster.tiers.back();
    if (!nested.ok() || i == 0) continue;
    const std::int64_t inner = cluster.tiers[i - 1].domain_size;
    if (inner > 0 && tier.domain_size != kMostGpus && tier.domain_size % inner != 0) {
      nested.fail("domain_size", fmt::format("{} is not a multiple of the inner tier's {}",
                                             tier.domain_size, inner));
    }
  }
}

/// Every figure of the file is named in "sources" with the place where it was published.
void read_cluster_sources(ObjectReader& reader, ClusterSpec& cluster) {
  const JsonValue* value = reader.object("sources");
  if (value == nullptr) return;
  ObjectReader sources = reader.nested("sources", *value);
  for (const std::string_view figure :
       {"host_memory_gb_per_node", "host_link_gb_per_s", "storage", "node_watts"}) {
    cluster.sources.push_back(fmt::format("{}: {}", figure, sources.string(figure)));
  }
  if (cluster.price_per_gpu_hour) {
    cluster.price_source = sources.string("price_per_gpu_hour_usd");
  }
  if (cluster.mtbf_hours_per_gpu > 0) cluster.mtbf_source = sources.string("mtbf_hours_per_gpu");
  sources.reject_unknown();
}

/// Reads the GPU under "gpu", or the file of the one that is named there; a name that is not known
/// is a problem here.
void read_gpu_of(const JsonValue& root, ObjectReader& reader, ClusterSpec& cluster,
                 Diagnostics& problems) {
  const JsonValue* inside = root.find("gpu");
  if (inside != nullptr && inside->kind == JsonValue::Kind::object) {
    reader.object("gpu");
    Result<GpuSpec> gpu = gpu_from_json(*inside, reader.file(), json_pointer(reader.path(), "gpu"));
    if (gpu) {
      cluster.gpu = *std::move(gpu);
    } else {
      problems.insert(problems.end(), gpu.problems().begin(), gpu.problems().end());
    }
    return;
  }
  cluster.gpu.name = reader.string("gpu");
  if (cluster.gpu.name.empty()) {
    if (inside != nullptr && inside->kind == JsonValue::Kind::string) {
      reader.fail("gpu", "names no GPU", "give a name of the catalogue: shardwise list gpus");
    }
    return;
  }
  const Result<CatalogueFile> file = find_in_catalogue("gpus", cluster.gpu.name);
  if (!file) {
    fail_name(reader, "gpu", file.problems().front());
    return;
  }
  Result<GpuSpec> gpu = read_gpu(file->path);
  if (gpu) {
    cluster.gpu = *std::move(gpu);
  } else {
    problems.insert(problems.end(), gpu.problems().begin(), gpu.problems().end());
  }
}

/// Of domains that span nodes, a job takes as many nodes of each, as schedulers are asked for
/// (Slurm's --segment): 256 GPUs are 4 x 64 of NVL72, not 72 + 72 + 72 + 40.
/// Source: docs/collectives.md, Groups on links.
void take_equal_segments(ClusterSpec& cluster) {
  if (cluster.tiers.size() < 2) return;
  LinkTier& inner = cluster.tiers.front();
  const std::int64_t whole = inner.domain_size;
  if (whole <= cluster.gpus_per_node || cluster.gpus <= whole) return;
  const std::int64_t fewest = ceil_div(cluster.gpus, whole);
  for (std::int64_t domains = fewest; domains <= 2 * fewest; ++domains) {
    if (cluster.gpus % (domains * cluster.gpus_per_node) != 0) continue;
    inner.domain_size = cluster.gpus / domains;
    if (inner.domain_size < whole) {
      inner.source += fmt::format("; the job takes {} GPUs of each domain", inner.domain_size);
    }
    return;
  }
}

}  // namespace

Result<ClusterSpec> cluster_from_json(const JsonValue& root, const std::string& file,
                                      const std::string& path) {
  Diagnostics problems;
  ObjectReader reader(root, file, path, problems);
  reader.require_schema("shardwise.cluster/1");
  ClusterSpec cluster;
  cluster.name = reader.string_or("name", std::filesystem::path(file).stem().string());
  if (has_control_character(cluster.name)) {
    reader.fail("", "its name has a control character", "rename the file, or give it a name");
    cluster.name.clear();
  }
  cluster.label = reader.string("label");
  read_gpu_of(root, reader, cluster, problems);
  read_tiers(reader, cluster, problems);
  const std::int64_t most = cluster.tiers.empty() ? kMostGpus : cluster.tiers.back().domain_size;
  cluster.gpus = reader.integer("gpus", 1, most);
  cluster.gpus_per_node = reader.integer("gpus_per_node", 1, kMostGpusPerNode);
  cluster.host_memory_per_node = Bytes(
      static_cast<std::int64_t>(reader.number("host_memory_gb_per_node", 0, kMostGigabytes) * 1e9));
  cluster.host_link = bandwidth(reader.number("host_link_gb_per_s", kLeastGbPerS, kMostGbPerS));
  cluster.storage_read =
      bandwidth(reader.number("storage_read_gb_per_s_per_node", kLeastGbPerS, kMostGbPerS));
  cluster.storage_write =
      bandwidth(reader.number("storage_write_gb_per_s_per_node", kLeastGbPerS, kMostGbPerS));
  cluster.node_watts = reader.number("node_watts", 0, kMostNodeWatts);
  if (reader.has("price_per_gpu_hour_usd")) {
    cluster.price_per_gpu_hour = reader.number("price_per_gpu_hour_usd", 0, kMostDollarsPerGpuHour);
  }
  if (reader.has("mtbf_hours_per_gpu")) {
    cluster.mtbf_hours_per_gpu = reader.number("mtbf_hours_per_gpu", 1, kMostHours);
  }
  read_cluster_sources(reader, cluster);
  reader.reject_unknown();
  if (!problems.empty()) return problems;
  return cluster;
}

Result<ClusterSpec> read_cluster(const std::filesystem::path& path) {
  const Result<JsonValue> json = read_json(path);
  if (!json) return json.problems();
  return cluster_from_json(*json, path.string());
}

Result<ClusterSpec> find_cluster(const std::string& name_or_path) {
  const Result<CatalogueFile> file = find_in_catalogue("clusters", name_or_path);
  if (!file) return file.problems();
  return read_cluster(file->path);
}

Result<ClusterSpec> with_gpus(ClusterSpec cluster, std::int64_t gpus) {
  const std::int64_t most = cluster.tiers.empty() ? kMostGpus : cluster.tiers.back().domain_size;
  if (gpus < 1 || gpus > most) {
    return Diagnostic{"command line",
                      0,
                      0,
                      "--gpus",
                      fmt::format("{} GPUs, but {} can have 1 to {}", gpus, cluster.name, most),
                      ""};
  }
  cluster.gpus = gpus;
  take_equal_segments(cluster);
  return cluster;
}

}  // namespace shardwise
