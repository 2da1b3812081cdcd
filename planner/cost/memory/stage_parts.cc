#include <algorithm>
#include <numeric>

#include "planner/cost/layer/root_unit.h"
#include "planner/cost/layer/token_table.h"
#include "planner/cost/memory/memory.h"
#include "planner/spec/text/check.h"
#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

bool is_block(const LayerMemory& layer) { return !is_outside(layer.role); }

Unit& operator+=(Unit& sum, const Unit& more) {
  sum.dense += more.dense;
  sum.routed += more.routed;
  sum.narrow += more.narrow;
  sum.frozen += more.frozen;
  return sum;
}

Unit times(const Unit& unit, std::int64_t count) {
  return {unit.dense * count, unit.routed * count, unit.narrow * count, unit.frozen * count};
}

Unit less(const Unit& all, const Unit& part) {
  return {all.dense - part.dense, all.routed - part.routed, all.narrow - part.narrow,
          all.frozen - part.frozen};
}

void count_layers(StageParts& parts, const LayerMemory& layer, std::int32_t count) {
  for (std::int32_t r = 0; r < parts.runs; ++r) {
    auto& run = parts.run[static_cast<std::size_t>(r)];
    if (run.layer != &layer) continue;
    run.count += count;
    return;
  }
  SHARDWISE_CHECK(parts.runs < kMaxStageKinds, "more kinds of layers than a stage may have");
  parts.run[static_cast<std::size_t>(parts.runs++)] = {&layer, count};
}

void add_parameters(StageParts& parts, const LayerMemory& layer, std::int32_t count) {
  const LayerParameters& p = layer.parameters;
  parts.dense += p.dense * count;
  parts.routed += p.routed * count;
  parts.frozen += p.frozen * count;
  parts.counted_experts += p.counted_experts * count;
  parts.narrow_dense += p.narrow_dense * count;
  parts.narrow_routed += p.narrow_routed * count;
  parts.tensors += p.tensors * count;
  for (std::int32_t g = 0; g < p.groups; ++g) {
    const TensorGroup& t = p.group[static_cast<std::size_t>(g)];
    parts.rows_divisor = std::gcd(parts.rows_divisor, t.rows);
    parts.tensor_divisor = std::gcd(parts.tensor_divisor, t.rows * t.row_elements);
  }
  const Unit own = gathered_unit(layer);
  if (!is_block(layer)) {
    parts.root += own;
  } else if (own.gathered() > parts.largest_block.gathered()) {
    parts.largest_block = own;
  }
}

/// The token table of another stage, which a tied head or MTP needs here too.
void add_copied_table(StageParts& parts, std::int64_t trained, std::int64_t frozen) {
  parts.frozen += frozen;
  parts.root.frozen += frozen;
  if (trained == 0) return;
  parts.copied = trained;
  parts.dense += parts.copied;
  parts.root.dense += parts.copied;
  parts.tensors += 1;
}

/// Buffers and flags that are there once however many layers want them.
void add_shared_buffers(StageParts& parts, const LayerMemory& layer) {
  parts.framework_gemm = parts.framework_gemm || layer.framework_gemm;
  parts.engine_gemm = parts.engine_gemm || layer.engine_gemm;
  parts.grouped_gemm = parts.grouped_gemm || layer.grouped_gemm;
  parts.overlapped_gemm = parts.overlapped_gemm || layer.overlapped_gemm;
}

bool seen_before(const StageParts& parts, std::int32_t run, const MatrixShape& shape) {
  for (std::int32_t r = 0; r < run; ++r) {
    const LayerMemory& layer = *parts.run[static_cast<std::size_t>(r)].layer;
    for (std::int32_t i = 0; i < layer.shapes; ++i) {
      if (layer.shape[static_cast<std::size_t>(i)] == shape) return true;
    }
  }
  return false;
}

void finish_residents(StageParts& parts) {
  for (std::int32_t r = 0; r < parts.runs; ++r) {
    const LayerMemory& layer = *parts.run[static_cast<std::size_t>(r)].layer;
    parts.tables = std::max(parts.tables, layer.tables);
    parts.gather_buffer = std::max(parts.gather_buffer, layer.gather_buffer);
    for (std::int32_t i = 0; i < layer.shapes; ++i) {
      const MatrixShape& shape = layer.shape[static_cast<std::size_t>(i)];
      if (!seen_before(parts, r, shape)) parts.placeholders += shape.rows * shape.columns;
    }
  }
}

/// Bytes that `count` layers of a kind save, of which recompute takes every n-th, the first
/// included.
std::int64_t saved_by(const LayerMemory& layer, std::int64_t count) {
  const std::int64_t again = ceil_div(count, layer.recompute_interval);
  return again * layer.saved + (count - again) * layer.saved_whole;
}

/// What the layer with this number of its run saves.
std::int64_t saved_at(const LayerMemory& layer, std::int32_t number) {
  return number % layer.recompute_interval == 0 ? layer.saved : layer.saved_whole;
}

/// Most that two layers of a run save that follow one another. \pre there are two
std::int64_t pair_in(const LayerMemory& layer, std::int32_t count) {
  if (layer.recompute_interval == 1) return 2 * layer.saved;
  const bool both_whole = layer.recompute_interval > 2 && count > 2;
  return layer.saved_whole + (both_whole ? layer.saved_whole : layer.saved);
}

/// The last layer of a kind in a chunk, of those that recompute takes or leaves alone: those before
/// it have saved less.
void add_moment(StageParts& parts, const StageMoment& moment) {
  for (StageMoment& each : parts.moments) {
    const bool same =
        each.layer == moment.layer && each.whole == moment.whole && each.instant == moment.instant;
    if (!same || each.chunk != moment.chunk) continue;
    const std::int64_t beside = std::max(each.saved_beside, moment.saved_beside);
    if (moment.saved_before > each.saved_before) each = moment;
    each.saved_beside = beside;
    return;
  }
  parts.moments.push_back(moment);
}

/// The runs of one model chunk.
using ChunkRuns = std::span<const StageRun>;

bool same_layers(ChunkRuns a, ChunkRuns b) {
  return std::ranges::equal(a, b, [](const StageRun& x, const StageRun& y) {
    return x.kind == y.kind && x.layers == y.layers;
  });
}

std::vector<ChunkRuns> runs_by_chunk(const StageLayers& layers) {
  std::vector<ChunkRuns> chunks;
  const ChunkRuns runs = layers.runs;
  for (std::size_t begin = 0; begin < runs.size();) {
    std::size_t end = begin;
    while (end < runs.size() && runs[end].chunk == runs[begin].chunk) ++end;
    chunks.resize(static_cast<std::size_t>(runs[begin].chunk) + 1);
    chunks.back() = runs.subspan(begin, end - begin);
    begin = end;
  }
  return chunks;
}

/// Adds up what the layers of a chunk save, run by run, and its moments.
class ChunkWalk {
 public:
  /// \param done  of the chunks before; of this one too once it is added
  ChunkWalk(StageParts& parts, std::span<const LayerMemory> by_kind, ChunkRuns runs, Unit& done)
      : parts_(parts),
        by_kind_(by_kind),
        runs_(runs),
        chunk_(static_cast<std::int32_t>(parts.chunk_saved.size())),
        done_(done) {
    for (const StageRun& run : runs) {
      all_ += times(gathered_unit(layer_of(run)), run.layers);
      outside_ += outside_of(layer_of(run), run.layers);
      const LayerMemory& layer = layer_of(run);
      const LayerParameters& p = layer.parameters;
      if (layer.role == LayerRole::embedding) {
        table_ = p.vocabulary + p.frozen_vocabulary;
        embedding_ = gathered_unit(layer).gathered();
        own_kernels_ = own_kernels(layer);
      }
      tied_gradient_ += layer.tied_gradient;
    }
    const bool tied = std::ranges::any_of(
        runs, [&](const StageRun& run) { return has_tied_table(layer_of(run)); });
    // Our kernels know no root: what is beside the table is of the embedding's unit.
    const std::int64_t beside = own_kernels_ ? 0 : embedding_ - table_;
    root_ = beside + (tied ? table_ : 0);
    if (!tied) table_ = 0;
  }

  void add(bool has_moments) {
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      const StageRun& run = runs_[r];
      const LayerMemory& layer = layer_of(run);
      const std::int32_t last = run.layers - 1;
      // The last of the run, and the last that recompute takes.
      const std::int32_t again = last / layer.recompute_interval * layer.recompute_interval;
      const bool whole = again != last;
      if (has_moments) {
        add_inner(r);
        if (whole) add_moment(parts_, moment(r, again, false));
        add_moment(parts_, moment(r, last, whole));
        add_outer(layer, moment(r, last, whole));
      }
      before_ += times(gathered_unit(layer), run.layers);
      outside_before_ += outside_of(layer, run.layers);
      saved_ += saved_by(layer, run.layers);
      add_pairs(layer, run.layers);
      parts_.routed_saved += layer.routed_saved * run.layers;
    }
    parts_.last_saved = std::max(parts_.last_saved, beside_);
    parts_.chunk_saved.push_back(saved_);
    parts_.chunk_trained.push_back(all_.elements());
    done_ += all_;
  }

 private:
  const LayerMemory& layer_of(const StageRun& run) const {
    return by_kind_[static_cast<std::size_t>(run.kind)];
  }

  /// Instants that only an embedding or a head has.
  void add_outer(const LayerMemory& layer, StageMoment moment) {
    if (layer.loss_apart) {
      moment.instant = Instant::beside_loss;
      add_moment(parts_, moment);
    }
    if (layer.reduces_apart) {
      moment.instant = Instant::reduction;
      moment.tied_gradients = {};  // their sum is the layer's own
      add_moment(parts_, moment);
    }
  }

  /// The first two layers of a kind, and the last but one: its neighbours are like it.
  void add_inner(std::size_t r) {
    const std::int32_t layers = runs_[r].layers;
    const LayerMemory& layer = layer_of(runs_[r]);
    const bool seen = std::ranges::any_of(parts_.inner_moments, [&](const StageMoment& each) {
      return each.layer == &layer && each.chunk == chunk_;
    });
    const auto add = [&](std::int32_t index) {
      parts_.inner_moments.push_back(moment(r, index, index % layer.recompute_interval != 0));
    };
    if (!seen) add(0);
    if (!seen && layers > 1) add(1);
    if (layers > 3) add(layers - 2);
  }

  /// Layers of a run with one another and with what is before them.
  void add_pairs(const LayerMemory& layer, std::int32_t layers) {
    if (beside_ == 0) parts_.first_saved = std::max(parts_.first_saved, layer.saved);
    const std::int64_t within = layers > 1 ? pair_in(layer, layers) : 0;
    parts_.pair_saved = std::max({parts_.pair_saved, beside_ + layer.saved, within});
    const std::int64_t last = saved_at(layer, layers - 1);
    if (last > 0) beside_ = last;
  }

  static std::int64_t outside_of(const LayerMemory& layer, std::int32_t count) {
    return is_block(layer) ? 0 : gathered_unit(layer).gathered() * count;
  }

  /// When layer `index` of run `r` runs.
  StageMoment moment(std::size_t r, std::int32_t index, bool whole) const {
    const StageRun& run = runs_[r];
    const LayerMemory& layer = layer_of(run);
    const Unit own = gathered_unit(layer);
    StageMoment moment;
    moment.layer = &layer;
    moment.chunk = chunk_;
    moment.whole = whole;
    moment.saved_before = saved_ + saved_by(layer, index);
    const std::int64_t one_before = index > 0 ? saved_at(layer, index - 1) : 0;
    moment.saved_beside = one_before > 0 ? one_before : beside_;
    moment.alike_before = layer.recompute_interval > 1 ? 0 : index;
    if (index > 0) {
      moment.next = own;
    } else if (r > 0) {
      moment.next = gathered_unit(layer_of(runs_[r - 1]));
    }
    if (index + 1 < run.layers) {
      moment.previous = own;
    } else if (r + 1 < runs_.size()) {
      moment.previous = gathered_unit(layer_of(runs_[r + 1]));
    }
    moment.before = before_;
    moment.before += times(own, index);
    moment.after = less(less(all_, moment.before), own);
    moment.outside_before = outside_before_;
    moment.outside_after = outside_ - outside_before_ - outside_of(layer, 1);
    moment.ready =
        less({parts_.dense, parts_.routed, all_.narrow + done_.narrow, parts_.frozen}, done_);
    moment.ready = less(less(moment.ready, moment.before), own);
    moment.root_unit = root_;
    if (table_ == 0) return moment;
    moment.tied_table = table_;
    // The head's waits while the blocks run, then the embedding's joins it in their sum.
    const std::int64_t tables = layer.role == LayerRole::head        ? 0
                                : layer.role == LayerRole::embedding ? 2
                                                                     : 1;
    moment.tied_gradients = {tables, tied_gradient_};
    return moment;
  }

  StageParts& parts_;
  std::span<const LayerMemory> by_kind_;
  ChunkRuns runs_;
  std::int32_t chunk_;
  Unit& done_;
  Unit all_;  // of all runs
  std::int64_t outside_ = 0;
  std::int64_t saved_ = 0;   // by the runs so far
  std::int64_t beside_ = 0;  // by the last of their layers that saves anything
  Unit before_;              // of them
  std::int64_t outside_before_ = 0;
  std::int64_t table_ = 0;      // elements of the embedding's, where the chunk's head shares it
  std::int64_t embedding_ = 0;  // and all of the layer's
  std::int64_t root_ = 0;       // StageMoment::root_unit
  bool own_kernels_ = false;
  std::int64_t tied_gradient_ = 0;
};

std::vector<std::int32_t> first_alike(const std::vector<ChunkRuns>& chunks) {
  std::vector<std::int32_t> first;
  first.reserve(chunks.size());
  for (const ChunkRuns& chunk : chunks) {
    std::size_t like = 0;
    while (!same_layers(chunks[like], chunk)) ++like;
    first.push_back(static_cast<std::int32_t>(like));
  }
  return first;
}

void add_moments(StageParts& parts, std::span<const LayerMemory> by_kind,
                 const StageLayers& layers) {
  const std::vector<ChunkRuns> chunks = runs_by_chunk(layers);
  parts.chunk_like = first_alike(chunks);
  parts.chunk_saved.reserve(chunks.size());
  Unit done;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const bool has_moments = parts.chunk_like[c] == static_cast<std::int32_t>(c);
    ChunkWalk(parts, by_kind, chunks[c], done).add(has_moments);
  }
}

}  // namespace

Unit gathered_unit(const LayerMemory& layer) {
  const LayerParameters& p = layer.parameters;
  return {p.dense, p.routed, p.narrow_dense + p.narrow_routed, p.frozen};
}

std::vector<std::int32_t> chunks_alike(const StageLayers& layers) {
  return first_alike(runs_by_chunk(layers));
}

StageParts layer_parts(const LayerMemory& layer, std::int64_t copied) {
  StageParts parts;
  count_layers(parts, layer, 1);
  parts.in_order = {{&layer, 1, 0}};
  add_parameters(parts, layer, 1);
  add_copied_table(parts, copied, 0);
  return parts;
}

StageParts stage_parts(const ModelSpec& model, std::span<const LayerMemory> by_kind,
                       const StageLayers& layers) {
  StageParts parts;
  parts.shares_table = layers.shares_table;
  parts.in_order.reserve(layers.runs.size());
  for (const StageRun& run : layers.runs) {
    const LayerMemory& layer = by_kind[static_cast<std::size_t>(run.kind)];
    count_layers(parts, layer, run.layers);
    parts.in_order.push_back({&layer, run.layers, run.chunk});
  }
  for (std::int32_t r = 0; r < parts.runs; ++r) {
    const StageParts::Run& run = parts.run[static_cast<std::size_t>(r)];
    add_parameters(parts, *run.layer, run.count);
    add_shared_buffers(parts, *run.layer);
    parts.boundary = std::max(parts.boundary, run.layer->input);
  }
  if (layers.copies_embedding) {
    for (std::size_t kind = 0; kind < model.kinds.size(); ++kind) {
      if (model.kinds[kind].role != LayerRole::embedding) continue;
      const LayerParameters& table = by_kind[kind].parameters;
      add_copied_table(parts, table.vocabulary, table.frozen_vocabulary);
      parts.copied_row = token_table(by_kind).row_elements;
      break;
    }
  }
  finish_residents(parts);
  add_moments(parts, by_kind, layers);
  return parts;
}

}  // namespace shardwise
