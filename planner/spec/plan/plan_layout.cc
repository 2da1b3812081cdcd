#include <fmt/format.h>

#include <algorithm>

#include "planner/spec/json/fields.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/text/nearest.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/split.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

/// The order of ranks as a list of axes; in text "tp-cp-ep-dp_shard-dp_replicate-pp".
template <class Io, class L>
void list_order(Io& io, L& layout) {
  std::vector<std::string> names;
  for (const Axis axis : layout.order) names.emplace_back(name_of(axis));
  io.texts("order", names);
  if constexpr (Io::kReads) {
    auto order = layout.order;
    bool whole = names.size() == order.size();
    for (std::size_t i = 0; whole && i < order.size(); ++i) {
      const auto axis = from_name<Axis>(names[i]);
      whole = axis && std::find(order.begin(), order.begin() + i, *axis) == order.begin() + i;
      if (whole) order[i] = *axis;
    }
    if (whole) {
      layout.order = order;
    } else {
      io.fail("order", "does not name each axis once",
              fmt::format("order {}, fastest-varying first", fmt::join(kNamesOf<Axis>, ", ")));
    }
  }
}

template <class Io, class L>
void list_layout(Io& io, L& layout) {
  io.integer("tp", layout.tp, 1, kMaxRanks);
  io.integer("cp", layout.cp, 1, kMaxRanks);
  io.integer("pp", layout.pp, 1, kMaxRanks);
  io.integer("vpp", layout.vpp, 1, kMaxRanks);
  io.integer("first_stage_layers", layout.first_stage_layers, 0, kMaxRanks);
  io.integer("last_stage_layers", layout.last_stage_layers, 0, kMaxRanks);
  io.integer("ep", layout.ep, 1, kMaxRanks);
  io.integer("etp", layout.etp, 1, kMaxRanks);
  io.integer("dp_shard", layout.dp_shard, 1, kMaxRanks);
  io.integer("dp_replicate", layout.dp_replicate, 1, kMaxRanks);
  io.integer("micro_batch_size", layout.micro_batch_size, 1, kMaxBatch);
  io.integer("zero_stage", layout.zero_stage, 0, 3);
  io.boolean("sequence_parallel", layout.sequence_parallel);
  io.boolean("outer_shards_optimizer", layout.outer_shards_optimizer);
  io.switch_or_count("reshard_after_forward", layout.reshard_after_forward, kMaxRanks);
  io.boolean("reduce_every_microbatch", layout.reduce_every_microbatch);
  io.boolean("offload_optimizer", layout.offload_optimizer);
  io.boolean("store_param_remainders", layout.store_param_remainders);
  io.boolean("offload_activations", layout.offload_activations);
  io.boolean("double_buffer", layout.double_buffer);
  io.boolean("fp32_gradients", layout.fp32_gradients);
  io.boolean("overlap_grad_reduce", layout.overlap_grad_reduce);
  io.boolean("overlap_param_gather", layout.overlap_param_gather);
  io.integer("ddp_bucket_size", layout.ddp_bucket_size, 0, std::int64_t{1} << 50);
  io.boolean("ddp_pad_buckets_for_high_nccl_busbw", layout.ddp_pad_buckets_for_high_nccl_busbw);
  io.choice("recompute", layout.recompute);
  io.integer("recompute_interval", layout.recompute_interval, 1, 1 << 20);
  io.choice("schedule", layout.schedule);
  io.choice("cp_kind", layout.cp_kind);
  list_order(io, layout);
}
static_assert(field_count<Layout>() == 30, "list the new field above");

/// Sets the one field that has the key from text.
class FieldSetter {
 public:
  static constexpr bool kReads = true;
  FieldSetter(const std::string& key, const std::string& text) : key_(key), text_(text) {}

  template <std::integral T>
  void integer(std::string_view key, T& value, std::int64_t low, std::int64_t high) {
    if (!mine(key)) return;
    std::int64_t number = 0;
    const std::string problem = read_integer(text_, low, high, number);
    if (!problem.empty()) {
      problem_ = fmt::format("{}: {}", key_, problem);
      return;
    }
    value = static_cast<T>(number);
  }
  void boolean(std::string_view key, bool& value) {
    if (!mine(key)) return;
    if (text_ != "true" && text_ != "false") return wrong("true or false");
    value = text_ == "true";
  }
  void switch_or_count(std::string_view key, std::int32_t& value, std::int64_t high) {
    if (!mine(key)) return;
    if (text_ == "true" || text_ == "false") {
      value = text_ == "true" ? 1 : 0;
      return;
    }
    std::int64_t count = 0;
    if (!read_integer(text_, 2, high, count).empty()) {
      return wrong(fmt::format("true, false or an integer from 2 to {}", high));
    }
    value = static_cast<std::int32_t>(count);
  }
  template <class E>
  void choice(std::string_view key, E& value) {
    if (!mine(key)) return;
    const auto chosen = from_name<E>(text_);
    if (!chosen) return wrong(fmt::format("one of {}", fmt::join(kNamesOf<E>, ", ")));
    value = *chosen;
  }
  void texts(std::string_view key, std::vector<std::string>& values) {
    if (mine(key)) values = split_at(text_, '-');
  }
  void fail(std::string_view key, const std::string& message, const std::string& hint) {
    if (mine(key)) problem_ = fmt::format("{}: {} {} ({})", key_, shown(text_), message, hint);
  }

  bool found() const { return found_; }
  const std::string& problem() const { return problem_; }

 private:
  bool mine(std::string_view key) {
    found_ = found_ || key == key_;
    return key == key_;
  }
  void wrong(const std::string& expected) {
    problem_ = fmt::format("{}: {} is not {}", key_, shown(text_), expected);
  }

  const std::string& key_;
  const std::string& text_;
  bool found_ = false;
  std::string problem_;
};

/// The text of every field, by key.
class FieldTexts {
 public:
  static constexpr bool kReads = false;

  template <std::integral T>
  void integer(std::string_view key, const T& value, std::int64_t, std::int64_t) {
    add(key, std::to_string(value));
  }
  void boolean(std::string_view key, const bool& value) { add(key, value ? "true" : "false"); }
  void switch_or_count(std::string_view key, const std::int32_t& value, std::int64_t) {
    add(key, value == 0 ? "false" : value == 1 ? "true" : std::to_string(value));
  }
  template <class E>
  void choice(std::string_view key, const E& value) {
    add(key, std::string(name_of(value)));
  }
  void texts(std::string_view key, const std::vector<std::string>& parts) {
    add(key, fmt::format("{}", fmt::join(parts, "-")));
  }

  std::vector<std::string> keys;
  std::vector<std::string> values;

 private:
  void add(std::string_view key, std::string value) {
    keys.emplace_back(key);
    values.push_back(std::move(value));
  }
};

}  // namespace

void read_fields(ObjectReader& reader, Layout& layout) {
  FieldReader io(reader);
  list_layout(io, layout);
  reader.reject_unknown();
}

void write_fields(JsonWriter& json, const Layout& layout) {
  FieldWriter io(json);
  list_layout(io, layout);
}

const std::vector<std::string>& layout_keys() {
  static const std::vector<std::string> kKeys = [] {
    FieldTexts io;
    list_layout(io, static_cast<const Layout&>(Layout{}));
    return io.keys;
  }();
  return kKeys;
}

std::string set_field(Layout& layout, const std::string& key, const std::string& text) {
  FieldSetter io(key, text);
  list_layout(io, layout);
  if (io.found()) return io.problem();
  const std::optional<std::string> near = nearest(key, layout_keys());
  return fmt::format("{} is not a field of a layout ({})", shown(key),
                     near ? fmt::format("did you mean {}?", *near)
                          : fmt::format("use {}", fmt::join(layout_keys(), ", ")));
}

std::string field_text(const Layout& layout, const std::string& key) {
  FieldTexts io;
  list_layout(io, layout);
  const auto at = std::find(io.keys.begin(), io.keys.end(), key);
  return at == io.keys.end() ? "" : io.values[static_cast<std::size_t>(at - io.keys.begin())];
}

}  // namespace shardwise
