#include "planner/spec/gpu_spec.h"

namespace shardwise {
namespace {

/// Whose curve stands for that of `dtype`; itself when none does.
DType stand_in(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return DType::fp16;
    case DType::int8:
    case DType::fp6:
    case DType::fp4:
      return DType::fp8;
    case DType::fp8:
    case DType::fp16:
    case DType::tf32:
    case DType::fp32:
    case DType::fp64:
      return DType::bf16;
  }
  return dtype;
}

}  // namespace

FlopsPerSecond GpuSpec::peak(DType dtype) const {
  for (const auto& [each, rate] : peaks) {
    if (each == dtype) return rate;
  }
  return FlopsPerSecond(0);
}

const GemmCurve* GpuSpec::gemm_curve(DType dtype) const {
  for (const GemmCurve& curve : gemm) {
    if (curve.dtype == dtype) return &curve;
  }
  const DType other = stand_in(dtype);
  for (const GemmCurve& curve : gemm) {
    if (curve.dtype == other) return &curve;
  }
  return gemm.empty() ? nullptr : &gemm.front();
}

}  // namespace shardwise
