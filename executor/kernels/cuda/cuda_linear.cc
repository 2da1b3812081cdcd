#include "executor/kernels/cuda/cuda_linear.h"

#include "planner/spec/text/check.h"

namespace shardwise::exec {

template <class Work>
CudaLinear::Chosen CudaLinear::chosen(const Work& w) {
  if (takes_gelu(w)) {
    const ProductCall fused = product_of(w, true, options_.tf32);
    if (plans_.supports(fused.product)) return {fused, true};
  }
  return {product_of(w, false, options_.tf32), !w.gelu};
}

/// The product that sums the bias gradient too. The epilogue replaces what is there, so it has a
/// place of its own, and is added from there. \pre w.d_weight
std::optional<ProductCall> CudaLinear::summing(const LinearBackwardWeightWork& w,
                                               std::byte* workspace) {
  if (w.d_bias == nullptr || w.shape.out * bytes_of(w.gradient) > kBiasSumBytes) {
    return std::nullopt;
  }
  std::byte* const sums = workspace + plans_.options().workspace_bytes;
  const ProductCall call = product_of(w, sums, options_.tf32);
  return plans_.supports(call.product) ? std::optional(call) : std::nullopt;
}

/// \pre w.d_weight
CudaLinear::Chosen CudaLinear::chosen_weight(const LinearBackwardWeightWork& w,
                                             std::byte* workspace) {
  const std::optional<ProductCall> fused = summing(w, workspace);
  if (fused && !plans_.faster_apart(fused->product)) return {*fused, true};
  return {product_of(w, nullptr, options_.tf32), false};
}

namespace {

/// The sum of all rows.
BiasGradientPass bias_pass(const LinearBackwardWeightWork& w, std::byte* workspace) {
  const LinearShape& s = w.shape;
  return {s.rows, s.out, s.y_stride, w.dtype, w.gradient, w.d_y, w.d_bias, workspace};
}

}  // namespace

void CudaLinear::forward(const LinearWork& w, std::byte* workspace, cudaStream_t stream) {
  if (w.shape.rows == 0) return;
  SHARDWISE_CHECK(!w.gelu || w.shape.y_stride == w.shape.out, "rows are dense");
  SHARDWISE_CHECK(!w.gelu || w.activated != w.x, "blocks read x when others have ended");
  const Chosen chosen = this->chosen(w);
  plans_.run(chosen.call, workspace, stream);
  if (chosen.fused || !w.gelu) return;
  passes_.gelu({*w.gelu, w.shape.rows * w.shape.out, w.dtype, w.y, w.activated}, stream);
}

void CudaLinear::backward_input(const LinearBackwardInputWork& w, std::byte* workspace,
                                cudaStream_t stream) {
  if (w.shape.rows == 0) return;
  SHARDWISE_CHECK(!w.gelu || w.shape.x_stride == w.shape.in, "rows are dense");
  const Chosen chosen = this->chosen(w);
  plans_.run(chosen.call, workspace, stream);
  if (chosen.fused || !w.gelu) return;
  passes_.gelu_backward({*w.gelu, w.shape.rows * w.shape.in, w.dtype, w.before, w.d_x}, stream);
}

void CudaLinear::backward_weight(const LinearBackwardWeightWork& w, std::byte* workspace,
                                 cudaStream_t stream) {
  const LinearShape& s = w.shape;
  if (s.rows == 0) return;
  if (w.d_weight != nullptr) {
    const Chosen chosen = chosen_weight(w, workspace);
    plans_.run(chosen.call, workspace, stream);
    if (chosen.fused) {
      return passes_.bias_gradient(
          {1, s.out, s.out, w.gradient, w.gradient, chosen.call.vector, w.d_bias, workspace},
          stream);
    }
  }
  // The product has done with its workspace.
  if (w.d_bias != nullptr) passes_.bias_gradient(bias_pass(w, workspace), stream);
}

namespace {

/// Until what is chosen is what was tuned: one that runs by no algorithm has another in its place.
template <class Choose>
void tune_chosen(GemmPlans& plans, KernelTuning& tuning, const Choose& choose) {
  ProductCall call = choose();
  plans.tune(call, tuning);
  while (choose().product != call.product) {
    call = choose();
    plans.tune(call, tuning);
  }
}

}  // namespace

void CudaLinear::prepare(const LinearWork& w, KernelTuning& tuning) {
  if (w.shape.rows == 0) return;
  tune_chosen(plans_, tuning, [&] { return chosen(w).call; });
}

void CudaLinear::prepare(const LinearBackwardInputWork& w, KernelTuning& tuning) {
  if (w.shape.rows == 0) return;
  tune_chosen(plans_, tuning, [&] { return chosen(w).call; });
}

void CudaLinear::prepare(const LinearBackwardWeightWork& w, KernelTuning& tuning) {
  if (w.shape.rows == 0 || w.d_weight == nullptr) return;
  std::byte* const workspace = tuning.workspace.data();
  std::optional<ProductCall> fused = summing(w, workspace);
  if (fused) plans_.tune(*fused, tuning);
  const ProductCall plain = product_of(w, nullptr, options_.tf32);
  plans_.tune(plain, tuning);
  // An epilogue that sums the rows may cost more than a pass over them (docs/layer_time.md).
  fused = summing(w, workspace);
  if (!fused || !plans_.supports(plain.product)) return;
  if (plans_.apart_microseconds(fused->product) > 0) return;
  const double seconds = tuning.clock.seconds([&] {
    plans_.run(plain, workspace, tuning.clock.stream());
    passes_.bias_gradient(bias_pass(w, workspace), tuning.clock.stream());
  });
  plans_.keep_apart(fused->product, 1e6 * seconds);
}

}  // namespace shardwise::exec
