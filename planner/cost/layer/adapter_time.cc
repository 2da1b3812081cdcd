#include "planner/cost/layer/adapter_time.h"

#include <string>
#include <tuple>

#include "planner/spec/text/units.h"

namespace shardwise {

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
  if (linear.packed) {
    // Half a byte an element is read and a wide one written, for each product.
    const double bytes = static_cast<double>(rows.groups * width * k) * (0.5 + s.element);
    move(Pass::forward, bytes, 1);
    move(Pass::backward, bytes, 1);
  }
  if (linear.rank == 0) return;
  const DType dtype = pricer.weight_dtype(op);
  for (const auto& [name, n, by] :
       {std::tuple(".lora_A", linear.rank, k), std::tuple(".lora_B", width, linear.rank)}) {
    const Product p = pricer.product(op.name + name, dtype, rows.groups, rows.each, n, by);
    forward.gemm += p.forward;
    forward.flops += p.flops;
    forward.kernels += 1;
    backward.gemm += p.input_gradient + p.weight_gradient;
    backward.flops += 2.0 * p.flops;
    backward.kernels += 2;
  }
  // Dropout with its mask, scaling, and the sum with what the frozen product made; backward the
  // same three, the sum being that of the input's gradients. A compiler joins the last two.
  const double in = rows.each * static_cast<double>(rows.groups * k);
  const double out = rows.each * static_cast<double>(rows.groups * width);
  const bool joined = s.pointwise == Kernels::compiled;
  const double b = s.element;
  move(Pass::forward, (2 * b + 1) * in + (joined ? 3 : 5) * b * out, joined ? 2 : 3);
  move(Pass::backward, (2 * b + 1 + 3 * b) * in + 2 * b * out, 3);
}

}  // namespace shardwise
