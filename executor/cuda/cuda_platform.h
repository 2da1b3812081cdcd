#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/cuda/cuda_parts.h"
#include "executor/device/gpu_platform.h"

namespace shardwise::exec {

/// GPUs by CUDA's runtime, tensors between them by NCCL, or by copies where ranks of one process
/// share a GPU.
class CudaPlatform final : public GpuPlatform {
 public:
  explicit CudaPlatform(CudaParts parts);

  bool absent() const override { return absent_; }
  std::string problem() const override { return problem_; }
  int gpus() const override { return gpus_; }
  DeviceFacts facts(int gpu) const override;
  std::string problem_of_capability(int capability) const override;
  std::vector<std::string> open_libraries(const GpuPlace& first,
                                          const GpuOptions& options) override;
  std::unique_ptr<Device> device(const GpuPlace& place, const GpuOptions& options) override;

 private:
  void look();

  CudaParts parts_;
  std::optional<NcclLibrary> nccl_;
  bool absent_ = false;
  std::string problem_;
  int gpus_ = 0;
};

/// Whether code for `architectures`, those of CMAKE_CUDA_ARCHITECTURES ("80-real,120"), runs
/// on a GPU: machine code does on GPUs of its major capability from its minor on, and PTX (no
/// "-real") on all later ones. Source: CUDA C++ programming guide, "Binary compatibility" and
/// "PTX compatibility".
bool runs_on(int capability, const std::string& architectures);

}  // namespace shardwise::exec
