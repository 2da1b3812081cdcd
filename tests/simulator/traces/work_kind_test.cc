#include "simulator/traces/work_kind.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace shardwise::sim {
namespace {

// Names as profilers record them: NCCL 2.8 to 2.28, cuBLAS of Ampere to Blackwell, FlashAttention 2
// and 3, cuDNN, Triton, PyTorch.
const std::vector<std::pair<std::string, WorkKind>> kKernels = {
    {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", WorkKind::all_reduce},
    {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", WorkKind::all_gather},
    {"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
     WorkKind::reduce_scatter},
    {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", WorkKind::send_recv},
    {"ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclWorkElem)", WorkKind::other_collective},
    {"void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)", WorkKind::all_to_all},
    {"ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_tn", WorkKind::gemm},
    {"nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT", WorkKind::gemm},
    {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", WorkKind::gemm},
    {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8>",
     WorkKind::gemm},
    {"void splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>", WorkKind::gemm},
    {"Cijk_Ailk_Bljk_BBS_BH_MT128x128x32_MI32x32x8x1_SN", WorkKind::gemm},
    {"triton_tem_fused_mm_12", WorkKind::gemm},
    {"void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64, 64, 4>>", WorkKind::attention},
    {"void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<>>>",
     WorkKind::attention},
    {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128",
     WorkKind::attention},
    {"fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention)", WorkKind::attention},
    {"triton_tem_fused_flex_attention_3", WorkKind::attention},
    // AOTriton, which PyTorch's attention runs on AMD GPUs.
    {"attn_fwd", WorkKind::attention},
    {"bwd_preprocess", WorkKind::attention},
    {"bwd_kernel_dk_dv", WorkKind::attention},
    {"bwd_kernel_dq", WorkKind::attention},
    {"bwd_kernel_fuse", WorkKind::attention},
    // PyTorch's symmetric memory (torch/csrc/distributed/c10d/symm_mem), vLLM's and AITER's
    // all-reduce, Transformer Engine's userbuffers.
    {"void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
     WorkKind::all_reduce},
    {"void multimem_one_shot_all_reduce_kernel<float, 16>(float*)", WorkKind::all_reduce},
    {"void two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 8>", WorkKind::all_reduce},
    {"void multimem_all_gather_kernel<16>(char*)", WorkKind::all_gather},
    {"void c10d::symmetric_memory::barrier_kernel(unsigned int**)", WorkKind::other_collective},
    {"void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>", WorkKind::all_reduce},
    {"void userbuffers_fp16_sum_inplace_gpu_rr_ag_oop<8>", WorkKind::other_collective},
    {"triton_poi_fused_all_gather_into_tensor_wait_tensor_2", WorkKind::memory_bound},
    {"triton_poi_fused__scaled_dot_product_flash_attention_clone_3", WorkKind::memory_bound},
    {"triton_red_fused_addmm_native_layer_norm_2", WorkKind::memory_bound},
    {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
     WorkKind::memory_bound},
    {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor>",
     WorkKind::memory_bound},
};

TEST(KindOfKernel, KnowsTheNamesOfLibraries) {
  for (const auto& [name, kind] : kKernels) {
    EXPECT_EQ(name_of(kind_of_kernel(name)), name_of(kind)) << name;
  }
}

TEST(KindOfCollective, KnowsPyTorchsNames) {
  // RECORD_PARAM_COMMS_DATA in pytorch/pytorch, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp,
  // and the marks of its profiling titles.
  EXPECT_EQ(kind_of_collective("_allgather_base"), WorkKind::all_gather);
  EXPECT_EQ(kind_of_collective("allgather_into_tensor_coalesced"), WorkKind::all_gather);
  EXPECT_EQ(kind_of_collective("_reduce_scatter_base"), WorkKind::reduce_scatter);
  EXPECT_EQ(kind_of_collective("allreduce"), WorkKind::all_reduce);
  EXPECT_EQ(kind_of_collective("all_to_allv"), WorkKind::all_to_all);
  EXPECT_EQ(kind_of_collective("nccl:all_to_all"), WorkKind::all_to_all);
  EXPECT_EQ(kind_of_collective("nccl:send 0->1"), WorkKind::send_recv);
  EXPECT_EQ(kind_of_collective("broadcast"), WorkKind::other_collective);
}

TEST(KindOfCopy, IsMemoryBoundWithinTheDevice) {
  EXPECT_EQ(kind_of_copy("Memcpy DtoD (Device -> Device)"), WorkKind::memory_bound);
  EXPECT_EQ(kind_of_copy("Memset (Device)"), WorkKind::memory_bound);
  EXPECT_EQ(kind_of_copy("Memcpy HtoD (Pinned -> Device)"), WorkKind::copy);
  EXPECT_EQ(kind_of_copy("Memcpy PtoP (Device -> Device)"), WorkKind::copy);
}

}  // namespace
}  // namespace shardwise::sim
