#pragma once

// cuBLASLt without a GPU: the real library's descriptors, which work without one, and on the host
// our own heuristics and product of what they say. It refuses sizes, types, strides, alignments and
// epilogues that cuBLASLt documents as wrong, with a complaint each. Not seen: speed, and which
// products the real heuristics have no algorithm for. Any thread may call.
#include <cublasLt.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "executor/kernels/cuda/cublaslt_library.h"

namespace fake_cublaslt {

/// Begins a test: nothing fails, is refused or was complained of.
/// \throws shardwise::exec::CublasLtError where the real library is not there
shardwise::exec::CublasLtLibrary reset();

/// Has a call fail once, the `nth` from now on, from 0: it does nothing (one
/// that gives back does so) and returns `status`.
void fail(const std::string& call, int nth, cublasStatus_t status);
/// Names of all calls that return a status.
std::vector<std::string> names();
/// How often each call was made since reset().
std::map<std::string, int> calls();
/// Whether a call has failed because fail() said so.
bool has_failed();
/// Calls that cuBLASLt's documentation forbids, one line each.
std::vector<std::string> complaints();
/// Objects that were made and not given back, one a line; empty for none.
std::string left_over();

/// The heuristics have nothing for an epilogue from now on, and say so by `status`.
void refuse(cublasLtEpilogue_t epilogue, cublasStatus_t status = CUBLAS_STATUS_NOT_SUPPORTED);
/// Products fail with `status` from now on where they run by the algorithm.
void refuse_algorithm(int algorithm, cublasStatus_t status);

/// One product that was issued.
struct Ran {
  int algorithm = 0;  // kUnordered …
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::int64_t d_stride = 0;  // elements from column to column
};
std::vector<Ran> ran();
/// Algorithms of the heuristics, in this order, whatever reductions are asked for.
enum Algorithm { kUnordered = 1, kPlain, kSplit };
inline constexpr std::int64_t kSplitWorkspace = std::int64_t{1} << 20;

/// Puts a product into a stream; at once until another is set.
using Enqueue = std::function<void(cudaStream_t stream, const char* name, std::function<void()>)>;
void set_enqueue(Enqueue enqueue);

}  // namespace fake_cublaslt
