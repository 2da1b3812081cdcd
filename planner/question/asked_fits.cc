#include "planner/question/asked_fits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "planner/question/catalogue_summary.h"
#include "planner/question/flags.h"
#include "planner/question/named_gpu.h"
#include "planner/search/cheapest_fix.h"
#include "planner/search/single_changes.h"
#include "planner/spec/text/format.h"

namespace shardwise {
namespace {

constexpr const char* kEngine = "fsdp2";
constexpr std::int64_t kMostTimes = 256;  // as many GPUs
constexpr int kMostChanges = 3;

/// The cluster of the catalogue that has this GPU, the maker's own machine where there are several.
std::optional<std::string> cluster_with(const std::string& gpu) {
  std::optional<std::string> found;
  bool makers = false;
  for (const ClusterSummary& each : cluster_summaries()) {
    if (each.gpu != gpu) continue;
    const bool own = each.name.starts_with("dgx-");
    if (found && (makers || !own)) continue;
    found = each.name;
    makers = own;
  }
  return found;
}

bool is_open(const std::map<std::string, std::string>& texts, const char* field) {
  const auto at = texts.find(field);
  return at == texts.end() || at->second.empty();
}

/// "--recompute=full, then --tp=8: 61.2 GiB, 1.32 s a step": the changes that save most memory
/// each, and the cheapest one that is then enough; empty where three are not.
std::string few_changes(const EstimateAnswer& answer) {
  const Subject& s = answer.subject;
  const Bytes usable = answer.report.verdict.usable;
  Layout layout = answer.layout;
  std::string text;
  for (int change = 1; change < kMostChanges; ++change) {
    const std::vector<Neighbour> near =
        neighbours(s.model, s.cluster, s.job, s.engine, layout, usable);
    const auto best = std::ranges::max_element(near, {}, &Neighbour::memory_gained);
    if (best == near.end() || best->memory_gained <= Bytes(0)) return "";
    layout = best->change.layout;
    text += best->change.text + ", then ";
    const std::optional<Fix> fix =
        cheapest_fix(s.model, s.cluster, s.job, s.engine, layout, usable);
    if (fix) return text + to_string(*fix);
  }
  return "";
}

/// "--gpus 32: 61.2 GiB in nvidia-smi": the fewest of twice, four times … as many.
std::string fewest_gpus(AskedEstimate asked, std::int64_t gpus) {
  for (std::int64_t times = 2; times <= kMostTimes; times *= 2) {
    asked.job.gpus = std::to_string(gpus * times);
    const Result<EstimateAnswer> more = answer_estimate(asked);
    if (!more || more->report.verdict.fit != Fit::fits) continue;
    return fmt::format("--gpus {}: {}, {} a step", asked.job.gpus,
                       format_bytes(more->report.verdict.point),
                       format_seconds(more->report.step_time));
  }
  return "";
}

}  // namespace

Result<FitsAnswer> answer_fits(const AskedFits& asked) {
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
  if (question.job.engine.empty()) {
    question.job.engine = kEngine;
    said.push_back({"fits.engine", "FSDP2 (--engine)", "docs/engines.md"});
    if (is_open(question.layout.texts, "zero_stage")) {
      question.layout.texts["zero_stage"] = "3";
      said.back().text = "FSDP2 that shards everything, as ZeRO-3 (--engine, --zero-stage)";
    }
  }
  Result<EstimateAnswer> estimated = answer_estimate(question);
  if (!estimated) return estimated.problems();
  FitsAnswer answer{*std::move(estimated), ""};
  const Verdict& verdict = answer.estimate.report.verdict;
  answer.estimate.said.insert(answer.estimate.said.begin(), said.begin(), said.end());
  if (verdict.fit == Fit::fits) return answer;
  answer.change = verdict.cheapest_fix;
  if (answer.change.empty()) answer.change = few_changes(answer.estimate);
  if (answer.change.empty()) {
    answer.change = fewest_gpus(question, answer.estimate.layout.world());
  }
  return answer;
}

}  // namespace shardwise
