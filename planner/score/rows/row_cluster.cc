#include "planner/score/rows/row_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "planner/score/rows/link_wording.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/machine/power_limit.h"

namespace shardwise {
namespace {

// What a device of so many "GB" reports is a little less than that many GiB (an 80 GB H100 has
// 81,559 MiB); beyond this share it is another device.
constexpr double kSameMemory = 0.1;
constexpr double kReportedShare = 0.995;

struct Family {
  std::string_view word;   // in the source's wording
  std::string_view entry;  // how catalogue names begin
};
/// Names that contain others come first. The export variants A800 and H800 are A100 and H100 with
/// slower NVLink, which `slower_nvlink` takes care of. The L40, with half the rate of an L40S, is
/// in no catalogue.
constexpr auto kFamilies = std::to_array<Family>({
    {"gb300", "gb300"},   {"gb200", "gb200"},     {"b300", "b300"},
    {"b200", "b200"},     {"h200", "h200"},       {"h100", "h100"},
    {"h800", "h100"},     {"a100", "a100"},       {"a800", "a100"},
    {"a10g", "a10g"},     {"l40s", "l40s"},       {"l40", "l40-"},
    {"v100", "v100"},     {"mi355", "mi355"},     {"mi325", "mi325"},
    {"mi300x", "mi300x"}, {"mi250", "mi250"},     {"pro 6000", "rtx-pro-6000"},
    {"3090", "rtx-3090"}, {"4090", "rtx-4090"},   {"5090", "rtx-5090"},
    {"h20", "h20"},       {"a6000", "rtx-a6000"}, {"a40", "a40"},
    {"l4", "l4"},         {"t4", "t4"},           {"cpu", "cpu"},
});

/// The memory that a wording such as "A100-40GB-SXM" names; 0 when it names none.
double memory_named(std::string_view wording) {
  for (std::size_t at = 0; at + 2 <= wording.size(); ++at) {
    if (!says(wording.substr(at, 2), "gb")) continue;
    std::size_t begin = at;
    while (begin > 0 && wording[begin - 1] >= '0' && wording[begin - 1] <= '9') --begin;
    double memory = 0;
    std::from_chars(wording.data() + begin, wording.data() + at, memory);
    if (memory > 0) return memory;
  }
  return 0;
}

/// The entry's name goes on with a digit: "l40s" is no "l4".
bool is_longer_number(std::string_view name, std::string_view entry) {
  const bool number = entry.back() >= '0' && entry.back() <= '9';
  return number && name.size() > entry.size() && name[entry.size()] >= '0' &&
         name[entry.size()] <= '9';
}

/// How well a GPU of the catalogue fits; nothing when it has another form factor.
std::optional<double> fitness(const KnownGpu& gpu, std::string_view wording, double memory_gb) {
  constexpr double kPart = 0.01;  // names with parts that nobody asked for come later
  double score = -kPart * static_cast<double>(std::ranges::count(gpu.name, '-'));
  for (const std::string_view form : {"sxm", "pcie", "nvl"}) {
    if (!says(gpu.name, form)) continue;
    const bool same = says(wording, form);
    if (!same && says_any(wording, "sxm", "pcie", "nvl")) return std::nullopt;
    score += same ? 10 : form == "sxm" ? 5 : 0;
  }
  if (memory_gb > 0) return score - std::abs(std::log(gpu.memory_gib / memory_gb));
  return score + gpu.memory_gib * 1e-6;
}

/// Fits the links between nodes to what the row states.
void fit_network(const Row& row, ClusterSpec& cluster, Notes& notes) {
  if (cluster.gpus <= cluster.tiers.front().domain_size) return;
  const std::optional<StatedLink> link = stated_link(row.hardware.inter_link);
  LinkTier& tier = cluster.tiers.back();
  if (!link) {
    notes.assume(fmt::format("links between nodes as {}", cluster.name));
    return;
  }
  const auto in_node = static_cast<double>(cluster.gpus_per_node);
  const double bytes_per_s = link->gigabits_per_s * 1e9 / 8;
  tier.gpus_per_link = 1;
  tier.bandwidth = BytesPerSecond(link->shared_total ? bytes_per_s / in_node : bytes_per_s);
  if (link->links_per_node > 0 && link->links_per_node < cluster.gpus_per_node) {
    tier.gpus_per_link = static_cast<int>(ceil_div(cluster.gpus_per_node, link->links_per_node));
  }
  tier.source = "as the measurement's source states";
}

/// A node of another size than the catalogue's.
void fit_node(const Row& row, ClusterSpec& cluster, Notes& notes) {
  const std::int64_t in_node = row.hardware.gpus_per_node.value_or(cluster.gpus_per_node);
  if (in_node == cluster.gpus_per_node) return;
  LinkTier& inner = cluster.tiers.front();
  const bool whole_node = inner.domain_size == cluster.gpus_per_node;
  if (whole_node && cluster.tiers.size() > 1) inner.domain_size = in_node;
  notes.assume(fmt::format("a node of {} GPUs wired as in {}", in_node, cluster.name));
  cluster.gpus_per_node = in_node;
}

/// Megatron's tests of deterministic mode set NCCL_ALGO=Ring: no sums in switches, no trees (which
/// one node of 8 has not).
/// Source: NVIDIA/Megatron-LM:tests/functional_tests/test_cases, ENV_VARS of model_config.yaml.
void rings_only(const Row& row, ClusterSpec& cluster, Notes& notes) {
  if (!row.flag_on("deterministic_mode")) return;
  for (LinkTier& tier : cluster.tiers) tier.in_network = InNetwork::none;
  notes.assume("collectives by rings only, as NCCL_ALGO=Ring");
}

/// A800 and H800 have NVLinks of 400 GB/s both ways.
/// Source: NVIDIA A800 and H800 data sheets.
void slower_nvlink(const Row& row, ClusterSpec& cluster, Notes& notes) {
  if (!says_any(row.hardware.gpu, "a800", "h800")) return;
  LinkTier& inner = cluster.tiers.front();
  inner.bandwidth = std::min(inner.bandwidth, 200_GBps);
  inner.in_network = InNetwork::none;
  notes.assume(fmt::format("{} with NVLink of 400 GB/s", cluster.gpu.name));
}

void fit_memory(const Row& row, ClusterSpec& cluster, Notes& notes) {
  double stated = row.hardware.gpu_mem_gb.value_or(0);
  if (stated <= 0) stated = memory_named(row.hardware.gpu);
  if (stated <= 0) return;
  const double usable = stated * kBytesPerGiB * kReportedShare;
  const auto known = static_cast<double>(cluster.gpu.hbm_bytes.value());
  if (std::abs(usable - known) <= kSameMemory * known) return;
  cluster.gpu.hbm_bytes = Bytes(std::llround(usable));
  notes.assume(fmt::format("{} with {:g} GB", cluster.gpu.name, stated));
}

/// How much a cluster of the right GPU is like the row's.
int likeness(const ClusterSpec& cluster, const Row& row) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kFabrics = {
      {{"efa", "efa"},
       {"roce", "roce"},
       {"omni", "omni-path"},
       {"ib ", "infiniband"},
       {"hdr", "infiniband"}}};
  int score = 0;
  for (const auto& [word, tier] : kFabrics) {
    if (says(row.hardware.inter_link, word) && cluster.tiers.back().name == tier) score |= 8;
  }
  if (cluster.gpus_per_node == row.hardware.gpus_per_node.value_or(8)) score += 4;
  // The maker's own machine, without options.
  if (cluster.name.starts_with("dgx")) score += 1;
  if (cluster.tiers.back().in_network != InNetwork::sharp) score += 1;
  return score;
}

/// Rows of pytorch/ao, whose authors work at Meta.
bool by_torchaos_authors(const Row& row) {
  return says(row.framework, "torchao") || row.repository == "pytorch/ao";
}

/// Their H100s are Meta's, of 2.4 TB/s, whatever a table calls them.
/// Source: pytorch/ao@05980129:torchao/testing/training/roofline_utils.py, gpu_name_to_specs.
bool on_metas_h100(const Row& row) {
  return by_torchaos_authors(row) && says(row.hardware.gpu, "h100");
}

/// Their table says "power limited" of its B200s. Meta's are rated for 750 W.
/// Source: facebookexperimental/triton@0a0fd295:third_party/tlx/denoise.sh, and pull request 2023:
/// it takes what each card is rated for, 750 of B200.
constexpr double kMetasB200Watts = 750;

void limit_metas_b200(const Row& row, ClusterSpec& cluster, Notes& notes) {
  if (!by_torchaos_authors(row) || cluster.gpu.name != "b200") return;
  cluster.gpu = under_power_limit(std::move(cluster.gpu), kMetasB200Watts);
  notes.assume("Meta's B200 of 750 W, as torchao's authors have");
}

std::string key_of(const Row& row, std::int64_t gpus) {
  const RowHardware& h = row.hardware;
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", by_torchaos_authors(row),
                     row.flag_on("deterministic_mode"), h.gpu, h.gpu_mem_gb.value_or(0), gpus,
                     h.gpus_per_node.value_or(0), h.intra_link, h.inter_link);
}

}  // namespace

std::string gpu_named(std::string_view wording, std::optional<double> memory_gb,
                      const std::vector<KnownGpu>& known) {
  double memory = memory_named(wording);
  if (memory <= 0) memory = memory_gb.value_or(0);
  for (const Family& family : kFamilies) {
    if (!says(wording, family.word)) continue;
    std::string best;
    std::optional<double> most;
    for (const KnownGpu& gpu : known) {
      if (!gpu.name.starts_with(family.entry)) continue;
      if (is_longer_number(gpu.name, family.entry)) continue;
      const std::optional<double> score = fitness(gpu, wording, memory);
      if (!score || (most && *score <= *most)) continue;
      most = score;
      best = gpu.name;
    }
    return best;
  }
  return "";
}

void Machines::load() {
  loaded_ = true;
  for (const std::string& name : catalogue_names("clusters")) {
    const Result<ClusterSpec> cluster = find_cluster(name);
    if (!cluster) {
      const Diagnostic& first = cluster.problems().front();
      unreadable_ = fmt::format("; {} cannot be read: {}: {}", name, first.path, first.message);
      continue;
    }
    catalogue_.push_back(*cluster);
    if (std::ranges::find(gpus_, cluster->gpu.name, &KnownGpu::name) != gpus_.end()) continue;
    gpus_.push_back(
        {cluster->gpu.name, static_cast<double>(cluster->gpu.hbm_bytes.value()) / kBytesPerGiB});
  }
}

Machines::Fitted Machines::fit(const Row& row, std::int64_t gpus) const {
  Fitted result;
  const bool meta = on_metas_h100(row);
  const std::string gpu = meta ? gpu_named("H100-96GB", {}, gpus_)
                               : gpu_named(row.hardware.gpu, row.hardware.gpu_mem_gb, gpus_);
  if (meta) result.notes.assume("Meta's H100 of 96 GB and 500 W, as torchao's authors have");
  if (gpu.empty()) {
    result.notes.refuse(row.hardware.gpu.empty() ? "GPU not stated"
                                                 : fmt::format("GPU {} is not in the catalogue{}",
                                                               row.hardware.gpu, unreadable_));
    return result;
  }
  const ClusterSpec* chosen = nullptr;
  for (const ClusterSpec& cluster : catalogue_) {
    if (cluster.gpu.name != gpu) continue;
    if (chosen == nullptr || likeness(cluster, row) > likeness(*chosen, row)) chosen = &cluster;
  }
  ClusterSpec cluster = *chosen;
  fit_node(row, cluster, result.notes);
  slower_nvlink(row, cluster, result.notes);
  rings_only(row, cluster, result.notes);
  limit_metas_b200(row, cluster, result.notes);
  if (!meta) fit_memory(row, cluster, result.notes);
  Result<ClusterSpec> sized = with_gpus(std::move(cluster), gpus);
  if (!sized) {
    result.notes.refuse(sized.problems().front().message);
    return result;
  }
  fit_network(row, *sized, result.notes);
  result.cluster = std::make_shared<const ClusterSpec>(*std::move(sized));
  return result;
}

std::shared_ptr<const ClusterSpec> Machines::machine_of(const Row& row, std::int64_t gpus,
                                                        Notes& notes) {
  if (!loaded_) load();
  const std::string key = key_of(row, gpus);
  auto found = fitted_.find(key);
  if (found == fitted_.end()) found = fitted_.emplace(key, fit(row, gpus)).first;
  const Fitted& fitted = found->second;
  notes.assumed.insert(notes.assumed.end(), fitted.notes.assumed.begin(),
                       fitted.notes.assumed.end());
  if (!fitted.notes.refused.empty()) notes.refuse(fitted.notes.refused);
  return fitted.cluster;
}

}  // namespace shardwise
