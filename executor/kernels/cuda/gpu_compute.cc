#include "executor/kernels/cuda/gpu_compute.h"

#include <utility>

#include "executor/kernels/cuda/kernel_preparation.h"
#include "executor/kernels/cuda/own_kernels.h"
#include "planner/cost/kernels/gemm_workspace.h"
#if defined(SHARDWISE_CUDNN)
#include "executor/kernels/cuda/attention_choice.h"
#endif

namespace shardwise::exec {
namespace {

using Products = GpuComputeOptions::Products;
using Attention = GpuComputeOptions::Attention;

/// What a GpuCompute is made of, made before it.
struct Parts {
  Parts(const DeviceFacts& gpu, int rank, const GpuLibraries& libraries,
        const GpuComputeOptions& options) {
    if (options.products == Products::own) {
      products = std::make_unique<OwnLinear>();
    } else {
      const GemmPlans::Options wanted = {
          rank, CudaLinear::product_bytes(gemm_workspace_bytes(gpu.capability))};
      plans = std::make_unique<GemmPlans>(*libraries.cublaslt, wanted);
      products = std::make_unique<CudaLinear>(*plans, passes, CudaLinear::Options{options.tf32});
      keeping.machine.cublaslt_version = libraries.cublaslt->version();
    }
    keeping.machine.gpu = gpu.name;
    keeping.machine.driver_version = gpu.driver_version;
    keeping.folder = options.choices_folder;
    keeping.seconds_each = options.seconds_each;
#if defined(SHARDWISE_CUDNN)
    if (libraries.cudnn && options.attention != Attention::own) {
      using Rule = ChosenAttention::Rule;
      cudnn =
          std::make_unique<CudnnAttention>(*libraries.cudnn, gpu.capability, options.deterministic);
      keeping.machine.cudnn_version = static_cast<std::int64_t>(libraries.cudnn->version());
      const bool by_rule = options.attention == Attention::cudnn || options.deterministic;
      attention = std::make_unique<ChosenAttention>(*cudnn, by_rule ? Rule::cudnn : Rule::measured);
    }
#endif
  }

  KernelKeeping keeping;
  OwnPasses passes;
  std::unique_ptr<GemmPlans> plans;
  std::unique_ptr<LinearKernels> products;
#if defined(SHARDWISE_CUDNN)
  std::unique_ptr<CudnnAttention> cudnn;
#endif
  std::unique_ptr<AttentionKernels> attention = std::make_unique<OwnAttention>();
};

class GpuCompute final : private Parts, public CudaCompute {
 public:
  GpuCompute(const DeviceFacts& gpu, int rank, const GpuLibraries& libraries,
             const GpuComputeOptions& options)
      : Parts(gpu, rank, libraries, options),
        CudaCompute(*Parts::products, *Parts::attention),
        deterministic_(options.deterministic) {}

  bool prepare(const Preparation& preparation) override {
    if (deterministic_) return false;  // two runs may time alike kernels differently
    prepare_kernels(*Parts::products, *Parts::attention, workspace(), keeping, preparation);
    return true;
  }

 private:
  bool deterministic_;
};

std::shared_ptr<const CudnnLibrary> open_cudnn() {
#if defined(SHARDWISE_CUDNN)
  return std::make_shared<CudnnLibrary>(CudnnLibrary::open());
#else
  throw IoError("this build has no attention by cuDNN, whose headers were not there");
#endif
}

std::string description_of(const CudnnLibrary& library) {
#if defined(SHARDWISE_CUDNN)
  return library.describe();
#else
  static_cast<void>(library);
  return "";
#endif
}

}  // namespace

GpuLibraries GpuLibraries::open(const GpuComputeOptions& options) {
  GpuLibraries libraries;
  if (options.products == Products::cublaslt) {
    libraries.cublaslt = std::make_shared<CublasLtLibrary>(CublasLtLibrary::open());
  }
  if (options.attention == Attention::own) return libraries;
  try {
    libraries.cudnn = open_cudnn();
  } catch (const IoError& missing) {
    if (options.attention == Attention::cudnn) throw;
    libraries.no_cudnn = missing.what();
  }
  return libraries;
}

std::vector<std::string> GpuLibraries::describe() const {
  std::vector<std::string> lines;
  if (cublaslt) lines.push_back(cublaslt->describe());
  if (cudnn) lines.push_back(description_of(*cudnn));
  if (!no_cudnn.empty()) lines.push_back("attention by our own kernels: " + no_cudnn);
  return lines;
}

std::unique_ptr<Compute> make_gpu_compute(const DeviceFacts& gpu, int rank,
                                          const GpuLibraries& libraries,
                                          const GpuComputeOptions& options) {
  return std::make_unique<GpuCompute>(gpu, rank, libraries, options);
}

}  // namespace shardwise::exec
