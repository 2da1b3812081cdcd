#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>

#include "executor/device/cuda/cuda_stream.h"
#include "executor/kernels/compute/cpu_compute.h"

namespace shardwise::exec::test {

/// Bytes that a piece of work reads or writes.
struct Touched {
  const void* at = nullptr;
  std::size_t bytes = 0;
  bool writes = false;
};
inline Touched reads(const ConstTensorView& tensor) { return {tensor.data, tensor.bytes(), false}; }
inline Touched writes(const ConstTensorView& tensor) { return {tensor.data, tensor.bytes(), true}; }

/// Has a stream of the fake run a function of the host. \param touched  what the thread sanitizer
/// is told of, besides what it sees \throws CudaError
void enqueue_host(DeviceStream& stream, const std::string& name, std::function<void()> run,
                  std::initializer_list<Touched> touched = {});

/// CpuCompute's operations, on streams of the fake of CUDA's runtime: whole programs run on fake
/// GPUs with the CPU's bits. Lists of the host are copied when an operation is issued; all else is
/// read when the stream comes to it.
class StreamCompute : public Compute {
 public:
  void norm(const NormWork& work, DeviceStream& stream) override;
  void norm_backward(const NormBackwardWork& work, DeviceStream& stream) override;
  void linear(const LinearWork& work, DeviceStream& stream) override;
  void linear_backward_input(const LinearBackwardInputWork& work, DeviceStream& stream) override;
  void linear_backward_weight(const LinearBackwardWeightWork& work, DeviceStream& stream) override;
  void rope_tables(const RopeTablesWork& work, DeviceStream& stream) override;
  void rope(const RopeWork& work, DeviceStream& stream) override;
  void attention(const AttentionWork& work, DeviceStream& stream) override;
  void attention_backward(const AttentionBackwardWork& work, DeviceStream& stream) override;
  void gelu(const GeluWork& work, DeviceStream& stream) override;
  void swiglu(const SwigluWork& work, DeviceStream& stream) override;
  void swiglu_backward(const SwigluBackwardWork& work, DeviceStream& stream) override;
  void embedding(const EmbeddingWork& work, DeviceStream& stream) override;
  void embedding_backward(const EmbeddingBackwardWork& work, DeviceStream& stream) override;
  void head(const HeadWork& work, DeviceStream& stream) override;

  void clear(const TensorView& tensor, DeviceStream& stream) override;
  void cast(const TensorView& to, const ConstTensorView& from, DeviceStream& stream) override;
  void accumulate(const TensorView& sum, const ConstTensorView& each,
                  DeviceStream& stream) override;
  void scale(const ScaleWork& work, DeviceStream& stream) override;
  void token_factor(const TokenFactorWork& work, DeviceStream& stream) override;
  void sum_ranks(const SumRanksWork& work, DeviceStream& stream) override;
  std::int64_t squares_bytes() const override { return cpu_.squares_bytes(); }
  void squares(const SquaresWork& work, DeviceStream& stream) override;
  void squares_norm(const SquaresNormWork& work, DeviceStream& stream) override;
  void check_gradients(const GradientCheckWork& work, DeviceStream& stream) override;
  void adamw(const AdamWork& work, DeviceStream& stream) override;

 protected:
  CpuCompute& cpu() { return cpu_; }

 private:
  template <class Work>
  void put(const char* name, void (CpuCompute::*op)(const Work&, DeviceStream&), const Work& work,
           DeviceStream& stream);

  Workers workers_{1};
  CpuCompute cpu_{workers_};
};

}  // namespace shardwise::exec::test
