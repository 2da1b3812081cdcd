#include "tests/bench/attention_clock.h"

#include <algorithm>

#include "planner/cost/kernels/compute.h"
#include "planner/cost/kernels/gpu_workspace.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kPiece = 256;

std::int64_t pieces(std::int64_t bytes) { return (bytes + kPiece - 1) / kPiece * kPiece; }

double tflops(const AttentionShape& s, Pass pass, double seconds) {
  const shardwise::AttentionWork work = {s.batch,    s.heads,    s.kv_heads, s.sequence, s.sequence,
                                         s.head_dim, s.head_dim, s.window,   true};
  return seconds > 0 ? 1e-12 * attention_flops(work, pass).value() / seconds : 0;
}

}  // namespace

AttentionTime time_attention(CudaDevice& device, EventClock& clock, Compute& compute,
                             const AttentionShape& s) {
  AttentionTime made{s};
  const std::int64_t tokens = s.batch * s.sequence;
  const std::int64_t qkv_bytes = tokens * s.qkv_width() * bytes_of(DType::bf16);
  const std::int64_t out_bytes = tokens * s.heads * s.head_dim * bytes_of(DType::bf16);
  const std::int64_t workspace_bytes = pieces(sdpa_backward_workspace(
      {s.batch, s.sequence, {s.heads, s.kv_heads, s.head_dim}, device.facts().capability}));
  const std::int64_t backward_bytes = attention_backward_bytes(s);
  const std::int64_t log_sums_bytes = tokens * s.heads * 4;
  const std::int64_t all =
      2 * qkv_bytes + 2 * out_bytes + workspace_bytes + backward_bytes + log_sums_bytes;
  if (all > device.facts().free_bytes) return made;
  const auto bytes_for = [&](std::int64_t bytes) {
    return device.allocate(bytes, MemorySpace::device);
  };
  const DeviceMemory qkv = bytes_for(qkv_bytes);
  const DeviceMemory kept = bytes_for(qkv_bytes);
  const DeviceMemory out = bytes_for(out_bytes);
  const DeviceMemory d_out = bytes_for(out_bytes);
  const DeviceMemory log_sums = bytes_for(log_sums_bytes);
  const DeviceMemory own = bytes_for(backward_bytes);
  const DeviceMemory workspace = bytes_for(workspace_bytes);
  for (const DeviceMemory* each : {&kept, &d_out}) {
    clock.fill({each->at(), static_cast<std::size_t>(each->bytes())}, DType::bf16);
  }
  compute.set_workspace({workspace.at(), static_cast<std::size_t>(workspace_bytes)});
  auto* const sums = reinterpret_cast<float*>(log_sums.at());
  const auto elements = static_cast<std::size_t>(qkv_bytes / bytes_of(DType::bf16));
  // What gradients took the place of is put back, for other numbers could overflow.
  const auto put_back = [&] {
    compute.cast({qkv.at(), elements, DType::bf16}, {kept.at(), elements, DType::bf16},
                 clock.device_stream());
  };
  put_back();
  made.forward_seconds = clock.seconds([&] {
    compute.attention({s, DType::bf16, qkv.at(), out.at(), sums}, clock.device_stream());
  });
  const double copying = clock.seconds(put_back);
  const double both = clock.seconds([&] {
    put_back();
    compute.attention_backward({s, DType::bf16, qkv.at(), out.at(), sums, d_out.at(), own.at()},
                               clock.device_stream());
  });
  made.backward_seconds = std::max(both - copying, both / 2);
  made.forward_tflops = tflops(s, Pass::forward, made.forward_seconds);
  made.backward_tflops = tflops(s, Pass::backward, made.backward_seconds);
  compute.set_workspace({});
  return made;
}

}  // namespace shardwise::exec
