#!/usr/bin/env python3
"""Writes a trace as torch.profiler does, as large as asked, for timing `shardwise simulate --import`.

    tests/bench/profiler_trace.py trace.json --megabytes 2000
"""

import argparse

KERNELS = [
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_32x3_tn_align8>()",
    "ncclDevKernel_AllGather_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int)",
]

HEAD = """{
  "schemaVersion": 1,
  "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
  "traceEvents": [
"""

STEP = """  {
    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d", "pid": 4000, "tid": 4000,
    "ts": %s, "dur": 19000.000
  },
"""

# An operator, its launch, its kernel and the arrow between them.
LAUNCH = """  {
    "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 4000, "tid": 4000,
    "ts": %(ts)s, "dur": 8.211,
    "args": {
      "External id": %(id)d, "Record function id": 0, "Ev Idx": %(id)d,
      "Input Dims": [[4096, 4096], [4096, 14336]], "Input type": ["c10::BFloat16", "c10::BFloat16"]
    }
  },
  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4000, "tid": 4000,
    "ts": %(ts)s, "dur": 4.105,
    "args": {
      "External id": %(id)d, "cbid": 211, "correlation": %(id)d
    }
  },
  {
    "ph": "X", "cat": "kernel", "name": "%(kernel)s", "pid": 0, "tid": 7,
    "ts": %(ts)s, "dur": 8.704,
    "args": {
      "External id": %(id)d, "queued": 0, "device": 0, "context": 1, "stream": 7,
      "correlation": %(id)d, "registers per thread": 128, "shared memory": 49152,
      "blocks per SM": 3.878788, "warps per SM": 31.030304, "grid": [128, 4, 1],
      "block": [256, 1, 1], "est. achieved occupancy %%": 48
    }
  },
  {
    "ph": "f", "id": %(id)d, "pid": 0, "tid": 7, "ts": %(ts)s, "cat": "ac2g", "name": "ac2g",
    "bp": "e"
  },
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--megabytes", type=int, default=200)
    options = parser.parse_args()
    written, launches, nanoseconds = 0, 0, 1712195495505583123
    with open(options.file, "w", encoding="utf-8") as trace:
        trace.write(HEAD)
        while written < options.megabytes * 1_000_000:
            start = "%d.%03d" % divmod(nanoseconds, 1000)
            if launches % 2000 == 0:
                trace.write(STEP % (launches // 2000, start))
            kernel = KERNELS[launches % len(KERNELS)]
            written += trace.write(LAUNCH % {"ts": start, "id": launches, "kernel": kernel})
            launches += 1
            nanoseconds += 10321
        trace.write('  {"ph": "i", "name": "end", "pid": 0, "tid": 0, "ts": %s}\n]}\n' % start)


if __name__ == "__main__":
    main()
