#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/legality/layout_rules.h"
#include "planner/spec/plan/layout.h"

namespace shardwise {

/// Part of the legal space that is searched.
enum class Breadth : std::uint8_t {
  usual,  // what people run without a second thought: docs/search.md, "The usual space"
  full,   // every value of every field
};

using RankOrder = std::array<Axis, 6>;

/// The values each field of a layout may take. Their product, as far as the degrees multiply to the
/// GPUs, is what a search enumerates; rules drop what is illegal or the same as another.
struct SearchSpace {
  std::vector<std::int32_t> tp;
  std::vector<std::int32_t> cp;
  std::vector<std::int32_t> pp;
  std::vector<std::int32_t> vpp;
  std::vector<std::int32_t> first_stage_layers;
  std::vector<std::int32_t> last_stage_layers;
  std::vector<std::int32_t> ep;
  std::vector<std::int32_t> etp;
  std::vector<std::int32_t> dp_shard;
  std::vector<std::int32_t> dp_replicate;
  std::vector<std::int32_t> micro_batch_size;
  std::vector<std::int32_t> recompute_interval;
  std::vector<std::int8_t> zero_stage;
  std::vector<bool> sequence_parallel;
  std::vector<bool> outer_shards_optimizer;
  std::vector<std::int32_t> reshard_after_forward;
  std::vector<bool> reduce_every_microbatch;
  std::vector<bool> offload_optimizer;
  std::vector<bool> store_param_remainders;
  std::vector<bool> offload_activations;
  std::vector<bool> double_buffer;
  std::vector<bool> fp32_gradients;
  std::vector<bool> overlap_grad_reduce;
  std::vector<bool> overlap_param_gather;
  std::vector<std::int64_t> ddp_bucket_size;
  std::vector<bool> ddp_pad_buckets_for_high_nccl_busbw;
  std::vector<Recompute> recompute;
  std::vector<PipelineSchedule> schedule;
  std::vector<ContextParallelKind> cp_kind;
  std::vector<RankOrder> order;
  /// Ids of the search_rules() that apply.
  std::vector<std::string_view> rules;

  /// Product of the numbers of values: no fewer than the layouts there are.
  double product() const;
};

/// The space of a job on all GPUs of its cluster. Besides divisors, sizes are bounded where more
/// cannot help: micro-batches divide the global batch, vpp counts blocks.
SearchSpace search_space(const LayoutQuestion& question, Breadth breadth);

/// Rule by which a search leaves out products of values that would run; each applies until one of
/// its fields is locked or opened.
struct SearchRule {
  LayoutRule rule;
  Breadth widest = Breadth::usual;  // the broadest space that it applies to
  std::vector<std::string_view> keys;
};
const std::vector<SearchRule>& search_rules();

/// Fields that the space leaves one value though they have more, as "first_stage_layers 0". Those
/// in `locks` are left out.
std::vector<std::string> held_fields(const SearchSpace& space, const LayoutQuestion& question,
                                     const std::vector<std::pair<std::string, std::string>>& locks);

/// Leaves the field `key` one value, as a user typed it. \returns empty, or what is wrong
std::string lock(SearchSpace& space, const std::string& key, const std::string& text);

/// Leaves the field `key` these values, whatever is usual for it. \pre it has them
void hold(SearchSpace& space, std::string_view key, std::span<const std::string> texts);

/// Gives the field `key` every value it has. Fields that refine a layout (stages of other sizes,
/// recompute of some blocks, communication not overlapped) have one value even in the full space,
/// and all here. \returns empty, or what is wrong
std::string open(SearchSpace& space, const LayoutQuestion& question, const std::string& key);

}  // namespace shardwise
