#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "planner/question/subject.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// A layout as a user gave it.
struct AskedLayout {
  std::map<std::string, std::string> texts;  // by field of Layout; "" = not given
};

/// The flags that were given.
std::vector<std::string> given_flags(const AskedLayout& asked);

/// The batch of a step when nobody states one.
enum class BatchWhenOpen : std::uint8_t {
  usual,           // default_batch()
  one_microbatch,  // a micro-batch on each data-parallel rank: a job that grows with its cluster
};

/// The layout that the texts and the engine's defaults give. What is not given follows: dp_shard
/// from the GPUs, sequence parallelism from tp, the ZeRO stage from the engine. When neither the
/// GPUs nor dp_shard are given, as many GPUs as a node has, or as the degrees need, are taken into
/// `subject.cluster`. The result is legal: check_layout's diagnostics are among the problems.
/// `subject.job.global_batch_size` is set.
Result<Layout> read_layout(const AskedLayout& asked, Subject& subject,
                           BatchWhenOpen batch = BatchWhenOpen::usual);

}  // namespace shardwise
