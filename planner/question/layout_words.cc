#include "planner/question/layout_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>
#include <vector>

#include "planner/spec/plan/names.h"
#include "planner/spec/plan/plan_fields.h"

namespace shardwise {
namespace {

/// "tp-pp-dp": the axes of more than one rank, fastest first.
std::string order_words(const Layout& layout) {
  std::vector<std::string_view> axes;
  for (const Axis axis : layout.order) {
    switch (axis) {
      case Axis::tp:
        if (layout.tp > 1) axes.emplace_back("tp");
        break;
      case Axis::cp:
        if (layout.cp > 1) axes.emplace_back("cp");
        break;
      case Axis::ep:
        if (layout.ep > 1) axes.emplace_back("ep");
        break;
      case Axis::pp:
        if (layout.pp > 1) axes.emplace_back("pp");
        break;
      case Axis::dp_shard:
        if (layout.dp_shard > 1) axes.emplace_back("dp");
        break;
      case Axis::dp_replicate:
        if (layout.dp_replicate > 1) axes.emplace_back("replicas");
        break;
    }
  }
  return fmt::format("{}", fmt::join(axes, "-"));
}

}  // namespace

std::string other_settings(const Layout& layout) {
  const Layout usual;
  std::vector<std::string> words;
  const auto say = [&](bool differs, std::string text) {
    if (differs) words.push_back(std::move(text));
  };
  say(layout.recompute != usual.recompute,
      fmt::format("{} recompute", name_of(layout.recompute)) +
          (layout.recompute_interval > 1 ? fmt::format(" of every {}", layout.recompute_interval)
                                         : ""));
  say(layout.schedule != usual.schedule, std::string(name_of(layout.schedule)));
  say(layout.cp > 1 && layout.cp_kind != usual.cp_kind, std::string(name_of(layout.cp_kind)));
  say(layout.tp > 1 && !layout.sequence_parallel, "no sequence parallel");
  say(layout.outer_shards_optimizer, "HFSDP");
  say(layout.zero_stage == 3 && layout.reshard_after_forward == 0, "kept gathered");
  say(layout.reshards_to_groups(), fmt::format("resharded to {}", layout.reshard_after_forward));
  say(layout.zero_stage >= 2 && !layout.reduce_every_microbatch, "reduced once");
  say(layout.offload_optimizer, "optimizer on host");
  say(layout.offload_activations, "activations on host");
  say(layout.store_param_remainders, "param remainders");
  say(layout.double_buffer, "double buffer");
  say(layout.ddp_bucket_size > 0, fmt::format("buckets of {}", layout.ddp_bucket_size));
  say(layout.ddp_pad_buckets_for_high_nccl_busbw, "buckets padded to 65,536");
  say(layout.first_stage_layers > 0, fmt::format("first {}", layout.first_stage_layers));
  say(layout.last_stage_layers > 0, fmt::format("last {}", layout.last_stage_layers));
  say(layout.order != usual.order, order_words(layout));
  return fmt::format("{}", fmt::join(words, ", "));
}

FieldValues differing_fields(const Layout& from, const Layout& to) {
  FieldValues values;
  for (const std::string& key : layout_keys()) {
    std::string value = field_text(to, key);
    if (field_text(from, key) != value) values.emplace_back(key, std::move(value));
  }
  return values;
}

std::string in_words(const FieldValues& values) {
  std::vector<std::string> words;
  for (const auto& [field, value] : values) words.push_back(fmt::format("{} {}", field, value));
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace shardwise
