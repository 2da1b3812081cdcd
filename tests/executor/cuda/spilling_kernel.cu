// A kernel that nvcc must refuse: an array that is indexed at run time lies in local memory.
__global__ void in_local_memory(const int* at, float* out) {
  float held[64];
  for (int i = 0; i < 64; ++i) held[i] = out[i * threadIdx.x];
  for (int i = 0; i < 64; ++i) out[i] = held[at[i] & 63];
}
