#include "planner/cost/layer/autocast_sizes.h"

#include "planner/cost/software/usual_kernels.h"

namespace shardwise {
namespace {

/// The norm of a tensor in fp32, whose copy in fp32 is the tensor itself.
void widen_norm(OperationMemory& m, const OperationSizes& wide) {
  OperationMemory sized;
  sized.operation = m.operation;
  size_norm(sized, wide);
  m.output = sized.output;
  m.input_gradient = sized.input_gradient;
  m.copies = sized.copies;
  m.forward_extra = sized.forward_extra;
  m.backward_extra = sized.backward_extra;
  m.keeps_read[0] = sized.keeps_read[0];
}

/// A product reads a cast of its input, and its backward widens the gradient of that.
void cast_input(OperationMemory& m, const OperationSizes& s) {
  const std::int64_t cast = m.input_gradient;
  if (m.keeps_read[0]) {
    m.keeps_read[0] = false;
    m.copies += cast;
    m.copies_input = true;
  } else {
    m.forward_extra += cast;
  }
  m.backward_extra += cast / s.bytes * kFp32Bytes;
}

}  // namespace

bool autocasts(const JobSpec& job, const EngineProfile& engine) {
  return engine.keeps_buckets && job.precision != DType::fp32 && !job.frozen_base;
}

std::vector<bool> casting_products(const ModelSpec& model, const LayerSpec& layer,
                                   const JobSpec& job, const EngineProfile& engine,
                                   const Layout& layout) {
  std::vector<bool> casts;
  const Kernels kernels = kernels_of(job, engine);
  const bool torch = kernels == Kernels::eager || kernels == Kernels::compiled;
  if (!torch || !autocasts(job, engine)) return casts;
  for (const OperationMemory& m : operation_memories(model, layer, job, engine, layout)) {
    casts.push_back(m.operation->kind == OpKind::gemm && m.copies_input);
  }
  return casts;
}

void widen_under_autocast(std::vector<OperationMemory>& operations, bool input_wide,
                          const OperationSizes& s) {
  if (!s.autocasts) return;
  OperationSizes wide = s;
  wide.bytes = kFp32Bytes;
  std::vector<bool> is_wide = {input_wide};
  for (OperationMemory& m : operations) {
    const bool reads_wide = m.num_reads > 0 && is_wide[static_cast<std::size_t>(m.reads[0])];
    bool makes_wide = false;
    switch (m.operation->kind) {
      case OpKind::embedding:
        m.output = m.output / s.bytes * kFp32Bytes;
        m.backward_extra = m.backward_extra / s.bytes * kFp32Bytes;
        makes_wide = true;
        break;
      case OpKind::residual:
        m.output = m.output / s.bytes * kFp32Bytes;
        m.input_gradient = m.output;
        makes_wide = true;
        break;
      case OpKind::norm:
        makes_wide = reads_wide || !m.operation->fp32;  // Gemma's returns the type that it is given
        if (reads_wide) {
          widen_norm(m, wide);
        } else if (makes_wide) {
          m.output = m.output / s.bytes * kFp32Bytes;
        }
        break;
      case OpKind::rope: {
        // Angles are fp32, so is what they make; attention's casts are what it hands on.
        const std::int64_t rotated = m.output / s.bytes * kFp32Bytes;
        m.forward_extra += rotated;
        m.backward_extra += rotated;
        break;
      }
      case OpKind::gemm:
        if (reads_wide) cast_input(m, s);
        break;
      case OpKind::activation:
        // What follows a power in fp32 is fp32.
        makes_wide = s.composes_activation(*m.operation);
        if (makes_wide) m.output = m.output / s.bytes * kFp32Bytes;
        break;
      case OpKind::attention:
      case OpKind::router:
      case OpKind::dispatch:
      case OpKind::combine:
      case OpKind::loss:
        break;
    }
    is_wide.push_back(makes_wide);
  }
}

}  // namespace shardwise
