#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "planner/spec/cluster_spec.h"
#include "planner/spec/diagnostic.h"
#include "planner/spec/engine_profile.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/layout.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/report.h"

namespace CLI {
class App;
}

namespace shardwise::cli {

/// What is trained, on what, by which software: the flags that every verb about a job shares.
/// Texts as typed; read_job turns them into values and says what is wrong.
struct JobFlags {
  std::string model;
  std::string cluster;
  std::string gpus;  // empty: one node, or what the layout's degrees multiply to
  std::string engine;
  std::map<std::string, std::string> texts;  // the other flags, by field of JobSpec; "" = not given
};
/// Whether the verb is about one cluster, or has its own flags for many.
enum class JobScope : bool { one_cluster, many_clusters };
/// The flags that were given: "--engine", "--sequence-length" …
std::vector<std::string> given_flags(const JobFlags& flags);
void add_job_flags(CLI::App& verb, JobFlags& flags, JobScope scope = JobScope::one_cluster);

/// A flag for each field of a Layout: --tp, --dp-shard, --recompute … Texts as typed.
struct LayoutFlags {
  std::map<std::string, std::string> texts;  // by field; "" = not given
};
std::vector<std::string> given_flags(const LayoutFlags& flags);
void add_layout_flags(CLI::App& verb, LayoutFlags& flags);

/// The four things that do not depend on the layout.
struct Subject {
  ModelSpec model;
  ClusterSpec cluster;  // gpus as asked for
  JobSpec job;
  EngineProfile engine;
  bool gpus_given = false;
  bool recompute_core_attention = false;  // --recompute-modules core_attn
  std::vector<Assumption> assumptions;    // what was taken for want of a flag or a key
};

/// Loads and checks everything the flags name. All problems are reported, not the first.
Result<Subject> read_subject(const JobFlags& flags);

/// Adds what a first screen says of times whose curves were not measured: curves_assumption().
void note_curves(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                 std::vector<Assumption>& assumptions);

/// The engines in "fsdp2,megatron_ddp", all of them for "all", the usual one for "".
Result<std::vector<const EngineProfile*>> read_engines(const std::string& names);

/// The batch of a step when no flag states one.
enum class BatchWhenOpen : std::uint8_t {
  usual,           // default_batch()
  one_microbatch,  // a micro-batch on each data-parallel rank: a job that grows with its cluster
};

/// The layout that the flags and the engine's defaults give. What is not given follows: dp_shard
/// from the GPUs, sequence parallelism from tp, the ZeRO stage from the engine. When neither --gpus
/// nor --dp-shard is given, as many GPUs as a node has, or as the degrees need, are taken into
/// `subject.cluster`. The result is legal: check_layout's diagnostics are among the problems.
/// `subject.job.global_batch_size` is set.
Result<Layout> read_layout(const LayoutFlags& flags, Subject& subject,
                           BatchWhenOpen batch = BatchWhenOpen::usual);

}  // namespace shardwise::cli
