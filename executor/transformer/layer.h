#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/kernels/compute/compute.h"
#include "planner/lowering/operands/lower_to_run.h"
#include "planner/spec/machine/dtype.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise::exec {

/// Operations of a block that run again in backward: what they make is not kept. The norms of the
/// stream, the core of attention and the activation read what is kept anyway.
struct RecomputedOperations {
  bool attention_norm = false;
  bool attention = false;
  bool mlp_norm = false;
  bool activation = false;
  bool any() const { return attention_norm || attention || mlp_norm || activation; }
};
/// JobSpec::recompute_operations that can be run again, as operations are named.
inline constexpr std::array<std::string_view, 4> kRecomputable = {
    "attention_norm", "self_attn.core", "mlp_norm", "mlp.activation"};

/// Shape of a layer, fixed for a run.
struct LayerShape {
  std::int64_t batch = 1;         // sequences of a micro-batch
  std::int64_t sequence = 1;      // tokens of a sequence
  bool recompute = false;         // a block keeps its input alone and runs again in backward
  RecomputedOperations again;     // and of blocks that keep more, these operations
  std::int64_t loss_chunk = 0;    // tokens whose logits exist at once; 0 = all of a micro-batch
  DType storage = DType::fp32;    // of weights, the stream and what is saved; fp32 or bf16
  DType gradients = DType::fp32;  // of weights; bf16 with storage bf16 only
  // Tensor parallelism: ranks that share a layer's heads, widths and vocabulary, and which of them
  // this is.
  std::int64_t tp = 1;
  std::int64_t tp_rank = 0;
  bool sequence_parallel = false;  // each has as many of the stream's tokens, in their order
  std::int64_t tokens() const { return batch * sequence; }
  /// Those of the stream on this rank.
  std::int64_t stream_tokens() const { return sequence_parallel ? tokens() / tp : tokens(); }
};

/// Tokens whose rows of a table and logits a rank has: all, or where ranks share them a part, of
/// which the last ranks may have fewer, in as much room.
struct VocabularyPart {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t room = 0;
};
VocabularyPart vocabulary_part(const ModelSpec& model, const LayerShape& shape);

/// Memory that a layer is given, in bytes. Every part starts at a multiple of 64.
struct LayerBytes {
  std::int64_t saved = 0;  // from forward to backward of one micro-batch
  std::int64_t forward_workspace = 0;
  std::int64_t backward_workspace = 0;
  std::int64_t tables = 0;    // made once, shared by all layers
  std::int64_t gathered = 0;  // beside backward_workspace, for what a backward pass gathers
};

// Memory of the passes. "Elements" are of LayerShape::storage. Weights and gradients come in the
// order and with the shapes of LayerSpec::parameters; a head whose matrix is the embedding's
// table (tie_word_embeddings) is given that table after its own.
//
// The stream is one tensor [batch, sequence, hidden], of which under sequence parallelism a rank
// has stream_tokens() rows. All layers work on it: in forward a layer
// finds its input there and leaves its output, in backward the gradient of its output and leaves
// that of its input. A layer copies into `saved` what it needs of it.
//
// All of it is memory of the device, loss and loss_scale too: a layer has addresses, and its
// operations the contents.
//
// Where ranks share a layer, its passes are cut into regions (planner/lowering/kernel_passes.h): a
// call runs one of them, and between two a collective works on a tensor that the layer names
// (Layer::meet()). Weights and gradients are then this rank's parts.
struct ForwardPass {
  std::span<const std::byte* const> weights;  // elements
  std::byte* stream = nullptr;           // elements; an embedding writes only, a head reads only
  const std::int64_t* inputs = nullptr;  // [batch, sequence] token numbers, for an embedding
  std::byte* saved = nullptr;
  std::byte* workspace = nullptr;
  const std::byte* tables = nullptr;
  std::size_t region = 0;
};

struct BackwardPass {
  std::span<const std::byte* const> weights;
  std::span<std::byte* const> gradients;  // added to; null for a parameter that is not trained
  std::byte* stream = nullptr;            // a head writes only, an embedding reads only
  std::byte* saved = nullptr;             // left in an unspecified state
  std::byte* workspace = nullptr;
  std::byte* gathered = nullptr;
  const std::byte* tables = nullptr;
  std::size_t region = 0;
  // A head only: it computes the loss here, by chunks of tokens, so that logits are never whole.
  const std::int64_t* targets = nullptr;  // [batch, sequence] token numbers, or kIgnored
  const float* loss_scale = nullptr;      // the gradient is of loss_scale * sum of the loss
  LossSum* loss = nullptr;                // added to
};

/// One kind of layer: which operations run in which order, and where what they make lies. What it
/// saves and needs is, to the byte, what the planner's ledger counts for the engine `shardwise`
/// (docs/memory.md): LayerMemory::saved, and pass.peak less saved and the stream.
class Layer {
 public:
  virtual ~Layer() = default;
  virtual LayerBytes bytes() const = 0;
  /// Lists the tensors of the collectives between its regions, in a room of bytes().
  virtual void meet(LayerRoom& room) const;
  virtual void forward(const ForwardPass& pass, const Issue& to) const = 0;
  /// Recomputes into backward's workspace the tensors that a layer does not keep
  /// (LayerShape::recompute and again). Others do nothing.
  virtual void recompute(const BackwardPass& pass, const Issue& to) const;
  virtual void backward(const BackwardPass& pass, const Issue& to) const = 0;
};

/// Shape of a job's layers. `whole` asks for the blocks that recompute_interval does not
/// recompute.
LayerShape layer_shape(const ModelSpec& model, const JobSpec& job, const Layout& layout,
                       bool whole = false);

/// \pre cannot_run(model, job) is empty and `kind` is one of model.kinds
std::unique_ptr<Layer> make_layer(const ModelSpec& model, const LayerSpec& kind,
                                  const LayerShape& shape);

/// Fills the memory that LayerBytes::tables speaks of: cosine and sine of the rotary angles.
/// tables: [sequence, head_dim / 2] cosines, then as many sines, fp32
void fill_tables(const ModelSpec& model, const LayerShape& shape, std::byte* tables,
                 const Issue& to);

/// Families whose formulas were held against transformers' (tests/executor/transformer).
inline constexpr std::string_view kExecutableFamilies[] = {"gpt2", "llama", "mistral", "qwen2",
                                                           "qwen3"};

/// Parts of the model and the job that have no kernels here, one line each, with their name
/// in config.json or plan.json; empty when it runs. Says nothing of how the layout spreads it.
std::vector<std::string> cannot_run(const ModelSpec& model, const JobSpec& job);

}  // namespace shardwise::exec
