#include "tests/bench/gpu_curves.h"

#include <fmt/format.h>

#include <algorithm>

#include "executor/kernels/cuda/event_clock.h"
#include "executor/kernels/cuda/gemm_plans.h"
#include "planner/cost/kernels/gemm_workspace.h"

namespace shardwise::exec {
namespace {

constexpr std::int64_t kCastBytes = 3;  // an element: 2 read, 1 written
constexpr std::int64_t kRow = 1024;
constexpr std::int64_t kCopyUnit = kCastBytes * kRow;

/// Products of random numbers by the fastest of cuBLASLt's algorithms.
class Gemms {
 public:
  Gemms(CudaDevice& device, const CublasLtLibrary& library, EventClock& clock)
      : device_(device),
        clock_(clock),
        workspace_(
            device.allocate(gemm_workspace_bytes(device.facts().capability), MemorySpace::device)),
        plans_(library, {0, workspace_.bytes()}) {}

  /// Its median; 0 where cuBLASLt has no algorithm or memory does not suffice.
  /// \param seconds_each  that each of the algorithms, and then the fastest, is repeated for
  double seconds(std::int64_t m, std::int64_t n, std::int64_t k, double seconds_each) {
    const Product product = product_of_sizes(m, n, k);
    const std::int64_t bytes = GemmPlans::operand_bytes(product);
    if (!plans_.supports(product) || bytes > device_.facts().free_bytes) return 0;
    if (operands_.bytes() < bytes) {
      operands_ = DeviceMemory();
      operands_ = device_.allocate(bytes, MemorySpace::device);
    }
    clock_.set_seconds_each(std::min(seconds_each, kTuning));
    const ProductCall call = GemmPlans::laid_out(product, operands_.at());
    KernelTuning tuning = {
        .clock = clock_,
        .workspace = {workspace_.at(), static_cast<std::size_t>(workspace_.bytes())}};
    plans_.tune(call, tuning);
    if (!plans_.supports(product)) return 0;
    clock_.set_seconds_each(seconds_each);
    return clock_.seconds([&] { plans_.run(call, workspace_.at(), clock_.stream()); });
  }

 private:
  static constexpr double kTuning = 2e-3;

  Product product_of_sizes(std::int64_t m, std::int64_t n, std::int64_t k) {
    std::byte* const at = workspace_.at();  // an aligned address: operands get their own
    return product_of(LinearWork{.shape = {m, k, n, k, n, false},
                                 .dtype = DType::bf16,
                                 .x = at,
                                 .weight = at,
                                 .y = at},
                      false, false)
        .product;
  }

  CudaDevice& device_;
  EventClock& clock_;
  DeviceMemory workspace_;
  GemmPlans plans_;
  DeviceMemory operands_;
};

double copy_seconds(CudaDevice& device, EventClock& clock, std::int64_t bytes) {
  const CudaCalls calls(0);
  const DeviceMemory from = device.allocate(bytes, MemorySpace::device);
  const DeviceMemory to = device.allocate(bytes, MemorySpace::device);
  return clock.seconds([&] {
    calls.check(cudaMemcpyAsync(to.at(), from.at(), static_cast<std::size_t>(bytes),
                                cudaMemcpyDeviceToDevice, clock.stream()),
                "cudaMemcpyAsync");
  });
}

std::vector<AttentionShape> attention_of(const CurveOptions& options) {
  std::vector<AttentionShape> made;
  for (const std::int64_t sequence : options.sequences) {
    for (AttentionShape shape : options.heads) {
      shape.sequence = sequence;
      for (; shape.batch * sequence <= options.most_tokens; shape.batch *= 4) {
        made.push_back(shape);
      }
    }
  }
  return made;
}

}  // namespace

GpuCurves measure_curves(CudaDevice& device, const CublasLtLibrary& library, Compute& compute,
                         const CurveOptions& options) {
  GpuCurves made;
  EventClock clock(device, options.seconds_each);
  Gemms gemms(device, library, clock);
  for (std::int64_t m = options.most_rows; m >= options.least_rows; m /= 2) {
    for (const std::int64_t n : options.widths) {
      for (const std::int64_t k : options.widths) {
        const double seconds = gemms.seconds(m, n, k, options.seconds_each);
        if (seconds > 0) made.gemms.push_back({m, n, k, seconds});
      }
    }
  }
  const std::int64_t size =
      std::min({std::int64_t{8192}, options.most_rows, options.widths.back()});
  const double sustained = gemms.seconds(size, size, size, options.sustained_seconds);
  const auto flops = 2 * static_cast<double>(size) * static_cast<double>(size * size);
  if (sustained > 0) made.sustained_tflops = 1e-12 * flops / sustained;
  clock.set_seconds_each(options.seconds_each);
  // Tenths of the largest: below twice a GPU's cache `fit` leaves them out.
  constexpr std::int64_t kTenths = 10;
  const std::int64_t step = options.most_bytes / kTenths / kCopyUnit * kCopyUnit;
  for (std::int64_t i = 1; i <= kTenths; ++i) {
    made.moves.emplace_back(2 * i * step, copy_seconds(device, clock, i * step));
  }
  for (const AttentionShape& shape : attention_of(options)) {
    const AttentionTime time = time_attention(device, clock, compute, shape);
    if (time.forward_seconds > 0) made.attention.push_back(time);
  }
  return made;
}

std::string gemm_csv(const GpuCurves& curves) {
  std::string text = "dtype,m,n,k,latency_ms\n";
  for (const GemmTime& each : curves.gemms) {
    text += fmt::format("bfloat16,{},{},{},{:.9g}\n", each.m, each.n, each.k, 1e3 * each.seconds);
  }
  return text;
}

std::string moves_csv(const GpuCurves& curves) {
  std::string text = "m,k,latency\n";
  for (const auto& [bytes, seconds] : curves.moves) {
    text += fmt::format("{},{},{:.9g}\n", bytes / kCastBytes / kRow, kRow, 1e3 * seconds);
  }
  return text;
}

std::string attention_csv(const GpuCurves& curves) {
  std::string text =
      "batch_size,q_seqlen,kv_seqlen,num_q_heads,num_kv_heads,head_dim_qk,head_dim_vo,attn_mask,"
      "data_type,profile_pass,fwd_time_ms,bwd_time_ms\n";
  for (const AttentionTime& each : curves.attention) {
    const AttentionShape& s = each.shape;
    text += fmt::format("{},{},{},{},{},{},{},top_left,bfloat16,both,{:.9g},{:.9g}\n", s.batch,
                        s.sequence, s.sequence, s.heads, s.kv_heads, s.head_dim, s.head_dim,
                        1e3 * each.forward_seconds, 1e3 * each.backward_seconds);
  }
  return text;
}

}  // namespace shardwise::exec
