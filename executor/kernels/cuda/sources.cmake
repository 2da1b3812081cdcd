# The kernels of GPUs, an operation a file. nvcc compiles them for GPUs (executor/kernels/cuda), the
# host compiler for tests (tests/support/host_cuda).
set(shardwise_cuda_kernels
  adamw.cu
  attention/attention.cu
  attention/attention_backward.cu
  attention/attention_mma.cu
  attention/attention_mma_backward.cu
  attention/rope.cu
  embedding.cu
  gelu.cu
  layer_norm.cu
  products/cross_entropy.cu
  products/gemm.cu
  rms_norm.cu
  squares.cu
  sum_ranks.cu
  swiglu.cu
  tensor_view.cu)
list(TRANSFORM shardwise_cuda_kernels PREPEND ${PROJECT_SOURCE_DIR}/executor/kernels/)
# As the CPU's: no fused multiply-adds.
set_source_files_properties(${PROJECT_SOURCE_DIR}/executor/kernels/adamw.cu PROPERTIES
  COMPILE_OPTIONS "$<IF:$<COMPILE_LANGUAGE:CUDA>,-fmad=false,-ffp-contract=off>")
