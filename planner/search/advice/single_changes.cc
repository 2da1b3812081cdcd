#include "planner/search/advice/single_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <utility>

#include "planner/estimate/loss_rows.h"
#include "planner/legality/layout_rules.h"
#include "planner/legality/legality.h"
#include "planner/schedule/gathers_once.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/plan_fields.h"

namespace shardwise {

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

namespace {

/// By which degrees grow and shrink.
constexpr std::array<std::int32_t, 9> kFactors = {2, 3, 4, 6, 8, 12, 16, 32, 64};

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
    for (const std::int32_t factor : kFactors) {
      for (std::int32_t Layout::*const from : {&Layout::dp_shard, &Layout::dp_replicate}) {
        if (layout_.*from % factor != 0) continue;
        Layout changed = layout_;
        changed.*degree *= factor;
        changed.*from /= factor;
        if (degree == &Layout::tp) {
          if (layout_.tp == 1) changed.sequence_parallel = true;  // as tensor parallelism comes
          if (follows_tp()) changed.etp = changed.tp;
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

  /// A degree over 2, 3, 4 … with as many more shards.
  void shrink(std::int32_t Layout::*degree) {
    for (const std::int32_t factor : kFactors) {
      if (layout_.*degree % factor != 0) continue;
      Layout changed = layout_;
      changed.*degree /= factor;
      changed.dp_shard *= factor;
      if (degree == &Layout::tp) {
        if (changed.tp == 1) changed.sequence_parallel = false;
        if (follows_tp()) changed.etp = changed.tp;
      }
      add(changed);
    }
  }
  /// Ranks of one data-parallel axis to the other.
  void move(std::int32_t Layout::*from, std::int32_t Layout::*to) {
    for (const std::int32_t factor : kFactors) {
      if (layout_.*from % factor != 0) continue;
      Layout changed = layout_;
      changed.*from /= factor;
      changed.*to *= factor;
      add(changed);
    }
  }
  void toggle(bool Layout::*field) { with(field, !(layout_.*field)); }
  template <class E>
  void every(E Layout::*field) {
    for (std::size_t i = 0; i < kNamesOf<E>.size(); ++i) with(field, static_cast<E>(i));
  }

  std::vector<LayoutChange> take() { return std::move(found_); }

 private:
  /// Experts are cut as the layers are; a dense model has none to cut.
  bool follows_tp() const { return question_.model->num_experts > 0 && layout_.etp == layout_.tp; }

  const LayoutQuestion& question_;
  const Layout& layout_;
  std::vector<LayoutChange> found_;
};

/// Changes that may need less memory.
void add_sparing(Changes& changes, const ModelSpec& model, const EngineProfile& engine,
                 const Layout& layout) {
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
}

/// And those that may need more.
void add_spending(Changes& changes, const ModelSpec& model, const EngineProfile& engine,
                  const Layout& layout) {
  changes.every(&Layout::recompute);
  changes.every(&Layout::schedule);
  changes.every(&Layout::cp_kind);
  for (const std::int32_t factor : kFactors) {
    if (layout.micro_batch_size > std::numeric_limits<std::int32_t>::max() / factor) break;
    changes.with(&Layout::micro_batch_size, layout.micro_batch_size * factor);
  }
  for (const int stage : engine.zero_stages) {
    changes.with(&Layout::zero_stage, static_cast<std::int8_t>(stage));
  }
  for (std::int32_t chunks = 1; chunks <= model.num_hidden_layers / layout.pp; ++chunks) {
    changes.with(&Layout::vpp, chunks);
  }
  changes.with(&Layout::reshard_after_forward, layout.reshard_after_forward == 0 ? 1 : 0);
  for (bool Layout::*const field :
       {&Layout::sequence_parallel, &Layout::outer_shards_optimizer,
        &Layout::reduce_every_microbatch, &Layout::store_param_remainders,
        &Layout::offload_optimizer, &Layout::offload_activations, &Layout::double_buffer,
        &Layout::fp32_gradients, &Layout::overlap_grad_reduce, &Layout::overlap_param_gather}) {
    changes.toggle(field);
  }
  changes.shrink(&Layout::tp);
  changes.shrink(&Layout::pp);
  changes.shrink(&Layout::cp);
  changes.move(&Layout::dp_shard, &Layout::dp_replicate);
  changes.move(&Layout::dp_replicate, &Layout::dp_shard);
  for (std::int32_t ep = 1; ep < layout.ep; ++ep) changes.with(&Layout::ep, ep);
}

}  // namespace

std::vector<LayoutChange> single_changes(const ModelSpec& model, const ClusterSpec& cluster,
                                         const JobSpec& job, const EngineProfile& engine,
                                         const Layout& layout) {
  const LayoutQuestion question = layout_question(model, cluster, job, engine);
  Changes changes(question, layout);
  add_sparing(changes, model, engine, layout);
  return changes.take();
}

std::vector<Neighbour> neighbours(const ModelSpec& model, const ClusterSpec& cluster,
                                  const JobSpec& job, const EngineProfile& engine,
                                  const Layout& layout, Bytes usable, const std::stop_token& stop) {
  const LayoutQuestion question = layout_question(model, cluster, job, engine);
  Changes changes(question, layout);
  add_sparing(changes, model, engine, layout);
  add_spending(changes, model, engine, layout);
  const auto cost_of = [&](const Layout& of) {
    return evaluate(model, cluster, decided_job(model, cluster, job, engine, of, usable), engine,
                    of);
  };
  const auto sequences = [&](const Layout& of) {
    return static_cast<double>(job.batch_for(of.dp(), of.micro_batch_size));
  };
  const Evaluation now = cost_of(layout);
  std::vector<Neighbour> all;
  for (LayoutChange& change : changes.take()) {
    if (stop.stop_requested()) break;
    const Evaluation cost = cost_of(change.layout);
    const double steps = sequences(layout) / sequences(change.layout);
    all.push_back(
        {std::move(change), cost, now.point - cost.point, now.step_time - cost.step_time * steps});
  }
  return all;
}

}  // namespace shardwise
