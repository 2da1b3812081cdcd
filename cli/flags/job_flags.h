#pragma once

#include <cstdint>

#include "planner/question/asked_layout.h"
#include "planner/question/subject.h"

namespace CLI {
class App;
}

namespace shardwise::cli {

/// Subject of the verb: one cluster, many for which it has flags of its own, or GPUs of a kind;
/// then the model needs no flag.
enum class JobScope : std::uint8_t { one_cluster, many_clusters, one_gpu };
/// The flags that every verb about a job shares.
void add_job_flags(CLI::App& verb, AskedJob& asked, JobScope scope = JobScope::one_cluster);
/// Adds the engine and a flag for each field of a JobSpec.
void add_job_fields(CLI::App& verb, AskedJob& asked, const char* usual_engine);
/// A flag for each field of a Layout: --tp, --dp-shard, --recompute …
void add_layout_flags(CLI::App& verb, AskedLayout& asked);

}  // namespace shardwise::cli
