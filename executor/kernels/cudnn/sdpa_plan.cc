#include "executor/kernels/cudnn/sdpa_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace shardwise::exec {
namespace {

constexpr std::int64_t kPiece = 256;    // what cudaMalloc aligns to
constexpr std::int64_t kBf16Bytes = 2;  // bytes of bf16
constexpr std::int64_t kFloatBytes = 4;

std::int64_t rounded(std::int64_t bytes) { return (bytes + kPiece - 1) / kPiece * kPiece; }

/// Tensors of a graph with where they are.
class Places {
 public:
  void add(SdpaTensor tensor, const void* at) {
    ids_.push_back(static_cast<std::int64_t>(tensor));
    // cuDNN takes inputs and outputs in one list.
    places_.push_back(const_cast<void*>(at));
  }
  /// Queries, keys and values of one array, or their gradients.
  void add_parts(const AttentionShape& shape, SdpaTensor queries, SdpaTensor keys,
                 SdpaTensor values, const std::byte* at) {
    const std::int64_t head = shape.head_dim * kBf16Bytes;
    add(queries, at);
    add(keys, at + shape.heads * head);
    add(values, at + (shape.heads + shape.kv_heads) * head);
  }
  void set(CudnnDescriptor& variants) {
    variants.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids_);
    variants.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
                 static_cast<std::int64_t>(places_.size()),
                 static_cast<const void*>(places_.data()));
  }

 private:
  std::vector<std::int64_t> ids_;
  std::vector<void*> places_;
};

/// The numbers of a graph. Scores that nobody sees are those that cuDNN's own frontend writes.
struct Numbers {
  explicit Numbers(const AttentionShape& shape)
      : scale(1.0F / std::sqrt(static_cast<float>(shape.head_dim))),
        window(static_cast<float>(shape.window)) {}
  float scale;
  float one = 1;
  float ahead = std::numeric_limits<float>::lowest();
  float behind = -0x1p30F;
  float window;
};

}  // namespace

SdpaWorkspace sdpa_workspace(const SdpaWork& work, std::int64_t engine_bytes) {
  const AttentionShape& s = work.shape;
  SdpaWorkspace places;
  if (work.pass == SdpaPass::backward) {
    places.engine = rounded(s.batch * s.sequence * s.qkv_width() * kBf16Bytes);
  }
  places.bytes = places.engine + rounded(engine_bytes);
  return places;
}

SdpaPlan::SdpaPlan(const CudnnLibrary& library, const SdpaEngines& engines, std::size_t engine,
                   cudnnHandle_t handle)
    : library_(library),
      work_(engines.work()),
      plan_(library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "a plan") {
  const SdpaEngine& chosen = engines.engines().at(engine);
  if (handle != nullptr) {
    plan_.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
  }
  plan_.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, chosen.configuration.handle());
  plan_.finalize();
  workspace_ = sdpa_workspace(work_, plan_.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
}

void SdpaPlan::run(const SdpaOperands& operands, cudnnHandle_t handle) const {
  const AttentionShape& shape = work_.shape;
  const Numbers numbers(shape);
  Places places;
  places.add_parts(shape, SdpaTensor::queries, SdpaTensor::keys, SdpaTensor::values, operands.qkv);
  places.add(SdpaTensor::out, operands.out);
  places.add(SdpaTensor::log_sums, operands.log_sums);
  places.add(SdpaTensor::scale, &numbers.scale);
  places.add(SdpaTensor::ahead, &numbers.ahead);
  if (shape.window > 0 && shape.window < shape.sequence) {
    places.add(SdpaTensor::behind, &numbers.behind);
    places.add(SdpaTensor::window, &numbers.window);
  }
  if (work_.pass == SdpaPass::backward) {
    places.add(SdpaTensor::d_out, operands.d_out);
    places.add_parts(shape, SdpaTensor::d_queries, SdpaTensor::d_keys, SdpaTensor::d_values,
                     operands.workspace + workspace_.d_qkv);
    const std::int64_t rows = shape.batch * shape.heads * shape.sequence;
    places.add(SdpaTensor::row_sums, operands.sums + rows * shape.head_dim * kFloatBytes);
    places.add(SdpaTensor::one, &numbers.one);
    if (!work_.deterministic) {
      places.add(SdpaTensor::d_queries_sum, operands.sums);
    }
  }
  CudnnDescriptor variants(library_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "operands");
  places.set(variants);
  void* const workspace = operands.workspace + workspace_.engine;
  variants.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  variants.finalize();
  library_.check(library_.calls().execute(handle, plan_.handle(), variants.handle()),
                 "cudnnBackendExecute of attention");
}

}  // namespace shardwise::exec
