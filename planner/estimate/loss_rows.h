#pragma once

#include <array>
#include <cstdint>

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// JobSpec::loss_chunk_rows of a job for which nobody states it: open on GPUs, the rule by the
/// vocabulary's width on CPUs. Every chunk reads and writes the head's whole gradient in fp32: on a
/// GPU few rows cost more time than the logits of many cost memory, on a CPU few rows stay in its
/// caches. docs/memory.md, "Shardwise's executor", has figures.
std::int64_t usual_loss_chunk_rows(const GpuSpec& gpu);

/// Rows that open ones may become.
inline constexpr std::array<std::int64_t, 3> kLossRowChoices = {1024, 2048, 4096};

/// The job as one layout runs it: an open loss becomes loss_of(), open rows the choice with the
/// shortest step among those whose upper bound of memory is `usable` at most, or, where none is,
/// the one that needs least. kUsualLossRows where they do not matter: without our kernels or
/// without a chunked loss. \pre check_layout has no diagnostics
JobSpec decided_job(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                    const EngineProfile& engine, const Layout& layout, Bytes usable);

}  // namespace shardwise
