#include "planner/question/asked_fits.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "planner/question/catalogue_summary.h"
#include "planner/question/flags.h"
#include "planner/question/named_gpu.h"

namespace shardwise {
namespace {

constexpr const char* kEngine = "fsdp2";
constexpr const char* kOneGpuEngine = "fsdp1";

bool is_makers(const ClusterSummary& cluster) { return cluster.name.starts_with("dgx-"); }

/// The cluster of the catalogue that has this GPU: the maker's own machine where there are several,
/// else the one with most of them in a node.
std::optional<std::string> cluster_with(const std::string& gpu) {
  std::optional<ClusterSummary> found;
  const auto rank = [](const ClusterSummary& each) {
    return std::pair(is_makers(each), each.gpus_per_node);
  };
  for (const ClusterSummary& each : cluster_summaries()) {
    if (each.gpu != gpu) continue;
    if (!found || (!is_makers(*found) && rank(each) > rank(*found))) found = each;
  }
  if (!found) return std::nullopt;
  return found->name;
}

bool is_open(const std::map<std::string, std::string>& texts, const char* field) {
  const auto at = texts.find(field);
  return at == texts.end() || at->second.empty();
}

}  // namespace

Result<EstimateAnswer> answer_fits(const AskedFits& asked) {
  std::vector<Assumption> said;
  const Result<GpuSpec> gpu = gpu_called(asked.gpu, said);
  if (!gpu) return gpu.problems();
  const std::optional<std::string> cluster = cluster_with(gpu->name);
  if (!cluster) {
    return wrong_flag(
        "--gpu", fmt::format("no cluster of the catalogue has {}", gpu->name),
        "describe the cluster: docs/formats.md, and shardwise estimate --cluster FILE");
  }
  AskedEstimate question;
  question.job = asked.job;
  question.layout = asked.layout;
  question.job.cluster = *cluster;
  if (question.job.engine.empty() && question.job.gpus == "1") {
    // One GPU shards nothing: the usual loop, whose optimizers are all of PyTorch's and
    // bitsandbytes'.
    question.job.engine = kOneGpuEngine;
    said.push_back({"fits.engine", "PyTorch on one GPU, as FSDP1 without sharding (--engine)",
                    "docs/engines.md"});
    if (is_open(question.layout.texts, "zero_stage")) question.layout.texts["zero_stage"] = "0";
  } else if (question.job.engine.empty()) {
    question.job.engine = kEngine;
    said.push_back({"fits.engine", "FSDP2 (--engine)", "docs/engines.md"});
    if (is_open(question.layout.texts, "zero_stage")) {
      question.layout.texts["zero_stage"] = "3";
      said.back().text = "FSDP2 that shards everything, as ZeRO-3 (--engine, --zero-stage)";
    }
  }
  Result<EstimateAnswer> answer = answer_estimate(question);
  if (answer) answer->said.insert(answer->said.begin(), said.begin(), said.end());
  return answer;
}

}  // namespace shardwise
