#include "planner/search/space/space.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/cost/memory/bucket_rules.h"
#include "planner/schedule/gathers_once.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/text/check.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

/// Calls visit(key, values of the space, field of a layout) for each field. The only list of them.
template <class Visit>
void for_each_field(SearchSpace& s, Visit visit) {
  visit("tp", s.tp, &Layout::tp);
  visit("cp", s.cp, &Layout::cp);
  visit("pp", s.pp, &Layout::pp);
  visit("vpp", s.vpp, &Layout::vpp);
  visit("first_stage_layers", s.first_stage_layers, &Layout::first_stage_layers);
  visit("last_stage_layers", s.last_stage_layers, &Layout::last_stage_layers);
  visit("ep", s.ep, &Layout::ep);
  visit("etp", s.etp, &Layout::etp);
  visit("dp_shard", s.dp_shard, &Layout::dp_shard);
  visit("dp_replicate", s.dp_replicate, &Layout::dp_replicate);
  visit("micro_batch_size", s.micro_batch_size, &Layout::micro_batch_size);
  visit("recompute_interval", s.recompute_interval, &Layout::recompute_interval);
  visit("zero_stage", s.zero_stage, &Layout::zero_stage);
  visit("sequence_parallel", s.sequence_parallel, &Layout::sequence_parallel);
  visit("outer_shards_optimizer", s.outer_shards_optimizer, &Layout::outer_shards_optimizer);
  visit("reshard_after_forward", s.reshard_after_forward, &Layout::reshard_after_forward);
  visit("reduce_every_microbatch", s.reduce_every_microbatch, &Layout::reduce_every_microbatch);
  visit("offload_optimizer", s.offload_optimizer, &Layout::offload_optimizer);
  visit("store_param_remainders", s.store_param_remainders, &Layout::store_param_remainders);
  visit("offload_activations", s.offload_activations, &Layout::offload_activations);
  visit("double_buffer", s.double_buffer, &Layout::double_buffer);
  visit("fp32_gradients", s.fp32_gradients, &Layout::fp32_gradients);
  visit("overlap_grad_reduce", s.overlap_grad_reduce, &Layout::overlap_grad_reduce);
  visit("overlap_param_gather", s.overlap_param_gather, &Layout::overlap_param_gather);
  visit("ddp_bucket_size", s.ddp_bucket_size, &Layout::ddp_bucket_size);
  visit("ddp_pad_buckets_for_high_nccl_busbw", s.ddp_pad_buckets_for_high_nccl_busbw,
        &Layout::ddp_pad_buckets_for_high_nccl_busbw);
  visit("recompute", s.recompute, &Layout::recompute);
  visit("schedule", s.schedule, &Layout::schedule);
  visit("cp_kind", s.cp_kind, &Layout::cp_kind);
  visit("order", s.order, &Layout::order);
}

std::vector<std::int32_t> divisors(std::int64_t n, std::int64_t most) {
  std::vector<std::int32_t> result;
  for (std::int64_t d = 1; d <= std::min(n, most); ++d) {
    if (n % d == 0) result.push_back(static_cast<std::int32_t>(d));
  }
  return result;
}

std::vector<std::int32_t> all_to(std::int64_t most) {
  std::vector<std::int32_t> result;
  for (std::int64_t n = 1; n <= most; ++n) result.push_back(static_cast<std::int32_t>(n));
  return result;
}

/// Divisors of `n` found in pairs, so that large numbers take no time.
std::vector<std::int32_t> all_divisors(std::int64_t n) {
  std::vector<std::int32_t> result;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    result.push_back(static_cast<std::int32_t>(d));
    if (d * d != n) result.push_back(static_cast<std::int32_t>(n / d));
  }
  std::ranges::sort(result);
  return result;
}

std::vector<RankOrder> all_orders() {
  std::vector<RankOrder> orders{Layout{}.order};  // the usual one stands for those alike
  RankOrder order = {Axis::tp, Axis::cp, Axis::ep, Axis::dp_shard, Axis::dp_replicate, Axis::pp};
  std::ranges::sort(order);
  do {
    if (order != orders.front()) orders.push_back(order);
  } while (std::ranges::next_permutation(order).found);
  return orders;
}

constexpr RankOrder kPipelineInside = {Axis::tp, Axis::cp,       Axis::ep,
                                       Axis::pp, Axis::dp_shard, Axis::dp_replicate};

SearchSpace full_space(const LayoutQuestion& q) {
  const std::int64_t gpus = q.cluster->gpus;
  const std::int64_t batch = q.job->global_batch_size;
  SearchSpace s;
  const auto divisors_of_gpus = all_divisors(gpus);
  const auto to = [&](std::int64_t most) {
    std::vector<std::int32_t> result = divisors_of_gpus;
    std::erase_if(result, [&](std::int32_t d) { return d > most; });
    return result;
  };
  s.tp = to(q.heads);
  s.cp = to(q.job->sequence_length);
  s.pp = to(q.blocks);
  s.vpp = all_to(q.blocks);
  s.ep = q.model->num_experts > 0 ? divisors(q.model->num_experts, gpus) : divisors(1, 1);
  s.etp = q.model->num_experts > 0 ? to(q.cut_by_etp) : divisors(1, 1);
  s.dp_shard = divisors_of_gpus;
  s.dp_replicate = divisors_of_gpus;
  s.micro_batch_size = batch > 0 ? all_divisors(batch) : std::vector<std::int32_t>{1, 2, 4, 8, 16};
  s.first_stage_layers = {0};
  s.last_stage_layers = {0};
  s.recompute_interval = {1};
  s.store_param_remainders = {false};
  s.zero_stage = {0, 1, 2, 3};
  for (auto* field : {&s.sequence_parallel, &s.outer_shards_optimizer, &s.offload_optimizer,
                      &s.offload_activations, &s.double_buffer}) {
    *field = {false, true};
  }
  s.reshard_after_forward = {1, 0};
  s.reduce_every_microbatch = {true, false};
  s.fp32_gradients = {true, false};
  s.overlap_grad_reduce = {true};
  s.overlap_param_gather = {true};
  s.ddp_bucket_size = {0};
  s.ddp_pad_buckets_for_high_nccl_busbw = {false};
  s.recompute = {Recompute::none, Recompute::selective, Recompute::full};
  s.schedule = values_of<PipelineSchedule>();
  s.cp_kind = {ContextParallelKind::ring, ContextParallelKind::all_gather,
               ContextParallelKind::ulysses};
  s.order = all_orders();
  return s;
}

SearchSpace usual_space(const LayoutQuestion& q) {
  constexpr std::int32_t kLargestUsualMicroBatch = 16;
  constexpr std::int64_t kFewestUsualTokens = 1024;  // of a sequence on a context-parallel rank
  SearchSpace s = full_space(q);
  const auto keep = [](auto& values, auto usual) {
    std::erase_if(values, [&](auto v) { return !usual(v); });
  };
  const std::int64_t inner = q.cluster->tiers.front().domain_size;
  keep(s.tp, [&](std::int32_t tp) { return tp <= std::max<std::int64_t>(inner, 1); });
  keep(s.cp, [&](std::int32_t cp) {
    return cp == 1 || q.job->sequence_length / cp >= kFewestUsualTokens;
  });
  keep(s.micro_batch_size, [](std::int32_t b) { return b <= kLargestUsualMicroBatch; });
  if (!gathers_once_in_pipelines(*q.engine)) {
    s.reduce_every_microbatch = {q.engine->reduce_every_microbatch};
  }
  const bool wide = q.engine->fp32_gradients_default || q.job->precision == DType::fp32;
  s.fp32_gradients = {wide && !q.job->reduce_scatter_with_fp32_accumulation};
  s.offload_optimizer = {false};
  s.offload_activations = {false};
  s.double_buffer = {false};
  s.cp_kind = {ContextParallelKind::ring};  // stands for all kinds where cp is 1
  if (!q.fused_attention) s.cp_kind.push_back(ContextParallelKind::all_gather);
  s.schedule = {PipelineSchedule::one_f_one_b};
  s.order = {Layout{}.order, kPipelineInside};
  return s;
}

std::vector<std::int32_t> from_zero(std::int64_t most) {
  std::vector<std::int32_t> result = all_to(most);
  result.insert(result.begin(), 0);
  return result;
}

/// The full space with the values of those fields too that only refine a layout.
SearchSpace every_value(const LayoutQuestion& q) {
  SearchSpace s = full_space(q);
  s.first_stage_layers = from_zero(q.blocks);
  s.last_stage_layers = from_zero(q.blocks);
  s.recompute_interval = all_to(q.blocks);
  s.store_param_remainders = {false, true};
  s.overlap_grad_reduce = {true, false};
  s.overlap_param_gather = {true, false};
  if (takes_bucket_size(*q.engine)) {
    // Around the engine's own number.
    const std::int64_t usual = q.engine->bucket_elements;
    s.ddp_bucket_size = {0, usual / 4, usual / 2, usual * 2, usual * 4};
  }
  if (chooses_buckets(*q.engine)) s.ddp_pad_buckets_for_high_nccl_busbw = {false, true};
  return s;
}

std::string unknown(const std::string& key) {
  Layout scratch;
  return set_field(scratch, key, "");
}

/// `key` was chosen on purpose: what is usual for it does not count.
void forget_usual(SearchSpace& space, std::string_view key) {
  for (const SearchRule& each : search_rules()) {
    if (std::ranges::find(each.keys, key) != each.keys.end()) {
      std::erase(space.rules, each.rule.id);
    }
  }
}

}  // namespace

double SearchSpace::product() const {
  double product = 1;
  SearchSpace copy = *this;
  for_each_field(copy, [&](std::string_view key, auto& values, auto) {
    // The degrees multiply to the GPUs: the last of them follows from the others.
    if (key != "dp_replicate") product *= static_cast<double>(values.size());
  });
  return product;
}

SearchSpace search_space(const LayoutQuestion& question, Breadth breadth) {
  SearchSpace space = breadth == Breadth::full ? full_space(question) : usual_space(question);
  for (const SearchRule& each : search_rules()) {
    if (each.widest >= breadth) space.rules.push_back(each.rule.id);
  }
  return space;
}

const std::vector<SearchRule>& search_rules() {
  static const std::vector<SearchRule> kRules = {
      {{"usual_sequence_parallel", "tensor parallelism comes with sequence parallelism",
        kReadsTp | kReadsSequenceParallel, true,
        [](const LayoutQuestion&, const Layout& l) { return l.tp > 1 && !l.sequence_parallel; },
        nullptr},
       Breadth::usual,
       {"sequence_parallel"}},
      {{"usual_expert_tp", "experts are cut by tp or not at all", kReadsTp | kReadsEtp, true,
        [](const LayoutQuestion&, const Layout& l) { return l.etp != 1 && l.etp != l.tp; },
        nullptr},
       Breadth::usual,
       {"etp"}},
      {{"usual_reduction", "without a pipeline gradients are reduced as the engine does by itself",
        kReadsPp | kReadsReduce, true,
        [](const LayoutQuestion& q, const Layout& l) {
          return l.pp == 1 && l.reduce_every_microbatch != q.engine->reduce_every_microbatch;
        },
        nullptr},
       Breadth::usual,
       {"reduce_every_microbatch"}},
      {{"even_chunks", "model chunks have equally many blocks where stages do",
        kReadsPp | kReadsVpp, true,
        [](const LayoutQuestion& q, const Layout& l) {
          return q.blocks % l.pp == 0 && q.blocks % (std::int64_t{l.pp} * l.vpp) != 0;
        },
        nullptr},
       Breadth::full,
       {"vpp"}},
      {{"usual_few_chunks", "stages have few model chunks, fewer where stages are not equal",
        kReadsPp | kReadsVpp, true,
        [](const LayoutQuestion& q, const Layout& l) {
          return l.vpp > (q.blocks % l.pp == 0 ? 8 : 4);
        },
        nullptr},
       Breadth::usual,
       {"vpp"}},
  };
  return kRules;
}

std::vector<std::string> held_fields(
    const SearchSpace& space, const LayoutQuestion& question,
    const std::vector<std::pair<std::string, std::string>>& locks) {
  std::vector<std::string> held;
  SearchSpace every = every_value(question);
  SearchSpace here = space;
  for_each_field(here, [&](std::string_view key, auto& values, auto field) {
    const bool locked =
        std::ranges::any_of(locks, [&](const auto& each) { return each.first == key; });
    if (locked || values.size() != 1) return;
    bool has_more = false;
    for_each_field(every, [&](std::string_view other, auto& all, auto) {
      if (other == key) has_more = all.size() > 1;
    });
    if (!has_more) return;
    Layout layout;
    layout.*field = values.front();
    held.push_back(fmt::format("{} {}", key, field_text(layout, std::string(key))));
  });
  return held;
}

std::string lock(SearchSpace& space, const std::string& key, const std::string& text) {
  Layout layout;
  std::string problem = set_field(layout, key, text);
  if (!problem.empty()) return problem;
  for_each_field(space, [&](std::string_view name, auto& values, auto field) {
    if (name == key) values = {layout.*field};
  });
  forget_usual(space, key);
  return "";
}

void hold(SearchSpace& space, std::string_view key, std::span<const std::string> texts) {
  forget_usual(space, key);
  for_each_field(space, [&](std::string_view name, auto& values, auto field) {
    if (name != key) return;
    values.clear();
    for (const std::string& text : texts) {
      Layout layout;
      const std::string problem = set_field(layout, std::string(key), text);
      SHARDWISE_CHECK(problem.empty(), problem);
      values.push_back(layout.*field);
    }
  });
}

std::string open(SearchSpace& space, const LayoutQuestion& question, const std::string& key) {
  if (std::ranges::find(layout_keys(), key) == layout_keys().end()) return unknown(key);
  SearchSpace every = every_value(question);
  for_each_field(every, [&](std::string_view from, auto& wide, auto) {
    if (from != key) return;
    for_each_field(space, [&](std::string_view to, auto& values, auto) {
      if constexpr (std::is_same_v<decltype(values), decltype(wide)>) {
        if (to == key) values = wide;
      }
    });
  });
  forget_usual(space, key);
  return "";
}

}  // namespace shardwise
