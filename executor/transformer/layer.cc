#include "executor/transformer/layer.h"

#include <algorithm>

#include "executor/transformer/block_layer.h"
#include "executor/transformer/embedding_layer.h"
#include "executor/transformer/head_layer.h"
#include "planner/cost/layer/operation_memory.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {
namespace {

RecomputedOperations recomputed(const JobSpec& job) {
  const auto named = [&](std::size_t i) {
    return std::ranges::find(job.recompute_operations, kRecomputable[i]) !=
           job.recompute_operations.end();
  };
  return {named(0), named(1), named(2), named(3)};
}

}  // namespace

void Layer::meet(LayerRoom& /*room*/) const {}

void Layer::recompute(const BackwardPass& /*pass*/, const Issue& /*to*/) const {}

VocabularyPart vocabulary_part(const ModelSpec& model, const LayerShape& shape) {
  if (shape.tp == 1) return {0, model.vocab_size, model.vocab_size};
  VocabularyPart part;
  part.room = padded_vocabulary(model.vocab_size, 1, shape.tp) / shape.tp;
  part.first = std::min(model.vocab_size, shape.tp_rank * part.room);
  part.count = std::min(part.room, model.vocab_size - part.first);
  return part;
}

LayerShape layer_shape(const ModelSpec& model, const JobSpec& job, const Layout& layout,
                       bool whole) {
  LayerShape shape;
  shape.batch = layout.micro_batch_size;
  shape.sequence = job.sequence_length;
  shape.recompute = layout.recompute == Recompute::full && !whole;
  if (!shape.recompute) shape.again = recomputed(job);
  if (job.loss == LossKernel::chunked) {
    shape.loss_chunk =
        loss_chunk_rows(job.loss_chunk_rows, shape.tokens(), model.vocab_size, model.hidden_size);
  }
  shape.storage = job.precision;
  shape.tp = layout.tp;
  shape.sequence_parallel = layout.sequence_parallel && layout.tp > 1;
  return shape;
}

std::unique_ptr<Layer> make_layer(const ModelSpec& model, const LayerSpec& kind,
                                  const LayerShape& shape) {
  switch (kind.role) {
    case LayerRole::embedding:
      return std::make_unique<EmbeddingLayer>(model, kind, shape);
    case LayerRole::block:
      return std::make_unique<BlockLayer>(model, kind, shape);
    case LayerRole::head:
      return std::make_unique<HeadLayer>(model, kind, shape);
    case LayerRole::encoder_block:
    case LayerRole::mtp:
      break;
  }
  SHARDWISE_CHECK(false, "no kernels for layer " + kind.name);
  return nullptr;
}

}  // namespace shardwise::exec
