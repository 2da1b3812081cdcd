#include <fmt/format.h>

#include "planner/cost/memory/bucket_rules.h"
#include "planner/legality/layout_rule_parts.h"
#include "planner/spec/plan/names.h"

namespace shardwise {
namespace {

constexpr const char* kFp32Accumulation = "--reduce-scatter-with-fp32-accumulation";

bool is_narrow(DType dtype) { return bits_of(dtype) < bits_of(DType::fp32); }

/// The flag of the optimizer's states that are in fewer bits than fp32; empty where none are.
const char* narrow_states(const LayoutQuestion& q) {
  if (is_narrow(q.job->main_dtype)) return "--main-dtype";
  return is_narrow(q.job->moment_dtype) ? "--moment-dtype" : "";
}
bool has_narrow_states(const LayoutQuestion& q) { return *narrow_states(q) != '\0'; }

/// What the optimizer's states must be in, after a breach at one of them.
std::string use_fp32(const LayoutQuestion& q) {
  return is_narrow(q.job->main_dtype) ? "use --main-dtype fp32" : "use --moment-dtype fp32";
}

bool fuses_loss(const LayoutQuestion& q) {
  const LossKernel loss = loss_of(*q.job, *q.engine);
  return loss == LossKernel::fused || loss == LossKernel::fused_fp32;
}

bool is_pipelined(const LayoutQuestion& q, const Layout& l) {
  return is_megatrons(q) && l.tp > 1 && q.job->tp_overlap == TpOverlap::pipelined;
}

/// The exchange of experts runs beside another micro-batch.
bool overlaps_experts(const LayoutQuestion& q) {
  return is_megatrons(q) && q.model->num_experts > 0 && q.job->expert_overlap;
}

// Each rule: id, text, fields, redundant, when broken, what to say.
const LayoutRule kJobRules[] = {
    {"engine_tied_head", "the engine takes a head that uses the embedding's table", kReadsJob,
     false,
     [](const LayoutQuestion& q, const Layout&) {
       return q.model->tie_word_embeddings && !q.engine->tied_head;
     },
     [](const LayoutQuestion& q, const Layout&) {
       return RuleBreach{"--engine",
                         fmt::format("{} refuses a head tied to the embedding, as {} has",
                                     q.engine->name, q.model->name),
                         "use another engine, or a model with a head of its own"};
     }},
    {"engine_fp16", "the engine trains in fp16", kReadsJob, false,
     [](const LayoutQuestion& q, const Layout&) {
       return q.job->precision == DType::fp16 && !q.engine->fp16;
     },
     [](const LayoutQuestion& q, const Layout&) {
       return RuleBreach{"--precision", fmt::format("{} refuses fp16", q.engine->name), "use bf16"};
     }},
    {"engine_narrow_states", "the engine keeps optimizer states in fewer bits than fp32", kReadsJob,
     false,
     [](const LayoutQuestion& q, const Layout&) {
       return has_narrow_states(q) && !q.engine->narrow_states;
     },
     [](const LayoutQuestion& q, const Layout&) {
       return RuleBreach{narrow_states(q),
                         fmt::format("{} has optimizer states in fp32 alone", q.engine->name),
                         use_fp32(q)};
     }},
    {"engine_bf16_main", "the engine keeps main weights in bf16", kReadsJob, false,
     [](const LayoutQuestion& q, const Layout&) {
       return is_megatrons(q) && q.job->main_dtype == DType::bf16 && !q.engine->bf16_main_weights;
     },
     [](const LayoutQuestion& q, const Layout&) {
       return RuleBreach{"--main-dtype", fmt::format("{} has no bf16 main weights", q.engine->name),
                         "use fp32, or fp16"};
     }},
    {"narrow_states_of_shards",
     "Megatron keeps optimizer states in fewer bits in the distributed optimizer only",
     kReadsZeroStage, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return is_megatrons(q) && chooses_buckets(*q.engine) && has_narrow_states(q) &&
              l.zero_stage == 0;
     },
     [](const LayoutQuestion& q, const Layout&) {
       return RuleBreach{narrow_states(q),
                         "needs Megatron's distributed optimizer, which ZeRO stage 0 is without",
                         "use --zero-stage 1, or fp32"};
     }},
    {"engine_bitsandbytes", "bitsandbytes' AdamW updates plain tensors of PyTorch", kReadsJob,
     false,
     [](const LayoutQuestion& q, const Layout&) {
       return is_bitsandbytes(q.job->adamw) && !takes_bitsandbytes(*q.job, *q.engine);
     },
     [](const LayoutQuestion& q, const Layout&) {
       if (q.job->optimizer != Optimizer::adamw) {
         return RuleBreach{"--adamw",
                           fmt::format("{} is an AdamW, and --optimizer {} is another optimizer",
                                       name_of(q.job->adamw), name_of(q.job->optimizer)),
                           "use --optimizer adamw"};
       }
       return RuleBreach{"--adamw",
                         fmt::format("{} is bitsandbytes', which is not modelled under {}",
                                     name_of(q.job->adamw), q.engine->name),
                         "use --engine fsdp1 with PyTorch's operators"};
     }},
    {"bitsandbytes_moments", "bitsandbytes' AdamW has moments of its own types", kReadsJob, false,
     [](const LayoutQuestion& q, const Layout&) {
       return is_bitsandbytes(q.job->adamw) && is_narrow(q.job->moment_dtype);
     },
     [](const LayoutQuestion& q, const Layout&) {
       return RuleBreach{"--moment-dtype",
                         fmt::format("{} with --adamw {}, which has moments in 8 bits or fp32",
                                     name_of(q.job->moment_dtype), name_of(q.job->adamw)),
                         "leave out --moment-dtype"};
     }},
    {"narrow_states_of_adamw", "Megatron keeps AdamW's states alone in fewer bits than fp32",
     kReadsJob, false,
     [](const LayoutQuestion& q, const Layout&) {
       return is_megatrons(q) && has_narrow_states(q) && q.job->optimizer != Optimizer::adamw;
     },
     [](const LayoutQuestion& q, const Layout&) {
       return RuleBreach{
           narrow_states(q),
           fmt::format("needs adamw under Megatron, not {}", name_of(q.job->optimizer)),
           use_fp32(q) + ", or --optimizer adamw"};
     }},
    {"offload_of_shards", "Megatron offloads the states of the distributed optimizer only",
     kReadsOffloadOptimizer | kReadsZeroStage, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return is_megatrons(q) && chooses_buckets(*q.engine) && l.offload_optimizer &&
              l.zero_stage == 0;
     },
     [](const LayoutQuestion&, const Layout&) {
       return RuleBreach{"--offload-optimizer",
                         "needs Megatron's distributed optimizer, which ZeRO stage 0 is without",
                         "use --zero-stage 1"};
     }},
    {"offload_of_fp8_weights",
     "Megatron offloads the optimizer of fp8 weights with delayed scaling", kReadsOffloadOptimizer,
     false,
     [](const LayoutQuestion& q, const Layout& l) {
       return is_megatrons(q) && l.offload_optimizer && q.job->precision == DType::fp8 &&
              q.job->fp8_parameter_gather && q.job->fp8_recipe != Fp8Recipe::delayed;
     },
     [](const LayoutQuestion& q, const Layout&) {
       return RuleBreach{"--offload-optimizer",
                         fmt::format("with --fp8-parameter-gather needs delayed scaling, not {}",
                                     name_of(q.job->fp8_recipe)),
                         "use --fp8-recipe delayed, or gather in bf16"};
     }},
    {"fp8_gather_needs_shards",
     "Megatron gathers fp8 parameters with the distributed optimizer only", kReadsZeroStage, false,
     [](const LayoutQuestion& q, const Layout& l) {
       const bool gathers = q.job->precision == DType::fp8 && q.job->fp8_parameter_gather;
       return gathers && chooses_buckets(*q.engine) && l.zero_stage == 0;
     },
     [](const LayoutQuestion&, const Layout&) {
       return RuleBreach{"--fp8-parameter-gather",
                         "needs Megatron's distributed optimizer, which ZeRO stage 0 is without",
                         "use --zero-stage 1"};
     }},
    {"engine_fp32_accumulation", "the engine sums reduce-scatters in fp32", kReadsZeroStage, false,
     [](const LayoutQuestion& q, const Layout&) {
       return q.job->reduce_scatter_with_fp32_accumulation && !q.engine->fp32_accumulation;
     },
     [](const LayoutQuestion& q, const Layout&) {
       return engine_cannot(q, kFp32Accumulation, "sum reduce-scatters of 16 bits in fp32");
     }},
    {"fp32_accumulation_shards", "fp32 sums of reduce-scatters need sharding", kReadsZeroStage,
     false,
     [](const LayoutQuestion& q, const Layout& l) {
       return q.job->reduce_scatter_with_fp32_accumulation && l.zero_stage == 0;
     },
     [](const LayoutQuestion&, const Layout&) {
       return RuleBreach{kFp32Accumulation, "ZeRO stage 0 reduces without scattering",
                         "use --zero-stage 1 or more"};
     }},
    {"fp32_accumulation_replicas", "fp32 sums of reduce-scatters are made within one replica",
     kReadsZeroStage | kReadsDp, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return q.job->reduce_scatter_with_fp32_accumulation && l.zero_stage > 0 &&
              l.dp_replicate > 1;
     },
     [](const LayoutQuestion&, const Layout& l) {
       return RuleBreach{kFp32Accumulation,
                         fmt::format("sums within one replica, not {}", l.dp_replicate),
                         "use --dp-replicate 1"};
     }},
    {"fp32_accumulation_narrow", "fp32 sums of reduce-scatters need gradients sent in 16 bits",
     kReadsGradients, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return q.job->reduce_scatter_with_fp32_accumulation &&
              (l.fp32_gradients || q.job->precision == DType::fp32);
     },
     [](const LayoutQuestion& q, const Layout&) {
       return RuleBreach{kFp32Accumulation, "gradients are sent in fp32 already",
                         q.job->precision == DType::fp32 ? "" : "use --fp32-gradients=false"};
     }},
    {"deterministic_loss", "Megatron's deterministic mode has no fused loss", kReadsJob, false,
     [](const LayoutQuestion& q, const Layout&) {
       return is_megatrons(q) && q.job->deterministic && fuses_loss(q);
     },
     [](const LayoutQuestion& q, const Layout&) {
       return RuleBreach{"--loss",
                         fmt::format("{} is fused, which Megatron refuses with --deterministic",
                                     name_of(loss_of(*q.job, *q.engine))),
                         "use --loss materialised"};
     }},
    {"pipelined_needs_sequence", "Megatron overlaps the transfers of sequence parallelism only",
     kReadsTp | kReadsSequenceParallel, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return is_pipelined(q, l) && !l.sequence_parallel;
     },
     [](const LayoutQuestion&, const Layout&) {
       return RuleBreach{"--tp-overlap", "pipelined needs sequence parallelism under Megatron",
                         "use --sequence-parallel, or --tp-overlap backward"};
     }},
    {"expert_overlap_needs_ep", "the exchange of experts needs expert parallelism", kReadsEp, false,
     [](const LayoutQuestion& q, const Layout& l) { return overlaps_experts(q) && l.ep == 1; },
     [](const LayoutQuestion&, const Layout&) {
       return RuleBreach{"--expert-overlap", "needs expert parallelism under Megatron, but ep is 1",
                         "use --ep 2 or more"};
     }},
    {"expert_overlap_recompute", "Megatron recomputes no whole layers beside the exchange",
     kReadsRecompute, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return overlaps_experts(q) && l.recompute == Recompute::full;
     },
     [](const LayoutQuestion&, const Layout&) {
       return RuleBreach{"--expert-overlap", "is refused by Megatron beside full recompute",
                         "use --recompute none or selective"};
     }},
    {"expert_overlap_interleaves", "Megatron overlaps the exchange in interleaved pipelines only",
     kReadsPp | kReadsVpp, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return overlaps_experts(q) && l.pp > 1 && l.vpp == 1;
     },
     [](const LayoutQuestion&, const Layout& l) {
       return RuleBreach{
           "--expert-overlap",
           fmt::format("needs several chunks a stage under Megatron, as pp is {}", l.pp),
           "use --vpp 2 or more, or --pp 1"};
     }},
};

}  // namespace

bool needs_zero_stage(const LayoutQuestion& q, const Layout& l) {
  if (l.offload_optimizer && q.engine->whole_moments_early) return true;  // engine_offload_stage
  return is_megatrons(q) && chooses_buckets(*q.engine) &&
         (l.offload_optimizer || has_narrow_states(q));
}

std::span<const LayoutRule> job_rules() { return kJobRules; }

}  // namespace shardwise
