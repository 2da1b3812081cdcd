#include "planner/schedule/stages.h"

#include <algorithm>

#include "planner/spec/plan/schedule_facts.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

/// Spreads `blocks` over `chunks`; the remainder goes to the middle, away from embedding and head.
std::vector<std::int64_t> spread(std::int64_t blocks, std::int64_t chunks) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(chunks),
                                  chunks > 0 ? blocks / chunks : 0);
  if (chunks == 0) return sizes;
  const std::int64_t extra = blocks % chunks;
  const std::int64_t first = (chunks - extra) / 2;
  for (std::int64_t i = 0; i < extra; ++i) ++sizes[static_cast<std::size_t>(first + i)];
  return sizes;
}

void append(StageLayers& stage, int kind, std::int32_t chunk) {
  if (!stage.runs.empty() && stage.runs.back().kind == kind && stage.runs.back().chunk == chunk) {
    ++stage.runs.back().layers;
  } else {
    stage.runs.push_back({kind, 1, chunk});
  }
}

/// DualPipe: a stage's own part of the model, and that of its mirror image for the micro-batches
/// that come from the other end.
std::vector<StageLayers> both_copies(const ModelSpec& model, Layout layout) {
  layout.schedule = PipelineSchedule::one_f_one_b;
  layout.vpp = 1;
  const std::vector<StageLayers> once = assign_stages(model, layout);
  std::vector<StageLayers> both = once;
  for (std::size_t s = 0; s < once.size(); ++s) {
    const StageLayers& mirror = once[once.size() - 1 - s];
    for (StageRun run : mirror.runs) {
      run.chunk = 1;
      both[s].runs.push_back(run);
    }
    both[s].blocks += mirror.blocks;
    both[s].has_embedding = both[s].has_embedding || mirror.has_embedding;
    both[s].has_head = both[s].has_head || mirror.has_head;
    // The table is on the stage of the head.
    both[s].copies_embedding = both[s].shares_table = false;
  }
  return both;
}

}  // namespace

std::int32_t StageLayers::layers_of(std::int32_t kind) const {
  std::int32_t sum = 0;
  for (const StageRun& run : runs) sum += run.kind == kind ? run.layers : 0;
  return sum;
}

std::vector<std::int64_t> chunk_sizes(std::int64_t blocks, const Layout& layout) {
  const std::int64_t chunks_each = chunks_of_stage(layout);
  const std::int64_t chunks = layout.pp * chunks_each;
  const bool fixed = layout.first_stage_layers > 0 || layout.last_stage_layers > 0;
  if (!fixed || layout.pp == 1) return spread(blocks, chunks);

  const std::int64_t first = layout.first_stage_layers;
  const std::int64_t last = layout.last_stage_layers;
  const std::int64_t stages_left = layout.pp - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0);
  const auto head = spread(first, first > 0 ? chunks_each : 0);
  const auto tail = spread(last, last > 0 ? chunks_each : 0);
  const auto middle = spread(blocks - first - last, stages_left * chunks_each);
  std::vector<std::int64_t> sizes;
  std::size_t taken = 0;
  for (std::int64_t c = 0; c < chunks_each; ++c) {
    if (first > 0) sizes.push_back(head[static_cast<std::size_t>(c)]);
    for (std::int64_t s = 0; s < stages_left; ++s) sizes.push_back(middle[taken++]);
    if (last > 0) sizes.push_back(tail[static_cast<std::size_t>(c)]);
  }
  return sizes;
}

std::int32_t stage_of_chunk(const Layout& layout, std::int32_t chunk) {
  const std::int32_t stage = chunk % layout.pp;
  const bool returning = facts_of(layout).v_shaped && chunk >= layout.pp;
  return returning ? layout.pp - 1 - stage : stage;
}

std::vector<StageLayers> assign_stages(const ModelSpec& model, const Layout& layout) {
  if (copies_model(layout)) return both_copies(model, layout);
  std::int64_t blocks = 0;
  for (const int kind : model.layers) {
    blocks += is_main_block(model.kinds[static_cast<std::size_t>(kind)].role) ? 1 : 0;
  }
  const std::vector<std::int64_t> sizes = chunk_sizes(blocks, layout);
  const auto chunks = static_cast<std::int64_t>(sizes.size());

  const auto stage_of = [&](std::int64_t c) {
    return static_cast<std::size_t>(stage_of_chunk(layout, static_cast<std::int32_t>(c)));
  };

  std::vector<StageLayers> stages(static_cast<std::size_t>(layout.pp));
  bool mtp = false;
  std::int64_t chunk = 0;
  std::int64_t left = sizes.front();
  for (const int kind : model.layers) {
    const LayerRole role = model.kinds[static_cast<std::size_t>(kind)].role;
    if (role == LayerRole::embedding) {
      StageLayers& first = stages[stage_of(0)];
      append(first, kind, 0);
      first.has_embedding = true;
      continue;
    }
    if (role == LayerRole::head || role == LayerRole::mtp) {
      StageLayers& last = stages[stage_of(chunks - 1)];
      append(last, kind, static_cast<std::int32_t>((chunks - 1) / layout.pp));
      last.has_head = true;
      mtp = mtp || role == LayerRole::mtp;
      last.blocks += role == LayerRole::mtp ? 1 : 0;
      continue;
    }
    while (left == 0 && chunk + 1 < chunks) left = sizes[static_cast<std::size_t>(++chunk)];
    SHARDWISE_CHECK(left > 0, model.name);
    StageLayers& stage = stages[stage_of(chunk)];
    append(stage, kind, static_cast<std::int32_t>(chunk / layout.pp));
    ++stage.blocks;
    --left;
  }
  for (StageLayers& stage : stages) {
    stage.copies_embedding =
        stage.has_head && !stage.has_embedding && (model.tie_word_embeddings || mtp);
  }
  const bool shared = std::ranges::any_of(stages, &StageLayers::copies_embedding);
  for (StageLayers& stage : stages) {
    stage.shares_table = shared && (stage.copies_embedding || stage.has_embedding);
  }
  return stages;
}

}  // namespace shardwise
