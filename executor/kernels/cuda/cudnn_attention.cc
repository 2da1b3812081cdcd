#include "executor/kernels/cuda/cudnn_attention.h"

#include <initializer_list>
#include <utility>

#include "executor/kernels/cuda/movement.h"
#include "planner/cost/kernels/gpu_workspace.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {
namespace {

bool all_aligned(std::initializer_list<const void*> places) {
  constexpr std::uintptr_t kMultiple = 16;
  for (const void* each : places) {
    if (reinterpret_cast<std::uintptr_t>(each) % kMultiple != 0) return false;
  }
  return true;
}

}  // namespace

CudnnAttention::CudnnAttention(const CudnnLibrary& library, int capability, bool deterministic)
    : library_(library), capability_(capability), deterministic_(deterministic) {
  library_.check(library_.calls().create_handle(&handle_), "cudnnCreate");
}

CudnnAttention::~CudnnAttention() { library_.calls().destroy_handle(handle_); }

std::unique_ptr<CudnnAttention::Ready> CudnnAttention::made(const AttentionShape& s,
                                                            SdpaPass pass) const {
  const SdpaBackward backward = {
      s.batch, s.sequence, {s.heads, s.kv_heads, s.head_dim}, capability_, deterministic_};
  if (pass == SdpaPass::backward && !sdpa_backward_by_cudnn(backward)) return nullptr;
  SdpaEngines engines(library_, {s, pass, deterministic_}, {handle_, ""});
  const std::int64_t most = sdpa_engine_bytes(backward);
  for (std::size_t i = 0; i < engines.engines().size(); ++i) {
    if (engines.engines()[i].workspace_bytes > most) continue;
    try {
      SdpaPlan plan(library_, engines, i, handle_);
      if (plan.workspace().bytes > sdpa_workspace(engines.work(), most).bytes) continue;
      return std::make_unique<Ready>(Ready{std::move(engines), std::move(plan)});
    } catch (const CudnnError& error) {
      if (!error.is_refusal()) throw;
    }
  }
  return nullptr;
}

const SdpaPlan* CudnnAttention::plan(const AttentionShape& s, DType dtype, SdpaPass pass) {
  if (sdpa_unsupported(s, dtype)) return nullptr;
  const Key key = {s.batch, s.sequence, s.heads, s.kv_heads, s.head_dim, s.window, pass};
  const auto [found, is_new] = plans_.try_emplace(key);
  if (is_new) found->second = made(s, pass);
  return found->second ? &found->second->plan : nullptr;
}

bool CudnnAttention::takes(const AttentionWork& w) {
  return all_aligned({w.qkv, w.out, w.log_sums}) &&
         plan(w.shape, w.dtype, SdpaPass::forward) != nullptr;
}

bool CudnnAttention::takes(const AttentionBackwardWork& w) {
  return all_aligned({w.qkv, w.out, w.log_sums, w.d_out, w.workspace}) &&
         plan(w.shape, w.dtype, SdpaPass::backward) != nullptr;
}

void CudnnAttention::run(const AttentionShape& shape, DType dtype, SdpaPass pass,
                         SdpaOperands operands, std::span<std::byte> workspace,
                         cudaStream_t stream) {
  const SdpaPlan* const ready = plan(shape, dtype, pass);
  SHARDWISE_CHECK(ready != nullptr, "takes(work)");
  SHARDWISE_CHECK(ready->workspace().bytes <= std::ssize(workspace), "gpu_workspace_bytes()");
  operands.workspace = workspace.data();
  library_.check(library_.calls().set_stream(handle_, stream), "cudnnSetStream");
  ready->run(operands, handle_);
}

void CudnnAttention::forward(const AttentionWork& w, std::span<std::byte> workspace,
                             cudaStream_t stream) {
  run(w.shape, w.dtype, SdpaPass::forward, {.qkv = w.qkv, .out = w.out, .log_sums = w.log_sums},
      workspace, stream);
}

void CudnnAttention::backward(const AttentionBackwardWork& w, std::span<std::byte> workspace,
                              cudaStream_t stream) {
  // cuDNN takes inputs and outputs alike; these are only read. The gradients come to be at the
  // beginning of the workspace.
  run(w.shape, w.dtype, SdpaPass::backward,
      {.qkv = w.qkv,
       .out = const_cast<std::byte*>(w.out),
       .log_sums = const_cast<float*>(w.log_sums),
       .d_out = w.d_out,
       .sums = w.workspace},
      workspace, stream);
  const auto count =
      static_cast<std::size_t>(w.shape.batch * w.shape.sequence * w.shape.qkv_width());
  cuda::cast({w.qkv, count, DType::bf16}, {workspace.data(), count, DType::bf16}, stream);
}

}  // namespace shardwise::exec
