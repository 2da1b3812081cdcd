#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "executor/device/stream.h"
#include "executor/kernels/attention/attention.h"
#include "executor/kernels/attention/rope.h"
#include "executor/kernels/compute/gradient_check.h"
#include "executor/kernels/embedding.h"
#include "executor/kernels/gelu.h"
#include "executor/kernels/norm.h"
#include "executor/kernels/products/cross_entropy.h"
#include "executor/kernels/products/linear.h"
#include "executor/kernels/products/vocabulary_loss.h"
#include "executor/kernels/tensor_view.h"
#include "executor/optimizer/adamw.h"
#include "planner/spec/machine/dtype.h"

namespace shardwise::exec {

class Compute;
class Device;

// The arguments of one operation: shapes and dtypes as values, tensors as bytes of the device's
// memory. `dtype`, fp32 or bf16, is that of weights, activations and their gradients; `gradient`
// that of weight gradients, bf16 with dtype bf16 only. Statistics, log_sums and tables are fp32.
// Shapes of tensors, precision and source of each operation: the header of its kernels. Tensors of
// one operation do not overlap, but where a line here says that one may be another.

struct NormWork {
  NormShape shape;
  bool rms = true;  // else a LayerNorm
  DType dtype = DType::fp32;
  const std::byte* x = nullptr;
  std::byte* kept = nullptr;  // receives a copy of x [rows, width]; null for none
  const std::byte* weight = nullptr;
  const std::byte* bias = nullptr;  // of a LayerNorm; null for none
  std::byte* y = nullptr;
  float* statistics = nullptr;
};

struct NormBackwardWork {
  NormShape shape;
  bool rms = true;
  DType dtype = DType::fp32;
  DType gradient = DType::fp32;
  const std::byte* x = nullptr;
  const std::byte* weight = nullptr;
  const float* statistics = nullptr;
  const std::byte* d_y = nullptr;
  std::byte* d_x = nullptr;       // may be x; may be d_y where the strides are equal
  bool adds = false;              // to d_x: a residual stream
  std::byte* d_weight = nullptr;  // added to; null when not trained
  std::byte* d_bias = nullptr;    // as d_weight
};

/// y = x W^T + bias, or y += with `adds`; with `gelu` also activated = gelu(y), of y as stored.
/// \pre with `gelu`: y_stride is out
struct LinearWork {
  LinearShape shape;
  DType dtype = DType::fp32;
  const std::byte* x = nullptr;
  const std::byte* weight = nullptr;
  const std::byte* bias = nullptr;  // null for none
  std::byte* y = nullptr;
  bool adds = false;
  std::optional<Gelu> gelu = std::nullopt;
  std::byte* activated = nullptr;  // [rows, out]
};

/// d_x = d_y W, or d_x += with `adds`. With `gelu`, whose result x is, d_x is then multiplied with
/// gelu'(before). The CPU rounds d_x before it is multiplied and after, as two operations would.
/// \pre with `gelu`: x_stride is in
struct LinearBackwardInputWork {
  LinearShape shape;
  DType dtype = DType::fp32;
  const std::byte* d_y = nullptr;
  const std::byte* weight = nullptr;
  std::byte* d_x = nullptr;
  bool adds = false;
  std::optional<Gelu> gelu = std::nullopt;
  const std::byte* before = nullptr;  // [rows, in] what gelu was applied to
};

struct LinearBackwardWeightWork {
  LinearShape shape;
  DType dtype = DType::fp32;
  DType gradient = DType::fp32;
  const std::byte* x = nullptr;
  const std::byte* d_y = nullptr;
  std::byte* d_weight = nullptr;  // added to; null when not trained
  std::byte* d_bias = nullptr;    // added to; null for none
};

/// Fills RopeTables.
struct RopeTablesWork {
  std::int64_t sequence = 0;
  std::span<const double> frequencies;  // [head_dim / 2] of the host, read when it is issued
  float* cosines = nullptr;             // [sequence, head_dim / 2]
  float* sines = nullptr;
};

struct RopeWork {
  RopeShape shape;
  DType dtype = DType::fp32;
  RopeTables tables;
  std::byte* x = nullptr;
  bool backward = false;  // turns gradients back
};

struct AttentionWork {
  AttentionShape shape;
  DType dtype = DType::fp32;
  const std::byte* qkv = nullptr;
  std::byte* out = nullptr;
  float* log_sums = nullptr;
};

struct AttentionBackwardWork {
  AttentionShape shape;
  DType dtype = DType::fp32;
  std::byte* qkv = nullptr;  // replaced by its gradient
  const std::byte* out = nullptr;
  const float* log_sums = nullptr;
  const std::byte* d_out = nullptr;
  std::byte* workspace = nullptr;  // attention_backward_bytes(shape)
};

struct GeluWork {
  Gelu kind = Gelu::tanh;
  std::int64_t count = 0;
  DType dtype = DType::fp32;
  const std::byte* x = nullptr;
  std::byte* y = nullptr;  // may be x
};

struct SwigluWork {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  DType dtype = DType::fp32;
  const std::byte* gate_up = nullptr;
  std::byte* y = nullptr;
};

struct SwigluBackwardWork {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  DType dtype = DType::fp32;
  std::byte* gate_up = nullptr;  // replaced by its gradient
  const std::byte* d_y = nullptr;
};

struct EmbeddingWork {
  EmbeddingShape shape;
  DType dtype = DType::fp32;
  const std::int64_t* tokens = nullptr;
  std::int64_t* kept = nullptr;  // receives a copy of tokens; null for none
  const std::byte* table = nullptr;
  const std::byte* positions = nullptr;  // null for none
  std::byte* y = nullptr;
};

struct EmbeddingBackwardWork {
  EmbeddingShape shape;
  DType dtype = DType::fp32;
  DType gradient = DType::fp32;
  const std::int64_t* tokens = nullptr;
  const std::byte* d_y = nullptr;
  std::byte* d_table = nullptr;      // added to; null when not trained
  std::byte* d_positions = nullptr;  // as d_table
};

/// The product with the vocabulary's matrix, its cross-entropy and the gradients of both, by chunks
/// of rows.
struct HeadWork {
  CrossEntropyShape shape;
  DType dtype = DType::fp32;
  DType gradient = DType::fp32;
  std::byte* x = nullptr;  // replaced by its gradient
  const std::byte* weight = nullptr;
  const std::int64_t* targets = nullptr;
  const float* scale = nullptr;    // of the loss whose gradients these are; the device reads it
  std::byte* d_weight = nullptr;   // added to; null when not trained
  LossSum* loss = nullptr;         // added to, by the device
  std::byte* workspace = nullptr;  // cross_entropy_bytes(shape, dtype)
};

/// The two parts of a head whose vocabulary ranks share, for some rows of tokens.
struct VocabularyWork {
  VocabularyShape shape;
  DType dtype = DType::fp32;
  DType gradient = DType::fp32;
  std::byte* x = nullptr;  // replaced by this rank's part of its gradient
  const std::byte* weight = nullptr;
  const std::int64_t* targets = nullptr;
  const float* scale = nullptr;         // as in HeadWork
  std::byte* d_weight = nullptr;        // added to; null when not trained
  LossSum* loss = nullptr;              // added to
  std::byte* logits = nullptr;          // [rows, vocabulary], from the first part to the second
  RowStatistics* statistics = nullptr;  // [ranks, rows]: the first part writes its rank's
  float* losses = nullptr;              // [rows]
};

/// tensor *= factor
struct ScaleWork {
  TensorView tensor;
  const float* factor = nullptr;  // the device reads it
};

/// factor = 1 / tokens, of all ranks; 1 where there are none. Computed in fp32.
struct TokenFactorWork {
  const std::int64_t* tokens = nullptr;  // [ranks]
  std::int64_t ranks = 1;
  float* factor = nullptr;
};

/// Sum of what ranks sent one another of one shard, in fp32, in the order of ranks and rounded
/// once, when it becomes the shard or, with `joins`, is added to it.
struct SumRanksWork {
  ConstTensorView pieces;   // [ranks, stride] of which each rank's first elements are the shard's
  std::int64_t stride = 0;  // elements from rank to rank
  std::int64_t ranks = 1;
  TensorView sums;   // [shard's elements] fp32, workspace
  TensorView shard;  // may be fp32 or bf16
  bool joins = false;
};

/// The sum of the squares of all elements, in a form that ranks can add to one another's.
struct SquaresWork {
  std::span<const ConstTensorView> tensors;  // a list of the host, read when it is issued
  std::byte* sums = nullptr;                 // receives Compute::squares_bytes()
  bool beside_others = false;  // issued while others are: the CPU takes the calling thread alone
};

/// Gradient norm from the ranks' sums of squares. Any infinity makes it infinite, any NaN makes it
/// NaN; NaN wins. And what clipping multiplies gradients with, clip_factor() in fp64.
struct SquaresNormWork {
  const std::byte* sums = nullptr;  // [ranks] of squares_bytes()
  std::int64_t ranks = 1;
  double* norm = nullptr;
  double clip_norm = 0;          // 0: the factor is 1
  float* clip_factor = nullptr;  // null for none
};

/// check_gradients() of the norm of one rank's sums.
struct GradientCheckWork {
  GradientCheckRules rules;
  const std::byte* sums = nullptr;  // squares_bytes()
  GradientBucket bucket;
  GradientCheckState* state = nullptr;
};

/// A run of elements that AdamW updates alike; all tensors have as many.
struct AdamShard {
  ConstTensorView gradient;
  TensorView main;  // the weights; fp32 like their moments, or bf16, rounded stochastically
  TensorView exp_avg;
  TensorView exp_avg_sq;
  // Receives the updated weights; empty where main is what layers read.
  TensorView stored = {};  // NOLINT(*-redundant-member-init): GCC asks for it
  // Lower halves of weights (executor/optimizer/weight_halves.h), whose upper ones are `stored`, in
  // bf16: main is empty, and exp_avg_sq has their signs.
  std::span<std::uint16_t> remainders = {};  // NOLINT(*-redundant-member-init)
  std::uint64_t tensor = 0;                  // of bf16 main: RoundedWeights
  std::uint64_t first = 0;                   // likewise
  bool decays = false;                       // a matrix
};
struct AdamWork {
  std::span<const AdamShard> shards;  // a list of the host, read when it is issued
  const AdamStep* step = nullptr;     // the device reads it
};

/// Means of a rank for Compute::prepare(). All ranks of a job prepare together.
struct Preparation {
  Device& device;       // that the operations are of
  bool chooses = true;  // rank 0: others take what it chose, so that all have the same bits
  /// Issues the passes of the run's steps to another Compute, with the places that they will have.
  std::function<void(Compute& to)> issue_passes;
  /// The text of rank 0. Each rank calls it once.
  std::function<std::string(const std::string& own)> from_first;
  /// Tells people a line.
  std::function<void(const std::string& line)> tell;
};

/// The operations that layers and a rank's state are made of, on one device: tensors are read and
/// written through it alone. An operation is issued to a stream and returns when it is issued; its
/// result is there for what comes later on that stream, or waits for an event of it.
class Compute {
 public:
  virtual ~Compute() = default;
  Compute() = default;
  Compute(const Compute&) = delete;
  Compute& operator=(const Compute&) = delete;

  /// Memory of the device that operations up to head() have, one after the other, besides that of
  /// their works, until it is set anew: gpu_workspace_bytes() at a multiple of 256. The CPU needs
  /// none.
  virtual void set_workspace(std::span<std::byte> /*workspace*/) {}

  /// Makes and chooses before the first step what operations need, so that no step makes, times or
  /// waits for it, unless equal bits are asked for. \pre set_workspace(), and nothing else runs
  /// \returns whether tensors of passes were written: their contents are lost
  virtual bool prepare(const Preparation& /*preparation*/) { return false; }

  virtual void norm(const NormWork& work, DeviceStream& stream) = 0;
  virtual void norm_backward(const NormBackwardWork& work, DeviceStream& stream) = 0;
  virtual void linear(const LinearWork& work, DeviceStream& stream) = 0;
  virtual void linear_backward_input(const LinearBackwardInputWork& work, DeviceStream& stream) = 0;
  virtual void linear_backward_weight(const LinearBackwardWeightWork& work,
                                      DeviceStream& stream) = 0;
  virtual void rope_tables(const RopeTablesWork& work, DeviceStream& stream) = 0;
  virtual void rope(const RopeWork& work, DeviceStream& stream) = 0;
  virtual void attention(const AttentionWork& work, DeviceStream& stream) = 0;
  virtual void attention_backward(const AttentionBackwardWork& work, DeviceStream& stream) = 0;
  virtual void gelu(const GeluWork& work, DeviceStream& stream) = 0;
  virtual void swiglu(const SwigluWork& work, DeviceStream& stream) = 0;
  virtual void swiglu_backward(const SwigluBackwardWork& work, DeviceStream& stream) = 0;
  virtual void embedding(const EmbeddingWork& work, DeviceStream& stream) = 0;
  virtual void embedding_backward(const EmbeddingBackwardWork& work, DeviceStream& stream) = 0;
  virtual void head(const HeadWork& work, DeviceStream& stream) = 0;
  /// In place of head() where ranks share the vocabulary. Devices without them have a check that
  /// aborts: plans are refused before.
  virtual void vocabulary_logits(const VocabularyWork& work, DeviceStream& stream);
  virtual void vocabulary_gradients(const VocabularyWork& work, DeviceStream& stream);

  // Movement and steps, as tensor_view.h has them; any stream may issue clear() to
  // sum_ranks() beside the operations of others.
  virtual void clear(const TensorView& tensor, DeviceStream& stream) = 0;
  /// to = from, rounded. They may begin at one place.
  virtual void cast(const TensorView& to, const ConstTensorView& from, DeviceStream& stream) = 0;
  virtual void accumulate(const TensorView& sum, const ConstTensorView& each,
                          DeviceStream& stream) = 0;
  virtual void scale(const ScaleWork& work, DeviceStream& stream) = 0;
  virtual void token_factor(const TokenFactorWork& work, DeviceStream& stream) = 0;
  virtual void sum_ranks(const SumRanksWork& work, DeviceStream& stream) = 0;
  virtual std::int64_t squares_bytes() const = 0;
  virtual void squares(const SquaresWork& work, DeviceStream& stream) = 0;
  virtual void squares_norm(const SquaresNormWork& work, DeviceStream& stream) = 0;
  virtual void check_gradients(const GradientCheckWork& work, DeviceStream& stream) = 0;
  virtual void adamw(const AdamWork& work, DeviceStream& stream) = 0;
};

/// Where a pass of a layer issues its operations.
struct Issue {
  Compute& compute;
  DeviceStream& stream;
};

}  // namespace shardwise::exec
