#pragma once

// A fake of NCCL under its own prototypes (nccl.h), on the streams of fake_cuda.h, for ranks that
// are threads of one process, or processes that meet in a folder, without messages. Communicators
// are non-blocking: they are in progress until all ranks have come. Sums begin behind the owner of
// a piece, as a ring's do. Collectives that differ between ranks in order, kind, size or type are
// named in complaints() of the CUDA fake and move nothing; those that not all ranks issue keep
// their streams. Any call may be in progress when it returns, and is then issued when it has been
// asked for a few times. A communicator that a graph holds ends when the graph is gone. Not seen:
// time, transports.
#include <nccl.h>

#include <string>
#include <vector>

namespace fake_nccl {

/// Begins a test, after fake_cuda::reset(): all communicators are gone. `version` is what
/// ncclGetVersion says.
void reset(int version = NCCL_VERSION_CODE);
/// This process is one rank of several, which share an empty folder.
void meet_in(const std::string& folder);
/// Collectives and messages that some ranks have issued and others have not, one line each that
/// names both.
std::vector<std::string> unfinished();
/// Communicators that were made and not given back.
int left_over();
/// Communicators made so far, those of all ranks counted once, by their names.
std::vector<std::string> communicators();
/// From now on the communicators whose names begin with `name` tell of an error that happened
/// since.
void break_later(const std::string& name, ncclResult_t error);
/// From now on a call that makes communicators, ncclCommInitRankConfig or ncclCommSplit, stays in
/// progress for ever.
void never_end(const std::string& call);
/// Whether GPUs can map one another's memory. Where they cannot, windows are registered as none.
void set_symmetric(bool can);

}  // namespace fake_nccl
