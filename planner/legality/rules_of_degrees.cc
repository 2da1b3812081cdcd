#include <fmt/format.h>

#include "planner/legality/layout_rule_parts.h"
#include "planner/legality/legality.h"

namespace shardwise {
namespace {

RuleBreach has_no(const LayoutQuestion& q, const char* flag, std::int64_t value, const char* what,
                  const char* hint) {
  return {flag, fmt::format("{}: {} has no {}", value, q.engine->name, what), hint};
}

/// Equal pieces that context parallelism cuts a sequence into: ring and all-gather give each rank
/// an early and a late one, for equal causal work, and Megatron does always.
std::int64_t sequence_pieces(const LayoutQuestion& q, const Layout& l) {
  const bool halves = l.cp > 1 && (l.cp_kind != ContextParallelKind::ulysses || is_megatrons(q));
  return (halves ? 2 : 1) * std::int64_t{l.cp};
}

// Each rule: id, text, fields, redundant, when broken, what to say.
const LayoutRule kDegreeRules[] = {
    {"positive", "degrees are at least 1", kReadsNothing, false,
     [](const LayoutQuestion&, const Layout& l) {
       return std::min({l.tp, l.cp, l.pp, l.vpp, l.ep, l.etp, l.dp_shard, l.dp_replicate,
                        l.micro_batch_size, l.recompute_interval}) < 1 ||
              std::min(l.first_stage_layers, l.last_stage_layers) < 0;
     },
     [](const LayoutQuestion&, const Layout&) {
       return RuleBreach{"--tp",
                         "a degree, micro-batch, interval or stage size is below its minimum",
                         "use 1 or more"};
     }},
    {"order", "the order names each axis once", kReadsNothing, false,
     [](const LayoutQuestion&, const Layout& l) {
       std::uint32_t seen = 0;
       for (const Axis axis : l.order) seen |= 1U << static_cast<unsigned>(axis);
       return seen != (1U << l.order.size()) - 1;
     },
     [](const LayoutQuestion&, const Layout&) {
       return RuleBreach{"--order", "does not name each axis once",
                         "list tp, cp, ep, dp_shard, dp_replicate and pp"};
     }},
    {"ranks", "the degrees multiply to the GPUs", kReadsRanks, false,
     [](const LayoutQuestion& q, const Layout& l) { return l.world() != q.cluster->gpus; },
     [](const LayoutQuestion& q, const Layout& l) {
       const std::int64_t rest = std::int64_t{l.tp} * l.cp * l.pp;
       const std::int64_t gpus = q.cluster->gpus;
       if (gpus % rest != 0) {
         return RuleBreach{gpus % l.tp != 0                          ? "--tp"
                           : gpus % (std::int64_t{l.tp} * l.cp) != 0 ? "--cp"
                                                                     : "--pp",
                           fmt::format("tp {} x cp {} x pp {} is {}, which does not divide {} GPUs",
                                       l.tp, l.cp, l.pp, rest, gpus),
                           fmt::format("their product must divide {}", gpus)};
       }
       return RuleBreach{
           "--dp-shard",
           fmt::format("tp {} x cp {} x pp {} x dp_shard {} x dp_replicate {} is {} ranks on {} "
                       "GPUs",
                       l.tp, l.cp, l.pp, l.dp_shard, l.dp_replicate, l.world(), gpus),
           fmt::format("use dp_shard x dp_replicate = {}", gpus / rest)};
     }},
    {"engine_tp", "the engine has tensor parallelism", kReadsTp, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return l.tp > 1 && !q.engine->tensor_parallel;
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return has_no(q, "--tp", l.tp, "tensor parallelism", "use 1");
     }},
    {"engine_cp", "the engine has context parallelism", kReadsCp, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return l.cp > 1 && !q.engine->context_parallel;
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return has_no(q, "--cp", l.cp, "context parallelism", "use 1");
     }},
    {"engine_pp", "the engine has pipelines", kReadsPp, false,
     [](const LayoutQuestion& q, const Layout& l) { return l.pp > 1 && !q.engine->pipeline; },
     [](const LayoutQuestion& q, const Layout& l) {
       return has_no(q, "--pp", l.pp, "pipelines", "use 1");
     }},
    {"engine_ep", "the engine has expert parallelism", kReadsTp | kReadsEp | kReadsEtp, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return q.model->num_experts > 0 && (l.ep > 1 || l.etp > l.tp) && !q.engine->expert_parallel;
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return has_no(q, "--ep", l.ep, "expert parallelism", "use 1 for ep and etp");
     }},
    {"heads_by_tp", "tp divides the attention heads", kReadsTp, false,
     [](const LayoutQuestion& q, const Layout& l) { return q.heads % l.tp != 0; },
     [](const LayoutQuestion& q, const Layout& l) {
       return RuleBreach{"--tp",
                         fmt::format("{} does not divide {} attention heads", l.tp, q.heads),
                         use_divisors(q.heads, l.tp)};
     }},
    {"kv_heads_by_tp", "tp divides the key and value heads, or is a multiple of them", kReadsTp,
     false,
     [](const LayoutQuestion& q, const Layout& l) {
       return q.kv_heads % l.tp != 0 && l.tp % q.kv_heads != 0;
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return RuleBreach{"--tp",
                         fmt::format("{} neither divides {} key and value heads nor is a multiple",
                                     l.tp, q.kv_heads),
                         use_divisors(q.kv_heads, l.tp)};
     }},
    {"widths_by_tp", "tp divides every width that it cuts", kReadsTp, false,
     [](const LayoutQuestion& q, const Layout& l) { return q.cut_by_tp % l.tp != 0; },
     [](const LayoutQuestion& q, const Layout& l) {
       return RuleBreach{"--tp",
                         fmt::format("{} does not divide the widths of the layers, whose greatest "
                                     "common divisor is {}",
                                     l.tp, q.cut_by_tp),
                         use_divisors(q.cut_by_tp, l.tp)};
     }},
    {"sequence_by_cp",
     "cp ranks get equal pieces of the sequence, early and late ones if the engine has them",
     kReadsCp | kReadsCpKind, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return q.job->sequence_length % sequence_pieces(q, l) != 0;
     },
     [](const LayoutQuestion& q, const Layout& l) {
       const bool halves = sequence_pieces(q, l) > l.cp;
       const std::int64_t whole = halves ? q.job->sequence_length / 2 : q.job->sequence_length;
       return RuleBreach{"--cp",
                         fmt::format("sequence length {} is not a multiple of {}{}",
                                     q.job->sequence_length, halves ? "2 x " : "", l.cp),
                         use_divisors(whole, l.cp)};
     }},
    {"ring_is_fused", "ring attention needs fused attention", kReadsCp | kReadsCpKind, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return l.cp > 1 && l.cp_kind == ContextParallelKind::ring && !q.fused_attention;
     },
     [](const LayoutQuestion&, const Layout&) {
       return RuleBreach{"--cp-kind", "ring attention needs flash or cuDNN's attention in 16 bits",
                         "use all_gather or ulysses"};
     }},
    {"heads_by_ulysses", "Ulysses needs whole heads on each rank",
     kReadsTp | kReadsCp | kReadsCpKind, false,
     [](const LayoutQuestion& q, const Layout& l) {
       if (l.cp == 1 || l.cp_kind != ContextParallelKind::ulysses) return false;
       const std::int64_t ways = std::int64_t{l.tp} * l.cp;
       return q.heads % ways != 0 || (q.kv_heads % ways != 0 && ways % q.kv_heads != 0);
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return RuleBreach{
           "--cp",
           fmt::format(
               "Ulysses spreads {} query and {} key and value heads over tp x cp = {} ranks",
               q.heads, q.kv_heads, std::int64_t{l.tp} * l.cp),
           "use ring or all_gather, or smaller degrees"};
     }},
    {"sequence_needs_tp", "sequence parallelism needs tensor parallelism",
     kReadsTp | kReadsSequenceParallel, false,
     [](const LayoutQuestion&, const Layout& l) { return l.sequence_parallel && l.tp == 1; },
     [](const LayoutQuestion&, const Layout&) {
       return RuleBreach{"--sequence-parallel", "needs tensor parallelism",
                         "leave it out, or use --tp 2 or more"};
     }},
    {"sequence_by_tp", "sequence parallelism cuts a rank's tokens into tp equal pieces",
     kReadsTp | kReadsCp | kReadsSequenceParallel, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return l.sequence_parallel && q.job->sequence_length / l.cp % l.tp != 0;
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return RuleBreach{"--sequence-parallel",
                         fmt::format("{} tokens a rank are not a multiple of tp {}",
                                     q.job->sequence_length / l.cp, l.tp),
                         ""};
     }},
    {"experts_need_sequence", "experts with tensor parallelism need sequence parallelism",
     kReadsTp | kReadsSequenceParallel, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return q.model->num_experts > 0 && l.tp > 1 && !l.sequence_parallel;
     },
     [](const LayoutQuestion&, const Layout&) {
       return RuleBreach{"--sequence-parallel",
                         "experts with tensor parallelism need sequence parallelism",
                         "leave it at its default"};
     }},
    {"dense_has_no_experts", "a dense model has no expert parallelism", kReadsEp, false,
     [](const LayoutQuestion& q, const Layout& l) { return q.model->num_experts == 0 && l.ep > 1; },
     [](const LayoutQuestion& q, const Layout&) {
       return RuleBreach{"--ep", fmt::format("{} has no routed experts", q.model->name), "use 1"};
     }},
    {"etp_without_experts", "a dense model has no tensor parallelism of experts", kReadsEtp, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return q.model->num_experts == 0 && l.etp > 1;
     },
     [](const LayoutQuestion& q, const Layout&) {
       return RuleBreach{"--etp", fmt::format("{} has no routed experts", q.model->name), "use 1"};
     }},
    {"experts_by_ep", "ep divides the routed experts", kReadsEp, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return q.model->num_experts > 0 && q.model->num_experts % l.ep != 0;
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return RuleBreach{"--ep",
                         fmt::format("{} does not divide {} experts", l.ep, q.model->num_experts),
                         use_divisors(q.model->num_experts, l.ep)};
     }},
    {"widths_by_etp", "etp divides the width of an expert", kReadsEtp, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return q.model->num_experts > 0 && q.cut_by_etp % l.etp != 0;
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return RuleBreach{"--etp",
                         fmt::format("{} does not divide experts of width {}", l.etp, q.cut_by_etp),
                         use_divisors(q.cut_by_etp, l.etp)};
     }},
    {"engine_etp", "the engine cuts experts by tensor parallelism of their own",
     kReadsTp | kReadsEtp, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return q.model->num_experts > 0 && !q.engine->experts_split_apart && l.etp > 1 &&
              l.etp != l.tp;
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return RuleBreach{
           "--etp",
           fmt::format("{}: {} splits experts as the layers, or not at all", l.etp, q.engine->name),
           l.tp == 1 ? "use 1" : fmt::format("use 1 or {}", l.tp)};
     }},
    {"engine_etp_shards", "the engine cuts experts of several ranks under ZeRO-3",
     kReadsTp | kReadsEp | kReadsEtp | kReadsZeroStage, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return q.model->num_experts > 0 && l.etp > 1 && l.etp == l.tp &&
              !splits_experts_by_tp(*q.engine, l);
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return RuleBreach{"--etp",
                         fmt::format("{}: {} splits experts over ep alone under ZeRO stage 3",
                                     l.etp, q.engine->name),
                         "use 1"};
     }},
    {"expert_ranks", "ep x etp divides tp x cp x dp_shard", kReadsRanks | kReadsEp | kReadsEtp,
     false,
     [](const LayoutQuestion& q, const Layout& l) {
       return q.model->num_experts > 0 &&
              std::int64_t{l.tp} * l.cp * l.dp_shard % (std::int64_t{l.ep} * l.etp) != 0;
     },
     [](const LayoutQuestion&, const Layout& l) {
       return RuleBreach{
           "--ep",
           fmt::format("ep {} x etp {} does not divide tp {} x cp {} x dp_shard {}", l.ep, l.etp,
                       l.tp, l.cp, l.dp_shard),
           fmt::format("their product must divide {}", std::int64_t{l.tp} * l.cp * l.dp_shard)};
     }},
};

}  // namespace

bool splits_experts_by_tp(const EngineProfile& engine, const Layout& layout) {
  return engine.experts_split_apart || layout.ep == 1 || layout.zero_stage < 3;
}

std::span<const LayoutRule> degree_rules() { return kDegreeRules; }

}  // namespace shardwise
