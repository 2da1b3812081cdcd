#pragma once

#include <cstdint>
#include <vector>

#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/plan/schedule_facts.h"

namespace shardwise {

/// Layers of one kind that run one after the other on a pipeline stage.
struct StageRun {
  std::int32_t kind = 0;  // index into ModelSpec::kinds
  std::int32_t layers = 0;
  std::int32_t chunk = 0;  // of the stage's vpp model chunks
  friend bool operator==(const StageRun&, const StageRun&) = default;
};

/// Layers of a pipeline stage, in forward order: chunk by chunk, kind by kind.
struct StageLayers {
  std::vector<StageRun> runs;
  std::int32_t blocks = 0;        // transformer blocks, encoder and MTP included
  bool has_embedding = false;     // owns the token table
  bool has_head = false;          // owns the head and computes the loss
  bool copies_embedding = false;  // also holds the token table of another stage: tied head, MTP
  bool shares_table = false;      // holds a token table that another stage holds too

  std::int32_t layers_of(std::int32_t kind) const;
};

/// Cuts the model into pp stages of vpp chunks.
///
/// The embedding joins the first chunk; head and multi-token prediction join the last. Blocks are
/// spread evenly; when they do not divide, chunks away from both ends get one more, because the
/// ends also hold the embedding and the head. `first_stage_layers` and `last_stage_layers` of the
/// layout fix those stages and leave the rest to the others. Chunk c of stage s is the (c * pp +
/// s)-th of the model; under the V-shaped schedules (zb_v, dualpipe_v) a stage holds chunks s and 2
/// pp - 1 - s. Under DualPipe chunk 0 is the stage's own of pp parts, chunk 1 that of its mirror
/// image pp - 1 - s, for the half of the micro-batches that comes from the other end: weights exist
/// twice, and a micro-batch meets one chunk of a stage. Of several chunks a stage, the
/// first of the model may hold the embedding alone and the last the head (Megatron's
/// --account-for-embedding-in-pipeline-split). \pre every other chunk gets at least one block, or
/// pp == vpp == 1
std::vector<StageLayers> assign_stages(const ModelSpec& model, const Layout& layout);

/// Blocks of each model chunk, in the order of the model, as assign_stages() spreads them. Of a
/// V-shaped schedule, two of each stage.
/// \param blocks  of the model's own depth
/// \pre the blocks of the first and the last stage are at most all of them
std::vector<std::int64_t> chunk_sizes(std::int64_t blocks, const Layout& layout);

/// The stage that holds the model's chunk `chunk`. \pre 0 <= chunk < pp x chunks_of_stage
std::int32_t stage_of_chunk(const Layout& layout, std::int32_t chunk);

}  // namespace shardwise
