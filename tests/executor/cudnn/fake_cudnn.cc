#include "tests/executor/cudnn/fake_cudnn.h"

#include <array>
#include <cstdio>
#include <cstring>

#include "executor/kernels/cudnn/sdpa_graph.h"

namespace shardwise::exec {
namespace {

FakeCudnn* here = nullptr;

std::size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;  // enumerations
  }
}

}  // namespace

struct FakeCudnn::Functions {
  static std::size_t version() { return here->version; }
  static const char* error_string(cudnnStatus_t status) {
    return status == CUDNN_STATUS_BAD_PARAM ? "CUDNN_STATUS_BAD_PARAM" : "CUDNN_STATUS_OTHER";
  }
  static void last_error(char* message, std::size_t size) {
    std::snprintf(message, size, "%s", "the first reason\nthe second reason\n");
  }
  static cudnnStatus_t create_handle(cudnnHandle_t* handle) {
    if (const auto failed = here->next()) return *failed;
    static int one = 0;
    *handle = here->handle = reinterpret_cast<cudnnHandle_t>(&one);
    return CUDNN_STATUS_SUCCESS;
  }
  static cudnnStatus_t destroy_handle(cudnnHandle_t) {
    here->handle = nullptr;
    return CUDNN_STATUS_SUCCESS;
  }
  static cudnnStatus_t set_stream(cudnnHandle_t, cudaStream_t stream) {
    if (const auto failed = here->next()) return *failed;
    here->stream = stream;
    return CUDNN_STATUS_SUCCESS;
  }
  static cudnnStatus_t create(cudnnBackendDescriptorType_t type,
                              cudnnBackendDescriptor_t* descriptor) {
    if (const auto failed = here->next()) return *failed;
    ++here->created;
    // An address for a handle; far fewer objects live at a time.
    static std::array<std::byte, 65536> handles;
    *descriptor = &handles[static_cast<std::size_t>(here->created) % handles.size()];
    here->objects[*descriptor].type = type;
    return CUDNN_STATUS_SUCCESS;
  }
  static cudnnStatus_t destroy(cudnnBackendDescriptor_t descriptor) {
    ++here->destroyed;
    return here->objects.erase(descriptor) == 1 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
  }
  static cudnnStatus_t set(cudnnBackendDescriptor_t descriptor,
                           cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
                           std::int64_t count, const void* values) {
    if (const auto failed = here->next()) return *failed;
    const auto* const first = static_cast<const std::byte*>(values);
    here->objects.at(descriptor).attributes[attribute] = {
        first, first + static_cast<std::size_t>(count) * bytes_of(type)};
    return CUDNN_STATUS_SUCCESS;
  }
  static cudnnStatus_t get(cudnnBackendDescriptor_t const descriptor,
                           cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t,
                           std::int64_t, std::int64_t* count, void* values) {
    if (const auto failed = here->next()) return *failed;
    *count = 1;
    if (attribute == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
      const auto mode = here->objects.at(descriptor)
                            .values<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE)
                            .at(0);
      *count = mode == CUDNN_HEUR_MODE_FALLBACK ? here->fallback_engines : here->engines;
    }
    const bool bytes = attribute == CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE ||
                       attribute == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE;
    if (bytes || attribute == CUDNN_ATTR_ENGINE_GLOBAL_INDEX) {
      const std::int64_t value = bytes ? here->engine_bytes : kEngine;
      std::memcpy(values, &value, sizeof value);
    }
    return CUDNN_STATUS_SUCCESS;
  }
  static cudnnStatus_t finalize(cudnnBackendDescriptor_t descriptor) {
    if (const auto failed = here->next()) return *failed;
    Object& object = here->objects.at(descriptor);
    if (object.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
      if (here->refused_plans > 0) {
        --here->refused_plans;
        return CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH;
      }
      ++here->plans;
    }
    object.finalized = true;
    return CUDNN_STATUS_SUCCESS;
  }
  static cudnnStatus_t execute(cudnnHandle_t, cudnnBackendDescriptor_t,
                               cudnnBackendDescriptor_t variants) {
    if (const auto failed = here->next()) return *failed;
    const Object& given = here->objects.at(variants);
    here->places.clear();
    here->numbers.clear();
    const auto ids = given.values<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const auto places = given.values<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      here->places[ids[i]] = places[i];
      if (ids[i] >= static_cast<std::int64_t>(SdpaTensor::scale)) {
        here->numbers[ids[i]] = *static_cast<const float*>(places[i]);
      }
    }
    here->workspace = given.values<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE).at(0);
    if (here->on_execution) here->on_execution(*here);
    return CUDNN_STATUS_SUCCESS;
  }
};

FakeCudnn::FakeCudnn() { here = this; }
FakeCudnn::~FakeCudnn() { here = nullptr; }

CudnnCalls FakeCudnn::calls() {
  CudnnCalls calls;
  calls.get_version = Functions::version;
  calls.get_error_string = Functions::error_string;
  calls.get_last_error = Functions::last_error;
  calls.create_handle = Functions::create_handle;
  calls.destroy_handle = Functions::destroy_handle;
  calls.set_stream = Functions::set_stream;
  calls.create = Functions::create;
  calls.destroy = Functions::destroy;
  calls.set = Functions::set;
  calls.get = Functions::get;
  calls.finalize = Functions::finalize;
  calls.execute = Functions::execute;
  return calls;
}

void FakeCudnn::fail(std::int64_t n, cudnnStatus_t status) {
  called = 0;
  failing_ = n;
  status_ = status;
}

std::optional<cudnnStatus_t> FakeCudnn::next() {
  return called++ == failing_ ? std::optional(status_) : std::nullopt;
}

}  // namespace shardwise::exec
