#include "planner/question/asked_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/cost/kernels/flops.h"
#include "planner/model/parameter_words.h"
#include "planner/search/advice/default_batch.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise {
namespace {

/// The clusters asked for, else all of the catalogue that train on accelerators.
Result<std::vector<ClusterSpec>> read_clusters(const std::vector<std::string>& asked) {
  const std::vector<std::string> names = asked.empty() ? catalogue_names("clusters") : asked;
  std::vector<ClusterSpec> clusters;
  Diagnostics problems;
  for (const std::string& name : names) {
    Result<ClusterSpec> cluster = find_cluster(name);
    if (!cluster) {
      problems.insert(problems.end(), cluster.problems().begin(), cluster.problems().end());
    } else if (!asked.empty() || cluster->gpu.vendor != "cpu") {
      clusters.push_back(*std::move(cluster));
    }
  }
  if (!problems.empty()) return problems;
  return clusters;
}

/// The job is read beside the first cluster that computes in its precision; one that does not is
/// never in time. The first of all when none does.
std::size_t first_that_computes(const std::vector<ClusterSpec>& clusters, const AskedJob& job) {
  const auto text = job.texts.find("precision");
  const bool given = text != job.texts.end() && !text->second.empty();
  const DType asked = given ? dtype_from_name(text->second).value_or(DType::bf16) : DType::bf16;
  const auto at = std::ranges::find_if(
      clusters, [&](const ClusterSpec& cluster) { return cluster.gpu.peak(asked).value() > 0; });
  return at == clusters.end() ? 0 : static_cast<std::size_t>(at - clusters.begin());
}

}  // namespace

Result<SizeQuestion> read_question(const AskedSize& asked) {
  Result<std::vector<ClusterSpec>> clusters = read_clusters(asked.clusters);
  if (!clusters) return clusters.problems();
  AskedJob beside = asked.job;
  const std::size_t judge = first_that_computes(*clusters, asked.job);
  beside.cluster = asked.clusters.empty() ? (*clusters)[judge].name : asked.clusters[judge];
  Result<Subject> subject = read_subject(beside);
  if (!subject) return subject.problems();

  SizeQuestion question;
  question.subject = *std::move(subject);
  question.clusters = *std::move(clusters);
  const ModelSpec& model = question.subject.model;
  JobSpec& job = question.subject.job;
  if (job.global_batch_size == 0) {
    job.global_batch_size = default_batch(question.subject.cluster, job);
    question.assumptions.push_back(batch_assumption(question.subject.cluster, job));
  }
  question.assumptions.push_back({"sizing.model",
                                  fmt::format("{}: {}", model.name, parameters_words(model)),
                                  "docs/models.md, Counts"});
  const std::vector<Assumption>& more = question.subject.assumptions;
  question.assumptions.insert(question.assumptions.end(), more.begin(), more.end());

  SizingGoal& goal = question.goal;
  goal.tokens = static_cast<std::int64_t>(asked.tokens);
  goal.deadline = Seconds(asked.days * 86400);
  goal.most_gpus = asked.most_gpus;
  goal.restart = Seconds(asked.restart_minutes * 60);
  goal.default_mtbf_hours = asked.mtbf_hours;
  goal.precision = job.precision;
  goal.experts = model.num_experts > 0;
  goal.work =
      model_flops(model, job).causal * (asked.tokens / static_cast<double>(job.sequence_length));
  return question;
}

}  // namespace shardwise
