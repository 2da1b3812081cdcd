#pragma once

#include "planner/question/asked_layout.h"
#include "planner/question/subject.h"

namespace CLI {
class App;
}

namespace shardwise::cli {

/// Whether the verb is about one cluster, or has its own flags for many.
enum class JobScope : bool { one_cluster, many_clusters };
/// The flags that every verb about a job shares.
void add_job_flags(CLI::App& verb, AskedJob& asked, JobScope scope = JobScope::one_cluster);
/// A flag for each field of a Layout: --tp, --dp-shard, --recompute …
void add_layout_flags(CLI::App& verb, AskedLayout& asked);

}  // namespace shardwise::cli
