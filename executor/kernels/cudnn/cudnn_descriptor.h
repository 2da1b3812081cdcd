#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/kernels/cudnn/cudnn_library.h"

namespace shardwise::exec {

/// An object of cuDNN's backend interface: attributes are set, then it is finalised, then read.
/// The library outlives it. All calls throw CudnnError, which names the call and the object.
class CudnnDescriptor {
 public:
  /// \param name  of the object, for messages
  CudnnDescriptor(const CudnnLibrary& library, cudnnBackendDescriptorType_t type, std::string name);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& other) noexcept
      : library_(other.library_),
        name_(std::move(other.name_)),
        handle_(std::exchange(other.handle_, nullptr)) {}
  CudnnDescriptor(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(CudnnDescriptor&&) = delete;

  cudnnBackendDescriptor_t handle() const { return handle_; }

  void set(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
           std::int64_t count, const void* values);
  /// Sets one value.
  template <class T>
  void set(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
           const T& value) {
    set(attribute, type, 1, static_cast<const void*>(&value));
  }
  void set(cudnnBackendAttributeName_t attribute, cudnnBackendDescriptor_t value) {
    set(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, static_cast<const void*>(&value));
  }
  void set(cudnnBackendAttributeName_t attribute, std::span<const std::int64_t> values) {
    set(attribute, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
  }
  void finalize();

  /// Reads up to `most` values. \return how many there are
  std::int64_t get(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
                   std::int64_t most, void* values) const;
  std::int64_t number(cudnnBackendAttributeName_t attribute) const;

 private:
  const CudnnLibrary& library_;
  std::string name_;
  cudnnBackendDescriptor_t handle_ = nullptr;
};

}  // namespace shardwise::exec
