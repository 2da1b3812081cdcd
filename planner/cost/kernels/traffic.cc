#include "planner/cost/kernels/traffic.h"

namespace shardwise {
namespace {

constexpr double kFp32 = 4;

Traffic norm_traffic(const OperationSpec& op, const JobSpec& job, Kernels kernels, double b) {
  // One pass forward; one backward, with a small reduction for the gain.
  Traffic t{2 * b, 3 * b, 1, 2};
  // Our kernel adds to the gradient of the residual stream.
  if (kernels == Kernels::planned) t.backward = 4 * b;
  const bool composite = job.rms_norm == RmsNormKernel::composite;
  if (kernels == Kernels::eager && op.rms && composite) {
    // Composite: to fp32, square, mean, scale, back, times gain. Root and epsilon are kernels too.
    const bool casts = b < kFp32;
    const double cast = casts ? b + kFp32 : 0;
    t.forward = cast + 2 * kFp32 + kFp32 + 2 * kFp32 + cast + 2 * b;
    t.forward_kernels = casts ? 8 : 6;
    // The gradient times gain, to fp32, times root; times input and its sum for the root's; that
    // over the width, the input once more for the square's, times it and doubled; both added and
    // back. The gain's own gradient is a product and its sum.
    const double gain = job.frozen_base ? 0 : 3 * b + b;
    t.backward = gain + 2 * b + cast + 2 * kFp32 + (3 * kFp32 + kFp32) +
                 (kFp32 + 2 * kFp32 + 2 * kFp32 + 3 * kFp32) + 3 * kFp32 + cast;
    t.backward_kernels = (job.frozen_base ? 14 : 16) - (casts ? 0 : 2);
  } else if (kernels == Kernels::eager) {
    t.backward = 5 * b;  // the gains' gradient reads input and output gradient once more
  }
  return t;
}

Traffic activation_traffic(const OperationSpec& op, Kernels kernels, bool fused, double b) {
  // The product that makes the input writes the result too; the one that makes the result's
  // gradient reads the input.
  if (!op.gated && fused) return {b, b, 0, 0};
  if (!op.gated) return {2 * b, 3 * b, 1, 1};
  if (kernels != Kernels::eager) return {3 * b, 5 * b, 1, 1};
  // silu, then the product; the product's two gradients, then silu's.
  return {5 * b, 9 * b, 2, 3};
}

/// x (1 + tanh(c (x + d x^3))) / 2, operator by operator. Autocast makes the power in fp32, and so
/// what follows. Source: transformers 5.24.0, activations.py, NewGELUActivation.
Traffic composed_gelu_traffic(bool autocast, double b) {
  const double w = autocast ? kFp32 : b;
  const double cast = autocast ? b + w : 0;
  // Power, times d, plus x, times c, tanh, plus one; half of x, and the product.
  const double forward = (cast + 2 * w) + 2 * w + (b + 2 * w) + 3 * (2 * w) + 2 * b + (b + 2 * w);
  // The product's two gradients and half of one; tanh's, times c, times d; the power's are a power,
  // its multiple and a product. The three gradients of x are added, cast before where they are
  // wide.
  const double backward = 3 * w + (b + 2 * w) + 2 * b + 3 * w + 2 * (2 * w) + 2 * (2 * w) + 3 * w +
                          3 * cast + 2 * (3 * b);
  return {forward, backward, autocast ? 9 : 8, autocast ? 14 : 11};
}

/// Of queries and keys, each by its own kernels where nothing is fused.
Traffic rope_traffic(const JobSpec& job, bool eager, double b) {
  if (!eager) return {2 * b, 2 * b, 2, 2};
  if (job.rms_norm == RmsNormKernel::composite) {
    // transformers': two products, one half's sign, both halves joined, the sum. Backward also
    // fills and copies for each half, and adds what the halves and the products make.
    return {2 * (2 * b) + b + 2 * b + 3 * b, 2 * (2 * b) + b + 2 * (2 * b) + 2 * (3 * b), 10, 18};
  }
  // A product of complex numbers in fp32, cast before and after.
  const double each = (b + kFp32) + 2 * kFp32 + (kFp32 + b);
  return {each, each, 6, 6};
}

Traffic loss_traffic(const JobSpec& job, Kernels kernels, double b) {
  switch (job.loss) {
    case LossKernel::by_engine:
      break;
    case LossKernel::materialised:
      // Cast to fp32, log-softmax, pick; its gradient, cast back. torch.compile joins the casts.
      if (kernels == Kernels::compiled) return {2 * b + kFp32, kFp32 + b, 2, 1};
      // Megatron's own: to fp32, largest, less it, exponent, sum, over it; its gradient in place.
      // Source: NVIDIA/Megatron-LM@d98e8a64:megatron/core/tensor_parallel/cross_entropy.py.
      if (kernels == Kernels::transformer_engine) {
        return {(b + kFp32) + kFp32 + 2 * kFp32 + 2 * kFp32 + kFp32 + 2 * kFp32,
                2 * kFp32 + (kFp32 + b), 7, 3};
      }
      // Backward fills a tensor for the picked elements and reads it with the log-softmax.
      return {(b + kFp32) + 2 * kFp32, kFp32 + 3 * kFp32 + (kFp32 + b), 4, 4};
    case LossKernel::fused:
      return {2 * b + b, 2 * b, 2, 1};  // largest, sum; gradient in place
    case LossKernel::fused_fp32:
      // A copy in fp32; largest and sum read it, the gradient is written over it and cast back.
      return {(b + kFp32) + 2 * kFp32, 2 * kFp32 + (kFp32 + b), 3, 2};
    case LossKernel::chunked:
      return {2 * b + b, 0, 4, 1};  // gradient in the same pass
  }
  return {};
}

}  // namespace

Traffic traffic_of(const OperationSpec& op, const JobSpec& job, Kernels kernels,
                   const KernelTraits& ours, double bytes, const EagerModules& modules) {
  const double b = bytes;
  const bool eager = kernels == Kernels::eager;
  const bool autocast = eager && modules.autocast;
  switch (op.kind) {
    case OpKind::norm:
      return norm_traffic(op, job, kernels, autocast ? kFp32 : b);
    case OpKind::activation:
      if (eager && modules.composed_activation && !op.gated) {
        return composed_gelu_traffic(autocast, b);
      }
      return activation_traffic(op, kernels, ours.fuses_activation, b);
    case OpKind::rope:
      return rope_traffic(job, eager, b);
    case OpKind::residual: {
      // Backward: the gradients of the two branches are added. torch.compile joins the addition
      // with the norm that follows, which then reads nothing again.
      Traffic t =
          kernels == Kernels::compiled ? Traffic{2 * b, 2 * b, 0, 0} : Traffic{3 * b, 3 * b, 1, 1};
      // Ours: the product before is added to the stream, of which a norm keeps a copy; backward the
      // norm's gradient is added to the stream's.
      if (kernels == Kernels::planned) t = {3 * b, 0, 1, 0};
      if (ours.epilogues)
        t = {2 * b, 0, 0, 0};  // the copy is written by the norm, which reads anyway
      // The stream is fp32: backward also casts its gradient for the branch.
      if (autocast) t = {b + 2 * kFp32, 3 * kFp32 + (kFp32 + b), 1, 2};
      if (job.dropout > 0) {
        t.forward += eager ? 2 * b + 1 : 1;
        t.backward += b + 1;
        t.forward_kernels += eager ? 1 : 0;
      }
      return t;
    }
    case OpKind::embedding:
      if (autocast) return {2 * kFp32, 3 * kFp32, 1, 3};
      if (job.frozen_base) return {2 * b, 0, 1, 0};  // no gradient to scatter
      return {2 * b, 3 * b, 1, 3};
    case OpKind::router:
      // Scores, choice, counts and offsets over few elements: kernels, not bytes.
      return {6 * kFp32, 6 * kFp32, eager ? 12 : 6, eager ? 12 : 4};
    case OpKind::dispatch:
      return {2 * b, 2 * b, 2, 2};
    case OpKind::combine:
      return {2 * b, 3 * b, 2, 3};
    case OpKind::loss:
      return loss_traffic(job, kernels, b);
    case OpKind::gemm:
    case OpKind::attention:
      return {0, 0, 0, 0};
  }
  return {};
}

double optimizer_traffic(const JobSpec& job, Kernels kernels, AdamwKernel adamw) {
  const double moments = job.optimizer == Optimizer::adamw          ? 2
                         : job.optimizer == Optimizer::sgd_momentum ? 1
                                                                    : 0;
  const double norm = kFp32 - shared_norm_traffic(kernels);
  // The gradient is read and written; ours is clipped in the update.
  const double clipping = kernels == Kernels::planned ? 0 : 2 * kFp32;
  // Ours updates bf16 weights alone where they are the main ones.
  const double main = kernels == Kernels::planned ? bytes_of(job.main_dtype) : kFp32;
  // A byte, and the fp32 scale of 256 elements.
  constexpr double kBlockwise = 1 + kFp32 / 256;
  const double moment = is_blockwise(adamw) ? kBlockwise : bytes_of(job.moment_dtype);
  // Gradient read; weight and moments read and written.
  const double fused = kFp32 + 2 * (main + moments * moment);
  // Operator by operator: decay 2 tensors, first moment 3, second 2 + 3, root, division and epsilon
  // 2 each, update 4. Source: pytorch@v2.15.0:torch/optim/adam.py, _multi_tensor_adam.
  constexpr double kTensors = 20;
  const bool one_by_one = job.optimizer == Optimizer::adamw &&
                          (adamw == AdamwKernel::foreach || adamw == AdamwKernel::for_loop);
  return norm + clipping + (one_by_one ? kTensors * kFp32 : fused);
}

double shared_norm_traffic(Kernels kernels) { return kernels == Kernels::planned ? kFp32 : 0; }

MoveKind move_kind(const OperationSpec& op) {
  switch (op.kind) {
    case OpKind::norm:
      return op.rms ? MoveKind::rms_norm : MoveKind::layer_norm;
    case OpKind::activation:
      return op.gated ? MoveKind::swiglu : MoveKind::gelu;
    case OpKind::rope:
      return MoveKind::rope;
    case OpKind::embedding:
      return MoveKind::embedding;
    case OpKind::loss:
      return MoveKind::loss;
    default:
      return MoveKind::copy;
  }
}

CastTraffic cast_traffic(DType precision, const JobSpec& job, Kernels kernels) {
  if (bits_of(precision) > 8) return {};
  constexpr double kWide = 2;
  const double narrow = bits_of(precision) / 8.0;
  const double cast = kWide + narrow;      // in one direction
  const double both = kWide + 2 * narrow;  // as it is and transposed, in one pass
  CastTraffic t;
  if (kernels == Kernels::transformer_engine || kernels == Kernels::planned) {
    // Only the scale of the matrix itself needs a pass before.
    const bool dynamic = job.fp8_recipe == Fp8Recipe::tensorwise;
    const double each = both + (dynamic ? kWide : 0);
    t.input = t.gradient = t.weight_step = each;
    t.input_kernels = t.gradient_kernels = dynamic ? 2 : 1;
    return t;
  }
  switch (job.fp8_recipe) {
    case Fp8Recipe::delayed:
      return {both, both, cast, cast, 0, 1, 1, 1, 1};
    case Fp8Recipe::tensorwise:
      // The largest value in two stages, then the cast.
      t = {kWide + both, kWide + both, kWide + cast, cast, 0, 3, 3, 3, 1};
      break;
    case Fp8Recipe::rowwise:
      // Transposed in 16 bits first: scales run along the other dimension.
      t = {cast + kWide + cast, cast + kWide + cast, cast, 2 * kWide + cast, 0, 2, 2, 1, 2};
      break;
    case Fp8Recipe::rowwise_wide_gradient:
      t = {cast, cast, cast, cast, 0, 1, 1, 1, 2};
      break;
    case Fp8Recipe::block:
      t = {2 * cast, 2 * cast, cast, cast, 0, 2, 2, 1, 1};
      break;
  }
  if (job.fp8_parameter_gather) {
    // Shards are cast before they travel; what arrives is only transposed.
    t.weight_forward = 0;
    t.weight_forward_kernels = 0;
    t.weight_backward = 2 * narrow;
  }
  return t;
}

}  // namespace shardwise
