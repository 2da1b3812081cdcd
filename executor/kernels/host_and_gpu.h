#pragma once

// The host and kernels of GPUs compute it alike.
#ifdef __CUDACC__
#define SHARDWISE_HOST_AND_GPU __host__ __device__
#else
#define SHARDWISE_HOST_AND_GPU
#endif
