#include "planner/cost/layer/adapter_time.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "planner/spec/text/units.h"

namespace shardwise {

namespace {

/// Bytes that move while so many operations run on the units for fp32. Curves of products are of
/// tiles in 16 bits, wider than an adapter: one in fp32 takes as long as its larger operand, or as
/// its operations at the peak.
double bytes_beside(const GpuSpec& gpu, Flops flops) {
  const FlopsPerSecond peak = gpu.peak(DType::fp32);
  if (peak.value() <= 0) return 0;
  return (flops / peak).value() * gpu.memory_bandwidth.value() * gpu.memory_bound.bandwidth_share;
}

}  // namespace

void price_adapter(const LayerPricer& pricer, const Layout& layout, const OperationSpec& op,
                   const AdaptedLinear& linear, const ProductRows& rows, PassTime& forward,
                   PassTime& backward) {
  const LayerSizes& s = pricer.sizes();
  const std::int64_t ways = op.routed_expert ? layout.etp : layout.tp;
  const std::int64_t width = s.cut(op.width, op);
  const std::int64_t k = op.tp == TpSplit::row ? ceil_div(op.k, ways) : op.k;
  const auto move = [&](Pass pass, double bytes, int kernels) {
    PassTime& time = pass == Pass::forward ? forward : backward;
    time.memory_bound += pricer.moved(pass, bytes, kernels);
    time.kernels += kernels;
  };
  if (linear.base == BaseFormat::int8) {
    // bitsandbytes@0.50.2:bitsandbytes/backends/cuda/ops.py, int8_vectorwise_quant: the input to
    // fp16 where it is not, its sizes, where they reach the threshold, whether any does and in
    // which columns, then the input in 8 bits. The product in int32 is scaled to fp16, and cast.
    // Backward copies the matrix wide and scales it in place.
    const bool casts = pricer.weight_dtype(op) != DType::fp16;
    const double each = rows.each * static_cast<double>(rows.groups);
    const double half = 2;
    const double seen = 2 * half + (half + 1) + 2 * 1 + (half + 1);
    const double made = 4 + half;
    move(Pass::forward,
         ((casts ? 2 * half : 0) + seen) * each * static_cast<double>(k) +
             ((casts ? 2 * half : 0) + made) * each * static_cast<double>(width),
         6 + (casts ? 2 : 0));
    move(Pass::backward, static_cast<double>(rows.groups * width * k) * (1 + 3 * s.element), 2);
  }
  if (linear.packed()) {
    // Half a byte an element is read and a wide one written, for each product.
    const double bytes = static_cast<double>(rows.groups * width * k) * (0.5 + s.element);
    move(Pass::forward, bytes, 1);
    move(Pass::backward, bytes, 1);
  }
  if (linear.rank == 0) return;
  const DType dtype = pricer.weight_dtype(op);
  for (const auto& [name, n, by] :
       {std::tuple(".lora_A", linear.rank, k), std::tuple(".lora_B", width, linear.rank)}) {
    if (s.wide_adapters) {
      const double tokens = rows.each * static_cast<double>(rows.groups);
      const Flops flops(2 * tokens * static_cast<double>(n * by));
      const double operand = tokens * static_cast<double>(std::max(n, by)) * kFp32Bytes;
      const double bytes = std::max(operand, bytes_beside(pricer.gpu(), flops));
      move(Pass::forward, bytes, 1);
      move(Pass::backward, 2 * bytes, 2);
      forward.flops += flops;
      backward.flops += 2.0 * flops;
      continue;
    }
    const Product p = pricer.product(op.name + name, dtype, rows.groups, rows.each, n, by);
    forward.gemm += p.forward;
    forward.flops += p.flops;
    forward.kernels += 1;
    backward.gemm += p.input_gradient + p.weight_gradient;
    backward.flops += 2.0 * p.flops;
    backward.kernels += 2;
  }
  // Dropout with its mask, scaling, and the sum with what the frozen product made; backward the
  // same three, the sum being that of the input's gradients. A compiler joins the last two. Wide
  // ones also cast the input and the sum, and the gradients of both the other way.
  const double in = rows.each * static_cast<double>(rows.groups * k);
  const double out = rows.each * static_cast<double>(rows.groups * width);
  const bool joined = s.pointwise == Kernels::compiled;
  const double b = s.element;
  const double w = s.wide_adapters ? kFp32Bytes : b;
  const double cast = s.wide_adapters ? b + w : 0;
  const int casts = s.wide_adapters ? 1 : 0;
  const double scaled = joined ? 0 : 2 * w;
  move(Pass::forward, (cast + 2 * w + kMaskBytes) * in + (scaled + b + 2 * w + cast) * out,
       (joined ? 2 : 3) + 2 * casts);
  move(Pass::backward, (2 * w + kMaskBytes + cast + 3 * b) * in + (2 * w + 2 * cast) * out,
       3 + 3 * casts);
}

}  // namespace shardwise
