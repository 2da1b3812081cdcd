#include "planner/search/cheapest_fix.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/cost/gathers_once.h"
#include "planner/cost/layout_rules.h"
#include "planner/cost/legality.h"
#include "planner/spec/format.h"
#include "planner/spec/plan_fields.h"

namespace shardwise {
namespace {

/// "--tp=8 --dp-shard=8": the flags that make `to` of `from`.
std::string flags_between(const Layout& from, const Layout& to) {
  std::vector<std::string> words;
  for (const std::string& key : layout_keys()) {
    const std::string before = field_text(from, key);
    const std::string after = field_text(to, key);
    if (before == after) continue;
    std::string flag = key;
    std::ranges::replace(flag, '_', '-');
    words.push_back(fmt::format("--{}={}", flag, after));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

/// Gathers the changes of one layout.
class Changes {
 public:
  Changes(const LayoutQuestion& question, const Layout& layout)
      : question_(question), layout_(layout) {}

  /// Adds `changed` when it is legal, says something new, and is not there yet.
  void add(Layout changed) {
    gather_once(changed, *question_.engine, *question_.job);
    const auto broken = [&](const LayoutRule& rule) { return rule.broken(question_, changed); };
    const bool known =
        changed == layout_ || std::ranges::any_of(found_, [&](const LayoutChange& other) {
          return other.layout == changed;
        });
    if (known || std::ranges::any_of(layout_rules(), broken)) return;
    const bool rounds = layout_.fp32_gradients && !changed.fp32_gradients;
    found_.push_back({flags_between(layout_, changed), rounds, changed});
  }

  template <class T>
  void with(T Layout::*field, T value) {
    Layout changed = layout_;
    changed.*field = value;
    add(changed);
  }

  /// A degree times 2, 3, 4 … with as much less data parallelism, shards first.
  void grow(std::int32_t Layout::*degree) {
    for (const std::int32_t factor : {2, 3, 4, 6, 8, 12, 16, 32, 64}) {
      for (std::int32_t Layout::*const from : {&Layout::dp_shard, &Layout::dp_replicate}) {
        if (layout_.*from % factor != 0) continue;
        Layout changed = layout_;
        changed.*degree *= factor;
        changed.*from /= factor;
        if (degree == &Layout::tp) {
          if (layout_.tp == 1) changed.sequence_parallel = true;  // as tensor parallelism comes
          if (layout_.etp == layout_.tp) changed.etp = changed.tp;
        }
        if (changed.dp_shard * changed.cp == 1 && changed.dp_replicate == 1) {
          changed.zero_stage = static_cast<std::int8_t>(std::ranges::min(
              question_.engine->zero_stages));  // nobody is left to share states with
        }
        add(changed);
        break;
      }
    }
  }

  std::vector<LayoutChange> take() { return std::move(found_); }

 private:
  const LayoutQuestion& question_;
  const Layout& layout_;
  std::vector<LayoutChange> found_;
};

}  // namespace

std::vector<LayoutChange> single_changes(const ModelSpec& model, const ClusterSpec& cluster,
                                         const JobSpec& job, const EngineProfile& engine,
                                         const Layout& layout) {
  const LayoutQuestion question = layout_question(model, cluster, job, engine);
  Changes changes(question, layout);
  for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
    changes.with(&Layout::recompute, recompute);
  }
  for (std::int32_t size = 1; size < layout.micro_batch_size; ++size) {
    if (layout.micro_batch_size % size == 0) changes.with(&Layout::micro_batch_size, size);
  }
  for (const int stage : engine.zero_stages) {
    if (stage > layout.zero_stage) {
      changes.with(&Layout::zero_stage, static_cast<std::int8_t>(stage));
    }
  }
  changes.with(&Layout::sequence_parallel, true);
  changes.with(&Layout::reshard_after_forward, 1);
  changes.with(&Layout::outer_shards_optimizer, true);
  changes.with(&Layout::store_param_remainders, true);
  changes.with(&Layout::offload_optimizer, true);
  changes.with(&Layout::offload_activations, true);
  changes.with(&Layout::double_buffer, true);
  changes.with(&Layout::fp32_gradients, false);
  changes.with(&Layout::schedule, PipelineSchedule::one_f_one_b);
  if (layout.recompute == Recompute::full && layout.recompute_interval > 1) {
    changes.with(&Layout::recompute_interval, 1);
  }
  if (layout.vpp > 1) changes.with(&Layout::vpp, 1);
  if (layout.dp_replicate > 1) {
    Layout whole = layout;
    whole.dp_shard *= whole.dp_replicate;
    whole.dp_replicate = 1;
    changes.add(whole);
  }
  changes.grow(&Layout::tp);
  changes.grow(&Layout::pp);
  changes.grow(&Layout::cp);
  for (std::int32_t ep = 2; ep <= model.num_experts; ++ep) {
    if (ep > layout.ep) changes.with(&Layout::ep, ep);
  }
  return changes.take();
}

std::optional<Fix> cheapest_fix(const ModelSpec& model, const ClusterSpec& cluster,
                                const JobSpec& job, const EngineProfile& engine,
                                const Layout& layout, Bytes usable) {
  std::optional<Fix> best;
  // Without a stated batch, layouts have batches of different size.
  const auto each_sequence = [&](const Fix& fix) {
    const Layout& l = fix.change.layout;
    return fix.cost.step_time / static_cast<double>(job.batch_for(l.dp(), l.micro_batch_size));
  };
  for (const LayoutChange& change : single_changes(model, cluster, job, engine, layout)) {
    const Fix fix = {change, evaluate(model, cluster, job, engine, change.layout)};
    if (fix.cost.upper > usable) continue;
    if (!best || each_sequence(fix) < each_sequence(*best)) best = fix;
  }
  return best;
}

std::string to_string(const Fix& fix) {
  return fmt::format("{}: {}, {} a step{}", fix.change.text, format_bytes(fix.cost.point),
                     format_seconds(fix.cost.step_time),
                     fix.change.rounds_gradients ? "; 16-bit gradients change the results" : "");
}

}  // namespace shardwise
