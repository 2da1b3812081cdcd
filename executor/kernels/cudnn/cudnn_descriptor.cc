#include "executor/kernels/cudnn/cudnn_descriptor.h"

namespace shardwise::exec {

CudnnDescriptor::CudnnDescriptor(const CudnnLibrary& library, cudnnBackendDescriptorType_t type,
                                 std::string name)
    : library_(library), name_(std::move(name)) {
  library_.check(library_.calls().create(type, &handle_),
                 "cudnnBackendCreateDescriptor of " + name_);
}

CudnnDescriptor::~CudnnDescriptor() {
  // An object that cannot be destroyed is left to cuDNN: a destructor has nobody to tell.
  if (handle_ != nullptr) static_cast<void>(library_.calls().destroy(handle_));
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
                          std::int64_t count, const void* values) {
  library_.check(library_.calls().set(handle_, attribute, type, count, values),
                 "cudnnBackendSetAttribute of " + name_);
}

void CudnnDescriptor::finalize() {
  library_.check(library_.calls().finalize(handle_), "cudnnBackendFinalize of " + name_);
}

std::int64_t CudnnDescriptor::get(cudnnBackendAttributeName_t attribute,
                                  cudnnBackendAttributeType_t type, std::int64_t most,
                                  void* values) const {
  std::int64_t count = 0;
  library_.check(library_.calls().get(handle_, attribute, type, most, &count, values),
                 "cudnnBackendGetAttribute of " + name_);
  return count;
}

std::int64_t CudnnDescriptor::number(cudnnBackendAttributeName_t attribute) const {
  std::int64_t value = 0;
  get(attribute, CUDNN_TYPE_INT64, 1, &value);
  return value;
}

}  // namespace shardwise::exec
