#include <algorithm>

#include "planner/cost/layer/operation_sizes.h"
#include "planner/cost/software/timing.h"
#include "planner/cost/software/usual_kernels.h"

namespace shardwise {

bool multiplies_adapters_wide(const JobSpec& job, const EngineProfile& engine) {
  const Kernels kernels = kernels_of(job, engine);
  const bool torch = kernels == Kernels::eager || kernels == Kernels::compiled;
  return torch && !has_megatron_modules(engine) && engine.main_weights == MainWeights::parameter &&
         !engine.keeps_buckets && job.main_dtype == DType::fp32 && bits_of(job.precision) == 16;
}

namespace {

/// LLM.int8(): the product's input stays for backward, though nothing reads it there (ctx.tensors).
/// Forward has it in 8 bits, and before that in fp16, or then the product in int32, its fp16 and
/// the type asked for. Backward makes the matrix wide. Columns of outliers are left out.
/// Source: bitsandbytes@0.50.2:bitsandbytes/autograd/_functions.py, MatMul8bitLt;
/// backends/cuda/ops.py, int8_mm_dequant.
void size_int8(OperationMemory& m, const OperationSizes& s, std::int64_t input,
               std::int64_t output) {
  constexpr std::int64_t kInt32 = 4;
  constexpr std::int64_t kFp16 = 2;
  const bool casts = s.precision != DType::fp16;
  m.keeps_read[0] = true;
  m.forward_extra +=
      input + std::max(casts ? kFp16 * input : 0, (kInt32 + (casts ? kFp16 : 0)) * output);
  m.backward_extra += m.weight_rows * m.weight_columns * m.weights * s.bytes;
}

}  // namespace

void size_adapter(OperationMemory& m, const OperationSizes& s, const AdaptedLinear& linear) {
  const std::int64_t rows = m.operation->routed_expert ? s.routed : s.tokens;
  const std::int64_t input = rows * m.weight_columns;
  if (linear.base == BaseFormat::int8) size_int8(m, s, input, rows * m.weight_rows);
  if (linear.packed()) {
    // The matrix is made wide for each product, forward and backward. Source:
    // bitsandbytes@0.50.2:bitsandbytes/autograd/_functions.py, MatMul4Bit.
    const std::int64_t matrix = m.weight_rows * m.weight_columns * m.weights * s.bytes;
    m.forward_extra += matrix;
    m.backward_extra += matrix;
  }
  if (linear.rank == 0) return;
  // base(x) + lora_B(lora_A(dropout(x))) * scaling, operator by operator: the input after dropout
  // and its mask are kept, and what lora_A makes. What lora_B makes, scaled, and the sum with what
  // the frozen product made are there at once. Backward has the scaled gradient, and the gradient
  // of x of either branch. Source: peft@v0.21.2:src/peft/tuners/lora/layer.py, Linear.forward.
  if (s.wide_adapters) {
    // All of that in fp32: the input is cast first, the sum and its gradient last.
    const std::int64_t output = m.output / s.bytes * kFp32Bytes;
    m.copies += input * (kFp32Bytes + kMaskBytes) + rows * linear.rank * kFp32Bytes;
    m.forward_extra += 2 * output;
    m.backward_extra += 2 * output + input * kFp32Bytes;
    return;
  }
  m.copies += input * (s.bytes + kMaskBytes) + rows * linear.rank * s.bytes;
  m.forward_extra += 2 * m.output;
  m.backward_extra += m.output + input * s.bytes;
}

}  // namespace shardwise
