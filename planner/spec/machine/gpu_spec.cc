#include "planner/spec/machine/gpu_spec.h"

#include <algorithm>

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

bool holds(const std::vector<std::int64_t>& ascending, std::int64_t value) {
  return std::binary_search(ascending.begin(), ascending.end(), value);
}

/// `value` lies between the smallest and the largest entry of `dimension` over all `shapes`.
bool spans(const std::vector<MeasuredShapes>& shapes,
           std::vector<std::int64_t> MeasuredShapes::*dimension, std::int64_t value) {
  bool above = false;
  bool below = false;
  for (const MeasuredShapes& each : shapes) {
    const std::vector<std::int64_t>& values = each.*dimension;
    if (values.empty()) continue;
    above = above || values.front() <= value;
    below = below || values.back() >= value;
  }
  return above && below;
}

}  // namespace

bool GemmCurve::measured(std::int64_t m, std::int64_t n, std::int64_t k) const {
  return std::any_of(shapes.begin(), shapes.end(), [&](const MeasuredShapes& each) {
    return holds(each.m, m) && holds(each.n, n) && holds(each.k, k);
  });
}

bool GemmCurve::surrounds(std::int64_t m, std::int64_t n, std::int64_t k) const {
  return spans(shapes, &MeasuredShapes::m, m) && spans(shapes, &MeasuredShapes::n, n) &&
         spans(shapes, &MeasuredShapes::k, k);
}

FlopsPerSecond GpuSpec::peak(DType dtype) const {
  for (const auto& [each, rate] : peaks) {
    if (each == dtype) return rate;
  }
  return FlopsPerSecond(0);
}

const AttentionCurve& GpuSpec::attention_curve(DType dtype, Pass pass) const {
  for (const AttentionOfType& own : attention_by_type) {
    if (own.dtype == dtype) return pass == Pass::forward ? own.forward : own.backward;
  }
  return pass == Pass::forward ? attention_forward : attention_backward;
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
