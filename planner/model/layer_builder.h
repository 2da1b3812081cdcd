#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// A matrix multiplication with its weight.
struct Linear {
  std::string op;      // name of the operation
  std::string module;  // name in the checkpoint, relative to the layer; empty = shared elsewhere
  std::int64_t n = 0;  // output features
  std::int64_t k = 0;  // input features
  TpSplit tp = TpSplit::none;
  bool bias = false;
};

/// Collects the parameters and operations of one kind of layer, in forward order.
class LayerBuilder {
 public:
  /// \param prefix  before every module's name ("model.layers.{layer}.")
  LayerBuilder(std::string name, LayerRole role, std::string prefix);

  /// Names from here on start with `prefix`.
  void name_from(std::string prefix) { prefix_ = std::move(prefix); }
  /// Weights from here on are stored [in, out] rather than [out, in].
  void transpose_weights(bool transposed) { transposed_ = transposed; }
  /// Linear layers from here on are of `experts` routed experts; 0 ends that.
  void route_to(std::int64_t experts) { experts_ = experts; }

  OperationSpec& linear(const Linear& spec);
  /// One tensor that is not a matrix of a GEMM. `tp_dim` -1 = not cut.
  void parameter(const std::string& tensor, std::vector<std::int64_t> shape,
                 TpSplit tp = TpSplit::none, int tp_dim = -1, bool trainable = true);
  /// Appends an operation; fill in what its kind needs through the reference, before the next call.
  OperationSpec& operation(const std::string& op, OpKind kind, std::int64_t width,
                           TpSplit tp = TpSplit::none);

  LayerSpec take() { return std::move(layer_); }

 private:
  LayerSpec layer_;
  std::string prefix_;
  bool transposed_ = false;
  std::int64_t experts_ = 0;
};

}  // namespace shardwise
