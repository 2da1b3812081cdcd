#include "tests/executor/support/stream_compute.h"

#include <utility>
#include <vector>

#include "tests/support/host_cuda/fake_cuda.h"
#include "tests/support/host_cuda/fibers.h"

namespace shardwise::exec::test {

void enqueue_host(DeviceStream& stream, const std::string& name, std::function<void()> run,
                  std::initializer_list<Touched> touched) {
  const std::vector<Touched> all(touched);
  const cudaError_t error =
      fake_cuda::enqueue(cuda_stream(stream).handle(), name, [all, run = std::move(run)] {
        for (const Touched& each : all) host_cuda::touch(each.at, each.bytes, each.writes);
        run();
      });
  if (error != cudaSuccess) throw CudaError(0, name.c_str(), error);
}

template <class Work>
void StreamCompute::put(const char* name, void (CpuCompute::*op)(const Work&, DeviceStream&),
                        const Work& work, DeviceStream& stream) {
  enqueue_host(stream, name, [this, op, work] {
    DeviceStream host;  // NOLINT(misc-const-correctness): the operation takes it as its own
    (cpu_.*op)(work, host);
  });
}

void StreamCompute::norm(const NormWork& work, DeviceStream& stream) {
  put("norm", &CpuCompute::norm, work, stream);
}
void StreamCompute::norm_backward(const NormBackwardWork& work, DeviceStream& stream) {
  put("norm_backward", &CpuCompute::norm_backward, work, stream);
}
void StreamCompute::linear(const LinearWork& work, DeviceStream& stream) {
  put("linear", &CpuCompute::linear, work, stream);
}
void StreamCompute::linear_backward_input(const LinearBackwardInputWork& work,
                                          DeviceStream& stream) {
  put("linear_backward_input", &CpuCompute::linear_backward_input, work, stream);
}
void StreamCompute::linear_backward_weight(const LinearBackwardWeightWork& work,
                                           DeviceStream& stream) {
  put("linear_backward_weight", &CpuCompute::linear_backward_weight, work, stream);
}
void StreamCompute::rope_tables(const RopeTablesWork& work, DeviceStream& stream) {
  const std::vector<double> frequencies(work.frequencies.begin(), work.frequencies.end());
  enqueue_host(stream, "rope_tables", [this, work, frequencies] {
    DeviceStream host;
    RopeTablesWork own = work;
    own.frequencies = frequencies;
    cpu_.rope_tables(own, host);
  });
}
void StreamCompute::rope(const RopeWork& work, DeviceStream& stream) {
  put("rope", &CpuCompute::rope, work, stream);
}
void StreamCompute::attention(const AttentionWork& work, DeviceStream& stream) {
  put("attention", &CpuCompute::attention, work, stream);
}
void StreamCompute::attention_backward(const AttentionBackwardWork& work, DeviceStream& stream) {
  put("attention_backward", &CpuCompute::attention_backward, work, stream);
}
void StreamCompute::gelu(const GeluWork& work, DeviceStream& stream) {
  put("gelu", &CpuCompute::gelu, work, stream);
}
void StreamCompute::swiglu(const SwigluWork& work, DeviceStream& stream) {
  put("swiglu", &CpuCompute::swiglu, work, stream);
}
void StreamCompute::swiglu_backward(const SwigluBackwardWork& work, DeviceStream& stream) {
  put("swiglu_backward", &CpuCompute::swiglu_backward, work, stream);
}
void StreamCompute::embedding(const EmbeddingWork& work, DeviceStream& stream) {
  put("embedding", &CpuCompute::embedding, work, stream);
}
void StreamCompute::embedding_backward(const EmbeddingBackwardWork& work, DeviceStream& stream) {
  put("embedding_backward", &CpuCompute::embedding_backward, work, stream);
}
void StreamCompute::head(const HeadWork& work, DeviceStream& stream) {
  put("head", &CpuCompute::head, work, stream);
}

void StreamCompute::clear(const TensorView& tensor, DeviceStream& stream) {
  enqueue_host(stream, "clear", [tensor] { exec::clear(tensor); }, {writes(tensor)});
}
void StreamCompute::cast(const TensorView& to, const ConstTensorView& from, DeviceStream& stream) {
  enqueue_host(stream, "cast", [to, from] { exec::cast(to, from); }, {reads(from), writes(to)});
}
void StreamCompute::accumulate(const TensorView& sum, const ConstTensorView& each,
                               DeviceStream& stream) {
  enqueue_host(stream, "accumulate", [sum, each] { exec::accumulate(sum, each); },
               {reads(each), writes(sum)});
}
void StreamCompute::scale(const ScaleWork& work, DeviceStream& stream) {
  put("scale", &CpuCompute::scale, work, stream);
}
void StreamCompute::token_factor(const TokenFactorWork& work, DeviceStream& stream) {
  put("token_factor", &CpuCompute::token_factor, work, stream);
}
void StreamCompute::sum_ranks(const SumRanksWork& work, DeviceStream& stream) {
  put("sum_ranks", &CpuCompute::sum_ranks, work, stream);
}
void StreamCompute::squares(const SquaresWork& work, DeviceStream& stream) {
  const std::vector<ConstTensorView> tensors(work.tensors.begin(), work.tensors.end());
  enqueue_host(stream, "squares", [this, work, tensors] {
    DeviceStream host;
    SquaresWork own = work;
    own.tensors = tensors;
    cpu_.squares(own, host);
  });
}
void StreamCompute::squares_norm(const SquaresNormWork& work, DeviceStream& stream) {
  put("squares_norm", &CpuCompute::squares_norm, work, stream);
}
void StreamCompute::check_gradients(const GradientCheckWork& work, DeviceStream& stream) {
  put("check_gradients", &CpuCompute::check_gradients, work, stream);
}
void StreamCompute::adamw(const AdamWork& work, DeviceStream& stream) {
  const std::vector<AdamShard> shards(work.shards.begin(), work.shards.end());
  enqueue_host(stream, "adamw", [this, work, shards] {
    DeviceStream host;
    AdamWork own = work;
    own.shards = shards;
    cpu_.adamw(own, host);
  });
}

}  // namespace shardwise::exec::test
