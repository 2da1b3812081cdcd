#include <fmt/format.h>

#include "planner/cost/memory/bucket_rules.h"
#include "planner/cost/memory/unit_queues.h"
#include "planner/legality/layout_rule_parts.h"
#include "planner/schedule/gathers_once.h"
#include "planner/spec/plan/names.h"

namespace shardwise {
namespace {

std::int64_t shard_group(const Layout& l) { return std::int64_t{l.dp_shard} * l.cp; }

/// What a model or job has that the engine keeps no parts of; empty when nothing.
std::string only_dense(const LayoutQuestion& q) {
  if (q.model->num_experts > 0) return "routed experts";
  if (q.job->frozen_base) return "frozen weights";
  return q.job->fp8_parameter_gather ? "fp8 parameter gathers" : "";
}

/// Groups of so many neighbours exist in every order of cp and dp_shard.
bool has_neighbours(const Layout& l) {
  const std::int64_t n = l.reshard_after_forward;
  const auto fits = [&](std::int64_t extent) { return n % extent == 0 || extent % n == 0; };
  return fits(l.cp) && fits(l.dp_shard);
}

/// Ranks share a state: within a replica, or optimizer states over replicas.
bool shards_something(const Layout& l) {
  return std::int64_t{l.dp_shard} * l.cp > 1 || (l.outer_shards_optimizer && l.dp_replicate > 1);
}

/// The engine can keep gathered weights from forward to backward.
bool keeps_gathered(const EngineProfile& engine) {
  return engine.gather == GatherBuffer::copy_out || engine.gather == GatherBuffer::rate_limited;
}

/// Groups that gather what ranks keep of weights may be a single one, of all ranks: hpZ on one node
/// has a second shard all the same.
bool takes_one_group(const LayoutQuestion& q) { return keeps_parts(*q.engine); }

/// The engine's gradient buffer has the dtype that the layout says.
bool chooses_gradient_dtype(const LayoutQuestion& q) {
  return q.engine->gradient_buffer != GradientBuffer::copy_in && q.job->precision != DType::fp32;
}

constexpr const char* kBucketSize = "--ddp-bucket-size";
constexpr const char* kPadBuckets = "--ddp-pad-buckets-for-high-nccl-busbw";
constexpr const char* kRemainders = "--store-param-remainders";

// Each rule: id, text, fields, redundant, when broken, what to say.
const LayoutRule kStateRules[] = {
    {"engine_zero_stage", "the engine has the ZeRO stage", kReadsZeroStage, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return std::ranges::find(q.engine->zero_stages, int{l.zero_stage}) ==
              q.engine->zero_stages.end();
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return RuleBreach{"--zero-stage",
                         fmt::format("{} has no ZeRO stage {}", q.engine->name, int{l.zero_stage}),
                         fmt::format("use {}", fmt::join(q.engine->zero_stages, " or "))};
     }},
    {"pipeline_zero_stage", "the engine has the ZeRO stage in pipelines",
     kReadsPp | kReadsZeroStage, false,
     [](const LayoutQuestion& q, const Layout& l) {
       const std::vector<int>& stages = q.engine->pipeline_zero_stages;
       return l.pp > 1 && !stages.empty() &&
              std::ranges::find(stages, int{l.zero_stage}) == stages.end();
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return RuleBreach{
           "--zero-stage",
           fmt::format("{} has no ZeRO stage {} in pipelines", q.engine->name, int{l.zero_stage}),
           fmt::format("use {}, or --pp 1", fmt::join(q.engine->pipeline_zero_stages, " or "))};
     }},
    {"engine_hybrid", "the engine shards within replicas", kReadsZeroStage | kReadsDp, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return l.zero_stage > 0 && l.dp_replicate > 1 && !q.engine->hybrid;
     },
     [](const LayoutQuestion& q, const Layout&) {
       RuleBreach breach = engine_cannot(q, "--dp-replicate", "replicate what it shards");
       breach.hint = "use 1";
       return breach;
     }},
    {"replicas_of_shards", "Megatron's DDP has replicas of a distributed optimizer alone",
     kReadsZeroStage | kReadsDp, false,
     [](const LayoutQuestion& q, const Layout& l) {
       const bool has_instances =
           q.engine->hybrid && q.engine->gradient_buffer == GradientBuffer::contiguous;
       return has_instances && l.zero_stage == 0 && l.dp_replicate > 1;
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return RuleBreach{"--dp-replicate",
                         fmt::format("{} has {} instances of a distributed optimizer, which ZeRO "
                                     "stage 0 has none of",
                                     q.engine->name, l.dp_replicate),
                         "use --dp-shard for all ranks, or --zero-stage 1"};
     }},
    {"engine_outer", "the engine shards optimizer states over both axes", kReadsOuter, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return l.outer_shards_optimizer && !q.engine->outer_shards_optimizer;
     },
     [](const LayoutQuestion& q, const Layout&) {
       return engine_cannot(q, "--outer-shards-optimizer", "shard optimizer states over replicas");
     }},
    {"outer_is_zero3", "optimizer states over both axes come with ZeRO-3",
     kReadsOuter | kReadsZeroStage, false,
     [](const LayoutQuestion&, const Layout& l) {
       return l.outer_shards_optimizer && l.zero_stage != 3;
     },
     [](const LayoutQuestion&, const Layout& l) {
       return RuleBreach{"--outer-shards-optimizer",
                         fmt::format("needs ZeRO stage 3, not {}", int{l.zero_stage}), ""};
     }},
    {"engine_reshard", "the engine can keep weights gathered from forward to backward",
     kReadsReshard | kReadsZeroStage, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return l.zero_stage == 3 && !l.reshard_after_forward && !keeps_gathered(*q.engine);
     },
     [](const LayoutQuestion& q, const Layout&) {
       return engine_cannot(q, "--reshard-after-forward", "keep weights gathered until backward");
     }},
    {"engine_reshard_groups", "the engine can reshard weights to fewer ranks", kReadsReshard, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return l.reshard_after_forward > 1 && !q.engine->reshards_to_groups;
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return RuleBreach{"--reshard-after-forward",
                         fmt::format("{} cannot reshard weights to groups of {} ranks",
                                     q.engine->name, l.reshard_after_forward),
                         "use true or false"};
     }},
    {"reshard_groups_divide", "weights are resharded to a part of the ranks that share them",
     kReadsReshard | kReadsDp | kReadsCp, false,
     [](const LayoutQuestion& q, const Layout& l) {
       const std::int64_t n = l.reshard_after_forward;
       const std::int64_t most = shard_group(l) / (takes_one_group(q) ? 1 : 2);
       return n > 1 && (n > most || shard_group(l) % n != 0 || !has_neighbours(l));
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return RuleBreach{"--reshard-after-forward",
                         fmt::format("{} does not divide the {} ranks that share weights into "
                                     "{}groups of neighbours",
                                     l.reshard_after_forward, shard_group(l),
                                     takes_one_group(q) ? "" : "several "),
                         keeps_gathered(*q.engine) ? "use true, false or a divisor of them"
                                                   : "use true or a divisor of them"};
     }},
    {"reshard_groups_without_tp", "a second shard of weights comes without tensor parallelism",
     kReadsReshard | kReadsTp, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return l.reshard_after_forward > 1 && l.tp > 1 && takes_one_group(q);
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return RuleBreach{"--reshard-after-forward",
                         fmt::format("{} takes {} neighbours among all ranks, which with --tp {} "
                                     "have parts of different tensors",
                                     q.engine->name, l.reshard_after_forward, l.tp),
                         "use true, or --tp 1"};
     }},
    {"reshard_groups_dense",
     "only dense trained weights of 16 bits or more can be resharded to fewer ranks", kReadsReshard,
     false,
     [](const LayoutQuestion& q, const Layout& l) {
       return l.reshard_after_forward > 1 && !only_dense(q).empty();
     },
     [](const LayoutQuestion& q, const Layout&) {
       return RuleBreach{"--reshard-after-forward",
                         fmt::format("a number of ranks is not for {}", only_dense(q)),
                         keeps_gathered(*q.engine) ? "use true or false" : "use true"};
     }},
    {"engine_gathers_once", "in a pipeline FSDP2 gathers weights and reduces gradients once a step",
     kReadsPp | kReadsZeroStage | kReadsReshard | kReadsReduce | kReadsDpTotal | kReadsMicroBatch,
     false,
     [](const LayoutQuestion& q, const Layout& l) {
       if (l.pp == 1 || l.zero_stage < 3 || !gathers_once_in_pipelines(*q.engine)) return false;
       return l.reshard_after_forward != 0 || (l.reduce_every_microbatch && microbatches(q, l) > 1);
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return RuleBreach{
           l.reshard_after_forward != 0 ? "--reshard-after-forward" : "--reduce-every-microbatch",
           fmt::format("with pp {} {} keeps weights whole until the last backward pass and reduces "
                       "gradients then",
                       l.pp, q.engine->name),
           "use --reshard-after-forward false --reduce-every-microbatch false"};
     }},
    {"engine_offload_stage", "DeepSpeed offloads the states of an optimizer of ZeRO's",
     kReadsOffloadOptimizer | kReadsZeroStage, false,
     [](const LayoutQuestion& q, const Layout& l) {
       // The mark of FP16_Optimizer, which has no offload.
       return l.offload_optimizer && l.zero_stage == 0 && q.engine->whole_moments_early;
     },
     [](const LayoutQuestion& q, const Layout&) {
       return RuleBreach{
           "--offload-optimizer",
           fmt::format("{} keeps the states of ZeRO stage 0 on the GPU: its optimizer "
                       "has no offload",
                       q.engine->name),
           "use --zero-stage 1 or above"};
     }},
    {"engine_offload", "the engine offloads optimizer states", kReadsOffloadOptimizer, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return l.offload_optimizer && !q.engine->offload_optimizer;
     },
     [](const LayoutQuestion& q, const Layout&) {
       // PyTorch's FSDP has CPUOffload and CPUOffloadPolicy, which move weights and gradients too.
       return RuleBreach{
           "--offload-optimizer",
           fmt::format("optimizer states in host memory are not modelled under {}", q.engine->name),
           "use --engine deepspeed or megatron_ddp"};
     }},
    {"engine_param_remainders", "the engine keeps main weights as 16-bit remainders",
     kReadsRemainders, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return l.store_param_remainders && !q.engine->param_remainders;
     },
     [](const LayoutQuestion& q, const Layout&) {
       return engine_cannot(q, kRemainders, "keep main weights as 16-bit remainders");
     }},
    {"remainders_of_adamw", "a remainder's sign is that of AdamW's second moment", kReadsRemainders,
     false,
     [](const LayoutQuestion& q, const Layout& l) {
       return l.store_param_remainders && q.job->optimizer != Optimizer::adamw;
     },
     [](const LayoutQuestion& q, const Layout&) {
       return RuleBreach{kRemainders, fmt::format("needs adamw, not {}", name_of(q.job->optimizer)),
                         "use --optimizer adamw"};
     }},
    {"remainders_of_bf16", "remainders are what bf16 weights lack of fp32 main weights",
     kReadsRemainders, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return l.store_param_remainders &&
              (q.job->precision != DType::bf16 || q.job->main_dtype != DType::fp32);
     },
     [](const LayoutQuestion& q, const Layout&) {
       return RuleBreach{kRemainders,
                         fmt::format("needs bf16 weights and fp32 main weights, not {} and {}",
                                     name_of(q.job->precision), name_of(q.job->main_dtype)),
                         "use --precision bf16 --main-dtype fp32"};
     }},
    {"engine_double_buffer", "the engine has double buffers", kReadsDoubleBuffer, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return l.double_buffer && !has_unit_queues(*q.engine);
     },
     [](const LayoutQuestion& q, const Layout&) {
       return engine_cannot(q, "--double-buffer", "gather into two persistent buffers");
     }},
    {"engine_buckets", "the engine takes the size and padding of its buckets from the layout",
     kReadsBuckets, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return (l.ddp_bucket_size > 0 && !takes_bucket_size(*q.engine)) ||
              (l.ddp_pad_buckets_for_high_nccl_busbw && !chooses_buckets(*q.engine));
     },
     [](const LayoutQuestion& q, const Layout& l) {
       if (l.ddp_bucket_size > 0 && !takes_bucket_size(*q.engine))
         return engine_cannot(q, kBucketSize, "be told the size of its buckets");
       return engine_cannot(q, kPadBuckets, "pad its buckets to 65,536 elements");
     }},
    {"param_gather_needs_overlap",
     "Megatron overlaps parameter gathers only where it overlaps gradient reductions",
     kReadsOverlap | kReadsZeroStage, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return chooses_buckets(*q.engine) && l.zero_stage >= 1 && l.overlap_param_gather &&
              !l.overlap_grad_reduce;
     },
     [](const LayoutQuestion&, const Layout&) {
       return RuleBreach{"--overlap-param-gather", "needs --overlap-grad-reduce under Megatron",
                         "use --overlap-param-gather=false, or overlap both"};
     }},
    {"cp_kind_needs_cp", "the kind of context parallelism without cp changes nothing",
     kReadsCp | kReadsCpKind, true,
     [](const LayoutQuestion&, const Layout& l) {
       return l.cp == 1 && l.cp_kind != ContextParallelKind::ring;
     },
     nullptr},
    {"selective_is_none", "selective recompute of fused attention changes nothing", kReadsRecompute,
     true,
     [](const LayoutQuestion& q, const Layout& l) {
       return l.recompute == Recompute::selective &&
              q.job->attention != AttentionKernel::materialised;
     },
     nullptr},
    {"interval_without_full", "a recompute interval without full recompute changes nothing",
     kReadsRecompute, true,
     [](const LayoutQuestion&, const Layout& l) {
       return l.recompute != Recompute::full && l.recompute_interval != 1;
     },
     nullptr},
    {"replicas_without_shards", "without sharding, replicas are data-parallel ranks like others",
     kReadsZeroStage | kReadsDp, true,
     [](const LayoutQuestion&, const Layout& l) { return l.zero_stage == 0 && l.dp_replicate > 1; },
     nullptr},
    {"zero_without_shards", "a ZeRO stage without ranks to share states changes nothing",
     kReadsZeroStage | kReadsDp | kReadsCp | kReadsOuter | kReadsOffloadOptimizer, true,
     [](const LayoutQuestion& q, const Layout& l) {
       const int least = std::ranges::min(q.engine->zero_stages);
       return !shards_something(l) && l.zero_stage > (needs_zero_stage(q, l) ? 1 : least);
     },
     nullptr},
    {"outer_without_replicas", "sharding over both axes without replicas changes nothing",
     kReadsOuter | kReadsDp, true,
     [](const LayoutQuestion&, const Layout& l) {
       return l.outer_shards_optimizer && l.dp_replicate == 1;
     },
     nullptr},
    {"reshard_without_zero3", "weights that are not sharded are not resharded",
     kReadsReshard | kReadsZeroStage, true,
     [](const LayoutQuestion&, const Layout& l) {
       return l.zero_stage < 3 && l.reshard_after_forward != 1;
     },
     nullptr},
    {"reduce_without_shards", "gradients that are not sharded are reduced once",
     kReadsReduce | kReadsZeroStage, true,
     [](const LayoutQuestion&, const Layout& l) {
       return l.zero_stage < 2 && !l.reduce_every_microbatch;
     },
     nullptr},
    {"reduce_of_one", "with one micro-batch the first is the last",
     kReadsReduce | kReadsDpTotal | kReadsMicroBatch, true,
     [](const LayoutQuestion& q, const Layout& l) {
       return !l.reduce_every_microbatch && microbatches(q, l) == 1;
     },
     nullptr},
    {"double_buffer_without_shards", "double buffers need sharded weights",
     kReadsDoubleBuffer | kReadsZeroStage, true,
     [](const LayoutQuestion&, const Layout& l) { return l.double_buffer && l.zero_stage < 2; },
     nullptr},
    {"bucket_size_of_one", "a single bucket has no size to choose", kReadsBuckets | kReadsOverlap,
     true,
     [](const LayoutQuestion&, const Layout& l) {
       return l.ddp_bucket_size > 0 && !l.overlap_grad_reduce;
     },
     nullptr},
    {"bucket_padding_without_shards", "buckets that are not sharded are not padded",
     kReadsBuckets | kReadsZeroStage, true,
     [](const LayoutQuestion&, const Layout& l) {
       return l.ddp_pad_buckets_for_high_nccl_busbw && l.zero_stage == 0;
     },
     nullptr},
    {"gradient_dtype_is_fixed", "the engine or the precision fixes the dtype of gradients",
     kReadsGradients, true,
     [](const LayoutQuestion& q, const Layout& l) {
       const bool fixed = q.job->precision == DType::fp32 || q.engine->fp32_gradients_default;
       return !chooses_gradient_dtype(q) && l.fp32_gradients != fixed;
     },
     nullptr},
};

}  // namespace

std::span<const LayoutRule> state_rules() { return kStateRules; }

}  // namespace shardwise
