#include <fmt/format.h>

#include <vector>

#include "planner/legality/layout_rule_parts.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/schedule_facts.h"

namespace shardwise {
namespace {

constexpr std::uint32_t kReadsChunks = kReadsPp | kReadsVpp | kReadsSchedule;
constexpr std::uint32_t kReadsBatch = kReadsDpTotal | kReadsMicroBatch;

// In 64 bits, as degrees are not checked yet.
std::int64_t chunks(const Layout& l) { return chunks_of_copy(l); }

bool fixes_stages(const Layout& l) { return l.first_stage_layers > 0 || l.last_stage_layers > 0; }

/// Blocks that stages of fixed size leave, and stages they leave them to.
std::int64_t blocks_left(const LayoutQuestion& q, const Layout& l) {
  return q.blocks - l.first_stage_layers - l.last_stage_layers;
}
std::int64_t stages_left(const Layout& l) {
  return l.pp - (l.first_stage_layers > 0 ? 1 : 0) - (l.last_stage_layers > 0 ? 1 : 0);
}

std::int64_t fewest_microbatches(const Layout& l) { return facts_of(l).fewest_microbatches(l.pp); }

std::string counted_microbatches(const LayoutQuestion& q, const Layout& l) {
  const std::int64_t count = microbatches(q, l);
  return fmt::format("{} {}", count, count == 1 ? "micro-batch" : "micro-batches");
}

/// Forward passes of all chunks and micro-batches of looped BFS.
constexpr std::int64_t kMostLoopedPasses = 1 << 18;

// Each rule: id, text, fields, redundant, when broken, what to say.
const LayoutRule kPipelineRules[] = {
    {"batch_reaches", "the global batch has a micro-batch for each data-parallel rank", kReadsBatch,
     false,
     [](const LayoutQuestion& q, const Layout& l) {
       return q.job->batch_for(l.dp(), l.micro_batch_size) < l.dp() * l.micro_batch_size;
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return RuleBreach{"--global-batch-size",
                         fmt::format("{} sequences are fewer than dp {} x micro_batch_size {}",
                                     q.job->global_batch_size, l.dp(), l.micro_batch_size),
                         fmt::format("use {} or more, or fewer data-parallel ranks",
                                     l.dp() * l.micro_batch_size)};
     }},
    {"batch_divides", "dp x micro_batch_size divides the global batch", kReadsBatch, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return q.job->batch_for(l.dp(), l.micro_batch_size) % (l.dp() * l.micro_batch_size) != 0;
     },
     [](const LayoutQuestion& q, const Layout& l) {
       const std::int64_t batch = q.job->global_batch_size;
       const std::int64_t each = l.dp() * l.micro_batch_size;
       return RuleBreach{"--micro-batch-size",
                         fmt::format("dp {} x micro_batch_size {} does not divide {} sequences",
                                     l.dp(), l.micro_batch_size, batch),
                         batch % l.dp() == 0
                             ? use_divisors(batch / l.dp(), l.micro_batch_size)
                             : fmt::format("use a global batch of a multiple of {}", each)};
     }},
    {"engine_schedule", "the engine has the pipeline schedule", kReadsPp | kReadsSchedule, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return l.pp > 1 &&
              std::ranges::find(q.engine->schedules, l.schedule) == q.engine->schedules.end();
     },
     [](const LayoutQuestion& q, const Layout& l) {
       std::vector<std::string_view> names;
       for (const PipelineSchedule each : q.engine->schedules) names.push_back(name_of(each));
       return RuleBreach{"--schedule",
                         fmt::format("{} does not run {}", q.engine->name, name_of(l.schedule)),
                         fmt::format("use {}, or an engine that runs it (shardwise list engines)",
                                     fmt::join(names, ", "))};
     }},
    {"vpp_needs_pp", "interleaving needs a pipeline", kReadsPp | kReadsVpp, false,
     [](const LayoutQuestion&, const Layout& l) { return l.vpp > 1 && l.pp == 1; },
     [](const LayoutQuestion&, const Layout& l) {
       return RuleBreach{"--vpp", fmt::format("{} chunks a stage, but pp is 1", l.vpp),
                         "use 1, or pp of 2 or more"};
     }},
    {"vpp_interleaves", "several model chunks a stage need 1F1B or looped BFS",
     kReadsVpp | kReadsSchedule, false,
     [](const LayoutQuestion&, const Layout& l) { return l.vpp > 1 && !facts_of(l).takes_vpp; },
     [](const LayoutQuestion&, const Layout& l) {
       const bool own = chunks(l) > 1 && facts_of(l).v_shaped;
       return RuleBreach{"--vpp",
                         fmt::format("{} chunks a stage, but the schedule is {}{}", l.vpp,
                                     name_of(l.schedule), own ? ", which has two of its own" : ""),
                         "use 1, or schedule one_f_one_b or looped_bfs"};
     }},
    {"stage_layers_need_pp", "stages of fixed size need a pipeline", kReadsPp | kReadsStageLayers,
     false, [](const LayoutQuestion&, const Layout& l) { return l.pp == 1 && fixes_stages(l); },
     [](const LayoutQuestion&, const Layout&) {
       return RuleBreach{"--first-stage-layers", "a stage has a fixed size, but pp is 1",
                         "use pp of 2 or more"};
     }},
    {"blocks_for_chunks",
     "each model chunk has a block; of several chunks a stage, the first may hold the embedding "
     "alone and the last the head",
     kReadsChunks | kReadsStageLayers, false,
     [](const LayoutQuestion& q, const Layout& l) {
       if (l.pp == 1) return false;
       if (!fixes_stages(l)) return q.blocks < l.pp * chunks(l) - (chunks(l) > 1 ? 2 : 0);
       const auto too_small = [&](std::int64_t layers) { return layers > 0 && layers < chunks(l); };
       return too_small(l.first_stage_layers) || too_small(l.last_stage_layers) ||
              blocks_left(q, l) < stages_left(l) * chunks(l) ||
              (stages_left(l) == 0 && blocks_left(q, l) > 0);
     },
     [](const LayoutQuestion& q, const Layout& l) {
       if (!fixes_stages(l)) {
         return RuleBreach{
             "--pp",
             fmt::format("{} blocks are too few for {} stages of {} chunk{}", q.blocks, l.pp,
                         chunks(l), chunks(l) == 1 ? "" : "s"),
             fmt::format("use --pp {} or less", std::max<std::int64_t>(q.blocks / chunks(l), 1))};
       }
       return RuleBreach{"--first-stage-layers",
                         fmt::format("first stage {} and last stage {} leave {} of {} blocks to {} "
                                     "stages of {} chunks",
                                     l.first_stage_layers, l.last_stage_layers, blocks_left(q, l),
                                     q.blocks, stages_left(l), chunks(l)),
                         ""};
     }},
    {"interleaved_rounds", "interleaving needs a multiple of pp micro-batches",
     kReadsChunks | kReadsBatch, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return is_interleaved(l) && microbatches(q, l) % l.pp != 0;
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return RuleBreach{"--vpp",
                         fmt::format("interleaving needs a multiple of pp {}, the batch has {}",
                                     l.pp, counted_microbatches(q, l)),
                         fmt::format("use vpp 1, or a global batch of a multiple of {} sequences",
                                     l.dp() * l.pp * std::int64_t{l.micro_batch_size})};
     }},
    {"dualpipe_pairs", "DualPipe enters at both ends: stages and micro-batches are even",
     kReadsPp | kReadsSchedule | kReadsBatch, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return copies_model(l) && (l.pp % 2 != 0 || microbatches(q, l) % 2 != 0);
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return RuleBreach{
           "--schedule",
           fmt::format("dualpipe enters at both ends: {} stages and {} are not both even", l.pp,
                       counted_microbatches(q, l)),
           "use an even --pp and an even number of micro-batches"};
     }},
    {"enough_microbatches",
     "ZB-H2, ZB-V and DualPipe need micro-batches to fill the pipeline twice",
     kReadsPp | kReadsSchedule | kReadsBatch, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return l.pp > 1 && microbatches(q, l) < fewest_microbatches(l);
     },
     [](const LayoutQuestion& q, const Layout& l) {
       return RuleBreach{"--schedule",
                         fmt::format("{} has {} on {} stages", name_of(l.schedule),
                                     counted_microbatches(q, l), l.pp),
                         fmt::format("needs {} or more", fewest_microbatches(l))};
     }},
    {"looped_bfs_passes",
     "looped BFS has at most 2^18 forward passes of all chunks and micro-batches",
     kReadsChunks | kReadsBatch, false,
     [](const LayoutQuestion& q, const Layout& l) {
       return l.pp > 1 && l.schedule == PipelineSchedule::looped_bfs &&
              microbatches(q, l) * l.pp * l.vpp > kMostLoopedPasses;
     },
     [](const LayoutQuestion& q, const Layout& l) {
       const std::int64_t most = kMostLoopedPasses / (std::int64_t{l.pp} * l.vpp);
       return RuleBreach{"--global-batch-size",
                         fmt::format("looped_bfs has {} on {} stages of {} chunks, more than {}",
                                     counted_microbatches(q, l), l.pp, l.vpp, most),
                         fmt::format("use {} or less, or schedule one_f_one_b",
                                     most * l.dp() * l.micro_batch_size)};
     }},
    {"schedule_without_pp", "a schedule needs more than one stage", kReadsPp | kReadsSchedule,
     false,
     [](const LayoutQuestion&, const Layout& l) {
       return l.pp == 1 && l.schedule != PipelineSchedule::one_f_one_b;
     },
     [](const LayoutQuestion&, const Layout& l) {
       return RuleBreach{
           "--schedule",
           fmt::format("{} orders the passes of several stages, but pp is 1", name_of(l.schedule)),
           "leave it out, or use --pp 2 or more"};
     }},
    {"one_loop", "looped BFS over one chunk a stage is GPipe", kReadsVpp | kReadsSchedule, true,
     [](const LayoutQuestion&, const Layout& l) {
       return l.vpp == 1 && l.schedule == PipelineSchedule::looped_bfs;
     },
     nullptr},
};

}  // namespace

std::span<const LayoutRule> pipeline_rules() { return kPipelineRules; }

}  // namespace shardwise
