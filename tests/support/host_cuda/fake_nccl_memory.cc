// Memory that the fake's communicators share, and that they are told of.
#include <cstdint>

#include "tests/support/host_cuda/fake_nccl.h"
#include "tests/support/host_cuda/fake_nccl_state.h"

using fake_nccl::Quiet;

namespace {

bool symmetric = true;

}  // namespace

void fake_nccl::set_symmetric(bool can) { symmetric = can; }

ncclResult_t ncclMemAlloc(void** at, std::size_t bytes) {
  const Quiet call("ncclMemAlloc");
  if (call.error() != ncclSuccess) return call.error();
  return fake_cuda::take_mappable(at, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclMemFree(void* at) {
  const Quiet call("ncclMemFree");
  const cudaError_t done = fake_cuda::give_back_mappable("ncclMemFree", at);
  if (call.error() != ncclSuccess) return call.error();
  return done == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclCommRegister(ncclComm_t /*comm*/, void* buffer, std::size_t /*bytes*/,
                              void** handle) {
  const Quiet call("ncclCommRegister");
  *handle = buffer;
  return call.error();
}

ncclResult_t ncclCommDeregister(ncclComm_t /*comm*/, void* /*handle*/) {
  return Quiet("ncclCommDeregister").error();
}

ncclResult_t ncclCommWindowRegister(ncclComm_t /*comm*/, void* buffer, std::size_t bytes,
                                    ncclWindow_t* window, int flags) {
  const Quiet call("ncclCommWindowRegister");
  *window = nullptr;
  if (call.error() != ncclSuccess || !symmetric) return call.error();
  if (flags != NCCL_WIN_COLL_SYMMETRIC || !fake_cuda::is_mappable(buffer, bytes) ||
      reinterpret_cast<std::uintptr_t>(buffer) % NCCL_WIN_REQUIRED_ALIGNMENT != 0) {
    return ncclInvalidArgument;
  }
  *window = static_cast<ncclWindow_t>(buffer);
  return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t /*comm*/, ncclWindow_t window) {
  const Quiet call("ncclCommWindowDeregister");
  if (window == nullptr) fake_cuda::complain("ncclCommWindowDeregister of no window");
  return call.error();
}
