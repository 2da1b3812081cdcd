#!/usr/bin/env python3
"""The kernels of this build are no worse than docs/measurements/gpu_kernels.md has them, and a worse one is found.

tests/scripts/kernel_table_test.py ARCHIVE COMPILER INCLUDE   INCLUDE: the folder of cuda_occupancy.h
Loads and stores are compared where NVIDIA's cuobjdump and nvdisasm are on this machine. Exit code 77, with the reason, where
the archive has no code for sm_90.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import device_code
import kernel_table

# CUDA's own rule, which needs no GPU and no runtime.
OCCUPANCY = """
#include <cuda_occupancy.h>
#include <cstdio>
int main() {
  cudaOccDeviceProp gpu;
  gpu.computeMajor = 9, gpu.computeMinor = 0, gpu.maxThreadsPerBlock = 1024, gpu.maxThreadsPerMultiprocessor = 2048;
  gpu.regsPerBlock = gpu.regsPerMultiprocessor = 65536, gpu.warpSize = 32, gpu.numSms = 132;
  gpu.sharedMemPerBlock = 49152, gpu.sharedMemPerMultiprocessor = 233472, gpu.sharedMemPerBlockOptin = 232448;
  gpu.reservedSharedMemPerBlock = 1024;
  int threads, registers, shared;
  while (std::scanf("%d %d %d", &threads, &registers, &shared) == 3) {
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = 1024, kernel.numRegs = registers, kernel.sharedSizeBytes = 0;
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF, kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = 232448, kernel.numBlockBarriers = 1;
    const cudaOccDeviceState state;
    cudaOccResult result;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &gpu, &kernel, &state, threads, shared) != CUDA_OCC_SUCCESS) return 1;
    std::printf("%d\\n", result.activeBlocksPerMultiprocessor);
  }
}
"""


def expect_cudas_blocks(compiler, include):
    asked = [(threads, registers, shared) for threads in (1, 32, 64, 96, 128, 256, 512, 1024) for registers in range(16, 256)
             for shared in (0, 64, 1000, 30000, 101376) if threads * registers <= kernel_table.REGISTERS // 2]
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder, "occupancy.cc"), pathlib.Path(folder, "occupancy")
        source.write_text(OCCUPANCY)
        subprocess.run([compiler, "-w", "-I", include, str(source), "-o", str(program)], check=True)
        done = subprocess.run([str(program)], input="".join(f"{t} {r} {s}\n" for t, r, s in asked), capture_output=True,
                              text=True, check=True)
    answers = [int(each) for each in done.stdout.split()]
    assert len(answers) == len(asked), (len(answers), len(asked))
    for (threads, registers, shared), answer in zip(asked, answers):
        blocks = kernel_table.blocks_of(threads, registers, shared + kernel_table.RESERVED)
        assert blocks == answer, f"{threads} threads, {registers} registers, {shared} B: {blocks} blocks, CUDA says {answer}"


def expect_worse_ones_are_found(version, rows):
    # A page needs moves: those of a kernel by vectors where nothing here can read them.
    vectors, none = dict.fromkeys(kernel_table.WIDTHS, 0) | {128: 2}, dict.fromkeys(kernel_table.WIDTHS, 0)
    rows = {key: {"loads": vectors, "stores": vectors, "branches": 1, **row} for key, row in rows.items()}
    page = kernel_table.page_of(version, rows)
    assert kernel_table.worse(version, rows, page) == [], "a page made of this build is no worse than itself"
    key = next(key for key in sorted(rows) if rows[key]["blocks"] >= 2 and rows[key]["loads"][128])
    row, says = rows[key], ": ".join(key)
    planted = {
        "spills registers": {"spilled": 4},
        f"{row['blocks'] - 1} blocks on a multiprocessor, {row['blocks']} in the page": {"blocks": row["blocks"] - 1},
        f"{row['registers'] + 1} registers, {row['registers']} in the page": {"registers": row["registers"] + 1},
        "its widest loads move 64 bits, 128 in the page": {"loads": none | {64: 4}},
    }
    for message, change in planted.items():
        found = kernel_table.worse(version, {**rows, key: {**row, **change}}, page)
        assert len(found) == 1 and found[0].startswith(says) and message in found[0], (message, found)
    more = {**row, "registers": row["registers"] + 1}
    assert kernel_table.worse("0.0.0", {**rows, key: more}, page) == [], "registers of another compiler are not compared"
    fewer = {each: rows[each] for each in rows if each != key}
    assert kernel_table.worse(version, fewer, page) == [f"{says}: in the page, and not in the build"]
    assert kernel_table.worse(version, rows, kernel_table.page_of(version, fewer)) == [f"{says}: not in the page"]


def expect_cuobjdumps_numbers(archive):
    """Registers, shared and local memory as we read them are those that cuobjdump reads."""
    usage = kernel_table.said(kernel_table.folder_of_tools(), "--dump-resource-usage", "-arch", "sm_90", archive)
    theirs = {symbol: dict(re.findall(r"([A-Z]+):(\d+)", line)) for symbol, line in re.findall(r"Function (\S+):\n\s*(.*)", usage)}
    _, kernels = device_code.kernels_of(archive, 90)
    assert {symbol for _, symbol, _ in kernels} == theirs.keys(), (len(kernels), len(theirs))
    for _, symbol, ours in kernels:
        said = tuple(int(theirs[symbol][name]) for name in ("REG", "SHARED", "STACK"))
        assert (ours["registers"], ours["shared"], ours["local"]) == said, (symbol, ours, said)


def main():
    archive, compiler, include = sys.argv[1:]
    expect_cudas_blocks(compiler, include)
    codes = {}
    try:
        codes = kernel_table.code_of(archive)
        expect_cuobjdumps_numbers(archive)
    except kernel_table.Missing as missing:
        print(f"loads and stores are not compared: {missing}")
    try:
        version, rows = kernel_table.kernels_of(archive, codes)
    except kernel_table.Missing as missing:
        print(f"skipped: {missing}")
        return 77
    expect_worse_ones_are_found(version, rows)
    found = kernel_table.worse(version, rows, kernel_table.PAGE.read_text(encoding="utf-8"))
    print("\n".join(found) or f"{len(rows)} kernels of ptxas {version}, none worse than the page has it")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
