#include "executor/kernels/cudnn/cudnn_graph_builder.h"

namespace shardwise::exec {

CudnnDescriptor& CudnnGraphBuilder::make(cudnnBackendDescriptorType_t type, const char* name) {
  return made_.emplace_back(library_, type, name);
}

void CudnnGraphBuilder::operation(CudnnDescriptor& made) {
  made.finalize();
  operations_.push_back(made.handle());
}

CudnnGraphBuilder::Tensor CudnnGraphBuilder::tensor(std::int64_t id, const Four& dimensions,
                                                    const Four& strides, cudnnDataType_t type,
                                                    bool in_memory, bool by_value) {
  constexpr std::int64_t kAlignment = 16;
  CudnnDescriptor& made = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "a tensor");
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, dimensions);
  made.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kAlignment);
  made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, !in_memory);
  made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, by_value);
  made.finalize();
  return made.handle();
}

CudnnGraphBuilder::Tensor CudnnGraphBuilder::given(std::int64_t id, const Four& dimensions,
                                                   const Four& strides, cudnnDataType_t type) {
  return tensor(id, dimensions, strides, type, /*in_memory=*/true, /*by_value=*/false);
}

CudnnGraphBuilder::Tensor CudnnGraphBuilder::number(std::int64_t id, cudnnDataType_t type) {
  return tensor(id, {1, 1, 1, 1}, {1, 1, 1, 1}, type, /*in_memory=*/true, /*by_value=*/true);
}

CudnnGraphBuilder::Tensor CudnnGraphBuilder::between(const Four& dimensions, const Four& strides,
                                                     cudnnDataType_t type) {
  return tensor(next_++, dimensions, strides, type, /*in_memory=*/false, /*by_value=*/false);
}

CudnnGraphBuilder::Tensor CudnnGraphBuilder::between(const Four& d, cudnnDataType_t type) {
  return between(d, {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1}, type);
}

void CudnnGraphBuilder::product(Tensor a, Tensor b, Tensor c) {
  CudnnDescriptor& how = make(CUDNN_BACKEND_MATMUL_DESCRIPTOR, "a product");
  how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  how.finalize();
  cudnnBackendDescriptor_t const what = how.handle();
  CudnnDescriptor& made = make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "a product");
  made.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
  made.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
  made.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
  made.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, what);
  operation(made);
}

void CudnnGraphBuilder::reduce(cudnnReduceTensorOp_t reduction, Tensor x, Tensor y) {
  CudnnDescriptor& how = make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "a reduction");
  how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, reduction);
  how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  how.finalize();
  cudnnBackendDescriptor_t const what = how.handle();
  CudnnDescriptor& made = make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "a reduction");
  made.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
  made.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
  made.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, what);
  operation(made);
}

void CudnnGraphBuilder::reshape(Tensor x, Tensor y) {
  CudnnDescriptor& made = make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "a reshape");
  made.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
  made.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
  operation(made);
}

void CudnnGraphBuilder::pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor choice,
                                  Tensor y, cudnnDataType_t precision) {
  CudnnDescriptor& how = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "an operation by elements");
  how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, precision);
  how.finalize();
  cudnnBackendDescriptor_t const what = how.handle();
  CudnnDescriptor& made =
      make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "an operation by elements");
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b != nullptr) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  if (choice != nullptr) made.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, choice);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  operation(made);
}

void CudnnGraphBuilder::index(Tensor x, std::int64_t axis, Tensor y) {
  CudnnDescriptor& how = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "an index");
  how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, CUDNN_POINTWISE_GEN_INDEX);
  how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  how.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
  how.finalize();
  cudnnBackendDescriptor_t const what = how.handle();
  CudnnDescriptor& made = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "an index");
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  operation(made);
}

cudnnBackendDescriptor_t CudnnGraphBuilder::finish(cudnnHandle_t handle) {
  CudnnDescriptor& graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "the graph");
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            static_cast<std::int64_t>(operations_.size()),
            static_cast<const void*>(operations_.data()));
  if (handle != nullptr) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  graph.finalize();
  return graph.handle();
}

}  // namespace shardwise::exec
