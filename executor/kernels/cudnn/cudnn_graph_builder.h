#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "executor/kernels/cudnn/cudnn_descriptor.h"

namespace shardwise::exec {

/// Puts a graph of operations of cuDNN together, tensor by tensor and operation by operation.
/// Dimensions are those of cuDNN's attention: [batch, heads, rows, columns]. Arithmetic is fp32.
class CudnnGraphBuilder {
 public:
  using Four = std::array<std::int64_t, 4>;
  using Tensor = cudnnBackendDescriptor_t;

  explicit CudnnGraphBuilder(const CudnnLibrary& library) : library_(library) {}

  /// A tensor in memory that `id` names when the graph runs, at an address that 16 divides.
  Tensor given(std::int64_t id, const Four& dimensions, const Four& strides, cudnnDataType_t type);
  /// A number that `id` names when the graph runs, in the host's memory.
  Tensor number(std::int64_t id, cudnnDataType_t type);
  /// A tensor between operations that has no memory of the caller's.
  Tensor between(const Four& dimensions, const Four& strides, cudnnDataType_t type);
  /// Tensor between operations, row after row.
  Tensor between(const Four& dimensions, cudnnDataType_t type);

  void product(Tensor a, Tensor b, Tensor c);
  void reduce(cudnnReduceTensorOp_t operation, Tensor x, Tensor y);
  void reshape(Tensor x, Tensor y);
  /// y = mode(x, b) or mode(x, b, choice). \param b, choice  null for none
  void pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor choice, Tensor y,
                 cudnnDataType_t precision = CUDNN_DATA_FLOAT);
  /// y = the index of each element of x along `axis`.
  void index(Tensor x, std::int64_t axis, Tensor y);

  /// The graph of all operations, finalised.
  /// \param handle  of the GPU it will run on; null where there is none
  cudnnBackendDescriptor_t finish(cudnnHandle_t handle);
  /// Gives the parts of the graph, which must outlive the graph's plans.
  std::vector<CudnnDescriptor> take() { return std::move(made_); }

 private:
  Tensor tensor(std::int64_t id, const Four& dimensions, const Four& strides, cudnnDataType_t type,
                bool in_memory, bool by_value);
  CudnnDescriptor& make(cudnnBackendDescriptorType_t type, const char* name);
  void operation(CudnnDescriptor& made);

  const CudnnLibrary& library_;
  std::vector<CudnnDescriptor> made_;
  std::vector<cudnnBackendDescriptor_t> operations_;
  std::int64_t next_ = 1000;  // ids of tensors between operations
};

}  // namespace shardwise::exec
